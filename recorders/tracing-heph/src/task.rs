//! Numbers of tokio's tasks.

use std::hash::{Hash, Hasher};

/// The number of a task, which tokio gives only as text or as what is hashed: taken from the latter, as text is slow.
pub(crate) fn number(id: tokio::task::Id) -> u64 {
    let mut first = First(None);
    id.hash(&mut first);
    first.0.unwrap_or(0)
}

/// Keeps the first number that is hashed.
struct First(Option<u64>);

impl Hasher for First {
    fn finish(&self) -> u64 {
        self.0.unwrap_or(0)
    }

    fn write(&mut self, bytes: &[u8]) {
        // How tokio's number is hashed is not promised: other bytes are folded together.
        let folded = bytes.iter().fold(0_u64, |all, byte| all.rotate_left(8) ^ u64::from(*byte));
        self.0.get_or_insert(folded);
    }

    fn write_u64(&mut self, number: u64) {
        self.0.get_or_insert(number);
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn a_task_has_the_number_it_prints() {
        let id = tokio::spawn(async { tokio::task::id() }).await.unwrap();
        assert_eq!(super::number(id).to_string(), id.to_string());
    }
}

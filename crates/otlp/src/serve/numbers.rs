//! Small numbers for long ids.

use anytrace_core::hash::Map;

/// Ids of a generation. What is not met again while twice as many others are is forgotten.
const IDS: usize = 1 << 16;

/// Numbers from 1 for ids, in the order in which they are met. Memory is bounded: an id that was forgotten gets another
/// number.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    young: Map<u128, u64>,
    old: Map<u128, u64>,
    last: u64,
}

impl Numbers {
    /// The number of an id.
    pub(crate) fn of(&mut self, id: u128) -> u64 {
        if let Some(&number) = self.young.get(&id) {
            return number;
        }
        let number = self.old.get(&id).copied().unwrap_or_else(|| {
            self.last += 1;
            self.last
        });
        if self.young.len() >= IDS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_use_keep_their_numbers_and_memory_is_bounded() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.of(77), numbers.of(5), numbers.of(77)), (1, 2, 1));
        for id in 100..1_000_000 {
            numbers.of(id);
            if id % 1000 == 0 {
                assert_eq!(numbers.of(77), 1);
            }
        }
        assert!(numbers.young.len() + numbers.old.len() <= 2 * IDS);
        assert!(numbers.of(5) > 2, "forgotten");
    }
}

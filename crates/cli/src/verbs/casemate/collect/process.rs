//! Whether the process that writes is still there.

use std::fs;

/// A process, recognized by when it began: its number may be given to another one later.
#[derive(Default)]
pub(super) struct Process {
    /// The one that the user named.
    asked: Option<u64>,
    known: Option<(u64, Option<String>)>,
}

impl Process {
    pub(super) fn new(asked: Option<u64>) -> Self {
        Self { asked, known: None }
    }

    /// The number of the process if it is gone. `named` is the one in the memory.
    pub(super) fn gone(&mut self, named: Option<u64>) -> Option<u64> {
        let number = self.asked.or(named)?;
        let start = start_of(number);
        match &self.known {
            Some((known, began)) if *known == number => (start.is_none() || start != *began).then_some(number),
            _ => {
                self.known = Some((number, start.clone()));
                start.is_none().then_some(number)
            }
        }
    }
}

/// When a process began, in the kernel's unit; none where it is gone, or dead and not yet waited for.
fn start_of(number: u64) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio, id};

    use super::*;

    #[test]
    fn a_process_is_gone_when_it_is_dead_or_another_has_its_number() {
        let mut own = Process::new(None);
        assert_eq!((own.gone(None), own.gone(Some(id().into())), own.gone(Some(id().into()))), (None, None, None));
        own.known = Some((id().into(), Some("1".to_owned())));
        assert_eq!(own.gone(Some(id().into())), Some(id().into()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let number = u64::from(child.id());
        let mut process = Process::new(Some(number));
        assert_eq!(process.gone(Some(1)), None);
        child.kill().unwrap();
        while process.gone(Some(1)).is_none() {}
        child.wait().unwrap();
        assert_eq!(process.gone(None), Some(number));
        assert_eq!(Process::new(None).gone(Some(u64::MAX)), Some(u64::MAX));
    }
}

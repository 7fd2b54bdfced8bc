//! What the recorder says it lost: it runs in another process, whose exit code is the program's own.
//!
//! The recorder's `loss.rs` describes the file that it leaves its word in.

use std::fs;
use std::io::Write;
use std::process::Command;

/// Names the file to the recorder.
const VARIABLE: &str = "CACHERAY_LOSS";
/// Bytes of the file: there from the beginning, as there may be no room for more when they are needed.
const BYTES: usize = 4096;
/// Where the reason begins.
const REASON: usize = 8;

/// The file, as long as the program runs.
pub(super) struct Watch(tempfile::NamedTempFile);

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Losses that were noted, of all processes together.
    pub(super) count: u32,
    /// The first one's reason.
    pub(super) reason: String,
}

impl Watch {
    /// Makes the file and names it to the program.
    pub(super) fn begin(command: &mut Command) -> std::io::Result<Self> {
        let mut file = tempfile::Builder::new().prefix("anytrace-loss-").tempfile()?;
        file.write_all(&[0; BYTES])?;
        command.env(VARIABLE, file.path());
        Ok(Self(file))
    }

    /// What was lost, if anything.
    pub(super) fn end(self) -> std::io::Result<Option<Loss>> {
        Ok(loss(&fs::read(self.0.path())?))
    }
}

fn loss(bytes: &[u8]) -> Option<Loss> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    let (state, count) = (word(0)?, word(4)?);
    if count == 0 {
        return None;
    }
    let reason = bytes.get(REASON..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
    let is_whole = state == 2 && !reason.is_empty();
    let reason = if is_whole { String::from_utf8_lossy(reason).into_owned() } else { "the recorder failed".to_owned() };
    Some(Loss { count, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_how_often_and_why_first() {
        let file = |state: u32, count: u32, reason: &str| {
            let mut bytes = [state.to_ne_bytes(), count.to_ne_bytes()].concat();
            bytes.extend_from_slice(reason.as_bytes());
            bytes.resize(BYTES, 0);
            loss(&bytes)
        };
        let lost = |count, reason: &str| Some(Loss { count, reason: reason.to_owned() });
        assert_eq!(file(0, 0, ""), None);
        assert_eq!(file(2, 3, "no room"), lost(3, "no room"));
        assert_eq!(file(1, 1, "no ro"), lost(1, "the recorder failed"));
        assert_eq!(loss(&[]), None);
        let mut command = Command::new("true");
        assert_eq!(Watch::begin(&mut command).unwrap().end().unwrap(), None);
    }
}

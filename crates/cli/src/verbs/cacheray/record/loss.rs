//! What the recorder reports as lost: it runs in another process, whose exit code is the program's own.
//!
//! The recorder's `loss.rs` describes the file that it leaves its word in.

use std::fs;
use std::io::Write;
use std::process::Command;

/// Names the file to the recorder.
const VARIABLE: &str = "CACHERAY_LOSS";
/// Bytes of the file: there from the beginning, as there may be no room for more when they are needed.
const BYTES: usize = 16384;
/// Where the reason begins.
const REASON: usize = 8;
/// How many processes had no word of their own, and where those words begin: the number of each process that has records
/// in memory.
const UNFOLLOWED: usize = REASON + 1024;
const PROCESSES: usize = UNFOLLOWED + 4;

/// The file, as long as the program runs.
pub(super) struct Watch(tempfile::NamedTempFile);

/// What it says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// What is lost, if anything.
    pub(super) loss: Option<Loss>,
    /// Processes that live and are being recorded.
    pub(super) running: Vec<u32>,
    /// Processes of which nothing is known, being too many.
    pub(super) unfollowed: u32,
}

/// What is lost.
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

    /// What was lost, if anything, once the program has ended; of `killed`, the program itself, it is said elsewhere.
    pub(super) fn end(self, killed: Option<u32>) -> std::io::Result<Report> {
        Ok(report(&fs::read(self.0.path())?, killed, is_running))
    }
}

fn report(bytes: &[u8], killed: Option<u32>, is_running: impl Fn(u32) -> bool) -> Report {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    let processes =
        bytes.get(PROCESSES..).unwrap_or_default().as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
    let open = processes.filter(|process| *process != 0 && Some(*process) != killed);
    let (running, ended): (Vec<_>, Vec<_>) = open.partition(|process| is_running(*process));
    let said = loss(bytes);
    let count =
        said.as_ref().map_or(0, |loss| loss.count).saturating_add(u32::try_from(ended.len()).unwrap_or(u32::MAX));
    let abrupt = ended.first().map(|process| {
        format!("process {process} was killed, or ended without exit: its last records, still in the recorder's buffer, are lost")
    });
    let reason = said.map(|loss| loss.reason).or(abrupt);
    Report { loss: reason.map(|reason| Loss { count, reason }), running, unfollowed: word(UNFOLLOWED).unwrap_or(0) }
}

/// True for a process that lives; one that only waits to be asked for its end does not.
fn is_running(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The name in brackets may have anything in it.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    !matches!(state, Some("Z" | "X" | "x"))
}

fn loss(bytes: &[u8]) -> Option<Loss> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
    let (state, count) = (word(0)?, word(4)?);
    if count == 0 {
        return None;
    }
    let reason = bytes.get(REASON..UNFOLLOWED).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
    let is_complete = state == 2 && !reason.is_empty();
    let reason =
        if is_complete { String::from_utf8_lossy(reason).into_owned() } else { "the recorder failed".to_owned() };
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
        assert_eq!(Watch::begin(&mut command).unwrap().end(None).unwrap(), Report::default());
    }

    #[test]
    fn processes_that_left_their_number_lost_records_unless_they_live() {
        let file = |processes: &[u32], count: u32| {
            let mut bytes = vec![0; BYTES];
            bytes[4..8].copy_from_slice(&count.to_ne_bytes());
            for (n, process) in processes.iter().enumerate() {
                bytes[PROCESSES + n * 4..][..4].copy_from_slice(&process.to_ne_bytes());
            }
            report(&bytes, Some(9), |process| process == 7)
        };
        assert_eq!(file(&[0, 9], 0), Report::default());
        let found = file(&[7, 0, 5, 6, 9], 0);
        assert_eq!(found.running, [7]);
        let loss = found.loss.unwrap();
        assert!(loss.count == 2 && loss.reason.starts_with("process 5 was killed"), "{loss:?}");
        assert_eq!(file(&[5], 3).loss, Some(Loss { count: 4, reason: "the recorder failed".to_owned() }));
        assert!(is_running(std::process::id()) && !is_running(u32::MAX));
    }
}

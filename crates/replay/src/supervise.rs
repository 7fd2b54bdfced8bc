//! Has another process replay, and says how it ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::watch::Watch;

/// How often the process is looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// How a replaying process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code; it has said what there is to say.
    Exited(i32),
    /// By a signal, at this call.
    Crashed {
        /// The signal's number.
        signal: i32,
        /// The call's number and function; `None`: before the first.
        call: Option<(u64, String)>,
    },
    /// It was killed, because it was at this call for too long.
    Hung {
        /// As above.
        call: Option<(u64, String)>,
    },
}

/// Ends this process when the one that waits for it ends, however that happens.
#[allow(unsafe_code, reason = "a setting of this process, by a call of the system")]
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes a signal's number and touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Runs the command, which writes to the watch, to its end. `patience`: how long the driver may be at one call. What the
/// process does meanwhile, such as reading a large trace, does not count.
///
/// # Errors
/// The process cannot be started or waited for.
pub fn supervise(command: &mut Command, watch: &Watch, patience: Option<Duration>) -> io::Result<Ended> {
    let mut child = command.spawn()?;
    let mut last = (None, Instant::now());
    loop {
        let status = match patience {
            None => Some(child.wait()?),
            Some(_) => child.try_wait()?,
        };
        if let Some(status) = status {
            return Ok(match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exited(code),
                (None, signal) => Ended::Crashed { signal: signal.unwrap_or(0), call: watch.read() },
            });
        }
        let now = watch.work();
        if now != last.0 || now.is_none() {
            last = (now, Instant::now());
        }
        if patience.is_some_and(|patience| last.1.elapsed() > patience) {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::Hung { call: watch.read() });
        }
        std::thread::sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn exits_crashes_and_hangs_are_told_apart() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let watch = Watch::create(file.path()).unwrap();
        assert_eq!(supervise(&mut shell("exit 3"), &watch, None).unwrap(), Ended::Exited(3));
        Watch::open(file.path()).unwrap().at(7, "glFinish");
        let call = Some((7, "glFinish".to_owned()));
        let crashed = supervise(&mut shell("kill -SEGV $$"), &watch, Some(Duration::from_secs(60))).unwrap();
        assert_eq!(crashed, Ended::Crashed { signal: 11, call: call.clone() });
        let patience = Some(Duration::from_millis(100));
        let hung = supervise(&mut shell("exec sleep 60"), &watch, patience).unwrap();
        assert_eq!(hung, Ended::Hung { call });
        // A process that reads the trace is waited for.
        Watch::open(file.path()).unwrap().idle();
        assert_eq!(supervise(&mut shell("sleep 0.5; exit 0"), &watch, patience).unwrap(), Ended::Exited(0));
    }
}

//! Runs the program once, within limits of memory and time, and says how it ended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use wait4::Wait4;

/// No output of an input this small is longer.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// How a run of the program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` for a signal.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stopped: Option<&'static str>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    /// Most memory that was resident at once, and CPU time.
    pub(super) memory_bytes: u64,
    pub(super) cpu: Duration,
}

/// The limits of all programs that are run: they inherit those of the campaign, which has its own back when this is
/// dropped. What runs after a campaign, such as a compiler, needs more.
pub(super) struct Limited(Vec<(Resource, u64)>);

impl Limited {
    /// Limits of memory, and of the length of a file.
    pub(super) fn new(mebibytes: u64) -> Result<Self, String> {
        let failed = |error: nix::Error| format!("cannot set a limit: {error}");
        let mut before = Self(Vec::new());
        let wanted = [
            (Resource::RLIMIT_AS, mebibytes << 20),
            (Resource::RLIMIT_FSIZE, OUTPUT_BYTES_MAX),
            (Resource::RLIMIT_CORE, 0),
        ];
        for (resource, limit) in wanted {
            let (soft, hard) = getrlimit(resource).map_err(failed)?;
            // Only the soft limit: a process cannot raise the hard one again.
            setrlimit(resource, limit.min(hard), hard).map_err(failed)?;
            before.0.push((resource, soft));
        }
        Ok(before)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        for (resource, soft) in &self.0 {
            let restored = getrlimit(*resource).and_then(|(_, hard)| setrlimit(*resource, *soft, hard));
            if let Err(error) = restored {
                eprintln!("cannot restore a limit: {error}");
            }
        }
    }
}

/// Starts programs and ends those that take too long.
pub(super) struct Runner {
    program: PathBuf,
    cpu_max: Duration,
    /// What runs, by process, and since when. A process is taken out before it is waited for, so that no other can
    /// have its number while it is here.
    running: Mutex<BTreeMap<i32, (Instant, Option<&'static str>)>>,
    is_over: AtomicBool,
    pub(super) started: AtomicU64,
}

impl Runner {
    pub(super) fn new(program: &Path, cpu_max: Duration) -> Self {
        Self {
            program: program.to_owned(),
            cpu_max,
            running: Mutex::default(),
            is_over: AtomicBool::new(false),
            started: AtomicU64::new(0),
        }
    }

    /// What is run.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs the program in a folder; its own temporary files go to `folder/tmp`.
    pub(super) fn run(&self, folder: &Path, arguments: &[String], stdin: Option<&[u8]>) -> Result<Ended, String> {
        let failed = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
        let beside = |ending: &str| folder.with_extension(ending);
        let (out, err) = (beside("stdout"), beside("stderr"));
        let create = |path: &Path| File::create(path).map_err(failed("cannot capture output"));
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(folder).stdout(create(&out)?).stderr(create(&err)?);
        command.env("TMPDIR", folder.join("tmp")).env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
        let writer = match stdin {
            None => {
                command.stdin(Stdio::null());
                None
            }
            Some(bytes) => {
                let (reader, writer) = std::io::pipe().map_err(failed("no pipe"))?;
                command.stdin(reader);
                Some((writer, bytes))
            }
        };
        forget_peak();
        let child = command.spawn().map_err(failed("cannot start the program"))?;
        let own_peak_bytes = peak_bytes();
        drop(command);
        self.started.fetch_add(1, Ordering::Relaxed);
        let id = child.id() as i32;
        self.lock().insert(id, (Instant::now(), None));
        if let Some((mut writer, bytes)) = writer {
            // Who does not read to the end may close it.
            let _ = writer.write_all(bytes);
        }
        let _ = waitid(Id::Pid(Pid::from_raw(id)), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        let stopped = self.lock().remove(&id).and_then(|(_, stopped)| stopped);
        let used = child.wait4().map_err(failed("cannot wait for the program"))?;
        let status = used.status;
        // Until it runs the program, the new process has the memory of this one, which the kernel counts as its own.
        let memory_bytes = if used.rusage.maxrss > own_peak_bytes { used.rusage.maxrss } else { 0 };
        Ok(Ended {
            memory_bytes,
            cpu: used.rusage.utime + used.rusage.stime,
            code: status.code(),
            signal: status.signal(),
            stopped,
            stdout: fs::read(&out).map_err(failed("cannot read what was printed"))?,
            stderr: String::from_utf8_lossy(&fs::read(&err).unwrap_or_default()).into_owned(),
        })
    }

    /// Ends what takes too long, until [`Runner::finish`].
    pub(super) fn watch(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            for (id, (since, stopped)) in self.lock().iter_mut() {
                let waited = since.elapsed();
                if waited < self.cpu_max || stopped.is_some() {
                    continue;
                }
                // Other loads of the machine must not look like a slow program, but one that waits for itself must
                // end, too.
                let cpu = cpu_of(*id);
                if cpu > self.cpu_max || waited > self.cpu_max * 12 {
                    *stopped = Some(if cpu > self.cpu_max { "took too much CPU time" } else { "did not end" });
                    let _ = kill(Pid::from_raw(*id), Signal::SIGKILL);
                }
            }
        }
    }

    pub(super) fn finish(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, (Instant, Option<&'static str>)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resets the peak memory of this process, after a long output, say; see proc(5), `clear_refs`.
fn forget_peak() {
    // Where that is not possible, fewer runs have a figure.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that was resident at once in this process.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// CPU time of a process so far.
fn cpu_of(id: i32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name in parentheses may have spaces in it; after it, user and system time are the 12th and 13th.
    let behind = stat.rsplit(')').next().unwrap_or("");
    let ticks: u64 = behind.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the shell says of its limit of memory.
    fn inherited() -> String {
        let output = Command::new("sh").args(["-c", "ulimit -v"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn limits_end_with_the_campaign() {
        let before = inherited();
        let limited = Limited::new(8192).unwrap();
        assert_eq!(inherited(), (8192 << 10).to_string());
        drop(limited);
        assert_eq!(inherited(), before);
    }
}

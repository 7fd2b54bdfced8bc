//! What a command used, with limits on what it may use.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};

use crate::shell::output;

/// Seconds of processor time after which a command is ended.
const CPU_MAX_S: u64 = 40;

/// Bytes of address space it gets.
const MEMORY_MAX: u64 = 8 << 30;

/// Most bytes of its standard output that are read.
const PRINTED_MAX: u64 = 2 << 30;

/// What a command used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) cpu_s: f64,
    pub(super) peak_mib: f64,
    /// Printed and written.
    pub(super) bytes: u64,
    /// Its exit code; -1 where it was ended by a signal.
    pub(super) status: i32,
}

impl Used {
    pub(super) fn is_ended(&self) -> bool {
        self.status >= 0
    }
}

/// Runs a command by a process of its own, so that what it used is its alone.
pub(super) fn measure(program: &Path, arguments: &[String]) -> Result<Used, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let text = output(Command::new(this).arg("used").arg(program).args(arguments))?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.split_whitespace().map(str::parse::<f64>);
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(Ok(cpu_s)), Some(Ok(peak_mib)), Some(Ok(bytes)), Some(Ok(status))) => {
            Ok(Used { cpu_s, peak_mib, bytes: bytes as u64, status: status as i32 })
        }
        _ => Err(format!("used printed {text:?}")),
    }
}

/// The arguments without `< FILE`, and standard input.
fn redirected(arguments: &[String]) -> Result<(Vec<&String>, Stdio), String> {
    let Some(at) = arguments.iter().position(|word| word == "<") else {
        return Ok((arguments.iter().collect(), Stdio::null()));
    };
    let path = arguments.get(at + 1).ok_or("< needs a file")?;
    let file = std::fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let rest = arguments.iter().enumerate().filter(|(place, _)| *place != at && *place != at + 1);
    Ok((rest.map(|(_, word)| word).collect(), file.into()))
}

/// `xtask used COMMAND…`: runs it, prints CPU s, peak MiB, bytes printed and the exit code.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let [program, rest @ ..] = arguments else { return Err("used COMMAND…".to_owned()) };
    // The child has our limits; we ourselves use next to nothing.
    for (resource, limit) in [(Resource::RLIMIT_CPU, CPU_MAX_S), (Resource::RLIMIT_AS, MEMORY_MAX)] {
        setrlimit(resource, limit, limit).map_err(|error| error.to_string())?;
    }
    let mut command = Command::new(program);
    let (rest, stdin) = redirected(rest)?;
    command.args(rest).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let printed = child.stdout.take().map_or(Ok(0), |pipe| {
        let mut sink = std::io::sink();
        std::io::copy(&mut pipe.take(PRINTED_MAX), &mut sink)
    });
    let status = child.wait().map_err(|error| error.to_string())?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let cpu_s = seconds(usage.user_time()) + seconds(usage.system_time());
    let peak_mib = usage.max_rss() as f64 / 1024.0;
    println!("{cpu_s} {peak_mib} {} {}", printed.unwrap_or(0), status.code().unwrap_or(-1));
    Ok(())
}

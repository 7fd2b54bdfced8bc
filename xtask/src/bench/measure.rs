//! One command, measured by the operating system's own accounting.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};

use crate::shell::output;

/// What a command used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// User and system time, in seconds.
    pub(crate) cpu_s: f64,
    /// Wall time, in seconds.
    pub(crate) wall_s: f64,
    /// Peak memory (`ru_maxrss`), in KiB.
    pub(crate) peak_kib: i64,
}

/// Runs a command by a process of its own, so that its peak memory is its alone.
pub(crate) fn measure(stdin: Option<&Path>, command: &[String]) -> Result<Usage, String> {
    measure_in(Path::new("."), stdin, command)
}

/// The same in a folder.
pub(crate) fn measure_in(folder: &Path, stdin: Option<&Path>, command: &[String]) -> Result<Usage, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let stdin = stdin.map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    let text = output(Command::new(this).current_dir(folder).arg("measure").arg(stdin).args(command))?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.split_whitespace().map(str::parse::<f64>);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(Ok(cpu_s)), Some(Ok(wall_s)), Some(Ok(peak))) => Ok(Usage { cpu_s, wall_s, peak_kib: peak as i64 }),
        _ => Err(format!("measure printed {text:?}")),
    }
}

/// `xtask measure STDIN COMMAND…`: runs it with its output thrown away, prints CPU s, wall s, peak KiB.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let [stdin, program, rest @ ..] = arguments else { return Err("measure STDIN COMMAND…".to_owned()) };
    let mut command = Command::new(program);
    command.args(rest).stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    if stdin != "-" {
        // Through a pipe, as `cat FILE | program` would: a redirected file could be mapped.
        command.stdin(Stdio::piped());
    }
    let start = std::time::Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let pump = child.stdin.take().map(|mut pipe| {
        let path = stdin.clone();
        std::thread::spawn(move || std::io::copy(&mut std::fs::File::open(path)?, &mut pipe))
    });
    let status = child.wait().map_err(|error| error.to_string())?;
    let wall = start.elapsed().as_secs_f64();
    if let Some(pump) = pump
        && let Ok(Err(error)) = pump.join()
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(format!("{stdin}: {error}"));
    }
    // `leaks` says with 1 that there are some; the large trace has.
    let has_found = status.code() == Some(1) && rest.iter().any(|word| word == "leaks");
    if !status.success() && !has_found {
        return Err(format!("{program} {}: {status}", rest.join(" ")));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    println!("{} {wall} {}", seconds(usage.user_time()) + seconds(usage.system_time()), usage.max_rss());
    Ok(())
}

/// `xtask read FILE`: reads a file and adds its bytes up, which no reader of a trace can beat by much: what else a row
/// of the table says is to be seen beside it, as machines with neighbors have fast hours and slow ones.
pub(crate) fn read(arguments: &[String]) -> Result<(), String> {
    let [path] = arguments else { return Err("read FILE".to_owned()) };
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut buffer = vec![0; 512 << 10];
    let mut sum = 0_u64;
    loop {
        let bytes = file.read(&mut buffer).map_err(failed)?;
        if bytes == 0 {
            println!("{sum}");
            return Ok(());
        }
        let words = buffer.get(..bytes).unwrap_or_default().as_chunks().0;
        sum = words.iter().fold(sum, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    }
}

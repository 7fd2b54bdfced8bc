//! `anytrace cacheray record`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_core::text::printable;
use anytrace_core::{Collect, Input, InputOptions, OpenOptions};
use clap::Args;

use super::recorder_library;
use crate::Verdict;
use crate::failure::Failure;
use crate::paint;
use crate::units::grouped;

mod loss;

/// `cacheray record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Trace to write; processes that the program forks get one each, OUT.PID. A FIFO or a device is fine
    #[arg(short, long, value_name = "OUT", default_value = "cacheray.trace")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Leave out allocations without a type of their own
    #[arg(long)]
    no_malloc: bool,
    /// Record the programs that the program starts as well, whatever they were built with
    #[arg(long)]
    children: bool,
    /// Longest access that copies are split into: 1 to 128 bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=128))]
    range: u8,
    /// Write after so many records, for a reader that follows [default: when the buffer is full]
    #[arg(long, value_name = "N")]
    flush: Option<u64>,
    /// Say nothing about the trace
    #[arg(short, long)]
    quiet: bool,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(crate) fn run(options: &RecordArguments) -> Result<Verdict, Failure> {
    let [program, arguments @ ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let is_file = look_at_output(&options.output, options.force)?;
    let build = Build::of(&which(program));
    if build == Build::Sanitizer {
        return Err(Failure::usage(format!(
            "{0} was linked with ThreadSanitizer itself; link it again with `anytrace cacheray cc`",
            program.display()
        )));
    }
    let mut command = Command::new(program);
    command.args(arguments).env("CACHERAY_OPTIONS", recorder_options(options)?).env_remove("CACHERAY_RECORDED");
    if build != Build::Recorder || options.children {
        preload(&mut command, options.children)?;
    }
    let watch = loss::Watch::begin(&mut command)
        .map_err(|error| Failure::usage(format!("cannot make a temporary file: {error}")))?;
    leave_interrupts();
    let before = traces(&options.output);
    let failed = |error: std::io::Error| Failure::usage(format!("cannot run {}: {error}", program.display()));
    let mut process = command.spawn().map_err(failed)?;
    let status = process.wait().map_err(failed)?;
    let is_killed = status.signal() == Some(SIGKILL);
    let after = watch
        .end(is_killed.then(|| process.id()))
        .map_err(|error| Failure::usage(format!("cannot read a temporary file: {error}")))?;
    let lost = after.loss.as_ref();
    if !options.quiet {
        let mut made = traces(&options.output);
        made.retain(|trace| !before.contains(trace));
        // Where there is no trace because it could not be written, that is the reason.
        if lost.is_none() || !made.is_empty() {
            report(&options.output, is_file.then_some(&made), build)?;
        }
        if is_killed {
            let what = "the program was killed: the last records, still in the recorder's buffer, are lost";
            paint::complain("note", what);
        }
        note_processes(&after);
    }
    let Some(lost) = lost else { return Ok(Verdict::Program(code(status))) };
    let more = if lost.count > 1 { format!(" ({} losses)", grouped(lost.count.into())) } else { String::new() };
    let output = options.output.display().to_string();
    paint::complain(
        "error",
        format!("{}: the trace is not whole: {}{more}", printable(&output), printable(&lost.reason)),
    );
    // A program that failed is what there is to say first.
    Ok(if status.success() { Verdict::Breach } else { Verdict::Program(code(status)) })
}

/// Says of which processes there may be more to come.
fn note_processes(after: &loss::Report) {
    let count = |processes: usize, verb: [&str; 2]| match processes {
        1 => format!("1 process {}", verb[0]),
        _ => format!("{} processes {}", grouped(processes as u128), verb[1]),
    };
    if let [first, ..] = after.running.as_slice() {
        let all =
            count(after.running.len(), ["that the program started still runs", "that the program started still run"]);
        paint::complain("note", format!("{all} (the first is {first}): more is being recorded"));
    }
    if after.unfollowed > 0 {
        let all = count(after.unfollowed as usize, ["was", "were"]);
        paint::complain("note", format!("{all} not followed: whether their last records are lost is not known"));
    }
}

/// The signal that nobody can catch.
const SIGKILL: i32 = 9;

/// An interrupt from the terminal reaches the program too, and is for it: what it leaves is reported all the same. Who
/// asks twice is not kept waiting.
fn leave_interrupts() {
    let asked = AtomicBool::new(false);
    // Without a handler the program is recorded just as well.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            // 128 + SIGINT, as shells report an interrupted program.
            std::process::exit(130);
        }
    });
}

/// What a program was linked with, as far as its bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// The recorder is in it.
    Recorder,
    /// ThreadSanitizer's own library is in it, or is asked for.
    Sanitizer,
    /// It calls the hooks, and expects them from elsewhere.
    Hooks,
    /// A script, or something that is found otherwise.
    Unknown,
    /// It calls no hooks.
    Plain,
}

impl Build {
    fn of(path: &Path) -> Self {
        let wanted = [
            "anytrace cacheray recorder is linked in",
            "libtsan.so",
            "ThreadSanitizer: ",
            "libanytrace_cacheray_recorder.so",
            "__tsan_",
        ];
        let Some([is_linked, is_tsan, is_static_tsan, is_needed, has_hooks]) = contains(path, wanted) else {
            return Self::Unknown;
        };
        match () {
            () if is_linked || is_needed => Self::Recorder,
            () if is_tsan || is_static_tsan => Self::Sanitizer,
            () if has_hooks => Self::Hooks,
            () => Self::Plain,
        }
    }
}

/// Which of the texts an ELF file has in it; `None` where it is no such file.
fn contains<const N: usize>(path: &Path, texts: [&str; N]) -> Option<[bool; N]> {
    /// More than the longest text: what a window ends with may begin one.
    const OVERLAP: usize = 64;
    let texts = regex::bytes::RegexSet::new(texts.map(regex::escape)).ok()?;
    let mut file = File::open(path).ok()?;
    let mut window = Vec::new();
    let mut found = [false; N];
    let mut is_first = true;
    loop {
        let n = Read::by_ref(&mut file).take(1 << 20).read_to_end(&mut window).ok()?;
        if is_first && !window.starts_with(b"\x7fELF") {
            return None;
        }
        is_first = false;
        for text in &texts.matches(&window) {
            if let Some(found) = found.get_mut(text) {
                *found = true;
            }
        }
        if n == 0 {
            return Some(found);
        }
        window.drain(..window.len().saturating_sub(OVERLAP));
    }
}

/// Where a program's file is.
fn which(program: &OsStr) -> PathBuf {
    let direct = PathBuf::from(program);
    if program.as_bytes().contains(&b'/') {
        return direct;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap_or(direct)
}

/// Refuses to replace a file; true when the trace will be one.
fn look_at_output(path: &Path, force: bool) -> Result<bool, Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::usage("standard output is the program's own; a trace may go through a FIFO"));
    }
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(Failure::usage(format!("cannot write {}: it is a directory", path.display()))),
        Ok(meta) if meta.is_file() && !force => {
            Err(Failure::usage(format!("{} exists; --force replaces it", path.display())))
        }
        Ok(meta) if meta.is_file() => {
            // What is reported afterwards must be of this run.
            fs::remove_file(path)
                .map_err(|error| Failure::usage(format!("cannot replace {}: {error}", path.display())))?;
            Ok(true)
        }
        Ok(_) => Ok(false),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if folder.is_dir() {
                return Ok(true);
            }
            Err(Failure::usage(format!("cannot write {}: {} is no folder", path.display(), folder.display())))
        }
    }
}

/// The environment variable: the user's own first, as the last word counts.
fn recorder_options(options: &RecordArguments) -> Result<OsString, Failure> {
    let output = std::path::absolute(&options.output).unwrap_or_else(|_| options.output.clone());
    if output.as_os_str().as_bytes().contains(&b':') {
        return Err(Failure::usage(format!(
            "{}: the recorder's options are divided by colons, so a path may not have one",
            output.display()
        )));
    }
    let mut text = std::env::var_os("CACHERAY_OPTIONS").unwrap_or_default();
    if !text.is_empty() {
        text.push(":");
    }
    text.push("enabled=1:tracefile=");
    text.push(output);
    text.push(format!(":range={}", options.range));
    if options.no_malloc {
        text.push(":malloc=0");
    }
    if let Some(records) = options.flush {
        text.push(format!(":flush={records}"));
    }
    Ok(text)
}

/// Loads the recorder into a program that was linked without it.
fn preload(command: &mut Command, children: bool) -> Result<(), Failure> {
    let library = recorder_library::find()?;
    let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let mut all = library.shared.into_os_string();
    if all.as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Err(Failure::usage(format!(
            "{}: a library to be preloaded may have neither space nor colon in its path",
            all.display()
        )));
    }
    if !before.is_empty() {
        all.push(":");
        all.push(&before);
    }
    command.env("LD_PRELOAD", all);
    if !children {
        command.env("CACHERAY_PRELOAD_BEFORE", before);
    }
    Ok(())
}

/// Says what was recorded.
fn report(output: &Path, made: Option<&Vec<PathBuf>>, build: Build) -> Result<(), Failure> {
    if build == Build::Plain {
        let help = "it was not built with `anytrace cacheray cc`, so only what it allocates is recorded";
        paint::complain("note", help);
    }
    let Some(made) = made else { return Ok(()) };
    match made.as_slice() {
        [] => {
            let why = "the program did not load the recorder: it is linked statically, or has special rights";
            Err(Failure::usage(format!("{}: nothing was recorded: {why}", output.display())))
        }
        all => {
            for trace in all {
                let (records, bytes) = count(trace)?;
                let name = trace.display();
                paint::complain("note", format!("{name}: {} records, {} bytes", grouped(records), grouped(bytes)));
            }
            Ok(())
        }
    }
}

/// The trace and those of forked processes, in order of their names.
fn traces(output: &Path) -> Vec<PathBuf> {
    let name = output.file_name().unwrap_or_default().as_bytes();
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_of_this = |file: &OsStr| {
        let rest = file.as_bytes().strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.is_empty()
                || (rest.starts_with(b".") && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
        })
    };
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name()).filter(|file| is_of_this(file));
    let mut found: Vec<_> =
        names.map(|file| folder.map_or_else(|| file.clone().into(), |folder| folder.join(&file))).collect();
    found.sort();
    found
}

/// Records and bytes of a trace.
fn count(path: &Path) -> Result<(u128, u128), Failure> {
    let name = path.display().to_string();
    let failed = |error: &anytrace_core::Error| Failure::of(&name, error);
    let input = Input::open(path, InputOptions::default()).map_err(|error| failed(&error))?;
    if input.head().bytes.is_empty() {
        return Ok((0, 0));
    }
    let Some(format) = anytrace_formats::by_name("cacheray") else { return Ok((0, 0)) };
    let trace = format.open(input, &OpenOptions::default()).map_err(|error| failed(&error))?;
    let info = trace.info(&mut Collect::default()).map_err(|error| failed(&error))?;
    Ok((info.records.into(), info.bytes.into()))
}

/// The program's code as a shell tells it.
fn code(status: ExitStatus) -> u8 {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(2)
}

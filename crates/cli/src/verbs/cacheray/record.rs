//! `anytrace cacheray record`.

mod build;
mod environment;
mod loss;
mod report;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::access::codes::beside;
use anytrace_core::text::printable;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::units::grouped;
use crate::verbs::recording::{SIGKILL, code, leave_interrupts, look_at_output, traces, which};
use crate::{Verdict, paint};
use build::Build;
use environment::{preload, recorder_options};
use report::{note_processes, report};

/// When threads append what they record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    Auto,
    Strict,
    Buffered,
}

/// `cacheray record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Trace to write; each forked process writes OUT.PID. May be a FIFO or a device
    #[arg(short, long, value_name = "OUT", default_value = "cacheray.trace")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Omit untyped allocations
    #[arg(long)]
    no_malloc: bool,
    /// Do not record variables and stacks as regions
    #[arg(long)]
    no_globals: bool,
    /// A function that allocates for others: what it returns is named after its callers. May be repeated; `*` ends a name
    /// of which more may follow
    #[arg(long, value_name = "NAME", conflicts_with = "keep_wrappers")]
    wrapper: Vec<OsString>,
    /// Name untyped allocations after the function that calls the allocator, whatever it is for
    #[arg(long)]
    keep_wrappers: bool,
    /// Callers in the names of untyped allocations, beside the place itself: up to 16
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=16))]
    callers: u8,
    /// Do not record where in the program accesses are made, which goes to OUT.pc
    #[arg(long)]
    no_pc: bool,
    /// Also record the programs it starts, however they were built
    #[arg(long)]
    children: bool,
    /// Split copies into accesses of at most this size: 1 to 128 bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=128))]
    range: u8,
    /// When threads append to the trace: `strict` at each access; `buffered` before other threads may come after them, by what
    /// the C library and atomic operations do; `auto` is strict where libraries are loaded that have other ways
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Order::Auto)]
    order: Order,
    /// Flush every N records, for a reader that follows [default: when the buffer is full]
    #[arg(long, value_name = "N")]
    flush: Option<u64>,
    /// Do not report on the trace
    #[arg(short, long)]
    quiet: bool,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl RecordArguments {
    /// Of a program, in the way that needs no options.
    pub(crate) fn of(output: PathBuf, force: bool, quiet: bool, command: Vec<OsString>) -> Self {
        Self {
            output,
            force,
            no_malloc: false,
            no_globals: false,
            wrapper: Vec::new(),
            keep_wrappers: false,
            callers: 0,
            no_pc: false,
            children: false,
            range: 16,
            order: Order::Auto,
            flush: None,
            quiet,
            command,
        }
    }
}

/// Removes the code addresses that belonged to a trace of this name.
fn forget_codes(output: &Path, force: bool) -> Result<(), Failure> {
    let file = beside(output);
    if !force && file.exists() {
        return Err(Failure::usage(format!("{} exists; use --force to replace it", file.display())));
    }
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::usage(format!("cannot replace {}: {error}", file.display())))
        }
        _ => Ok(()),
    }
}

pub(crate) fn run(options: &RecordArguments) -> Result<Verdict, Failure> {
    let [program, arguments @ ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let is_file = look_at_output(&options.output, options.force)?;
    // Code addresses of an earlier run would be taken for those of this one.
    forget_codes(&options.output, options.force)?;
    let build = Build::of(&which(program));
    if build == Build::Sanitizer {
        return Err(Failure::usage(format!(
            "{0} was linked with ThreadSanitizer; relink it with `anytrace cacheray cc`",
            program.display()
        )));
    }
    let mut command = Command::new(program);
    command.args(arguments).env("CACHERAY_OPTIONS", recorder_options(options)?).env_remove("CACHERAY_RECORDED");
    if build != Build::Recorder || options.children {
        preload(&mut command, options.children)?;
    }
    let watch = loss::Watch::begin(&mut command)
        .map_err(|error| Failure::usage(format!("cannot create a temporary file: {error}")))?;
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
        format!("{}: the trace is incomplete: {}{more}", printable(&output), printable(&lost.reason)),
    );
    // A failed program is reported first.
    Ok(if status.success() { Verdict::Breach } else { Verdict::Program(code(status)) })
}

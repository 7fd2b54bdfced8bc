//! `anytrace apitrace trace`: runs a program with the recorder of OpenGL in it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::text::printable;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::units::grouped;
use crate::verbs::recording::{SIGKILL, code, leave_interrupts, look_at_output, named_for, preload, traces};
use crate::{Verdict, paint};

/// Names the library, before all other places.
const RECORDER: &str = "ANYTRACE_APITRACE_RECORDER";
const LIBRARY: &str = "libanytrace_apitrace_recorder.so";

/// `apitrace trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Trace to write; a second process that draws writes OUT.PID [default: PROGRAM.trace, PROGRAM.1.trace, …]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Accepted for scripts: one recorder has GL, GLX, EGL and OpenGL ES
    #[arg(short, long, value_name = "API", value_enum)]
    api: Option<Api>,
    /// Record the stack at calls of these functions: names, with * for any letters
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    backtrace: Vec<String>,
    /// Run the program in gdb
    #[arg(short, long)]
    debugger: bool,
    /// Say what is run
    #[arg(short, long)]
    verbose: bool,
    /// Do not report on the trace
    #[arg(short, long)]
    quiet: bool,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Interfaces that apitrace distinguishes.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Api {
    Gl,
    Egl,
}

impl TraceArguments {
    /// Of a program, in the way that needs no options.
    pub(crate) fn of(output: PathBuf, force: bool, quiet: bool, command: Vec<OsString>) -> Self {
        let output = Some(output);
        Self { output, force, api: None, backtrace: Vec::new(), debugger: false, verbose: false, quiet, command }
    }
}

pub(crate) fn run(options: &TraceArguments) -> Result<Verdict, Failure> {
    let [program, arguments @ ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let output = options.output.clone().unwrap_or_else(|| named_for(program, "trace", options.force));
    // Before an existing trace is removed.
    let library = library()?;
    let is_file = look_at_output(&output, options.force)?;
    let failed = |error: std::io::Error| Failure::usage(format!("cannot create a temporary file: {error}"));
    let report = tempfile::Builder::new().prefix("anytrace-report-").tempfile().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments);
    preload(&mut command, library)?;
    command.env("TRACE_FILE", std::path::absolute(&output).unwrap_or_else(|_| output.clone()));
    command.env("ANYTRACE_APITRACE_REPORT", report.path());
    if !options.backtrace.is_empty() {
        command.env("APITRACE_BACKTRACE", options.backtrace.join(" "));
    }
    if options.debugger {
        command = in_debugger(&command);
    }
    if options.verbose {
        paint::complain("note", format!("running {command:?}"));
    }
    leave_interrupts();
    let before = traces(&output);
    let failed = |error: std::io::Error| Failure::usage(format!("cannot run {}: {error}", program.display()));
    let status = command.spawn().and_then(|mut process| process.wait()).map_err(failed)?;
    let said = Said::parse(&fs::read_to_string(report.path()).unwrap_or_default());
    if !options.quiet {
        let mut made = traces(&output);
        made.retain(|trace| !before.contains(trace));
        if is_file && made.is_empty() && said.failures.is_empty() {
            let why = "the program called no function of OpenGL, or did not load the recorder: it is statically linked, \
                       for another kind of processor, or runs with special privileges";
            return Err(Failure::usage(format!("{}: nothing was recorded: {why}", output.display())));
        }
        for trace in &made {
            paint::complain("note", said.about(trace));
        }
        if status.signal() == Some(SIGKILL) {
            paint::complain("note", "the program was killed: calls of its last quarter of a second may be missing");
        }
    }
    if said.complain(&output) && status.success() { Ok(Verdict::Breach) } else { Ok(Verdict::Program(code(status))) }
}

/// The same command under gdb, which itself is not recorded.
fn in_debugger(command: &Command) -> Command {
    let mut wrapper = OsString::from("set exec-wrapper env");
    for (name, value) in command.get_envs() {
        let Some(value) = value else { continue };
        wrapper.push(" '");
        wrapper.push(name);
        wrapper.push("=");
        // A quotation mark ends the word, is escaped, and begins it again.
        wrapper.push(value.to_string_lossy().replace('\'', "'\\''"));
        wrapper.push("'");
    }
    let mut debugger = Command::new("gdb");
    debugger.arg("--quiet").arg("-ex").arg(wrapper).arg("--args").arg(command.get_program()).args(command.get_args());
    debugger
}

/// Finds the recorder: where the environment says, beside this program, in the `lib` beside its folder.
fn library() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os(RECORDER) {
        let path = PathBuf::from(path);
        let path = if path.is_dir() { path.join(LIBRARY) } else { path };
        return fs::canonicalize(&path)
            .map_err(|error| Failure::usage(format!("{RECORDER} is {}: {error}", path.display())));
    }
    let program = std::env::current_exe().and_then(fs::canonicalize);
    let folder = program.ok().and_then(|program| program.parent().map(Path::to_owned)).unwrap_or_default();
    let near = ["", "../lib/anytrace", "../lib"].map(|near| folder.join(near).join(LIBRARY));
    near.into_iter().find_map(|path| fs::canonicalize(path).ok()).ok_or_else(|| {
        Failure::usage(format!(
            "{LIBRARY} is not in {}, nor in ../lib/anytrace beside it: the packages of anytrace have it, and `cargo build \
             --release -p anytrace-recorder-apitrace` makes it; {RECORDER} names another place",
            folder.display()
        ))
    })
}

/// What the recorder reported: it runs in another process, whose exit code is the program's own.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    /// Calls, frames and the path of each trace.
    traces: Vec<(u64, u64, PathBuf)>,
    /// How often, what, and why.
    losses: Vec<(u64, String, String)>,
    failures: Vec<String>,
}

impl Said {
    fn parse(text: &str) -> Self {
        let mut said = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["trace", calls, frames, path] => {
                    let number = |text: &str| text.parse().unwrap_or(0);
                    said.traces.push((number(calls), number(frames), PathBuf::from(path)));
                }
                ["lost", count, what, why] => {
                    said.losses.push((count.parse().unwrap_or(0), (*what).to_owned(), (*why).to_owned()));
                }
                ["failed", why] => said.failures.push((*why).to_owned()),
                _ => {}
            }
        }
        said
    }

    /// What a trace has in it.
    fn about(&self, trace: &Path) -> String {
        let full = fs::canonicalize(trace).unwrap_or_else(|_| trace.to_owned());
        let bytes = grouped(fs::metadata(trace).map_or(0, |metadata| metadata.len()).into());
        // The last word counts.
        match self.traces.iter().rev().find(|(.., path)| *path == full) {
            Some((calls, frames, _)) => {
                let (calls, frames) = (grouped((*calls).into()), grouped((*frames).into()));
                format!("{}: {calls} calls, {frames} frames, {bytes} bytes", trace.display())
            }
            None => format!("{}: {bytes} bytes", trace.display()),
        }
    }

    /// Complains of what is not in the trace; false if there is nothing.
    fn complain(&self, output: &Path) -> bool {
        let name = output.display().to_string();
        for why in &self.failures {
            paint::complain("error", format!("{}: the trace is incomplete: {}", printable(&name), printable(why)));
        }
        for (count, what, why) in &self.losses {
            let what = format!("{} ({} times)", printable(what), grouped((*count).into()));
            paint::complain("error", format!("{}: not recorded: {what}: {}", printable(&name), printable(why)));
        }
        !self.failures.is_empty() || !self.losses.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read_line_by_line() {
        let said = Said::parse("trace\t12\t3\t/a b.trace\nlost\t2\tglFoo\twhy\nfailed\tno room\nnonsense\n");
        assert_eq!(said.traces, [(12, 3, PathBuf::from("/a b.trace"))]);
        assert_eq!(said.losses, [(2, "glFoo".to_owned(), "why".to_owned())]);
        assert_eq!(said.failures, ["no room"]);
        assert_eq!(Said::parse(""), Said::default());
    }

    #[test]
    fn gdb_hands_the_environment_to_the_program_alone() {
        let mut command = Command::new("game");
        command.arg("-x").env("TRACE_FILE", "it's");
        let debugger = in_debugger(&command);
        let words: Vec<_> = debugger.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[2], "set exec-wrapper env 'TRACE_FILE=it'\\''s'");
        assert_eq!(words[3..], ["--args", "game", "-x"]);
    }
}

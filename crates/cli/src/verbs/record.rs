//! `anytrace record`: runs a program with the recorder that fits it, and says which that is.

mod xray;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anytrace_core::TimeBound;
use anytrace_core::text::printable;
use clap::{Args, ValueEnum};

use super::recording::{contains, named_for, which};
use crate::arguments::time_bound;
use crate::failure::Failure;
use crate::{Verdict, paint};

/// `record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Trace to write [default: PROGRAM.trace or PROGRAM.xray, numbered where there is one]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// What to record, whatever the program looks like
    #[arg(long, value_name = "WHAT", value_enum)]
    with: Option<Recorder>,
    /// XRay: `basic` records any program, `fdr` those that switch their flight recorder on themselves
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Basic)]
    mode: Mode,
    /// XRay: leave out calls shorter than this, such as 5us, which makes the trace smaller [default: none]
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    min_duration: Option<u64>,
    /// XRay, `basic`: most calls of a thread in each other; deeper ones are not recorded [default: 65536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    max_depth: Option<u32>,
    /// Do not report on the trace
    #[arg(short, long)]
    quiet: bool,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// What can be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Recorder {
    /// Calls of OpenGL, OpenGL ES, GLX and EGL
    Apitrace,
    /// What it reads, writes and allocates
    Cacheray,
    /// Functions that it enters and leaves
    Xray,
}

/// How XRay records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// From the program's begin to its end
    Basic,
    /// What the program asks for by XRay's interface
    Fdr,
}

pub(crate) fn run(options: &RecordArguments) -> Result<Verdict, Failure> {
    let [program, ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let path = which(program);
    let (recorder, why) = match options.with {
        Some(recorder) => (recorder, "as asked for"),
        None => chosen(&path).ok_or_else(|| nothing_fits(program))?,
    };
    let is_for_xray = options.min_duration.is_some() || options.max_depth.is_some() || options.mode == Mode::Fdr;
    if recorder != Recorder::Xray && is_for_xray {
        return Err(Failure::usage("--min-duration, --max-depth and --mode apply only to programs that XRay records"));
    }
    if options.mode == Mode::Fdr && options.max_depth.is_some() {
        return Err(Failure::usage("--max-depth applies only to --mode basic: the flight recorder has no such limit"));
    }
    let extension = if recorder == Recorder::Xray { "xray" } else { "trace" };
    let output = options.output.clone().unwrap_or_else(|| named_for(program, extension, options.force));
    if !options.quiet {
        let what = match recorder {
            Recorder::Apitrace => "calls of OpenGL",
            Recorder::Cacheray => "what it reads, writes and allocates",
            Recorder::Xray => "functions that it enters and leaves",
        };
        let name = program.display().to_string();
        paint::complain("note", format!("recording {what} of {} ({why})", printable(&name)));
    }
    let (force, quiet, command) = (options.force, options.quiet, options.command.clone());
    match recorder {
        Recorder::Apitrace => super::apitrace::record(output, force, quiet, command),
        Recorder::Cacheray => super::cacheray::record(output, force, quiet, command),
        Recorder::Xray => xray::record(&output, options),
    }
}

/// The recorder that fits a program, and why; `None`: its bytes show none.
fn chosen(path: &Path) -> Option<(Recorder, &'static str)> {
    let texts = [
        "anytrace cacheray recorder is linked in",
        "__tsan_",
        "xray_instr_map",
        // Libraries that draw, and those that open them.
        "libGL.so",
        "libEGL.so",
        "libGLES",
        "libOpenGL.so",
        "libepoxy.so",
        "libSDL",
        "libglfw.so",
        "libgtk-4.so",
        "libQt5Gui.so",
        "libQt6Gui.so",
        "glXGetProcAddress",
        "eglGetProcAddress",
    ];
    let Some(found) = contains(path, texts) else {
        // A script: what it starts may draw, and the library goes along.
        return Some((Recorder::Apitrace, "it is a script, which may start a program that draws"));
    };
    match found {
        [true, ..] | [_, true, ..] => Some((Recorder::Cacheray, "it was compiled for that")),
        [_, _, true, ..] => Some((Recorder::Xray, "it was compiled with -fxray-instrument")),
        [_, _, _, draws @ ..] if draws.contains(&true) => Some((Recorder::Apitrace, "it loads a library that draws")),
        _ => None,
    }
}

fn nothing_fits(program: &OsStr) -> Failure {
    let name = program.display().to_string();
    Failure::usage(format!(
        "{}: nothing to record: it loads no library that draws, and was compiled neither with `anytrace cacheray cc` \
         (accesses to memory) nor with -fxray-instrument (functions); --with records all the same",
        printable(&name)
    ))
}

/// A time with a unit in whole microseconds, as XRay has it.
fn microseconds(text: &str) -> Result<u64, String> {
    match time_bound(text)? {
        TimeBound::Nanoseconds(ns) => Ok(ns.div_ceil(1000)),
        TimeBound::Native(_) | TimeBound::Open => Err("expected a time with a unit, such as 5us or 1ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn times_are_whole_microseconds_and_have_a_unit() {
        assert_eq!(["5us", "1ms", "1500ns", "0ns"].map(microseconds), [Ok(5), Ok(1000), Ok(2), Ok(0)]);
        assert!(["5", "", "x", "5m"].iter().all(|text| microseconds(text).is_err()));
    }

    #[test]
    fn the_program_says_what_fits() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |bytes: &[u8]| {
            let path = folder.path().join("program");
            fs::write(&path, bytes).expect("a file");
            chosen(&path).map(|(recorder, _)| recorder)
        };
        assert_eq!(of(b"\x7fELF needs libGL.so.1"), Some(Recorder::Apitrace));
        assert_eq!(of(b"\x7fELF __tsan_read4 libGL.so.1"), Some(Recorder::Cacheray));
        assert_eq!(of(b"\x7fELF xray_instr_map"), Some(Recorder::Xray));
        assert_eq!(of(b"\x7fELF nothing"), None);
        assert_eq!(of(b"#!/bin/sh\n"), Some(Recorder::Apitrace));
    }
}

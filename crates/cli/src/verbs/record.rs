//! `anytrace record`: runs a program with the recorder that fits it, and says which that is.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::text::printable;
use clap::{Args, ValueEnum};

use super::recording::{code, contains, leave_interrupts, look_at_output, named_for, which};
use crate::failure::Failure;
use crate::shell::quoted;
use crate::units::grouped;
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

pub(crate) fn run(options: &RecordArguments) -> Result<Verdict, Failure> {
    let [program, ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let path = which(program);
    let (recorder, why) = match options.with {
        Some(recorder) => (recorder, "as asked for"),
        None => chosen(&path).ok_or_else(|| nothing_fits(program))?,
    };
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
        Recorder::Xray => xray(&output, options),
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

/// Runs a program with the recorder that its compiler has put into it. XRay names its file itself, in the basic mode,
/// which alone needs no help from the program.
fn xray(output: &Path, options: &RecordArguments) -> Result<Verdict, Failure> {
    let is_file = look_at_output(output, options.force)?;
    if !is_file {
        return Err(Failure::usage(format!("{}: XRay writes files only", output.display())));
    }
    let [program, arguments @ ..] = options.command.as_slice() else {
        return Err(Failure::usage("no program to record"));
    };
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| Failure::usage(format!("cannot write to {}: {error}", folder.display()));
    let work = tempfile::Builder::new().prefix(".anytrace-xray-").tempdir_in(folder).map_err(failed)?;
    let base = std::path::absolute(work.path()).map_err(failed)?.join("log.");
    let settings = format!("patch_premain=true xray_mode=xray-basic verbosity=0 xray_logfile_base={}", base.display());
    leave_interrupts();
    let status = Command::new(program).args(arguments).env("XRAY_OPTIONS", settings).status();
    let status = status.map_err(|error| {
        Failure::usage(format!("cannot run {}: {error}", printable(&program.display().to_string())))
    })?;
    let mut made: Vec<PathBuf> =
        fs::read_dir(work.path()).map_err(failed)?.flatten().map(|entry| entry.path()).collect();
    made.sort();
    // One process, one file; the others are of processes that it forked, and get the next free numbers.
    let mut numbers = 1..;
    for (at, log) in made.iter().enumerate() {
        let numbered = |number: u32| {
            let mut name = output.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        let next = (at > 0).then(|| numbers.by_ref().map(numbered).find(is_free)).flatten();
        let place = next.unwrap_or_else(|| output.to_owned());
        fs::rename(log, &place).map_err(failed)?;
        if !options.quiet {
            let bytes = fs::metadata(&place).map_or(0, |metadata| metadata.len());
            paint::complain("note", format!("{}: {} bytes", place.display(), grouped(bytes.into())));
            paint::complain("note", format!("names: anytrace stats -m {} {}", quoted(which(program)), quoted(&place)));
        }
    }
    if made.is_empty() {
        let why = "the program wrote no log: it was not compiled with -fxray-instrument, or no thread ended";
        return Err(Failure::usage(format!("{}: nothing was recorded: {why}", output.display())));
    }
    Ok(Verdict::Program(code(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

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

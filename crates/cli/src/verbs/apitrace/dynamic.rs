//! Drivers are loaded by the dynamic loader, which a statically linked program has not: the packages, whose command is
//! linked statically so that it runs on any system, have a second build of it for the verbs that replay.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::shell::become_program;

/// The second build, beside the recorder.
const PROGRAM: &str = "../lib/anytrace/anytrace-dynamic";

/// Goes on in the build that can load a driver, if this one cannot.
pub(super) fn need() -> Result<(), Failure> {
    if !cfg!(target_feature = "crt-static") {
        return Ok(());
    }
    let own = std::env::current_exe().and_then(std::fs::canonicalize).unwrap_or_default();
    let program = beside(&own);
    if !program.is_file() {
        return Err(Failure::usage(format!(
            "this build of anytrace is linked statically and cannot load a driver of OpenGL, and {}, which can, is not \
             there: `cargo install anytrace` makes a program that can",
            program.display()
        )));
    }
    let mut words = std::env::args_os();
    let mut command = Command::new(&program);
    if let Some(name) = words.next() {
        // Under other names it behaves as other programs.
        command.arg0(name);
    }
    let failed = |error: std::io::Error| Failure::usage(format!("cannot run {}: {error}", program.display()));
    become_program(command.args(words)).map_err(failed)?;
    Ok(())
}

fn beside(own: &Path) -> PathBuf {
    own.parent().unwrap_or(Path::new("")).join(PROGRAM)
}

//! What verbs share that run a program with a recorder in it.

mod maps;
mod output;
mod program;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

pub(crate) use maps::{Seen, Watch, linked};
pub(crate) use output::{look_at_output, named_for, traces};
pub(crate) use program::{contains, which};

/// The signal that nobody can catch.
pub(crate) const SIGKILL: i32 = 9;

/// Loads a library into the program before all others. Returns what was to be loaded before.
pub(crate) fn preload(command: &mut Command, library: PathBuf) -> Result<OsString, Failure> {
    let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let mut all = library.into_os_string();
    if all.as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Err(Failure::usage(format!(
            "{}: the path of a preloaded library may not contain spaces or colons",
            all.display()
        )));
    }
    if !before.is_empty() {
        all.push(":");
        all.push(&before);
    }
    command.env("LD_PRELOAD", all);
    Ok(before)
}

/// An interrupt from the terminal reaches the program too, and is for it: what it leaves is reported all the same. Who
/// asks twice is not kept waiting.
pub(crate) fn leave_interrupts() {
    let asked = AtomicBool::new(false);
    // Without a handler the program is recorded just as well.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            // 128 + SIGINT, as shells report an interrupted program.
            std::process::exit(130);
        }
    });
}

/// The program's exit code as a shell reports it.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(2)
}

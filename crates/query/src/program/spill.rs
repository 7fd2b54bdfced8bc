//! The folder of what does not fit into the memory of `--memory`: removed however this program ends, unless it is killed.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Removing the folder fails while a thread adds files to it, which ends when it finds no folder.
const TRIES: usize = 100;

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(5);

static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Makes the folder, where temporary files are.
pub(crate) fn make() -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("anytrace-query-").tempdir()?.keep();
    *FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.clone());
    Ok(folder)
}

/// Removes the folder.
pub(crate) fn remove() {
    let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(folder) = folder else { return };
    for _ in 0..TRIES {
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(PAUSE),
            _ => return,
        }
    }
}

/// Ends the program without waiting for its threads.
pub(crate) fn exit(code: u8) -> ! {
    remove();
    std::process::exit(i32::from(code))
}

/// The exit code at the end of the program, whose threads may still be writing.
pub(crate) fn end(code: ExitCode) -> ExitCode {
    remove();
    code
}

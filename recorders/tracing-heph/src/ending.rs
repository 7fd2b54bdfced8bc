//! The program ends without dropping the guard: by `exit`, or by SIGTERM where that is asked for.
//!
//! `exit` runs what `atexit` was given while all threads are still there, so the writer can hand over what there is and
//! close the session.

// `atexit` takes a function, which no safe crate wraps.
#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use crate::core::Core;
use crate::layer::life;
use crate::registry::{Occasion, concerned};
use crate::unpoisoned;

/// How long the end of the program may wait for a destination.
const WAIT: Duration = Duration::from_secs(1);

/// Closes the recorders that this concerns when the program ends by `exit`.
pub(crate) fn watch() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        // SAFETY: the function lives as long as the program and catches what unwinds. Where there is no room for it, only
        // the guard closes the recorder.
        #[cfg(unix)]
        unsafe {
            libc::atexit(at_exit);
        }
    });
}

#[cfg(unix)]
extern "C" fn at_exit() {
    // A panic in here is reported by its hook; there is nobody else to report it to.
    let _ = catch_unwind(|| close_all(Occasion::Exit));
}

fn close_all(occasion: Occasion) {
    for core in concerned(occasion) {
        close(&core, WAIT);
    }
}

/// Records the spans that are open, and closes a recorder; false when that took too long.
pub(crate) fn close(core: &Arc<Core>, timeout: Duration) -> bool {
    let now = core.now();
    for open in core.take_open() {
        life(core, open, now, true);
    }
    core.close(timeout)
}

/// Has SIGTERM close the recorders that want it before it ends the program.
///
/// # Errors
/// No thread can be started, or the signal cannot be caught.
#[cfg(unix)]
pub(crate) fn close_on_terminate() -> std::io::Result<()> {
    static SET: Mutex<bool> = Mutex::new(false);
    let mut is_set = unpoisoned(&SET);
    if *is_set {
        return Ok(());
    }
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM])?;
    let thread = std::thread::Builder::new().name("heph-signals".to_owned());
    thread.spawn(move || {
        for signal in signals.forever() {
            close_all(Occasion::Terminate);
            // Ends the program as if nobody had caught it.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    *is_set = true;
    Ok(())
}

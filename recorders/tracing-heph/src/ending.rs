//! The program ends without dropping the guard: by `exit`, or by SIGTERM where that is asked for.
//!
//! `exit` runs what `atexit` was given while all threads are still there, so the writer can hand over what there is and
//! close the session.

// `atexit` takes a function, which no safe crate wraps.
#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, Once, TryLockError, Weak};
use std::time::Duration;

use crate::core::Core;
use crate::unpoisoned;

/// How long the end of the program may wait for a destination.
const WAIT: Duration = Duration::from_secs(1);

/// What closes a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `exit`, and the return of `main`.
    Exit,
    /// SIGTERM.
    Terminate,
}

/// Recorders that are to be closed with the program, and by what.
static RECORDERS: Mutex<Vec<(Weak<Core>, Vec<Ending>)>> = Mutex::new(Vec::new());

/// Closes the recorder when the program ends so.
pub(crate) fn watch(core: &Arc<Core>, endings: Vec<Ending>) {
    static SET: Once = Once::new();
    let mut recorders = unpoisoned(&RECORDERS);
    recorders.retain(|(core, _)| core.strong_count() > 0);
    recorders.push((Arc::downgrade(core), endings));
    drop(recorders);
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
    let _ = catch_unwind(|| close_all(Ending::Exit));
}

/// Closes all recorders that this ending is to close.
fn close_all(ending: Ending) {
    // Not waited for: the thread that ends the program may be the one that has it.
    let recorders = match RECORDERS.try_lock() {
        Ok(recorders) => recorders.clone(),
        Err(TryLockError::Poisoned(recorders)) => recorders.into_inner().clone(),
        Err(TryLockError::WouldBlock) => return,
    };
    for (core, endings) in recorders {
        if let Some(core) = core.upgrade().filter(|core| !core.is_closed() && endings.contains(&ending)) {
            core.close(WAIT);
        }
    }
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
            close_all(Ending::Terminate);
            // Ends the program as if nobody had caught it.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    *is_set = true;
    Ok(())
}

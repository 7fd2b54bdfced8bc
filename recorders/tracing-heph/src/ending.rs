//! The program ends, or becomes two, without dropping the guard: by `exit`, by SIGTERM where that is asked for, by `fork`.
//!
//! `exit` runs what `atexit` was given while all threads are still there, so the writer can hand over what there is and
//! close the session. A child of `fork` has only the thread that called it: nobody would write what it records, so it is
//! counted and refused there.

// `atexit` and `pthread_atfork` take functions, which no safe crate wraps.
#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// How often this process is the child of a fork.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// How often the process had been forked: a recorder of which this is no longer so belongs to a parent.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Closes the recorder when the program ends so, and refuses what forked children record.
pub(crate) fn watch(core: &Arc<Core>, endings: Vec<Ending>) {
    static SET: Once = Once::new();
    let mut recorders = unpoisoned(&RECORDERS);
    recorders.retain(|(core, _)| core.strong_count() > 0);
    recorders.push((Arc::downgrade(core), endings));
    drop(recorders);
    SET.call_once(|| {
        // SAFETY: both functions only store what they are given, and the functions given live as long as the program. They
        // do not unwind: one adds a number, the other catches what unwinds. Where there is no room for them, the recorder
        // does without.
        #[cfg(unix)]
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

#[cfg(unix)]
extern "C" fn at_exit() {
    // A panic in here is reported by its hook; there is nobody else to report it to.
    let _ = catch_unwind(|| close_all(Ending::Exit));
}

#[cfg(unix)]
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
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

//! The program becomes two by `fork`: the child has only the thread that called it, so nobody would write what it records.

// `pthread_atfork` takes a function, which no safe crate wraps.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often this process is the child of a fork.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// How often the process was forked on its way here: a recorder of which this is no longer so belongs to a parent.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts forks from now on.
pub(crate) fn watch() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        // SAFETY: the function lives as long as the program, and only adds a number. Where there is no room for it,
        // children are not recognized.
        #[cfg(unix)]
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

#[cfg(unix)]
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

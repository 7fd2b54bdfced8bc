//! What all threads share, behind a lock that a signal's handler can try and a forked child finds free.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};

use crate::losses::Losses;
use crate::mappings::Mappings;
use crate::stream::Stream;
use crate::text::Text;

/// All that is known while a program is recorded.
#[derive(Debug)]
pub(crate) struct Shared {
    /// `None`: no call was recorded yet.
    pub(crate) stream: Option<Stream>,
    /// Nothing is recorded any more.
    pub(crate) is_off: bool,
    pub(crate) path: Option<std::path::PathBuf>,
    pub(crate) mappings: Mappings,
    pub(crate) losses: Losses,
    /// Room for the report.
    pub(crate) text: Text,
}

struct Place {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    shared: UnsafeCell<Shared>,
}

// SAFETY: `shared` is reached through a guard only, and the lock is made for threads.
unsafe impl Sync for Place {}

static PLACE: Place = Place {
    lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
    shared: UnsafeCell::new(Shared {
        stream: None,
        is_off: false,
        path: None,
        mappings: Mappings::new(),
        losses: Losses::new(),
        text: Text::new(),
    }),
};

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Holds the lock.
#[derive(Debug)]
pub(crate) struct Guard(());

impl Deref for Guard {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: the lock is held while there is a guard.
        unsafe { &*PLACE.shared.get() }
    }
}

impl DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut Shared {
        // SAFETY: the lock is held while there is a guard, and there is one guard at a time.
        unsafe { &mut *PLACE.shared.get() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        release();
    }
}

pub(crate) fn lock() -> Guard {
    acquire();
    Guard(())
}

/// For handlers of signals: the thread may hold the lock itself.
pub(crate) fn try_lock() -> Option<Guard> {
    // SAFETY: the lock is initialised and never destroyed.
    let is_taken = unsafe { libc::pthread_mutex_trylock(PLACE.lock.get()) } == 0;
    // Not `then_some`: a guard that is made and dropped would release another's lock.
    is_taken.then(|| {
        HOLDS.set(true);
        Guard(())
    })
}

/// For a handler of a signal that ends the process, in the thread that holds the lock: it will not go on.
///
/// # Safety
/// The thread holds the lock, and uses nothing of what it protects afterwards.
pub(crate) unsafe fn seize() -> Guard {
    Guard(())
}

/// Whether this thread holds the lock.
pub(crate) fn is_own() -> bool {
    HOLDS.get()
}

/// Before a fork, so that no other thread holds the lock in the child.
pub(crate) fn acquire() {
    // SAFETY: as above.
    unsafe { libc::pthread_mutex_lock(PLACE.lock.get()) };
    HOLDS.set(true);
}

/// After a fork, on both sides.
pub(crate) fn release() {
    HOLDS.set(false);
    // SAFETY: the thread holds the lock.
    unsafe { libc::pthread_mutex_unlock(PLACE.lock.get()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_not_released_by_who_tries_it() {
        let guard = lock();
        assert!(is_own() && try_lock().is_none() && try_lock().is_none());
        let other = std::thread::spawn(|| (is_own(), try_lock().is_some())).join();
        assert!(other.is_ok_and(|found| found == (false, false)));
        drop(guard);
        assert!(!is_own() && try_lock().is_some());
    }
}

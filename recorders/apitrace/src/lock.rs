//! What all threads share, behind a lock that a signal's handler can try and a forked child finds free.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use crate::losses::Losses;
use crate::mappings::Mappings;
use crate::stream::Stream;

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
    }),
};

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
    (unsafe { libc::pthread_mutex_trylock(PLACE.lock.get()) } == 0).then_some(Guard(()))
}

/// Before a fork, so that no other thread holds the lock in the child.
pub(crate) fn acquire() {
    // SAFETY: as above.
    unsafe { libc::pthread_mutex_lock(PLACE.lock.get()) };
}

/// After a fork, on both sides.
pub(crate) fn release() {
    // SAFETY: the thread holds the lock.
    unsafe { libc::pthread_mutex_unlock(PLACE.lock.get()) };
}

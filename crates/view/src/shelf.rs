//! A store that is read by answers while a thread fills it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::store::Store;

/// How often a writer gives way to waiting readers before it goes on.
const PATIENCE: usize = 64;

/// The store, its lock, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    store: RwLock<Store>,
    /// Readers that wait. The lock alone lets a writer that comes back at once pass them again and again.
    waiting: AtomicUsize,
}

impl Shelf {
    /// The store, to be read.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        store
    }

    /// Changes the store.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let mut turns = 0;
        while self.waiting.load(Ordering::Relaxed) > 0 && turns < PATIENCE {
            std::thread::yield_now();
            turns += 1;
        }
        change(&mut self.store.write().unwrap_or_else(PoisonError::into_inner))
    }
}

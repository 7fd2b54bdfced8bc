//! Locks: which thread has each one, which roots they guard, and whether the next plain write is authorized.

use alloc::vec::Vec;

use crate::room;
use crate::table::Map;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLock {
    pub(crate) thread: u32,
    pub(crate) count: u64,
    /// The thread's count of DSBs when an entry was last written under this lock.
    pub(super) written_in: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Locks {
    pub(super) held: Map<u64, HeldLock>,
    /// Roots and their locks, in the order of association.
    pub(crate) associations: Vec<(u64, u64)>,
    pub(super) index: Map<u64, usize>,
}

impl Locks {
    /// The lock of a root; none if it is 0.
    #[inline]
    pub(crate) fn of_root(&self, root: u64) -> Option<u64> {
        let (_, lock) = self.associations.get(*self.index.get(&root)?)?;
        Some(*lock).filter(|lock| *lock != 0)
    }

    pub(crate) fn holder(&self, lock: u64) -> Option<&HeldLock> {
        self.held.get(&lock)
    }

    /// Every held lock, by address.
    pub(crate) fn all(&self) -> Vec<(u64, HeldLock)> {
        let mut all: Vec<_> = self.held.iter().map(|(lock, held)| (*lock, *held)).collect();
        all.sort_unstable_by_key(|(lock, _)| *lock);
        all
    }

    /// True when the thread has the lock of the root.
    #[inline]
    pub(crate) fn guards(&self, root: u64, thread: u32) -> bool {
        self.of_root(root).and_then(|lock| self.held.get(&lock)).is_some_and(|held| held.thread == thread)
    }

    pub(super) fn forget_association(&mut self, root: u64) {
        let Some(at) = self.index.remove(&root) else { return };
        room::swap_remove(&mut self.associations, at);
        if let Some((moved, _)) = self.associations.get(at) {
            self.index.insert(*moved, at);
        }
    }
}

impl HeldLock {
    /// True when a plain write needs no DSB before it.
    pub(crate) fn is_authorised(&self, dsbs: u64) -> bool {
        self.written_in != dsbs
    }
}

/// The properties of an entry that determine authorization.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) word: u64,
    pub(crate) root: u64,
    pub(crate) owner: i32,
}

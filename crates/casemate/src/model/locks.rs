//! Locks: which thread has each one, which roots they guard, and whether the next plain write is authorized.

use anytrace_core::hash::Map;

use super::breach::breach;
use super::checker::{Checker, Flow};
use super::quirk::Quirk;
use super::watch::Watch;

/// The reference's table of locks and of associations.
const SLOTS: usize = 64;

/// No barrier epoch.
const NEVER: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLock {
    pub(crate) thread: u32,
    pub(crate) count: u64,
    /// The thread's count of DSBs when an entry was last written under this lock.
    written_in: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Locks {
    held: Map<u64, HeldLock>,
    /// Roots and their locks, in the order of association.
    pub(crate) associations: Vec<(u64, u64)>,
    index: Map<u64, usize>,
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

    fn forget_association(&mut self, root: u64) {
        let Some(at) = self.index.remove(&root) else { return };
        self.associations.swap_remove(at);
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

impl<W: Watch> Checker<W> {
    pub(crate) fn lock(&mut self, thread: u32, lock: u64) -> Flow {
        if self.locks.held.contains_key(&lock) {
            self.fire(&breach::LOCK_HELD, lock)?;
            // Recovery: the lock passes to the new thread.
        }
        self.acquire(thread, lock)
    }

    pub(crate) fn trylock(&mut self, thread: u32, lock: u64) -> Flow {
        match self.locks.held.get_mut(&lock) {
            Some(held) if held.thread == thread => {
                held.count += 1;
                Ok(())
            }
            Some(_) => {
                self.fire(&breach::TRYLOCK_OTHER, lock)?;
                self.acquire(thread, lock)
            }
            None => self.acquire(thread, lock),
        }
    }

    fn acquire(&mut self, thread: u32, lock: u64) -> Flow {
        if self.has(Quirk::TableLimits) && self.locks.held.len() >= SLOTS && !self.locks.held.contains_key(&lock) {
            self.fire(&breach::TOO_MANY_LOCKS, lock)?;
        }
        self.locks.held.insert(lock, HeldLock { thread, count: 1, written_in: NEVER });
        Ok(())
    }

    pub(crate) fn unlock(&mut self, thread: u32, lock: u64) -> Flow {
        match self.locks.held.get_mut(&lock) {
            Some(held) if held.thread == thread => {
                held.count -= 1;
                if held.count == 0 {
                    self.locks.held.remove(&lock);
                }
                Ok(())
            }
            // Recovery: the holder keeps the lock.
            Some(_) => self.fire(&breach::UNLOCK_OTHER, lock),
            None if self.options.ignores_uninitialised => Ok(()),
            None => self.fire(&breach::UNLOCK_FREE, lock),
        }
    }

    pub(crate) fn set_root_lock(&mut self, root: u64, lock: u64) -> Flow {
        if let Some(at) = self.locks.index.get(&root) {
            if let Some(association) = self.locks.associations.get_mut(*at) {
                association.1 = lock;
            }
            return Ok(());
        }
        if self.has(Quirk::TableLimits) && self.locks.associations.len() >= SLOTS {
            self.fire(&breach::TOO_MANY_ASSOCIATIONS, root)?;
        }
        self.locks.index.insert(root, self.locks.associations.len());
        self.locks.associations.push((root, lock));
        Ok(())
    }

    pub(crate) fn forget_association(&mut self, root: u64) {
        self.locks.forget_association(root);
    }

    /// Whether the thread may write the entry. `is_visible`: the old or the new value is valid.
    #[inline]
    pub(crate) fn authorise(&mut self, thread: u32, cell: Entry, is_plain: bool, is_visible: bool) -> Flow {
        if cell.owner >= 0 {
            // Recovery: as if the thread owned the entry.
            return if cell.owner as u32 == thread {
                Ok(())
            } else {
                self.fire(&breach::WRITE_OTHER_THREAD, cell.word)
            };
        }
        let Some(lock) = self.locks.of_root(cell.root) else {
            return self.fire(&breach::WRITE_NO_LOCK, cell.word);
        };
        let dsbs = self.threads.dsbs(thread);
        match self.locks.held.get_mut(&lock) {
            Some(held) if held.thread == thread => {
                if held.is_authorised(dsbs) {
                    held.written_in = dsbs;
                    return Ok(());
                }
                if is_plain && is_visible { self.fire(&breach::WRITE_PLAIN_TWICE, cell.word) } else { Ok(()) }
            }
            // Recovery: as if the thread had the lock.
            _ => self.fire(&breach::WRITE_UNLOCKED, cell.word),
        }
    }
}

/// The properties of an entry that determine authorization.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) word: u64,
    pub(crate) root: u64,
    pub(crate) owner: i32,
}

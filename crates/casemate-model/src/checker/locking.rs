//! Takes and releases locks, and decides whether a thread may write an entry.

use super::{Checker, Flow};
use crate::breach::breach;
use crate::locks::{Entry, HeldLock};
use crate::quirk::Quirk;
use crate::room;
use crate::watch::Watch;

/// The reference's table of locks and of associations.
const SLOTS: usize = 64;

/// No barrier epoch.
const NEVER: u64 = u64::MAX;

impl<W: Watch> Checker<W> {
    #[inline(never)]
    pub(crate) fn lock(&mut self, thread: u32, lock: u64) -> Flow {
        if self.locks.held.contains_key(&lock) {
            self.fire(&breach::LOCK_HELD, lock)?;
            // Recovery: the lock passes to the new thread.
        }
        self.acquire(thread, lock)
    }

    #[inline(never)]
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

    #[inline(never)]
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
        room::push(&mut self.locks.associations, (root, lock));
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
                    let is_by_last = held.written_in != NEVER && dsbs - held.written_in == 1;
                    held.written_in = dsbs;
                    if W::IS_ON && is_by_last && is_plain && is_visible {
                        self.watch.relied(thread);
                    }
                    return Ok(());
                }
                if is_plain && is_visible { self.fire(&breach::WRITE_PLAIN_TWICE, cell.word) } else { Ok(()) }
            }
            // Recovery: as if the thread had the lock.
            _ => self.fire(&breach::WRITE_UNLOCKED, cell.word),
        }
    }
}

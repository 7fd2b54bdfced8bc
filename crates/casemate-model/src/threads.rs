//! What each thread wrote to its system registers, and its barriers.

use alloc::vec::Vec;

use crate::room;
use crate::table::Map;

use crate::record::Sysreg;
use crate::tree::TreeKind;

/// What is known of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Thread {
    pub(super) registers: [Option<u64>; Sysreg::ALL.len()],
    /// Slots of the current roots, by [`TreeKind::index`].
    pub(super) current: [Option<usize>; TreeKind::ALL.len()],
    /// The identifiers under which it uses them, as in [`crate::tags::Tags::key`].
    pub(super) tags: [Option<u64>; TreeKind::ALL.len()],
    pub(super) dsbs: u64,
}

/// Threads with small numbers, which most traces have only.
const NEAR: usize = 32;

#[derive(Debug, Clone, Default)]
pub(crate) struct Threads {
    /// Places in the list, plus one, of threads with small numbers; 0 for those that did not appear.
    near: [usize; NEAR],
    /// The same for the others.
    index: Map<u32, usize>,
    all: Vec<(u32, Thread)>,
}

impl Threads {
    #[inline]
    pub(super) fn get(&self, thread: u32) -> Option<&Thread> {
        self.all.get(self.place(thread)?).map(|(_, thread)| thread)
    }

    #[inline]
    fn place(&self, thread: u32) -> Option<usize> {
        match self.near.get(thread as usize) {
            Some(place) => place.checked_sub(1),
            None => self.index.get(&thread).copied(),
        }
    }

    /// The thread, created if necessary; none if there is no memory for it.
    pub(super) fn make(&mut self, thread: u32) -> Option<&mut Thread> {
        let at = match self.place(thread) {
            Some(at) => at,
            None => self.add(thread)?,
        };
        self.all.get_mut(at).map(|(_, thread)| thread)
    }

    #[cold]
    fn add(&mut self, thread: u32) -> Option<usize> {
        let at = self.all.len();
        let place = self.near.get_mut(thread as usize);
        if place.is_none() && !self.index.insert(thread, at) || !room::push(&mut self.all, (thread, Thread::default()))
        {
            return None;
        }
        if let Some(place) = place {
            *place = at + 1;
        }
        Some(at)
    }

    #[inline]
    pub(crate) fn dsbs(&self, thread: u32) -> u64 {
        self.get(thread).map_or(0, |thread| thread.dsbs)
    }

    pub(crate) fn count_dsb(&mut self, thread: u32) {
        if let Some(thread) = self.make(thread) {
            thread.dsbs += 1;
        }
    }

    /// The slot of the current root.
    pub(crate) fn current(&self, thread: u32, kind: TreeKind) -> Option<usize> {
        *self.get(thread)?.current.get(kind.index())?
    }

    /// The value of a register in each thread that wrote it.
    pub(crate) fn all_of(&self, register: Sysreg) -> impl Iterator<Item = u64> {
        self.all.iter().filter_map(move |(_, thread)| thread.register(register))
    }

    /// The same threads in the order in which they appeared.
    #[cfg(feature = "hosted")]
    pub(super) fn in_order(&self) -> &[(u32, Thread)] {
        &self.all
    }

    /// Threads that wrote registers or used DSBs, in order of number: registers and current roots.
    pub(crate) fn all(&self) -> Vec<(u32, Thread)> {
        let mut all = self.all.clone();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }
}

impl Thread {
    pub(crate) fn register(&self, register: Sysreg) -> Option<u64> {
        self.registers.get(register as usize).copied().flatten()
    }

    pub(crate) fn current(&self) -> [Option<usize>; TreeKind::ALL.len()] {
        self.current
    }
}

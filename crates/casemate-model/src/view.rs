//! The state of a [`Checker`], as seen from outside.

use alloc::vec::Vec;

use super::Descriptor;
use super::checker::Checker;
use super::memory::{PAGE_BYTES, WORDS, position};
use super::rights::Rights;
use super::roots::Root;
use super::stale::Stale;
use super::unclean::Progress;
use super::watch::{TablePlace, Watch};
use crate::record::Sysreg;

/// The state of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellState {
    /// Valid: TLBs may hold it.
    Valid,
    /// Invalid, but TLBs may contain its old value.
    Unclean {
        /// The thread that made it invalid.
        thread: u32,
        /// Its old value.
        old: u64,
        /// How far cleaning has come.
        progress: Progress,
    },
    /// Invalid, and in no TLB.
    Clean {
        /// The thread that cleaned it, or put it into its tree.
        thread: u32,
    },
}

/// A word that is an entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Its address.
    pub address: u64,
    /// Its value.
    pub value: u64,
    /// Its state.
    pub state: CellState,
    /// Its place in its tree; `input` is its own first input address.
    pub place: TablePlace,
    /// The value from which its descriptor was last read: the old one until it is clean.
    pub shown: u64,
    /// An entry above it is being removed.
    pub is_frozen: bool,
    /// The thread that owns it.
    pub owner: Option<u32>,
}

impl Cell {
    /// The kind of [`Self::shown`] at its level.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::decode(self.place.format, self.place.level, self.shown)
    }

    /// Bytes of input addresses it covers.
    pub fn bytes(&self) -> u64 {
        self.place.entry_bytes()
    }
}

/// A live entry that was changed in place, and whose TLB maintenance is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleView {
    /// Its address.
    pub address: u64,
    /// The first value that TLBs may contain.
    pub old: u64,
    /// The rights that TLBs may grant and the entry does not.
    pub lost: Rights,
    /// How far the maintenance has come.
    pub progress: Progress,
    /// The thread that changed it last.
    pub thread: u32,
}

impl StaleView {
    fn new(address: u64, stale: &Stale) -> Self {
        let Stale { old, lost, thread, .. } = *stale;
        Self { address, old, lost, thread, progress: stale.progress() }
    }
}

/// A lock that guards a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockView {
    /// The root's base.
    pub root: u64,
    /// The lock's address.
    pub lock: u64,
    /// Holder, how many times, and whether a plain write is authorized.
    pub held: Option<(u32, u64, bool)>,
}

/// An unclean entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UncleanView {
    /// Its address.
    pub address: u64,
    /// How far cleaning has come.
    pub progress: Progress,
    /// The thread that made it invalid.
    pub thread: u32,
}

/// What is known of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadView {
    /// Its number.
    pub thread: u32,
    /// Bases of its current roots, in the order of [`super::TreeKind::ALL`]: those of EL2 and of stage 2 come first.
    pub current: [Option<u64>; super::TreeKind::ALL.len()],
    /// Registers it wrote.
    pub registers: Vec<(Sysreg, u64)>,
}

impl<W: Watch> Checker<W> {
    /// The registered roots, in the reference's slots; free slots are `None`.
    pub fn root_slots(&self) -> &[Option<Root>] {
        &self.roots.slots
    }

    /// The registered roots.
    pub fn registered_roots(&self) -> impl Iterator<Item = &Root> {
        self.roots.slots.iter().flatten()
    }

    /// The locks of roots, in the order of association.
    pub fn root_locks(&self) -> Vec<LockView> {
        let view = |&(root, lock): &(u64, u64)| {
            let held = self.locks.holder(lock);
            let held = held.map(|held| (held.thread, held.count, held.is_authorised(self.threads.dsbs(held.thread))));
            LockView { root, lock, held }
        };
        self.locks.associations.iter().map(view).collect()
    }

    /// Locks in use: address, thread and count, by address.
    pub fn held_locks(&self) -> Vec<(u64, u32, u64)> {
        self.locks.all().into_iter().map(|(lock, held)| (lock, held.thread, held.count)).collect()
    }

    /// The lock that guards a root.
    pub fn lock_of_root(&self, root: u64) -> Option<u64> {
        self.locks.of_root(root)
    }

    /// The thread that has a lock.
    pub fn lock_holder(&self, lock: u64) -> Option<u32> {
        self.locks.holder(lock).map(|held| held.thread)
    }

    /// Unclean entries, newest first.
    pub fn unclean_entries(&self) -> Vec<UncleanView> {
        let view = |(address, unclean): (u64, super::unclean::Unclean)| UncleanView {
            address,
            progress: unclean.progress,
            thread: unclean.thread,
        };
        self.unclean.all().into_iter().map(view).collect()
    }

    /// Stale entries, newest first.
    pub fn stale_entries(&self) -> Vec<StaleView> {
        self.stale.all().into_iter().map(|(address, stale)| StaleView::new(address, stale)).collect()
    }

    /// What is stale about an entry.
    pub fn stale_entry(&self, address: u64) -> Option<StaleView> {
        self.stale.get(address).map(|stale| StaleView::new(address, stale))
    }

    /// Threads that wrote registers or used DSBs, by number.
    pub fn thread_views(&self) -> Vec<ThreadView> {
        let view = |(thread, state): (u32, super::threads::Thread)| {
            let base = |slot: Option<usize>| self.roots.slots.get(slot?).copied().flatten().map(|root| root.base);
            let registers = Sysreg::ALL.iter().filter_map(|register| Some((*register, state.register(*register)?)));
            ThreadView { thread, current: state.current().map(base), registers: registers.collect() }
        };
        self.threads.all().into_iter().map(view).collect()
    }

    /// The value of an initialized word.
    pub fn value(&self, address: u64) -> Option<u64> {
        self.memory.peek_value(address & !7)
    }

    /// The entry at an address, if the word is one.
    pub fn cell(&self, address: u64) -> Option<Cell> {
        let page = self.memory.peek(address).and_then(|index| self.memory.pages.get(index))?;
        let at = position(address);
        if !page.entry.has(at) {
            return None;
        }
        let address = address & !7;
        let table = page.table_of(at);
        let value = page.value(at);
        let mut place: TablePlace = table.into();
        place.input = place.input.wrapping_add(table.entry_bytes().wrapping_mul(at as u64));
        let unclean = self.unclean.get(address).filter(|_| page.unclean.has(at));
        let state = match unclean {
            Some(unclean) => {
                CellState::Unclean { thread: unclean.thread, old: unclean.old, progress: unclean.progress }
            }
            None if page.valid.has(at) => CellState::Valid,
            None => CellState::Clean { thread: page.cleaner(at) },
        };
        let old = unclean.map_or(value, |unclean| unclean.old);
        let shown = self.shown.get(&address).copied().unwrap_or(old);
        let owner = u32::try_from(page.owner(at)).ok();
        Some(Cell { address, value, state, place, shown, is_frozen: page.frozen.has(at), owner })
    }

    /// Bases of the pages that contain entries of tables, in order of addresses.
    pub fn table_pages(&self) -> Vec<u64> {
        let mut bases: Vec<u64> =
            self.memory.pages.iter().filter(|page| !page.entry.is_empty()).map(|page| page.base).collect();
        bases.sort_unstable();
        bases
    }

    /// The entries of the page at an address, in order.
    pub fn cells_of_page(&self, base: u64) -> Vec<Cell> {
        let base = base & !(PAGE_BYTES - 1);
        (0..WORDS as u64).filter_map(|at| self.cell(base + 8 * at)).collect()
    }

    /// The entries above one, nearest first.
    pub fn parents(&self, cell: &Cell) -> Vec<Cell> {
        let mut parents = Vec::new();
        let mut parent = cell.place.parent;
        while let Some(above) = parent.and_then(|address| self.cell(address)) {
            parent = above.place.parent;
            parents.push(above);
            if parents.len() >= 5 {
                break;
            }
        }
        parents
    }

    /// Size of initialized memory in pages with any content: address, bytes.
    pub fn initialised_pages(&self) -> (u64, u64) {
        let words: u64 = self.memory.pages.iter().map(|page| u64::from(page.initialised.count())).sum();
        let spans: u64 = self.memory.spans().map(|(first, end, _)| (end - first) * WORDS as u64).sum();
        (self.memory.page_count(), words + spans)
    }
}

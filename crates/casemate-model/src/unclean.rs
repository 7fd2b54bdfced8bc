//! Unclean entries: invalid, with an old value that TLBs may still contain.
//!
//! Entries are listed by root, so that a step visits only those on which its thread may act.

use alloc::vec::Vec;

use crate::room;
use crate::table::Map;

/// How far the cleaning of an entry has come: the states n, d, ti, td and ta of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// Only written.
    Unguarded,
    /// A DSB waited for the write.
    Dsbed,
    /// Stage 2 was dropped by address.
    TlbiIpa,
    /// And a DSB waited for that.
    TlbiIpaDsbed,
    /// All TLBs were invalidated; a DSB is missing.
    Tlbied,
}

impl Progress {
    /// The reference's letters.
    pub fn letters(self) -> &'static str {
        match self {
            Self::Unguarded => "n",
            Self::Dsbed => "d",
            Self::TlbiIpa => "ti",
            Self::TlbiIpaDsbed => "td",
            Self::Tlbied => "ta",
        }
    }
}

/// An entry that is invalid and not yet clean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unclean {
    pub(crate) number: u64,
    pub(crate) thread: u32,
    /// The valid value it had.
    pub(crate) old: u64,
    pub(crate) progress: Progress,
    /// The TLBI that counted last has no nXS: only a DSB without nXS completes it.
    pub(crate) is_plain: bool,
}

/// The threads that may act on the entries of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Root(u64),
    Thread(i32),
}

#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) owner: Owner,
    /// Cells and the numbers under which they became unclean, oldest first. Entries that are clean again may remain
    /// here until the next visit.
    pub(super) entries: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct UncleanEntries {
    pub(super) cells: Map<u64, Unclean>,
    pub(super) lists: Vec<List>,
    pub(super) next: u64,
    /// An empty list of entries, for the next owner.
    spare: Vec<(u64, u64)>,
}

/// Entries for which a list keeps its memory when it is empty.
const SPARE_MAX: usize = 64;

impl UncleanEntries {
    pub(crate) fn push(&mut self, cell: u64, thread: u32, old: u64, root: u64, owner: i32) {
        let number = self.next;
        self.next += 1;
        self.cells.insert(cell, Unclean { number, thread, old, progress: Progress::Unguarded, is_plain: false });
        if let Some(list) = self.list(root, owner) {
            room::push(&mut list.entries, (cell, number));
        }
    }

    fn list(&mut self, root: u64, owner: i32) -> Option<&mut List> {
        let owner = if owner >= 0 { Owner::Thread(owner) } else { Owner::Root(root) };
        let at = match self.lists.iter().position(|list| list.owner == owner) {
            Some(at) => at,
            None => {
                let entries = core::mem::take(&mut self.spare);
                room::push(&mut self.lists, List { owner, entries });
                self.lists.len().checked_sub(1)?
            }
        };
        self.lists.get_mut(at)
    }

    #[inline]
    pub(crate) fn get(&self, cell: u64) -> Option<&Unclean> {
        self.cells.get(&cell)
    }

    /// Removes a list, whose entries are taken out of it and are all clean: the entries after it are in the list that
    /// takes its place.
    pub(super) fn remove_list(&mut self, at: usize, empty: Vec<(u64, u64)>) {
        room::swap_remove(&mut self.lists, at);
        if empty.capacity() <= SPARE_MAX {
            self.spare = empty;
        }
    }

    pub(crate) fn remove(&mut self, cell: u64) {
        self.cells.remove(&cell);
    }

    /// The entry belongs to another list now.
    pub(crate) fn move_to(&mut self, cell: u64, root: u64, owner: i32) {
        let Some(number) = self.cells.get(&cell).map(|unclean| unclean.number) else { return };
        self.lists.iter_mut().for_each(|list| list.entries.retain(|(other, _)| *other != cell));
        let Some(List { entries, .. }) = self.list(root, owner) else { return };
        let at = entries.partition_point(|(_, other)| *other < number);
        room::insert(entries, at, (cell, number));
    }

    /// The entry that became unclean last.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.cells.iter().max_by_key(|(_, unclean)| unclean.number).map(|(cell, _)| *cell)
    }

    /// Every unclean entry, newest first.
    pub(crate) fn all(&self) -> Vec<(u64, Unclean)> {
        let mut all: Vec<_> = self.cells.iter().map(|(cell, unclean)| (*cell, *unclean)).collect();
        all.sort_unstable_by_key(|(_, unclean)| core::cmp::Reverse(unclean.number));
        all
    }
}

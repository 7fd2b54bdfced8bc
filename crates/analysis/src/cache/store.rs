//! The lines of a cache, set by set, and the choice of victims: one structure for each way to keep their order.
//!
//! A level of the hierarchy needs the same operations for all policies: use a line, look for one without using it,
//! remove one, insert one and return the victim. [`Store`] dispatches each of them by a match; the loop over records
//! uses the most frequent structure, [`recency::Recency`], by its type.

pub(super) mod linked;
pub(super) mod recency;
pub(super) mod ways;

use super::config::{Geometry, Policy};
use linked::Linked;
use recency::Recency;
use ways::Ways;

/// A line was written since it was fetched.
pub(super) const DIRTY: u8 = 1;

/// A line was fetched by a prefetcher and not used since.
pub(super) const PREFETCHED: u8 = 2;

/// Bits of an entry that are flags; the line's number is above them.
const FLAG_BITS: u32 = 2;

/// An entry without a line, which is not dirty. Lines have at least 8 bytes, so no line's number has all bits set.
const EMPTY: u64 = !(DIRTY as u64);

/// Most ways that are searched one by one.
const SEARCHED_MAX: usize = 32;

/// A line and its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredLine {
    pub(super) line: u64,
    pub(super) flags: u8,
}

impl StoredLine {
    #[inline]
    fn entry(self) -> u64 {
        self.line << FLAG_BITS | u64::from(self.flags)
    }

    #[inline]
    fn of(entry: u64) -> Self {
        Self { line: entry >> FLAG_BITS, flags: (entry & (DIRTY | PREFETCHED) as u64) as u8 }
    }
}

/// The lines of a cache.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// Few ways, by recency of use or of fill.
    Recency(Recency),
    /// Many ways, by recency of use or of fill.
    Linked(Linked),
    /// Policies that keep bits for each way.
    Ways(Ways),
}

impl Store {
    /// An empty store.
    pub(super) fn new(geometry: &Geometry, policy: Policy) -> Self {
        let is_few = geometry.ways <= recency::WAYS_MAX;
        match policy {
            Policy::Lru | Policy::Fifo if is_few => Self::Recency(Recency::new(geometry, policy == Policy::Lru)),
            Policy::Lru | Policy::Fifo => Self::Linked(Linked::new(geometry, policy == Policy::Lru)),
            _ => Self::Ways(Ways::new(geometry, policy)),
        }
    }

    /// Uses a line and sets more flags; returns the flags it had, `None` when it is absent. `PREFETCHED` is cleared.
    #[inline]
    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        match self {
            Self::Recency(store) => store.touch(set, line, flags),
            Self::Linked(store) => store.touch(set, line, flags),
            Self::Ways(store) => store.touch(set, line, flags),
        }
    }

    /// The flags of a line, `None` when it is absent. Nothing changes.
    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        match self {
            Self::Recency(store) => store.probe(set, line),
            Self::Linked(store) => store.probe(line),
            Self::Ways(store) => store.probe(set, line),
        }
    }

    /// Removes a line; returns its flags, `None` when it is absent.
    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        match self {
            Self::Recency(store) => store.remove(set, line),
            Self::Linked(store) => store.remove(set, line),
            Self::Ways(store) => store.remove(set, line),
        }
    }

    /// Marks a line as not written.
    pub(super) fn clean(&mut self, set: usize, line: u64) {
        match self {
            Self::Recency(store) => store.clean(set, line),
            Self::Linked(store) => store.clean(line),
            Self::Ways(store) => store.clean(set, line),
        }
    }

    /// Puts a line in that is not here; what had to go.
    pub(super) fn insert(&mut self, set: usize, stored: StoredLine) -> Option<StoredLine> {
        match self {
            Self::Recency(store) => store.insert(set, stored),
            Self::Linked(store) => store.insert(set, stored),
            Self::Ways(store) => store.insert(set, stored),
        }
    }

    /// Sets the next use of the line that is used or inserted next, for the policy that knows the future.
    pub(super) fn set_next_use(&mut self, next: u64) {
        if let Self::Ways(store) = self {
            store.set_next_use(next);
        }
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<StoredLine> {
        let stored = |entry: &u64| (*entry != EMPTY).then(|| StoredLine::of(*entry));
        match self {
            Self::Recency(store) => store.lines(),
            Self::Linked(store) => store.entries().filter_map(stored).collect(),
            Self::Ways(store) => store.entries().iter().filter_map(stored).collect(),
        }
    }

    /// Lines that a prefetcher fetched and nobody used.
    pub(super) fn unused(&self) -> u64 {
        self.lines().iter().filter(|stored| stored.flags & PREFETCHED != 0).count() as u64
    }
}

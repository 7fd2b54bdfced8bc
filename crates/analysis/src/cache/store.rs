//! The lines a cache holds, set by set, and which of them has to go: one structure for each way to keep that.
//!
//! What a level of the hierarchy asks of its lines is the same for all policies: touch a line, look without touching,
//! take one out, put one in and learn which had to go. [`Store`] is that, by a match in each operation; the loop over
//! records knows the most frequent structure, [`recency::Recency`], by its type.

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

/// An entry without a line, which is not dirty. Lines have 8 bytes at least, so no line's number has all its bits set.
const EMPTY: u64 = !(DIRTY as u64);

/// Most ways that are searched one by one.
const SEARCHED_MAX: usize = 32;

/// A line and its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) line: u64,
    pub(super) flags: u8,
}

impl Held {
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

    /// Uses a line and gives it more flags; what flags it had, `None` when it is not here. `PREFETCHED` is cleared.
    #[inline]
    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        match self {
            Self::Recency(store) => store.touch(set, line, flags),
            Self::Linked(store) => store.touch(set, line, flags),
            Self::Ways(store) => store.touch(set, line, flags),
        }
    }

    /// The flags of a line, `None` when it is not here. Nothing changes.
    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        match self {
            Self::Recency(store) => store.probe(set, line),
            Self::Linked(store) => store.probe(line),
            Self::Ways(store) => store.probe(set, line),
        }
    }

    /// Takes a line out; its flags, `None` when it is not here.
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
    pub(super) fn insert(&mut self, set: usize, held: Held) -> Option<Held> {
        match self {
            Self::Recency(store) => store.insert(set, held),
            Self::Linked(store) => store.insert(set, held),
            Self::Ways(store) => store.insert(set, held),
        }
    }

    /// Says when the line that is used or put in next will be used again, for the policy that knows the future.
    pub(super) fn tell_next_use(&mut self, next: u64) {
        if let Self::Ways(store) = self {
            store.tell_next_use(next);
        }
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<Held> {
        let held = |entry: &u64| (*entry != EMPTY).then(|| Held::of(*entry));
        match self {
            Self::Recency(store) => store.lines(),
            Self::Linked(store) => store.entries().filter_map(held).collect(),
            Self::Ways(store) => store.entries().iter().filter_map(held).collect(),
        }
    }

    /// Lines that a prefetcher fetched and nobody used.
    pub(super) fn unused(&self) -> u64 {
        self.lines().iter().filter(|held| held.flags & PREFETCHED != 0).count() as u64
    }
}

//! Why a level misses: compulsory, capacity or conflict (Hill 1987).

use anytrace_core::hash::Set;

use super::config::{Geometry, LINE_BYTES_MIN, Policy};
use super::results::Classes;
use super::store::{Store, StoredLine};

/// The fully associative LRU cache of the same size, and the lines ever asked for. It sees what the level is asked for,
/// but not the lines written back into it.
#[derive(Debug)]
pub(super) struct Shadow {
    store: Store,
    seen: Set<u64>,
    counts: Classes,
}

impl Shadow {
    pub(super) fn new(lines: usize) -> Self {
        // Stores of few ways keep flags below the line's number, in the low bits of its address: there must be some.
        let shift = LINE_BYTES_MIN.trailing_zeros();
        let store = Store::new(&Geometry { sets: 1, ways: lines, shift }, Policy::Lru);
        Self { store, seen: Set::default(), counts: Classes::default() }
    }

    /// Takes part in an access that hit or missed.
    pub(super) fn access(&mut self, line: u64, is_hit: bool, allocates: bool) {
        let is_shadow_hit = self.store.touch(0, line, 0).is_some();
        // On hits, too: a line that a prefetch brought in is no longer new once it was asked for.
        let is_new = self.seen.insert(line);
        if !is_shadow_hit && allocates {
            self.store.insert(0, StoredLine { line, flags: 0 });
        }
        // The shadow has taken part in the hit, too, so that its order is that of all accesses.
        if is_hit {
            return;
        }
        *(match (is_new, is_shadow_hit) {
            (true, _) => &mut self.counts.compulsory,
            (false, false) => &mut self.counts.capacity,
            (false, true) => &mut self.counts.conflict,
        }) += 1;
    }

    pub(super) fn counts(&self) -> Classes {
        self.counts
    }
}

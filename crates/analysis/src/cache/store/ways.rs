//! Policies that keep bits, or a next use, for each way. Empty ways are filled first, the lowest first.

mod bits;
mod replacement;

use anytrace_core::hash::Map;

use super::{DIRTY, EMPTY, FLAG_BITS, PREFETCHED, SEARCHED_MAX, StoredLine};
use crate::cache::config::{Geometry, Policy};
use bits::Bits;
use replacement::Replacement;

/// The lines.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Ways {
    ways: usize,
    entries: Vec<u64>,
    /// Ways in use.
    valid: Bits,
    /// Way of each line, where a set has more ways than are searched.
    places: Option<Map<u64, usize>>,
    replacement: Replacement,
}

impl Ways {
    pub(super) fn new(geometry: &Geometry, policy: Policy) -> Self {
        Self {
            ways: geometry.ways,
            entries: vec![EMPTY; geometry.ways * geometry.sets],
            valid: Bits::new(geometry.sets, geometry.ways),
            places: (geometry.ways > SEARCHED_MAX).then(Map::default),
            replacement: Replacement::new(geometry, policy),
        }
    }

    pub(super) fn entries(&self) -> &[u64] {
        &self.entries
    }

    pub(super) fn set_next_use(&mut self, next: u64) {
        self.replacement.set_next_use(next);
    }

    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let way = self.way_of(set, line)?;
        let entry = self.entries.get_mut(set * self.ways + way)?;
        let had = StoredLine::of(*entry).flags;
        *entry = StoredLine { line, flags: had & !PREFETCHED | flags }.entry();
        self.replacement.touch(set, way);
        Some(had)
    }

    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        let way = self.way_of(set, line)?;
        Some(StoredLine::of(*self.entries.get(set * self.ways + way)?).flags)
    }

    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        let way = self.way_of(set, line)?;
        let entry = self.entries.get_mut(set * self.ways + way)?;
        let had = StoredLine::of(*entry).flags;
        *entry = EMPTY;
        self.valid.set(set, way, false);
        self.replacement.leave(set, way);
        if let Some(places) = &mut self.places {
            places.remove(&line);
        }
        Some(had)
    }

    pub(super) fn clean(&mut self, set: usize, line: u64) {
        let at = self.way_of(set, line).map(|way| set * self.ways + way);
        if let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) {
            *entry &= !u64::from(DIRTY);
        }
    }

    pub(super) fn insert(&mut self, set: usize, stored: StoredLine) -> Option<StoredLine> {
        let (way, victim) = match self.valid.lowest_clear(set) {
            Some(way) => (way, None),
            None => {
                let way = self.replacement.victim(set);
                let gone = StoredLine::of(*self.entries.get(set * self.ways + way)?);
                self.replacement.leave(set, way);
                (way, Some(gone))
            }
        };
        // The victim's policy state is gone by now, so `fill` finds the way as if it had been empty.
        *self.entries.get_mut(set * self.ways + way)? = stored.entry();
        self.valid.set(set, way, true);
        if let Some(places) = &mut self.places {
            if let Some(gone) = victim {
                places.remove(&gone.line);
            }
            places.insert(stored.line, way);
        }
        self.replacement.fill(set, way);
        victim
    }

    fn way_of(&self, set: usize, line: u64) -> Option<usize> {
        if let Some(places) = &self.places {
            return places.get(&line).copied();
        }
        let from = set * self.ways;
        // An empty entry matches no line: see `EMPTY`.
        self.entries.get(from..from + self.ways)?.iter().position(|entry| entry >> FLAG_BITS == line)
    }
}

//! Few ways, in the order of their last use (LRU) or of their fill (FIFO): the victim is the last.
//!
//! Which way a line is in makes no difference to what these policies do, so the ways of a set are kept in order.

use super::{DIRTY, EMPTY, FLAG_BITS, Held, PREFETCHED};
use crate::cache::config::Geometry;

/// The lines.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Recency {
    ways: usize,
    /// True for LRU, false for FIFO.
    by_use: bool,
    /// Sets after one another, each with the latest line first and what is empty last.
    entries: Vec<u64>,
}

impl Recency {
    pub(super) fn new(geometry: &Geometry, by_use: bool) -> Self {
        Self { ways: geometry.ways, by_use, entries: vec![EMPTY; geometry.ways * geometry.sets] }
    }

    pub(super) fn entries(&self) -> &[u64] {
        &self.entries
    }

    #[inline]
    fn set(&mut self, set: usize) -> &mut [u64] {
        let from = set * self.ways;
        self.entries.get_mut(from..from + self.ways).unwrap_or_default()
    }

    #[inline]
    pub(in crate::cache) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let by_use = self.by_use;
        let entries = self.set(set);
        let first = entries.first_mut()?;
        // The latest line is the most likely one, and needs no move.
        if *first >> FLAG_BITS == line {
            let had = Held::of(*first).flags;
            *first = Held { line, flags: had & !PREFETCHED | flags }.entry();
            return Some(had);
        }
        let at = position(entries, line)?;
        let (newer, rest) = entries.split_at_mut(at);
        let entry = rest.first_mut()?;
        let had = Held::of(*entry).flags;
        *entry = Held { line, flags: had & !PREFETCHED | flags }.entry();
        if by_use {
            let latest = *entry;
            *entry = *newer.last()?;
            newer.copy_within(..at - 1, 1);
            *newer.first_mut()? = latest;
        }
        Some(had)
    }

    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        let from = set * self.ways;
        let entries = self.entries.get(from..from + self.ways)?;
        Some(Held::of(*entries.get(position(entries, line)?)?).flags)
    }

    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        let entries = self.set(set);
        let at = position(entries, line)?;
        let had = Held::of(*entries.get(at)?).flags;
        entries.copy_within(at + 1.., at);
        *entries.last_mut()? = EMPTY;
        Some(had)
    }

    pub(super) fn clean(&mut self, set: usize, line: u64) {
        let entries = self.set(set);
        if let Some(entry) = position(entries, line).and_then(|at| entries.get_mut(at)) {
            *entry &= !u64::from(DIRTY);
        }
    }

    #[inline]
    pub(in crate::cache) fn insert(&mut self, set: usize, held: Held) -> Option<Held> {
        let entries = self.set(set);
        let last = *entries.last()?;
        entries.copy_within(..entries.len() - 1, 1);
        *entries.first_mut()? = held.entry();
        (last != EMPTY).then(|| Held::of(last))
    }
}

#[inline]
fn position(entries: &[u64], line: u64) -> Option<usize> {
    // Without its flags the empty entry is no line's number: see EMPTY.
    entries.iter().position(|entry| entry >> FLAG_BITS == line)
}

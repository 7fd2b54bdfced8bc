//! Memory that was removed and that no later region reused.

use std::collections::BTreeMap;

use super::stabbing::Stabbing;

/// Removed regions; one is dropped as soon as a later one overlaps any byte of it.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// Removed regions that overlap no other of these: start and last address.
    alone: BTreeMap<u64, u64>,
    /// The others, which are rare; each with its start.
    others: Stabbing<u64>,
    /// Start and order of each of the others, and its last address.
    starts: BTreeMap<(u64, u64), u64>,
    next_order: u64,
}

impl Removed {
    /// Takes a region that was removed.
    pub(super) fn insert(&mut self, start: u64, last: u64) {
        if !self.is_touched(start, last) {
            self.alone.insert(start, last);
            return;
        }
        let order = self.next_order;
        self.next_order += 1;
        self.others.insert(start, last, order, start);
        self.starts.insert((start, order), last);
    }

    /// Forgets removed regions that overlap a region that was added, and emits the ranges.
    pub(super) fn take_again(&mut self, start: u64, last: u64, mut forgotten: impl FnMut(u64, u64)) {
        while let Some((&from, &to)) = self.alone.range(..=last).next_back().filter(|(_, to)| **to >= start) {
            self.alone.remove(&from);
            forgotten(from, to);
        }
        if self.others.is_empty() {
            return;
        }
        while let Some((&(from, order), _)) = self.starts.range((start, 0)..=(last, u64::MAX)).next() {
            forgotten(from, self.forget(from, order));
        }
        // Any others begin before it and extend into it.
        while let Some((order, from)) = self.others.latest(start) {
            forgotten(from, self.forget(from, order));
        }
    }

    /// True when an address is in removed memory.
    pub(super) fn contains(&self, address: u64) -> bool {
        let alone = self.alone.range(..=address).next_back().is_some_and(|(_, last)| *last >= address);
        alone || (!self.others.is_empty() && self.others.latest(address).is_some())
    }

    /// Whether an address is in removed memory, and a range around it with the same answer.
    pub(super) fn around(&self, address: u64) -> (u64, u64, bool) {
        let before = self.alone.range(..=address).next_back();
        let after = self.alone.range(address..).next().map_or(u64::MAX, |(from, _)| from.saturating_sub(1));
        let (first, last, is_removed) = match before {
            Some((from, to)) if *to >= address => (*from, *to, true),
            Some((_, to)) => (to + 1, after, false),
            None => (0, after, false),
        };
        if is_removed || self.others.is_empty() {
            return (first, last, is_removed);
        }
        let (from, to) = self.others.around(address);
        (first.max(from), last.min(to), self.others.latest(address).is_some())
    }

    /// Regions kept.
    pub(super) fn len(&self) -> usize {
        self.alone.len() + self.starts.len()
    }

    fn is_touched(&self, start: u64, last: u64) -> bool {
        self.alone.range(..=last).next_back().is_some_and(|(_, to)| *to >= start)
    }

    /// Forgets one of the others; its last address.
    fn forget(&mut self, start: u64, order: u64) -> u64 {
        let last = self.starts.remove(&(start, order)).unwrap_or(start);
        self.others.remove(start, last, order);
        last
    }
}

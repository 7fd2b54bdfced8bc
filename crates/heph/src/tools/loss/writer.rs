//! One run of counters: from a writer's start to its end.

use std::collections::{BTreeMap, VecDeque};

use super::{LossOptions, Room};
use crate::wire::counter::RESTART;

/// Counters are kept in 64 bits that do not wrap; this is counter 0 of a writer's first round. There is room below it,
/// because the first event to arrive need not be the first that was sent.
const BASE: u64 = 1 << 40;

/// Longest window of hashes: how far back duplicates are distinguished from restarts.
pub(super) const RING_MAX: usize = 4096;

/// Initial length of windows of hashes.
const RING_START: usize = 16;

/// Most gaps whose age is tracked; older ones count as settled.
const PENDING_MAX: usize = 1024;

/// How a counter fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The next.
    Exact,
    /// This many are missing before it.
    Ahead(u32),
    /// Missing, and it may still arrive.
    Fill,
    /// Missing for longer than the window.
    FillLate,
    /// It arrived before, with the same bytes.
    Duplicate,
    /// Before the first that arrived, and near it.
    Head(u64),
    /// It does not belong to this writer.
    None,
}

/// A gap that may still be filled.
#[derive(Debug, Clone, Copy)]
struct OpenGap {
    start: u64,
    end: u64,
    packet: u64,
    at_ns: u64,
}

/// One writer of a stream.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    /// Where its counting begins.
    start: u64,
    /// The lowest that arrived.
    lowest: u64,
    next: u64,
    /// Missing counters: start to end, exclusive.
    missing: BTreeMap<u64, u64>,
    pub(super) lost: u64,
    pub(super) unlisted: u64,
    /// Hashes of the arrived packets: that of counter `n` is at `n` modulo the length.
    ring: Vec<u64>,
    /// The lowest counter whose hash is in the ring.
    ring_from: u64,
    pending: VecDeque<OpenGap>,
    /// Number of the last packet of the stream that belonged to this writer.
    pub(super) used: u64,
    delivered: u64,
}

impl Writer {
    /// A writer whose first arrival is `counter`. Up to `head_max` counters before it count as missing.
    pub(super) fn new(counter: u32, hash: u64, head_max: u32, packet: u64, at_ns: u64, room: &mut Room) -> Self {
        let first = BASE + u64::from(counter);
        let start = if counter < head_max { BASE } else { first };
        let mut made = Self {
            start,
            lowest: first,
            next: start,
            missing: BTreeMap::new(),
            lost: 0,
            unlisted: 0,
            ring: Vec::new(),
            ring_from: first,
            pending: VecDeque::new(),
            used: packet,
            delivered: 0,
        };
        made.advance(first, hash, packet, at_ns, room);
        made
    }

    /// How a counter fits. `packet` is the number of the packet in its stream.
    pub(super) fn fit(&self, counter: u32, hash: u64, packet: u64, at_ns: u64, options: &LossOptions) -> Fit {
        let ahead = counter.wrapping_sub(self.next as u32);
        if ahead == 0 {
            return Fit::Exact;
        }
        if ahead < 1 << 31 {
            return if ahead < RESTART { Fit::Ahead(ahead) } else { Fit::None };
        }
        let at = self.extended(counter);
        if at < self.start {
            let below = self.start - at;
            let is_young = self.delivered <= u64::from(options.window_packets);
            return if is_young && below <= u64::from(options.window_packets) { Fit::Head(below) } else { Fit::None };
        }
        if self.is_missing(at) {
            let is_open = self.gap_of(at).is_some_and(|gap| is_open(gap, packet, at_ns, options));
            return match is_open {
                true => Fit::Fill,
                // A counter of 0 long after it was due means that the writer restarted.
                false if counter == 0 => Fit::None,
                false => Fit::FillLate,
            };
        }
        let known = self.ring_slot(at).filter(|_| at >= self.ring_from).and_then(|slot| self.ring.get(slot));
        let is_within = self.next - at <= RING_MAX.min(options.window_packets as usize) as u64;
        match known {
            Some(&known) if known == hash => Fit::Duplicate,
            // There was no memory for its hash: a duplicate is more likely than a new writer.
            None if is_within => Fit::Duplicate,
            _ => Fit::None,
        }
    }

    /// The counter in 64 bits, near the next.
    fn extended(&self, counter: u32) -> u64 {
        let behind = (self.next as u32).wrapping_sub(counter);
        self.next.saturating_sub(u64::from(behind))
    }

    fn is_missing(&self, at: u64) -> bool {
        self.missing.range(..=at).next_back().is_some_and(|(_, &end)| at < end)
    }

    fn gap_of(&self, at: u64) -> Option<&OpenGap> {
        self.pending.iter().rev().find(|gap| gap.start <= at && at < gap.end)
    }

    /// Processes a counter at or above the expected one; those in between are missing from now on.
    pub(super) fn ahead(&mut self, counter: u32, hash: u64, packet: u64, at_ns: u64, room: &mut Room) {
        let at = self.next + u64::from(counter.wrapping_sub(self.next as u32));
        self.advance(at, hash, packet, at_ns, room);
    }

    fn advance(&mut self, at: u64, hash: u64, packet: u64, at_ns: u64, room: &mut Room) {
        if at > self.next {
            self.open_gap(self.next, at, packet, at_ns, room);
        }
        self.next = at + 1;
        self.store_hash(at, hash, room);
    }

    fn open_gap(&mut self, start: u64, end: u64, packet: u64, at_ns: u64, room: &mut Room) {
        self.lost += end - start;
        if room.ranges == 0 {
            self.unlisted += end - start;
            return;
        }
        room.ranges -= 1;
        self.missing.insert(start, end);
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back(OpenGap { start, end, packet, at_ns });
    }

    /// Processes a counter that was missing.
    pub(super) fn fill(&mut self, counter: u32, hash: u64, room: &mut Room) {
        let at = self.extended(counter);
        let Some((&start, &end)) = self.missing.range(..=at).next_back() else { return };
        if at >= end {
            return;
        }
        self.missing.remove(&start);
        room.ranges += 1;
        for (start, end) in [(start, at), (at + 1, end)] {
            if start < end && room.ranges > 0 {
                room.ranges -= 1;
                self.missing.insert(start, end);
            } else if start < end {
                self.unlisted += end - start;
            }
        }
        self.lost = self.lost.saturating_sub(1);
        self.lowest = self.lowest.min(at);
        self.store_hash(at, hash, room);
    }

    /// Processes a counter before all others: the writer began earlier.
    pub(super) fn extend_head(&mut self, below: u64, hash: u64, packet: u64, at_ns: u64, room: &mut Room) {
        let at = self.start.saturating_sub(below);
        if below > 1 {
            self.open_gap(at + 1, self.start, packet, at_ns, room);
        }
        self.start = at;
        self.lowest = at;
        self.store_hash(at, hash, room);
    }

    /// Stores the hash of an arrival, as far back as the ring reaches.
    fn store_hash(&mut self, at: u64, hash: u64, room: &mut Room) {
        self.delivered += 1;
        self.grow(room);
        let length = self.ring.len() as u64;
        if length == 0 {
            return;
        }
        self.ring_from = self.ring_from.max(self.next.saturating_sub(length));
        if at < self.ring_from && self.next - at <= length {
            // Nothing below was stored, so its slot is free.
            self.ring_from = at;
        }
        if at >= self.ring_from
            && let Some(slot) = self.ring_slot(at)
            && let Some(stored) = self.ring.get_mut(slot)
        {
            *stored = hash;
        }
    }

    /// Makes the ring longer when it is full of this writer's hashes.
    fn grow(&mut self, room: &mut Room) {
        let length = self.ring.len();
        let span = usize::try_from(self.next.saturating_sub(self.ring_from)).unwrap_or(usize::MAX);
        let wanted = span.min(RING_MAX).next_power_of_two().max(RING_START);
        let added = wanted.saturating_sub(length) * size_of::<u64>();
        if wanted <= length || added > room.window_bytes {
            return;
        }
        room.window_bytes -= added;
        let old = std::mem::replace(&mut self.ring, vec![0; wanted]);
        self.ring_from = self.ring_from.max(self.next.saturating_sub(wanted as u64));
        // Counters that did not arrive get unrelated hashes here; nothing reads them before they are overwritten.
        for at in self.ring_from..self.next {
            let known = usize::try_from(at % old.len().max(1) as u64).ok().and_then(|slot| old.get(slot));
            if let (Some(&known), Some(slot)) = (known, self.ring_slot(at))
                && let Some(stored) = self.ring.get_mut(slot)
            {
                *stored = known;
            }
        }
    }

    fn ring_slot(&self, at: u64) -> Option<usize> {
        let length = self.ring.len() as u64;
        if length == 0 || self.next.saturating_sub(at) > length {
            return None;
        }
        usize::try_from(at % length).ok()
    }

    /// How many missing counters may still arrive.
    pub(super) fn open(&self, packet: u64, at_ns: u64, options: &LossOptions) -> u64 {
        let open = self.pending.iter().filter(|gap| is_open(gap, packet, at_ns, options));
        open.map(|gap| self.missing_in(gap.start, gap.end)).sum()
    }

    fn missing_in(&self, start: u64, end: u64) -> u64 {
        self.missing.range(start..end).map(|(&from, &to)| to.min(end).saturating_sub(from)).sum()
    }

    /// How many are missing before the lowest that arrived.
    pub(super) fn lost_at_head(&self) -> u64 {
        self.missing_in(self.start, self.lowest)
    }

    /// Missing counters, in order.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u32, u64)> {
        self.missing.iter().map(|(&start, &end)| (start as u32, end - start))
    }

    /// Ranges that arrived: the first counter and how many.
    pub(super) fn arrived(&self) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let mut from = self.start;
        for (&start, &end) in self.missing.iter().chain([(&self.next, &self.next)]) {
            if start > from {
                ranges.push((from - BASE.min(from), start - from));
            }
            from = end;
        }
        ranges
    }

    /// The lowest and the highest that arrived.
    pub(super) fn bounds(&self) -> (u32, u32) {
        (self.lowest as u32, self.next.saturating_sub(1) as u32)
    }

    /// The highest that arrived, for comparing.
    pub(super) fn is_below_highest(&self, counter: u32) -> bool {
        let highest = self.next.wrapping_sub(1) as u32;
        let behind = highest.wrapping_sub(counter);
        behind > 0 && behind < 1 << 31
    }

    /// Returns the memory that it took for detecting duplicates.
    pub(super) fn retire(&mut self, room: &mut Room) {
        room.window_bytes += self.ring.len() * size_of::<u64>();
        self.ring = Vec::new();
        self.ring_from = self.next;
        self.pending = VecDeque::new();
    }
}

fn is_open(gap: &OpenGap, packet: u64, at_ns: u64, options: &LossOptions) -> bool {
    let packets = packet.saturating_sub(gap.packet) <= u64::from(options.window_packets);
    packets && options.window_ns.is_none_or(|window| at_ns.saturating_sub(gap.at_ns) <= window)
}

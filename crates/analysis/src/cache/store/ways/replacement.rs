//! Which way has to go.

use std::collections::BTreeSet;

use super::bits::Bits;
use crate::cache::config::{Geometry, Policy};

/// Seed of the generator of the random policy.
const SEED: u64 = 88_172_645_463_325_252;

/// Of this many fills BRRIP places one as SRRIP does (Jaleel et al., ISCA 2010: a low probability such as 1/32).
const LONG_FILLS: u64 = 32;

/// Intervals that RRIP distinguishes: two bits.
const INTERVALS: usize = 4;

/// The state of a policy for the ways.
#[derive(Debug, Clone)]
pub(super) enum Replacement {
    Tree(Tree),
    Bit(BitLru),
    Rrip(Rrip),
    Random(Random),
    Future(Future),
}

impl Replacement {
    pub(super) fn new(geometry: &Geometry, policy: Policy) -> Self {
        let Geometry { sets, ways, .. } = *geometry;
        match policy {
            Policy::TreePlru => Self::Tree(Tree { ways, bits: Bits::new(sets, ways) }),
            Policy::BitPlru => Self::Bit(BitLru { used: Bits::new(sets, ways) }),
            Policy::Srrip | Policy::Brrip => Self::Rrip(Rrip::new(sets, ways, policy == Policy::Brrip)),
            Policy::Opt => Self::Future(Future::new(sets, ways)),
            // LRU and FIFO are kept by order, not here.
            Policy::Random | Policy::Lru | Policy::Fifo => Self::Random(Random { ways: ways as u64, x: SEED }),
        }
    }

    pub(super) fn touch(&mut self, set: usize, way: usize) {
        match self {
            Self::Tree(tree) => tree.touch(set, way),
            Self::Bit(bits) => bits.touch(set, way),
            Self::Rrip(rrip) => rrip.place(set, way, 0),
            Self::Random(_) => {}
            Self::Future(future) => future.place(set, way),
        }
    }

    pub(super) fn fill(&mut self, set: usize, way: usize) {
        match self {
            Self::Rrip(rrip) => rrip.fill(set, way),
            _ => self.touch(set, way),
        }
    }

    /// A way is empty, or about to be refilled.
    pub(super) fn leave(&mut self, set: usize, way: usize) {
        match self {
            Self::Rrip(rrip) => rrip.leave(set, way),
            Self::Future(future) => future.leave(set, way),
            Self::Tree(_) | Self::Bit(_) | Self::Random(_) => {}
        }
    }

    /// The way that has to go from a full set.
    pub(super) fn victim(&mut self, set: usize) -> usize {
        match self {
            Self::Tree(tree) => tree.victim(set),
            Self::Bit(bits) => bits.used.lowest_clear(set).unwrap_or(0),
            Self::Rrip(rrip) => rrip.victim(set),
            Self::Random(random) => random.draw(),
            Self::Future(future) => future.victim(set),
        }
    }

    pub(super) fn set_next_use(&mut self, next: u64) {
        if let Self::Future(future) = self {
            future.next = next;
        }
    }
}

/// A binary tree of `ways - 1` bits; node n has the children 2n+1 (lower half of the ways) and 2n+2.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    ways: usize,
    bits: Bits,
}

impl Tree {
    fn touch(&mut self, set: usize, way: usize) {
        let (mut node, mut first, mut half) = (0, 0, self.ways / 2);
        while half > 0 {
            let is_left = way < first + half;
            // Bits point away from the way that was used: a set bit sends the victim's search to the right.
            self.bits.set(set, node, is_left);
            node = 2 * node + if is_left { 1 } else { 2 };
            first += if is_left { 0 } else { half };
            half /= 2;
        }
    }

    fn victim(&self, set: usize) -> usize {
        let (mut node, mut first, mut half) = (0, 0, self.ways / 2);
        while half > 0 {
            let is_right = self.bits.is_set(set, node);
            node = 2 * node + if is_right { 2 } else { 1 };
            first += if is_right { half } else { 0 };
            half /= 2;
        }
        first
    }
}

/// A bit for each way that was used; when the last is set, all others are cleared.
#[derive(Debug, Clone)]
pub(super) struct BitLru {
    used: Bits,
}

impl BitLru {
    fn touch(&mut self, set: usize, way: usize) {
        self.used.set(set, way, true);
        if self.used.lowest_clear(set).is_none() {
            // Only the latest use remains known, so at least one way is always a candidate (unless there is just one).
            self.used.clear(set);
            self.used.set(set, way, true);
        }
    }
}

/// Re-reference intervals of two bits.
///
/// There is a set of ways for each interval, so that the lowest way of one is found at once. Where all ways age, the
/// sets exchange their names.
#[derive(Debug, Clone)]
pub(super) struct Rrip {
    intervals: [Bits; INTERVALS],
    /// Which of the four holds interval 0 of a set; the next holds interval 1.
    first: Vec<u8>,
    is_bimodal: bool,
    fills: u64,
}

impl Rrip {
    fn new(sets: usize, ways: usize, is_bimodal: bool) -> Self {
        let intervals = std::array::from_fn(|_| Bits::new(sets, ways));
        Self { intervals, first: vec![0; sets], is_bimodal, fills: 0 }
    }

    fn index(&self, set: usize, interval: usize) -> usize {
        (usize::from(self.first.get(set).copied().unwrap_or(0)) + interval) % INTERVALS
    }

    fn place(&mut self, set: usize, way: usize, interval: usize) {
        self.leave(set, way);
        let index = self.index(set, interval);
        self.intervals[index].set(set, way, true);
    }

    fn leave(&mut self, set: usize, way: usize) {
        self.intervals.iter_mut().for_each(|bits| bits.set(set, way, false));
    }

    fn fill(&mut self, set: usize, way: usize) {
        self.fills += 1;
        let is_long = !self.is_bimodal || self.fills.is_multiple_of(LONG_FILLS);
        self.place(set, way, if is_long { 2 } else { 3 });
    }

    fn victim(&mut self, set: usize) -> usize {
        for _ in 0..INTERVALS {
            let distant = self.index(set, INTERVALS - 1);
            if let Some(way) = self.intervals[distant].lowest_set(set) {
                return way;
            }
            // All grow older: the empty set of interval 3 becomes that of interval 0.
            if let Some(first) = self.first.get_mut(set) {
                *first = (*first + INTERVALS as u8 - 1) % INTERVALS as u8;
            }
        }
        0
    }
}

/// A seeded generator (xorshift64, Marsaglia 2003), drawn only when a set is full.
#[derive(Debug, Clone)]
pub(super) struct Random {
    ways: u64,
    x: u64,
}

impl Random {
    fn draw(&mut self) -> usize {
        self.x ^= self.x << 13;
        self.x ^= self.x >> 7;
        self.x ^= self.x << 17;
        ((self.x >> 33) % self.ways.max(1)) as usize
    }
}

/// The next use of each way; the latest one is evicted (Belady 1966).
#[derive(Debug, Clone)]
pub(super) struct Future {
    ways: usize,
    next: u64,
    next_of: Vec<u64>,
    /// Next uses of each set, with the way as its complement: the last is the latest use, of the lowest way.
    order: Vec<BTreeSet<(u64, usize)>>,
}

impl Future {
    fn new(sets: usize, ways: usize) -> Self {
        Self { ways, next: u64::MAX, next_of: vec![u64::MAX; sets * ways], order: vec![BTreeSet::new(); sets] }
    }

    fn place(&mut self, set: usize, way: usize) {
        self.leave(set, way);
        if let (Some(next), Some(order)) = (self.next_of.get_mut(set * self.ways + way), self.order.get_mut(set)) {
            *next = self.next;
            // The complement makes the lowest of the ways that are never used again the last in order.
            order.insert((self.next, usize::MAX - way));
        }
    }

    fn leave(&mut self, set: usize, way: usize) {
        if let (Some(next), Some(order)) = (self.next_of.get(set * self.ways + way), self.order.get_mut(set)) {
            order.remove(&(*next, usize::MAX - way));
        }
    }

    fn victim(&self, set: usize) -> usize {
        self.order.get(set).and_then(BTreeSet::last).map_or(0, |(_, way)| usize::MAX - way)
    }
}

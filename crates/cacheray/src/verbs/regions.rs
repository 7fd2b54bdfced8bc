//! Live RTTA regions: the latest add that contains a byte wins, a remove drops the latest region that starts exactly
//! there, and what it covered becomes visible again (page of the format, section 1.4).
//!
//! Overlapping regions are in layers: each region is in a higher layer than every region it overlapped when it was
//! added, and inside a layer nothing overlaps. So the first hit from the top is the latest.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anytrace_core::Limits;

/// Regions followed for each key that is counted separately: by default 2^24, as many as the engines of `sim --types`
/// follow.
const REGIONS_PER_KEY: usize = 256;

/// Most live regions followed under these limits.
pub(crate) fn regions_max(limits: Limits) -> usize {
    limits.distinct_max.saturating_mul(REGIONS_PER_KEY)
}

/// Deepest overlap followed; the limit bounds each look-up.
pub(crate) const LAYERS_MAX: usize = 64;

/// Most regions moved down after one remove.
const SINKS_MAX: usize = 256;

/// One live region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region<T> {
    /// First address.
    pub(crate) start: u64,
    /// Length in bytes; 0 is possible, and more than the address space.
    pub(crate) bytes: u64,
    /// Record number of the add.
    pub(crate) seq: u64,
    /// Data of the caller.
    pub(crate) data: T,
}

impl<T> Region<T> {
    /// Last address, not wrapping; `None` for an empty region.
    pub(crate) fn last(&self) -> Option<u64> {
        Some(self.start.saturating_add(self.bytes.checked_sub(1)?))
    }

    fn contains(&self, address: u64) -> bool {
        self.start <= address && self.last().is_some_and(|last| address <= last)
    }
}

/// How a new region overlaps a live one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Overlap {
    /// One is inside the other.
    Nested,
    /// They share some bytes and each has its own.
    Partial,
    /// They start at the same address.
    SameStart,
}

/// All live regions, bounded.
#[derive(Debug)]
pub(crate) struct Regions<T> {
    layers: Vec<BTreeMap<u64, Region<T>>>,
    empty: BTreeMap<u64, Vec<Region<T>>>,
    count: usize,
    count_max: usize,
}

impl<T> Regions<T> {
    pub(crate) fn new(count_max: usize) -> Self {
        Self { layers: Vec::new(), empty: BTreeMap::new(), count: 0, count_max }
    }

    /// Adds a region; false when it could not be followed because of a limit.
    pub(crate) fn add(&mut self, region: Region<T>) -> bool {
        if self.count >= self.count_max {
            return false;
        }
        let Some(last) = region.last() else {
            self.count += 1;
            self.empty.entry(region.start).or_default().push(region);
            return true;
        };
        let above = self.layers.iter().rposition(|layer| rightmost(layer, region.start..=last).is_some());
        let at = above.map_or(0, |layer| layer + 1);
        if at >= LAYERS_MAX {
            return false;
        }
        if at == self.layers.len() {
            self.layers.push(BTreeMap::new());
        }
        self.count += 1;
        self.layers[at].insert(region.start, region);
        true
    }

    /// Drops the latest region that starts at an address.
    pub(crate) fn remove(&mut self, start: u64) -> Option<Region<T>> {
        let layer = self.layers.iter().rposition(|layer| layer.contains_key(&start));
        let solid = layer.and_then(|n| self.layers.get(n)?.get(&start)).map(|region| region.seq);
        let empty = self.empty.get(&start).and_then(|all| all.last()).map(|region| region.seq);
        let removed = if empty > solid {
            let all = self.empty.get_mut(&start)?;
            let region = all.pop();
            if all.is_empty() {
                self.empty.remove(&start);
            }
            region
        } else {
            let layer = layer?;
            let region = self.layers.get_mut(layer)?.remove(&start);
            if let Some((region, last)) = region.as_ref().and_then(|region| Some((region, region.last()?))) {
                self.sink(layer, region.start..=last);
            }
            while self.layers.last().is_some_and(BTreeMap::is_empty) {
                self.layers.pop();
            }
            region
        };
        self.count -= usize::from(removed.is_some());
        removed
    }

    /// Lets regions above a gap in a layer sink, so that the number of layers stays the depth of the overlaps.
    ///
    /// At most [`SINKS_MAX`] are examined: a higher layer than necessary is still correct.
    fn sink(&mut self, layer: usize, range: RangeInclusive<u64>) {
        let mut gaps = vec![(layer, range)];
        let mut left = SINKS_MAX;
        while let Some((gap, range)) = gaps.pop() {
            for from in gap + 1..self.layers.len() {
                let touching = self.layers.get(from).into_iter().flat_map(|layer| touching(layer, range.clone()));
                let starts: Vec<u64> = touching.map(|region| region.start).take(left).collect();
                left -= starts.len();
                for start in starts {
                    gaps.extend(self.sink_one(from, start));
                }
            }
        }
    }

    /// Moves a region down as far as possible; returns the gap it leaves.
    fn sink_one(&mut self, from: usize, start: u64) -> Option<(usize, RangeInclusive<u64>)> {
        let last = self.layers.get(from)?.get(&start)?.last()?;
        let below = self.layers.get(..from)?.iter().rposition(|layer| rightmost(layer, start..=last).is_some());
        let to = below.map_or(0, |layer| layer + 1);
        if to >= from {
            return None;
        }
        let region = self.layers.get_mut(from)?.remove(&start)?;
        self.layers.get_mut(to)?.insert(start, region);
        Some((from, start..=last))
    }

    /// The region a byte belongs to.
    pub(crate) fn find(&self, address: u64) -> Option<&Region<T>> {
        self.layers.iter().rev().find_map(|layer| {
            let (_, region) = layer.range(..=address).next_back()?;
            region.contains(address).then_some(region)
        })
    }

    /// How a region would overlap the live ones: the worst case.
    pub(crate) fn overlap(&self, start: u64, last: u64) -> Option<Overlap> {
        let ends = self.layers.iter().flat_map(|layer| {
            let left = layer.range(..=start).next_back().map(|(_, region)| region).filter(|r| r.contains(start));
            left.into_iter().chain(rightmost(layer, start..=last))
        });
        ends.map(|region| {
            let theirs = region.last().unwrap_or(region.start);
            match () {
                () if region.start == start => Overlap::SameStart,
                () if region.start < start && last <= theirs => Overlap::Nested,
                () if start < region.start && theirs <= last => Overlap::Nested,
                () => Overlap::Partial,
            }
        })
        .max()
    }

    /// Live regions, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region<T>> {
        self.layers.iter().flat_map(BTreeMap::values).chain(self.empty.values().flatten())
    }

    /// Number of live regions.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

/// The regions of a layer that share a byte with a range, from the right.
fn touching<T>(layer: &BTreeMap<u64, Region<T>>, range: RangeInclusive<u64>) -> impl Iterator<Item = &Region<T>> {
    let from = *range.start();
    layer.range(..=*range.end()).rev().map(|(_, r)| r).take_while(move |r| r.last().is_some_and(|last| last >= from))
}

/// The last region of a layer that shares a byte with a range.
fn rightmost<T>(layer: &BTreeMap<u64, Region<T>>, range: RangeInclusive<u64>) -> Option<&Region<T>> {
    touching(layer, range).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(seq: u64, start: u64, bytes: u64) -> Region<()> {
        Region { start, bytes, seq, data: () }
    }

    #[test]
    fn the_latest_add_wins_and_the_region_it_covered_becomes_visible_again() {
        let mut regions = Regions::new(100);
        for (seq, start, bytes) in [(0, 100, 100), (1, 150, 10), (2, 155, 100)] {
            assert!(regions.add(region(seq, start, bytes)));
        }
        let at = |regions: &Regions<()>, byte| regions.find(byte).map(|r| r.seq);
        assert_eq!([at(&regions, 150), at(&regions, 155), at(&regions, 254)], [Some(1), Some(2), Some(2)]);
        assert_eq!(regions.remove(155).map(|r| r.seq), Some(2));
        assert_eq!([at(&regions, 155), at(&regions, 160), at(&regions, 200)], [Some(1), Some(0), None]);
        assert_eq!(regions.remove(151), None);
    }

    #[test]
    fn a_remove_drops_the_latest_region_of_its_start_even_if_it_is_empty() {
        let mut regions = Regions::new(100);
        for (seq, bytes) in [(0, 8), (1, 0), (2, 4), (3, 0)] {
            regions.add(region(seq, 16, bytes));
        }
        let order: Vec<_> = std::iter::from_fn(|| regions.remove(16).map(|r| r.seq)).collect();
        assert_eq!((order, regions.len()), (vec![3, 2, 1, 0], 0));
    }

    #[test]
    fn kinds_of_overlap_are_distinguished() {
        let mut regions = Regions::new(100);
        regions.add(region(0, 100, 100));
        let over = |start, last| regions.overlap(start, last);
        assert_eq!(over(0, 99), None);
        assert_eq!(over(200, 300), None);
        assert_eq!(over(120, 130), Some(Overlap::Nested));
        assert_eq!(over(50, 250), Some(Overlap::Nested));
        assert_eq!(over(150, 250), Some(Overlap::Partial));
        assert_eq!(over(100, 120), Some(Overlap::SameStart));
    }

    #[test]
    fn regions_past_the_limits_are_refused() {
        let mut regions = Regions::new(2);
        assert!(regions.add(region(0, 0, 1)) && regions.add(region(1, 1, 0)) && !regions.add(region(2, 2, 1)));
        let mut deep = Regions::new(1000);
        let followed = (0..100).filter(|n| deep.add(region(*n, 0, 8))).count();
        assert_eq!(followed, LAYERS_MAX);
    }

    #[test]
    fn regions_end_at_the_last_address() {
        let mut regions = Regions::new(10);
        regions.add(region(0, u64::MAX - 1, u64::MAX));
        assert!(regions.find(u64::MAX).is_some() && regions.find(0).is_none());
    }

    #[test]
    fn layers_agree_with_a_plain_list_on_random_sequences() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % below
        };
        let mut regions = Regions::new(1000);
        let mut plain: Vec<Region<()>> = Vec::new();
        for seq in 0..5000 {
            let start = random(64);
            if random(2) == 0 && plain.len() < 30 {
                let new = region(seq, start, random(20));
                assert!(regions.add(new.clone()));
                plain.push(new);
            } else {
                let at = plain.iter().rposition(|r| r.start == start);
                assert_eq!(regions.remove(start), at.map(|at| plain.remove(at)));
            }
            let byte = random(90);
            assert_eq!(regions.find(byte), plain.iter().rfind(|r| r.contains(byte)));
        }
    }
}

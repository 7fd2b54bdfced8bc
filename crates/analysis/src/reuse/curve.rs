//! From distances to misses: how many accesses miss a fully associative LRU cache of any size.

use std::collections::BTreeMap;

/// Distances below this are counted one by one in [`Buckets`].
const EXACT: u64 = 256;

/// Buckets for each doubling of the distance above that.
const PER_DOUBLING: u64 = 16;

/// How many accesses missed caches of every size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Curve {
    /// Accesses to lines.
    pub line_accesses: u64,
    /// First touches: misses in a cache of any size.
    pub cold: u64,
    /// Distances and how many accesses had them, ascending. Where distances are counted in groups, the lowest of the
    /// group; sizes that are powers of two never divide a group.
    pub distances: Vec<(u64, u64)>,
    /// For each of the distances, accesses that had it or a greater one.
    at_least: Vec<u64>,
}

impl Curve {
    /// A curve of distances in ascending order.
    pub fn new(line_accesses: u64, cold: u64, distances: Vec<(u64, u64)>) -> Self {
        let mut sum = 0_u64;
        let mut at_least: Vec<u64> = distances
            .iter()
            .rev()
            .map(|(_, count)| {
                sum += count;
                sum
            })
            .collect();
        at_least.reverse();
        Self { line_accesses, cold, distances, at_least }
    }

    /// Misses of a fully associative LRU cache of this many lines.
    pub fn misses(&self, lines: u64) -> u64 {
        let from = self.distances.partition_point(|(distance, _)| *distance < lines);
        self.cold + self.at_least.get(from).copied().unwrap_or(0)
    }

    /// Share of the accesses that miss a cache of this many lines: 0 to 1, and 0 where there are no accesses.
    pub fn ratio(&self, lines: u64) -> f64 {
        if self.line_accesses == 0 { 0.0 } else { self.misses(lines) as f64 / self.line_accesses as f64 }
    }

    /// The greatest distance; `None` where no line was touched twice.
    pub fn distance_max(&self) -> Option<u64> {
        self.distances.last().map(|(distance, _)| *distance)
    }

    /// The fewest lines with which a cache misses only what every cache misses.
    pub fn lines_that_suffice(&self) -> u64 {
        self.distance_max().map_or(0, |distance| distance + 1)
    }

    /// Sizes worth printing: powers of two from 1 line, at least up to 1,024, and on while more lines help.
    pub fn sizes(&self) -> Vec<u64> {
        let most = self.lines_that_suffice().max(1024);
        (0..u64::BITS).map(|power| 1 << power).take_while(|size| *size < most.saturating_mul(2)).collect()
    }
}

/// Counts of distances, one by one.
#[derive(Debug, Default)]
pub(super) struct Exact {
    counts: Vec<u64>,
}

impl Exact {
    #[inline]
    pub(super) fn add(&mut self, distance: u32) {
        match self.counts.get_mut(distance as usize) {
            Some(count) => *count += 1,
            None => self.lengthen(distance),
        }
    }

    #[cold]
    fn lengthen(&mut self, distance: u32) {
        // At most the number of lines, whose table is larger.
        self.counts.resize(distance as usize + 1, 0);
        if let Some(last) = self.counts.last_mut() {
            *last = 1;
        }
    }

    pub(super) fn add_repeats(&mut self, count: u64) {
        if count > 0 {
            if self.counts.is_empty() {
                self.counts.push(0);
            }
            if let Some(first) = self.counts.first_mut() {
                *first += count;
            }
        }
    }

    pub(super) fn into_counts(self) -> Vec<(u64, u64)> {
        (0_u64..).zip(self.counts).filter(|(_, count)| *count > 0).collect()
    }
}

/// Weights of distances, in groups of at most a sixteenth of their size.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Buckets {
    weights: Vec<f64>,
}

impl Buckets {
    #[inline]
    pub(super) fn add(&mut self, distance: u64, weight: f64) {
        self.add_to(bucket(distance), weight);
    }

    fn add_to(&mut self, bucket: usize, weight: f64) {
        if bucket >= self.weights.len() {
            // At most 256 + 16 * 56.
            self.weights.resize(bucket + 1, 0.0);
        }
        if let Some(sum) = self.weights.get_mut(bucket) {
            *sum += weight;
        }
    }

    /// Adds all of another's weights, times a factor.
    pub(super) fn add_all(&mut self, other: &Self, factor: f64) {
        for (at, weight) in other.weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            self.add_to(at, *weight * factor);
        }
    }

    /// Resets all weights; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.weights.clear();
    }

    pub(super) fn sum(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Weights of distances from a bound on, a bound of a bucket.
    pub(super) fn from(&self, distance: u64) -> f64 {
        self.weights.iter().skip(bucket(distance)).sum()
    }

    /// Lowest distances and weights, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, f64)> {
        self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0).map(|(at, weight)| (lowest(at), *weight))
    }
}

fn bucket(distance: u64) -> usize {
    if distance < EXACT {
        return distance as usize;
    }
    let doublings = u64::from(u64::BITS - 1 - distance.leading_zeros());
    let part = (distance >> (doublings - PER_DOUBLING.ilog2() as u64)) & (PER_DOUBLING - 1);
    // At most 256 + 16 * 56.
    (EXACT + (doublings - u64::from(EXACT.ilog2())) * PER_DOUBLING + part) as usize
}

fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let Some(above) = bucket.checked_sub(EXACT) else { return bucket };
    let doublings = above / PER_DOUBLING + u64::from(EXACT.ilog2());
    (PER_DOUBLING + above % PER_DOUBLING) << (doublings - u64::from(PER_DOUBLING.ilog2()))
}

/// Integer weights, such that every sum from the end is right to a half; `cold` is added at the end.
pub(super) fn rounded(weights: impl DoubleEndedIterator<Item = (u64, f64)>, cold: f64) -> (u64, Vec<(u64, u64)>) {
    let mut counts = BTreeMap::new();
    let of_cold = cold.round() as u64;
    let (mut sum, mut given) = (cold, of_cold);
    for (distance, weight) in weights.rev() {
        sum += weight;
        // Weights are finite and not negative; a float beyond the range becomes the greatest number.
        let due = (sum.round() as u64).saturating_sub(given);
        if due > 0 {
            counts.insert(distance, due);
            given += due;
        }
    }
    (of_cold, counts.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_first_touches_and_distances_of_at_least_the_size() {
        let curve = Curve::new(20, 3, vec![(0, 10), (1, 4), (7, 3)]);
        let misses: Vec<_> = [0, 1, 2, 7, 8, u64::MAX].map(|lines| curve.misses(lines)).into();
        assert_eq!(misses, [20, 10, 6, 6, 3, 3]);
        assert_eq!((curve.lines_that_suffice(), curve.ratio(2)), (8, 0.3));
        assert_eq!(curve.sizes(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        assert_eq!(Curve::new(9, 1, vec![(1024, 8)]).sizes().last(), Some(&2048));
        assert_eq!(Curve::new(9, 1, vec![(1023, 8)]).sizes().last(), Some(&1024));
        assert_eq!(Curve::default().ratio(1), 0.0);
    }

    #[test]
    fn buckets_begin_where_they_say_and_powers_of_two_begin_one() {
        for power in 0..64 {
            assert_eq!(lowest(bucket(1 << power)), 1 << power);
        }
        let mut state = 5_u64;
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let distance = state >> (state % 64);
            let (from, to) = (lowest(bucket(distance)), lowest(bucket(distance) + 1));
            assert!(from <= distance && (distance < to || to <= from), "{from} {distance} {to}");
        }
        assert_eq!(bucket(u64::MAX), 256 + 16 * 56 - 1);
    }

    #[test]
    fn rounding_keeps_sums() {
        let counts = rounded([(0, 0.4), (1, 0.4), (2, 0.4), (3, 0.4)].into_iter(), 0.0);
        assert_eq!(counts, (0, vec![(0, 1), (2, 1)]));
        assert_eq!(rounded([(0, 2.6), (9, 0.0)].into_iter(), 1.4), (1, vec![(0, 3)]));
        assert_eq!(rounded([(5, f64::MAX)].into_iter(), 0.0), (0, vec![(5, u64::MAX)]));
    }
}

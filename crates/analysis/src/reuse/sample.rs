//! Selects the parts of a trace that represent all of it.
//!
//! Long distances come from a part of the *lines*: SHARDS (Waldspurger, Park, Garthwaite & Ahmad, FAST 2015), with a
//! fixed rate or a fixed number of lines. Among sampled lines a distance is shorter by the rate, so distances below
//! some multiples of its inverse can hardly be distinguished. These come from a part of the *records*: stretches in
//! which every line counts (bursts, after Hirzel & Chilimbi 2001). Both parts are chosen by the trace alone, so that
//! every run over a trace chooses the same.

use std::collections::BinaryHeap;

use anytrace_core::access::{BATCH_ACCESSES, Sieve};

use super::stack::Stack;

/// Distances from here on are not counted in bursts, in lines.
pub(super) const NEAR_LINES: u64 = 1024;

/// With a fixed rate all lines are taken until there are this many, so that small traces are not represented by a
/// handful.
const LINES_MIN: usize = 1024;

/// All of the first records are taken: a short trace has too few bursts for programs with phases, and is read quickly.
const DENSE_RECORDS: u64 = 1 << 20;

/// From which record on bursts begin, and one burst in how many records: the first row is used 96 times, the second 192
/// times, the last from there on. The numbers are primes, because a burst does not begin at the very end of its
/// records, and programs tend to repeat themselves after powers of two.
const PERIODS: [(u64, u64); 3] = [(DENSE_RECORDS, 32_771), (4_194_592, 65_537), LATE];
const LATE: (u64, u64) = (16_777_696, 262_147);

/// Records of a burst. The first ones only show which lines are near. Neither number depends on the contents of the
/// records: bursts that begin to count once they have seen enough lines would count more where a program has many.
const BURST_RECORDS: u64 = 3 << 10;

/// Records of a burst that count: its last ones.
const COUNTED_RECORDS: u64 = 1 << 10;

/// How much of a trace is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    /// This share of the lines, 0 to 1; more as long as that would be few lines.
    Rate(f64),
    /// This many lines: memory does not grow with the trace.
    Lines(usize),
}

/// The position of a record in the scheme of bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Burst {
    /// First of the records that it represents.
    pub(super) since: u64,
    /// First record.
    pub(super) from: u64,
    /// First record after it.
    pub(super) to: u64,
    /// First record that the next burst represents.
    pub(super) next: u64,
}

impl Burst {
    /// The burst that represents a record. Its position in its period is arbitrary: at equal distances, bursts would
    /// always see the same part of programs that have a period of their own.
    pub(super) fn of(seq: u64) -> Self {
        if seq < DENSE_RECORDS {
            return Self { since: 0, from: 0, to: DENSE_RECORDS, next: DENSE_RECORDS };
        }
        let (first, period) = PERIODS.iter().rev().find(|(first, _)| seq >= *first).copied().unwrap_or(LATE);
        let since = seq - (seq - first) % period;
        let from = since.saturating_add(Sieve::hash(since) % (period - BURST_RECORDS));
        Self { since, from, to: from.saturating_add(BURST_RECORDS), next: since.saturating_add(period) }
    }

    /// True for the first burst, that of the records that are all taken.
    pub(super) fn is_dense(self) -> bool {
        self.since == 0
    }

    /// The first record from which distances count: those of lines touched before the burst are unknown.
    pub(super) fn warm(self) -> u64 {
        if self.is_dense() { 0 } else { self.to.saturating_sub(COUNTED_RECORDS) }
    }

    /// True when a record with this number is in it.
    #[inline]
    pub(super) fn has(self, seq: u64) -> bool {
        self.from <= seq && seq < self.to
    }

    /// True when some of the [`BATCH_ACCESSES`] records from `seq` on are in it.
    fn is_touched(self, seq: u64) -> bool {
        seq < self.to && self.from < seq.saturating_add(BATCH_ACCESSES as u64)
    }
}

/// True when some record of those from `seq` on that a sieve is asked for is in a burst.
pub(super) fn touches_burst(seq: u64) -> bool {
    let last = seq.saturating_add(BATCH_ACCESSES as u64 - 1);
    Burst::of(seq).is_touched(seq) || Burst::of(last).is_touched(seq)
}

/// Chooses lines.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Lines with hashes below this are taken.
    below: u64,
    weight: f64,
    /// The bound of the rate asked for.
    below_min: u64,
    /// Most lines, as long as the bound may still fall.
    lines_max: usize,
    /// Lines that are taken, with the layers they are in; the highest hash first.
    taken: BinaryHeap<(u64, u64, u32)>,
}

impl Sampler {
    pub(super) fn new(sample: Sample) -> Self {
        let (below_min, lines_max) = match sample {
            // A float beyond the range becomes the greatest number.
            Sample::Rate(rate) => ((rate * 2_f64.powi(64)) as u64, LINES_MIN),
            Sample::Lines(lines) => (1, lines.max(1)),
        };
        Self { below: u64::MAX, weight: 1.0, below_min: below_min.max(1), lines_max, taken: BinaryHeap::new() }
    }

    /// Lines with hashes below this are taken.
    #[inline]
    pub(super) fn below(&self) -> u64 {
        self.below
    }

    /// How many lines each sampled line represents.
    #[inline]
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// Share of the lines that are taken now.
    pub(super) fn rate(&self) -> f64 {
        if self.below == u64::MAX { 1.0 } else { self.below as f64 / 2_f64.powi(64) }
    }

    /// Notes a line that was taken for the first time. Where there are too many, the highest hashes are dropped.
    pub(super) fn took(&mut self, line: u64, layer: u32, stacks: &mut [Stack]) {
        if self.below == self.below_min {
            return;
        }
        self.taken.push((Sieve::hash(line), line, layer));
        if self.taken.len() <= self.lines_max {
            return;
        }
        if let Some((highest, ..)) = self.taken.peek() {
            self.below = (*highest).max(self.below_min);
            self.weight = 1.0 / self.rate();
        }
        while let Some((_, line, layer)) = self.taken.peek().filter(|(hash, ..)| *hash >= self.below).copied() {
            self.taken.pop();
            if let Some(stack) = stacks.get_mut(layer as usize) {
                stack.forget(line);
            }
        }
        if self.below == self.below_min {
            self.taken = BinaryHeap::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_one_burst_that_represents_it_and_bursts_are_adjacent() {
        let mut seq = 0;
        while seq < 20 << 20 {
            let burst = Burst::of(seq);
            assert_eq!(burst.since, seq);
            assert!(burst.since <= burst.from && burst.from <= burst.warm());
            assert!(burst.warm() < burst.to && burst.to <= burst.next);
            assert_eq!([Burst::of(burst.to - 1), Burst::of(burst.next - 1)], [burst, burst]);
            let near = [burst.from.saturating_sub(BATCH_ACCESSES as u64 - 1), burst.from, burst.to - 1];
            assert!(near.into_iter().all(touches_burst));
            assert!(!touches_burst(burst.to) || Burst::of(burst.next).from < burst.to + BATCH_ACCESSES as u64);
            seq = burst.next;
        }
        assert!(!touches_burst(u64::MAX));
    }

    #[test]
    fn bursts_lie_anywhere_in_their_periods() {
        for (first, period) in [PERIODS[1], LATE] {
            let places = (0..190).map(|n| Burst::of(first + n * period)).map(|burst| burst.from - burst.since);
            let mut places: Vec<_> = places.collect();
            places.sort_unstable();
            let evenly = |(n, place): (usize, &u64)| (*place as f64 / period as f64 - n as f64 / 190.0).abs() < 0.15;
            assert!(places.iter().enumerate().all(evenly), "{places:?}");
        }
    }

    #[test]
    fn a_fixed_number_of_lines_is_never_exceeded_and_is_of_the_lowest_hashes() {
        let mut sampler = Sampler::new(Sample::Lines(50));
        let mut stacks = [Stack::new()];
        for line in 0..10_000 {
            if Sieve::hash(line) < sampler.below() {
                stacks[0].touch(line, 0);
                sampler.took(line, 0, &mut stacks);
            }
            assert!(stacks[0].len() <= 50);
        }
        let mut hashes: Vec<_> = (0..10_000).map(Sieve::hash).collect();
        hashes.sort_unstable();
        assert_eq!((stacks[0].len(), sampler.below()), (50, hashes[50]));
        assert!((0.003..0.008).contains(&sampler.rate()));
    }

    #[test]
    fn a_fixed_rate_is_reached_once_there_are_lines_enough() {
        let mut sampler = Sampler::new(Sample::Rate(0.01));
        let mut stacks = [Stack::new()];
        for line in 0..1_000_000 {
            if Sieve::hash(line) < sampler.below() {
                stacks[0].touch(line, 0);
                sampler.took(line, 0, &mut stacks);
            }
        }
        assert!((sampler.rate() - 0.01).abs() < 1e-9);
        assert!((9_000..11_000).contains(&stacks[0].len()));
    }
}

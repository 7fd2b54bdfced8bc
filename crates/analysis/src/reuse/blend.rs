//! Curves of a sample: short distances from bursts, long ones from the sampled lines.

use anytrace_core::Error;
use anytrace_core::access::{Access, Sieve};

use super::curve::{Buckets, Curve, rounded};
use super::sample::{Burst, NEAR_LINES, Sample, Sampler, touches_burst};
use super::signals::{SIGNALS, Signals, Spread};
use super::stack::{Before, Stack};
use super::{NO_LINE, Reuse, SampledOf, too_many_lines};

/// Distances counted in bursts.
#[derive(Debug, Default)]
struct Tally {
    /// Distances below [`NEAR_LINES`].
    near: Buckets,
    /// Touches of lines that were not touched earlier in the burst, by how many lines were: the distance is not less.
    unknown: Buckets,
    /// Greater distances.
    beyond: f64,
}

impl Tally {
    fn add_all(&mut self, other: &Self, factor: f64) {
        self.near.add_all(&other.near, factor);
        self.unknown.add_all(&other.unknown, factor);
        self.beyond += other.beyond * factor;
    }

    fn clear(&mut self) {
        self.near.clear();
        self.unknown.clear();
        self.beyond = 0.0;
    }

    fn sum(&self) -> f64 {
        self.near.sum() + self.unknown.sum() + self.beyond
    }
}

/// The counters of a part of the accesses, or of all.
#[derive(Debug, Default)]
struct Counts {
    /// All touches, including those left out.
    line_accesses: u64,
    /// First touches and distances of the sampled lines, scaled to all lines.
    cold: f64,
    far: Buckets,
    /// The first records, of which all count.
    dense: Tally,
    /// Sums over later bursts, scaled to all records; and the same times each signal of the bursts.
    sums: [Tally; SIGNALS + 1],
    /// The current burst, not scaled yet.
    burst: Tally,
}

/// Touches in the current burst.
#[derive(Debug)]
struct Near {
    stack: Stack,
    /// The line touched last.
    latest: u64,
}

impl Near {
    /// Touches a line; returns how many other lines were touched since its last touch, if there was one.
    #[inline]
    fn touch(&mut self, line: u64) -> Option<u64> {
        if line == self.latest {
            return Some(0);
        }
        self.latest = line;
        self.stack.touch(line, 0).map(|before| u64::from(before.distance))
    }

    fn clear(&mut self) {
        self.stack.clear();
        self.latest = NO_LINE;
    }
}

/// The estimate for a trace from a sample of it.
#[derive(Debug)]
pub(super) struct Sampled {
    sampler: Sampler,
    /// The burst that represents the latest access.
    burst: Burst,
    /// What sampled lines did in it.
    burst_signals: Signals,
    /// Touches in the current burst, by stack.
    near: Vec<Near>,
    /// The touches of sampled lines after the first burst; and those during bursts.
    signals: Signals,
    spread: Spread,
    /// All, then the parts.
    counts: Vec<Counts>,
    line_accesses: u64,
}

impl Sampled {
    pub(super) fn new(sample: Sample) -> Self {
        Self {
            sampler: Sampler::new(sample),
            burst: Burst::of(0),
            burst_signals: Signals::default(),
            near: Vec::new(),
            signals: Signals::default(),
            spread: Spread::default(),
            counts: vec![Counts::default()],
            line_accesses: 0,
        }
    }

    pub(super) fn add_stack(&mut self) {
        self.near.push(Near { stack: Stack::new(), latest: NO_LINE });
    }

    /// True when lines were left out.
    pub(super) fn is_part(&self) -> bool {
        self.sampler.rate() < 1.0
    }

    pub(super) fn info(&self, stacks: &[Stack]) -> SampledOf {
        SampledOf {
            rate: self.sampler.rate(),
            lines: stacks.iter().map(|stack| stack.len() as u64).sum(),
            line_accesses: self.line_accesses,
        }
    }

    pub(super) fn sieve(&self, seq: u64, line_shift: u32) -> Option<Sieve> {
        let below = self.sampler.below();
        (below < u64::MAX && !touches_burst(seq)).then_some(Sieve { line_shift, below })
    }

    fn counts_of(&mut self, part: usize) -> Option<&mut Counts> {
        let at = part.checked_add(1)?;
        if at >= self.counts.len() {
            // One a part; their number is limited.
            self.counts.resize_with(at + 1, Counts::default);
        }
        self.counts.get_mut(at)
    }

    /// Counts touches, of a part too.
    #[inline]
    pub(super) fn count(&mut self, line_accesses: u64, part: Option<usize>) {
        if let Some(all) = self.counts.first_mut() {
            all.line_accesses += line_accesses;
        }
        if let Some(counts) = part.and_then(|part| self.counts_of(part)) {
            counts.line_accesses += line_accesses;
        }
    }

    /// Scales the counts of the current burst to the records it represents; the next burst begins.
    fn end_burst(&mut self, next: u64, records: Option<u64>) {
        let burst = std::mem::replace(&mut self.burst, Burst::of(next));
        let end = burst.to.min(records.unwrap_or(u64::MAX));
        let counted = end.saturating_sub(burst.warm());
        let represents = burst.next.min(records.unwrap_or(u64::MAX)).saturating_sub(burst.since);
        let factor = if counted > 0 { represents as f64 / counted as f64 } else { 0.0 };
        let signals = std::mem::take(&mut self.burst_signals).of_each(end.saturating_sub(burst.from));
        if burst.is_dense() {
            self.signals = Signals::default();
        } else if counted > 0 {
            self.spread.add(signals, represents as f64);
        }
        for counts in self.counts.iter_mut().filter(|counts| counts.burst.sum() > 0.0) {
            if burst.is_dense() {
                counts.dense.add_all(&counts.burst, 1.0);
            } else {
                let factors = std::iter::once(1.0).chain(signals.values()).map(|signal| signal * factor);
                counts.sums.iter_mut().zip(factors).for_each(|(sums, factor)| sums.add_all(&counts.burst, factor));
            }
            counts.burst.clear();
        }
        self.near.iter_mut().filter(|near| near.stack.len() > 0).for_each(Near::clear);
    }

    /// Counts a touch in a burst.
    fn touch_near(&mut self, line: u64, seq: u64, stack: usize, part: usize) {
        let Some(near) = self.near.get_mut(stack) else { return };
        let lines = near.stack.len() as u64;
        let before = near.touch(line);
        if seq < self.burst.warm() {
            return;
        }
        let is_dense = self.burst.is_dense();
        let of_all = self.counts.first_mut();
        let count = |counts: &mut Counts| match before {
            Some(distance) if distance < NEAR_LINES => counts.burst.near.add(distance, 1.0),
            None if lines < NEAR_LINES && !is_dense => counts.burst.unknown.add(lines, 1.0),
            _ => counts.burst.beyond += 1.0,
        };
        of_all.into_iter().for_each(count);
        self.counts_of(part).into_iter().for_each(count);
    }

    /// The curves of all and of the parts.
    pub(super) fn finish(mut self, records: u64, are_parts_estimated: bool) -> (Curve, Vec<Curve>) {
        self.end_burst(u64::MAX, Some(records));
        let rate = self.sampler.rate();
        let signals = self.signals.of_each(records.saturating_sub(Burst::of(0).to));
        let factors = self.spread.factors(signals);
        let of_all = self.counts.first().map_or((0, 0.0), |all| (all.line_accesses, all.in_bursts(&factors).sum()));
        let mut curves = self.counts.into_iter().enumerate().map(|(at, mut counts)| {
            let in_bursts = counts.in_bursts(&factors);
            if at > 0 && are_parts_estimated && rate < 1.0 && of_all.1 > 0.0 {
                // The type of an access was not looked up where the access was left out.
                let share = (in_bursts.sum() / of_all.1).clamp(0.0, 1.0);
                counts.line_accesses = (of_all.0 as f64 * share).round() as u64;
            }
            counts.curve(rate, in_bursts)
        });
        (curves.next().unwrap_or_default(), curves.collect())
    }
}

impl Counts {
    /// The sums over bursts, combined.
    fn in_bursts(&self, factors: &[f64; SIGNALS + 1]) -> Tally {
        let mut all = Tally::default();
        all.add_all(&self.dense, 1.0);
        self.sums.iter().zip(factors).for_each(|(sums, factor)| all.add_all(sums, *factor));
        all
    }

    fn curve(&self, rate: f64, bursts: Tally) -> Curve {
        let total = self.line_accesses as f64;
        let in_bursts = bursts.sum();
        let mut weights: Vec<(u64, f64)> = Vec::new();
        let mut cold = self.cold.min(total);
        if rate >= 1.0 || in_bursts <= 0.0 {
            weights.extend(self.far.iter());
        } else {
            let Tally { mut near, unknown, mut beyond } = bursts;
            for (least, weight) in unknown.iter() {
                // At least this far: as far as sampled lines are from the touch before.
                let of_all = self.far.from(least) + self.cold;
                let far = if of_all > 0.0 { self.far.from(NEAR_LINES) + self.cold } else { 1.0 };
                beyond += weight * far / of_all.max(far);
                let near_of_burst = self.far.iter().filter(|(distance, _)| (least..NEAR_LINES).contains(distance));
                near_of_burst.for_each(|(distance, amount)| near.add(distance, weight * amount / of_all));
            }
            let scale = total / in_bursts;
            let misses = ((beyond + near.from(NEAR_LINES)) * scale).clamp(0.0, total);
            let near = near.iter().filter(|(distance, _)| *distance < NEAR_LINES);
            weights.extend(near.map(|(distance, weight)| (distance, weight * scale)));
            cold = cold.min(misses);
            let (due, counted) = (misses - cold, self.far.from(NEAR_LINES));
            // The lines of the sample give the distribution of long distances, the bursts their number.
            let far = self.far.iter().filter(|(distance, _)| *distance >= NEAR_LINES);
            weights.extend(far.map(|(distance, weight)| (distance, weight * due / counted)));
        }
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let missing = total - cold - sum;
        match weights.first_mut() {
            // SHARDS-adj: where hot lines are in the sample or missing, the shortest distances are corrected.
            Some((_, shortest)) => *shortest = (*shortest + missing).max(0.0),
            None => weights.push((0, missing.max(0.0))),
        }
        let (cold, distances) = rounded(weights.into_iter(), cold);
        Curve::new(self.line_accesses, cold, distances)
    }
}

impl Reuse {
    pub(super) fn take_sampled(&mut self, batch: &[Access]) -> Result<(), Error> {
        let Some(mut sampled) = self.sampled.take() else { return Ok(()) };
        let result = batch.iter().try_for_each(|access| self.sample(access, &mut sampled));
        self.sampled = Some(sampled);
        result
    }

    fn sample(&mut self, access: &Access, sampled: &mut Sampled) -> Result<(), Error> {
        if access.bytes == 0 {
            self.zero_size += 1;
            return Ok(());
        }
        let (line, lines) = self.lines_of(access);
        let by_thread = self.options.parts != super::Parts::Type;
        if access.seq >= sampled.burst.next {
            sampled.end_burst(access.seq, None);
        }
        let is_in_burst = sampled.burst.has(access.seq);
        let is_one = lines == 1;
        if is_one && !is_in_burst && Sieve::hash(line) >= sampled.sampler.below() {
            sampled.count(1, (by_thread && self.options.parts != super::Parts::None).then_some(access.thread as usize));
            return Ok(());
        }
        let part = self.part_of(access);
        let stack = self.stack_of(access.thread);
        sampled.count(lines, (part != usize::MAX).then_some(part));
        if access.seq >= self.epoch_end {
            self.next_epoch(access.seq);
        }
        for ahead in 0..lines {
            let line = self.line_after(line, ahead);
            if is_in_burst {
                sampled.touch_near(line, access.seq, stack, part);
            }
            if Sieve::hash(line) < sampled.sampler.below() {
                self.touch_sampled(line, stack, part, is_in_burst, sampled)?;
            }
        }
        Ok(())
    }

    fn touch_sampled(
        &mut self,
        line: u64,
        at: usize,
        part: usize,
        is_in_burst: bool,
        sampled: &mut Sampled,
    ) -> Result<(), Error> {
        let Some(stack) = self.stacks.get_mut(at) else { return Ok(()) };
        sampled.line_accesses += 1;
        // The weight of a touch follows from the rate at its time, which is equivalent to the paper's rescaling of
        // counts.
        let weight = sampled.sampler.weight();
        let latest = self.latest.get_mut(at).map(|latest| std::mem::replace(latest, line));
        let before = if latest == Some(line) {
            Some(Before { distance: 0, epoch: self.epoch })
        } else {
            stack.touch(line, self.epoch)
        };
        let distance = before.map(|before| (f64::from(before.distance) * weight + 0.5) as u64);
        sampled.signals.add(distance, weight);
        if is_in_burst {
            sampled.burst_signals.add(distance, weight);
        }
        let of_all = sampled.counts.first_mut();
        let count = |counts: &mut Counts| match distance {
            Some(distance) => counts.far.add(distance, weight),
            None => counts.cold += weight,
        };
        of_all.into_iter().for_each(count);
        sampled.counts_of(part).into_iter().for_each(count);
        if let Some(windows) = &mut self.windows {
            windows.touch(self.epoch, before.map(|before| before.epoch), Sieve::hash(line), weight);
        }
        if before.is_none() {
            if stack.is_full() {
                return Err(too_many_lines(self.options.line_bytes));
            }
            sampled.sampler.took(line, u32::try_from(at).unwrap_or(0), &mut self.stacks);
        }
        Ok(())
    }
}

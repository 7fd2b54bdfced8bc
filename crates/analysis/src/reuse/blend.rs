//! Curves of a sample: short distances as bursts have them, long ones as the sampled lines have them.

use anytrace_core::Error;
use anytrace_core::access::{Access, Sieve};

use super::curve::{Buckets, Curve, rounded};
use super::sample::{Burst, NEAR_LINES, Sample, Sampler, touches_burst};
use super::stack::Stack;
use super::{Reuse, SampledOf, too_many_lines};

/// Sampled lines between two touches from which on the distance is told by them.
const SAMPLED_LINES_MIN: f64 = 16.0;

/// What is counted of a part of the accesses, or all.
#[derive(Debug, Default)]
struct Counts {
    /// All touches, those held back too.
    line_accesses: u64,
    /// What the sampled lines say of first touches and distances, scaled to all lines.
    cold: f64,
    far: Buckets,
    /// What bursts say of distances below [`NEAR_LINES`], scaled to all records.
    near: Buckets,
    /// Touches in bursts of greater distances, and first ones, scaled to all records.
    beyond: f64,
    /// The same of the current burst, not scaled yet.
    burst: Buckets,
    burst_beyond: f64,
}

/// What is known of a trace by a sample of it.
#[derive(Debug)]
pub(super) struct Sampled {
    sampler: Sampler,
    /// The burst that the latest access lies in or behind.
    burst: Burst,
    /// Touches in the current burst, by stack.
    near: Vec<Stack>,
    /// All, then the parts.
    counts: Vec<Counts>,
    line_accesses: u64,
}

impl Sampled {
    pub(super) fn new(sample: Sample) -> Self {
        Self {
            sampler: Sampler::new(sample),
            burst: Burst::of(0),
            near: Vec::new(),
            counts: vec![Counts::default()],
            line_accesses: 0,
        }
    }

    pub(super) fn add_stack(&mut self) {
        self.near.push(Stack::new());
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

    /// Scales what the current burst told to the records it stands for; the next begins.
    fn end_burst(&mut self, next: Burst, records: Option<u64>) {
        let Burst { to, next: end, .. } = self.burst;
        let measured = to.min(records.unwrap_or(to)).saturating_sub(self.burst.warm());
        let stands_for = end.min(records.unwrap_or(end)).saturating_sub(self.burst.from);
        let factor = if measured > 0 { stands_for as f64 / measured as f64 } else { 0.0 };
        for counts in &mut self.counts {
            counts.near.absorb(&mut counts.burst, factor);
            counts.beyond += std::mem::take(&mut counts.burst_beyond) * factor;
        }
        for near in self.near.iter_mut().filter(|near| near.len() > 0) {
            *near = Stack::new();
        }
        self.burst = next;
    }

    /// Counts a touch in a burst.
    fn touch_near(&mut self, line: u64, stack: usize, part: usize, is_warm: bool) {
        let Some(near) = self.near.get_mut(stack) else { return };
        let before = near.touch(line, 0);
        if !is_warm && (near.len() as u64) < NEAR_LINES {
            return;
        }
        let distance = before.map(|before| u64::from(before.distance)).filter(|distance| *distance < NEAR_LINES);
        let of_all = self.counts.first_mut();
        let count = |counts: &mut Counts| match distance {
            Some(distance) => counts.burst.add(distance, 1.0),
            None => counts.burst_beyond += 1.0,
        };
        of_all.into_iter().for_each(count);
        self.counts_of(part).into_iter().for_each(count);
    }

    /// The curves of all and of the parts.
    pub(super) fn finish(mut self, records: u64, are_parts_estimated: bool) -> (Curve, Vec<Curve>) {
        self.end_burst(Burst::of(0), Some(records));
        let rate = self.sampler.rate();
        let of_all = self.counts.first().map_or((0, 0.0), |all| (all.line_accesses, all.near.sum() + all.beyond));
        let mut curves = self.counts.into_iter().enumerate().map(|(at, mut counts)| {
            if at > 0 && are_parts_estimated && rate < 1.0 && of_all.1 > 0.0 {
                // Which type an access is to was not looked up where it was held back.
                let share = (counts.near.sum() + counts.beyond) / of_all.1;
                counts.line_accesses = (of_all.0 as f64 * share).round() as u64;
            }
            counts.curve(rate)
        });
        (curves.next().unwrap_or_default(), curves.collect())
    }
}

impl Counts {
    fn curve(&self, rate: f64) -> Curve {
        let total = self.line_accesses as f64;
        let in_bursts = self.near.sum() + self.beyond;
        let mut weights: Vec<(u64, f64)> = Vec::new();
        let mut cold = self.cold.min(total);
        if rate >= 1.0 || in_bursts == 0.0 {
            weights.extend(self.far.iter());
        } else {
            // A power of two, so that no group of distances is divided.
            let border = ((SAMPLED_LINES_MIN / rate) as u64).clamp(1, NEAR_LINES);
            let border = 1 << border.ilog2();
            let scale = total / in_bursts;
            let near = self.near.iter().filter(|(distance, _)| *distance < border);
            weights.extend(near.map(|(distance, weight)| (distance, weight * scale)));
            let misses = (self.beyond + self.near.from(border)) * scale;
            cold = cold.min(misses);
            let (due, told) = (misses - cold, self.far.from(border));
            // The lines of the sample say how long distances are spread, bursts how many there are.
            let far = self.far.iter().filter(|(distance, _)| *distance >= border);
            weights.extend(far.map(|(distance, weight)| (distance, weight * due / told)));
        }
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let missing = total - cold - sum;
        match weights.first_mut() {
            // SHARDS-adj: where hot lines are in the sample, or not, the shortest distances bear it.
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
            sampled.end_burst(Burst::of(access.seq), None);
        }
        let is_in_burst = access.seq < sampled.burst.to;
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
        let is_warm = access.seq >= sampled.burst.warm();
        for ahead in 0..lines {
            let line = self.line_after(line, ahead);
            if is_in_burst {
                sampled.touch_near(line, stack, part, is_warm);
            }
            if Sieve::hash(line) < sampled.sampler.below() {
                self.touch_sampled(line, stack, part, sampled)?;
            }
        }
        Ok(())
    }

    fn touch_sampled(&mut self, line: u64, at: usize, part: usize, sampled: &mut Sampled) -> Result<(), Error> {
        let Some(stack) = self.stacks.get_mut(at) else { return Ok(()) };
        sampled.line_accesses += 1;
        // What a touch stands for is said by the rate at its time, as the paper's rescaling of counts comes to.
        let weight = sampled.sampler.weight();
        let before = stack.touch(line, self.epoch);
        let distance = before.map(|before| (f64::from(before.distance) * weight + 0.5) as u64);
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

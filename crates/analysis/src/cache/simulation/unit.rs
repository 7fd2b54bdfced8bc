//! What runs by itself: the caches of a configuration, one shard of them, or its TLB.
//!
//! Where a line's way through all levels depends on lines of the same low bits only, the low bits make *shards* that
//! know nothing of each other. A record whose lines are in several shards is served by the worst of them, which is
//! known when all have worked: such records are told as [`Partial`].

use std::hint::select_unpredictable;

use anytrace_core::access::Access;

use super::{Cores, Gain, Options, for_each_line};
use crate::cache::config::{Config, Policy};
use crate::cache::hierarchy::{Block, FIRST_WRITES, Hierarchy, LineAccess, Stages, WRITES};
use crate::cache::next_use::{NEVER, NextUses};
use crate::cache::prefetch::Strides;
use crate::cache::results::{ConfigResults, LevelResults};

/// Accesses that go through all levels together: what they ask for fits a first-level cache.
const BLOCK_ACCESSES: usize = 1024;

/// Accesses with what is known of them.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Batch<'a> {
    pub(in crate::cache) accesses: &'a [Access],
    /// Field of each, or nothing.
    pub(in crate::cache) fields: &'a [u32],
    /// Place of each, or nothing.
    pub(in crate::cache) places: &'a [u64],
    pub(in crate::cache) cores: &'a Cores,
}

/// What a shard served of a record that others serve too: its number in the batch, and who served it.
pub(in crate::cache) type Partial = (u32, u8);

/// Low bits of lines.
#[derive(Debug, Clone, Copy)]
struct Shard {
    mask: u64,
    bits: u64,
}

/// One of the things that run.
#[derive(Debug)]
pub(in crate::cache) struct Unit {
    config_at: usize,
    hierarchy: Hierarchy,
    config: Config,
    is_tlb: bool,
    shard: Shard,
    gain: Gain,
    line_accesses: u64,
    next_uses: Option<NextUses>,
    strides: Option<Strides>,
    cores: usize,
    stages: Stages,
}

impl Unit {
    /// The units of a configuration, for so many threads.
    pub(super) fn of_config(config_at: usize, config: &Config, options: &Options, threads: usize) -> Vec<Self> {
        let shards = shards(config, options, threads);
        let has_strides = config.levels.iter().any(|level| level.prefetch.stride);
        let unit = |hierarchy, is_tlb, bits| Self {
            config_at,
            hierarchy,
            config: config.clone(),
            is_tlb,
            shard: Shard { mask: if is_tlb { 0 } else { shards - 1 }, bits },
            gain: Gain::new(config),
            line_accesses: 0,
            next_uses: options.foreseen.of(config).filter(|_| !is_tlb),
            strides: (has_strides && !is_tlb).then(Strides::default),
            cores: 1,
            stages: Stages::default(),
        };
        let of_shard = |bits| unit(Hierarchy::new(config, options.with_classes), false, bits);
        let tlb = Hierarchy::of_tlb(config).map(|hierarchy| unit(hierarchy, true, 0));
        (0..shards).map(of_shard).chain(tlb).collect()
    }

    /// Number of its configuration.
    pub(in crate::cache) fn config_at(&self) -> usize {
        self.config_at
    }

    /// An empty count of its configuration's records.
    pub(in crate::cache) fn blank_gain(&self) -> Gain {
        Gain::new(&self.config)
    }

    /// Works off accesses.
    pub(in crate::cache) fn run(&mut self, batch: Batch<'_>, partial: &mut Vec<Partial>) {
        if self.cores < batch.cores.count() {
            self.cores = batch.cores.count();
            self.hierarchy.fit_cores(self.cores);
        }
        if self.is_tlb {
            return self.run_tlb(batch);
        }
        if self.strides.is_some() || !self.hierarchy.has_stages() {
            return self.run_any(batch, partial);
        }
        let mut stages = std::mem::take(&mut self.stages);
        let mut from = 0;
        while from < batch.accesses.len() {
            from = if self.shard.mask == 0 {
                self.run_block::<false>(&mut stages, batch, from, partial)
            } else {
                self.run_block::<true>(&mut stages, batch, from, partial)
            };
        }
        self.stages = stages;
    }

    /// Works off accesses from a number on, of one line each, and the one behind them if it is not: the loop for most
    /// configurations. Accesses to one line in a row are one op. The number of the next access.
    fn run_block<const SHARDED: bool>(
        &mut self,
        stages: &mut Stages,
        batch: Batch<'_>,
        from: usize,
        partial: &mut Vec<Partial>,
    ) -> usize {
        // Number 0 is written in passing.
        stages.asked.fit(BLOCK_ACCESSES + 1);
        let (shift, shard) = (self.hierarchy.first_shift(), self.shard);
        let line_bytes = 1_u64 << shift;
        let rest = batch.accesses.get(from..).unwrap_or_default();
        let rest = rest.get(..BLOCK_ACCESSES).unwrap_or(rest);
        let thread = rest.first().map_or(0, |access| access.thread);
        let (mut taken, mut ops, mut own, mut writes, mut threads) = (0, 0, 0, 0, 0);
        // No line begins there.
        let (mut line_at, mut op, mut index) = (u64::MAX, 0, 0);
        let mut several = None;
        for access in rest {
            let within = access.address & (line_bytes - 1);
            // Records of no bytes wrap to a huge number here and are sorted out with those of several lines.
            if within.saturating_add(u64::from(access.bytes).wrapping_sub(1)) >= line_bytes {
                several = Some(access);
                break;
            }
            let at = access.address - within;
            let is_own = !SHARDED | (at >> shift & shard.mask == shard.bits);
            let is_new = (at != line_at) & is_own;
            let is_write = u64::from(access.is_write() & is_own);
            own += u64::from(is_own);
            writes += is_write;
            threads |= access.thread ^ thread;
            line_at = select_unpredictable(is_new, at, line_at);
            op = select_unpredictable(is_new, at | (is_write * FIRST_WRITES), op) | (is_write * WRITES);
            index = select_unpredictable(is_new, (from + taken) as u32, index);
            ops += usize::from(is_new);
            if let (Some(op_at), Some(index_at)) = (stages.asked.ops.get_mut(ops), stages.asked.indexes.get_mut(ops)) {
                (*op_at, *index_at) = (op, index);
            }
            taken += 1;
        }
        self.line_accesses += own;
        if ops > 0 {
            let is_one = threads == 0 && batch.fields.is_empty();
            let thread_of = is_one.then_some(index);
            let block = Block { batch, ops, reads: own - writes, writes, thread_of };
            self.hierarchy.run_stages(stages, block, &mut self.gain);
        }
        if let Some(access) = several {
            self.run_one(batch, from + taken, access, partial);
            taken += 1;
        }
        from + taken
    }

    /// Counts a record of which this unit worked on so many lines.
    fn served(&mut self, batch: Batch<'_>, index: usize, worst: usize, lines: u64, partial: &mut Vec<Partial>) {
        if lines == 0 || worst == 0 {
            return;
        }
        let Some(access) = batch.accesses.get(index) else { return };
        if self.shard.mask != 0 {
            // The record may have lines in other shards; a level's number fits a byte.
            partial.push((index as u32, worst as u8));
            return;
        }
        self.gain.note(access.thread, batch.fields.get(index).copied(), worst);
    }

    /// The loop for all other configurations.
    fn run_any(&mut self, batch: Batch<'_>, partial: &mut Vec<Partial>) {
        for (index, access) in batch.accesses.iter().enumerate() {
            self.run_one(batch, index, access, partial);
        }
    }

    #[inline]
    fn run_one(&mut self, batch: Batch<'_>, index: usize, access: &Access, partial: &mut Vec<Partial>) {
        let (shift, shard) = (self.hierarchy.first_shift(), self.shard);
        let core = batch.cores.of(access.thread);
        let (mut lines, mut worst) = (0, 0);
        for_each_line(access, shift, |at| {
            if at >> shift & shard.mask != shard.bits {
                return;
            }
            if let Some(next_uses) = &self.next_uses {
                let next = next_uses.get(self.line_accesses as usize).copied().unwrap_or(NEVER);
                let own = if self.config.levels.first().is_some_and(|level| level.is_private) { core } else { 0 };
                if let Some(store) = self.hierarchy.levels.first_mut().and_then(|l| l.stores.get_mut(own)) {
                    store.tell_next_use(u64::from(next));
                }
            }
            lines += 1;
            self.line_accesses += 1;
            let bytes = touched(access, at, shift);
            let served = self.hierarchy.access(LineAccess { core, at, is_write: access.is_write(), bytes });
            worst = worst.max(served);
        });
        self.fetch_strides(access, core, batch.places.get(index).copied());
        self.served(batch, index, worst, lines, partial);
    }

    fn fetch_strides(&mut self, access: &Access, core: usize, place: Option<u64>) {
        let (Some(strides), Some(place)) = (&mut self.strides, place) else { return };
        if access.bytes == 0 {
            return;
        }
        let Some(ahead) = strides.access(access.thread, place, access.address) else { return };
        for at in 0..self.config.levels.len() {
            let Some(level) = self.hierarchy.levels.get(at).filter(|level| level.wanted.stride) else { continue };
            let shift = level.geometry.shift;
            if ahead >> shift != access.address >> shift {
                self.hierarchy.fetch_ahead(core, at, ahead >> shift << shift);
            }
        }
    }

    fn run_tlb(&mut self, batch: Batch<'_>) {
        let Some(level) = self.hierarchy.levels.first() else { return };
        let shift = level.geometry.shift;
        for access in batch.accesses {
            let core = batch.cores.of(access.thread);
            for_each_line(access, shift, |at| {
                self.hierarchy.access(LineAccess { core, at, is_write: false, bytes: 0 });
            });
        }
    }

    /// Adds what it counted.
    pub(super) fn add_to(&self, found: &mut ConfigResults, gain: &mut Gain) {
        if self.is_tlb {
            found.tlb = self.hierarchy.results(&self.config.tlb);
            return;
        }
        gain.add(&self.gain);
        found.line_accesses += self.line_accesses;
        found.memory_reads += self.hierarchy.memory_reads;
        found.memory_writes += self.hierarchy.memory_writes;
        let levels = self.hierarchy.results(&self.config.levels);
        if found.levels.is_empty() {
            found.levels = levels;
        } else {
            found.levels.iter_mut().zip(&levels).for_each(|(sum, more)| add_level(sum, more));
        }
        if let Some(counts) = self.hierarchy.coherence_counts() {
            found.coherence.get_or_insert_default().add(&counts);
        }
    }
}

/// Adds a shard's level; classes and prefetches are never sharded.
fn add_level(sum: &mut LevelResults, more: &LevelResults) {
    sum.counts.add(&more.counts);
    sum.set_misses.iter_mut().zip(&more.set_misses).for_each(|(sum, more)| *sum += more);
    if let (Some(sum), Some(more)) = (&mut sum.prefetch, &more.prefetch) {
        sum.add(more);
    }
}

/// The bytes of a line that an access touches, one bit for each 64th of the line (for each byte, in shorter lines).
fn touched(access: &Access, at: u64, shift: u32) -> u64 {
    let grain = shift.saturating_sub(6);
    let from = access.address.wrapping_sub(at);
    let line_bytes = 1_u64 << shift;
    // An access that began in a line before wraps to a huge number.
    let first = if from < line_bytes { from } else { 0 };
    let last = access.last().wrapping_sub(at).min(line_bytes - 1);
    let (first, last) = (first >> grain, last >> grain);
    (u64::MAX >> (63 - last.min(63))) & (u64::MAX << first.min(63))
}

/// How many shards a configuration may have for so many threads; a power of two.
fn shards(config: &Config, options: &Options, threads: usize) -> u64 {
    let first = config.levels.first().map_or(0, |level| level.line);
    let is_local = |policy| !matches!(policy, Policy::Random | Policy::Brrip | Policy::Opt);
    let each =
        config.levels.iter().all(|level| is_local(level.policy) && !level.prefetch.is_any() && level.line == first);
    if !each || options.with_classes {
        return 1;
    }
    let fits = |shards: u64| config.levels.iter().all(|level| (level.geometry().sets as u64).is_multiple_of(shards));
    let mut shards = 1;
    while shards * 2 <= threads as u64 && fits(shards * 2) {
        shards *= 2;
    }
    shards
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::{AccessFlags, AccessKind};

    use super::*;

    #[test]
    fn the_bytes_touched_are_bits() {
        let access = |address, bytes| Access {
            address,
            seq: 0,
            thread: 0,
            bytes,
            kind: AccessKind::Read,
            flags: AccessFlags::NONE,
        };
        assert_eq!(touched(&access(64, 8), 64, 6), 0xff);
        assert_eq!(touched(&access(60, 8), 0, 6), 0xf << 60);
        assert_eq!(touched(&access(60, 8), 64, 6), 0xf);
        assert_eq!(touched(&access(64, 64), 64, 6), u64::MAX);
        assert_eq!(touched(&access(0, 255), 64, 6), u64::MAX);
        assert_eq!(touched(&access(130, 4), 128, 7), 0b110);
    }
}

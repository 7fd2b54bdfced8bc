//! The parts that run independently: the caches of a configuration, one shard of them, or its TLB.
//!
//! Where the path of a line through all levels depends only on lines with the same low bits, the low bits make *shards*
//! that are independent of each other. A record whose lines are in several shards is served by the worst of them, which
//! is known only when all have worked: such records are returned as [`Partial`].

use anytrace_core::access::gather::{BLOCK_ACCESSES, Gatherer, SHARDS_MAX};
use anytrace_core::access::{Access, ThreadNumber};

use super::batch::{Batch, Record};
use super::config::{Config, Policy};
use super::cores::Cores;
use super::hierarchy::{Block, Hierarchy, LineAccess, Owners, Stages};
use super::next_use::{NEVER, NextUses};
use super::options::Options;
use super::prefetch::Strides;
use super::results::{ConfigResults, LevelResults};
use super::tally::Gain;
use super::touched::{for_each_line, touched_bytes};

/// What a shard served of a record that other shards serve too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Partial {
    /// Number of the record.
    pub(super) index: u32,
    /// The level that served it.
    pub(super) served: usize,
    pub(super) thread: ThreadNumber,
    pub(super) field: Option<u32>,
}

/// Low bits of lines.
#[derive(Debug, Clone, Copy)]
struct Shard {
    mask: u64,
    bits: u64,
}

/// One of the things that run.
#[derive(Debug)]
pub(super) struct Unit {
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
    gatherer: Gatherer,
}

impl Unit {
    /// The units of a configuration, for this many threads.
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
            gatherer: gatherer(config, 1),
        };
        let of_shard = |bits| unit(Hierarchy::new(config, options.with_classes), false, bits);
        let tlb = Hierarchy::of_tlb(config).map(|hierarchy| unit(hierarchy, true, 0));
        (0..shards).map(of_shard).chain(tlb).collect()
    }

    /// Number of its configuration.
    pub(super) fn config_at(&self) -> usize {
        self.config_at
    }

    /// An empty count of its configuration's records.
    pub(super) fn blank_gain(&self) -> Gain {
        Gain::new(&self.config)
    }

    /// Bits of its shard, and how many shards there are.
    pub(super) fn shard(&self) -> (u64, u64) {
        (self.shard.bits, self.shard.mask + 1)
    }

    /// Works off accesses.
    pub(super) fn run(&mut self, batch: Batch<'_>, partial: &mut Vec<Partial>) {
        // Cores may have appeared since the last batch; a store must exist before a core uses it.
        self.fit(batch.cores);
        if self.is_tlb {
            return self.run_tlb(batch);
        }
        if !self.is_gathered() {
            return self.run_any(batch, partial);
        }
        let mut from = 0;
        while from < batch.accesses.len() {
            let taken = batch.gather(&mut self.gatherer, from, 0);
            self.run_own(Owners::of(batch));
            from += taken;
            // The gatherer stops early at an access it cannot take, such as one to several lines: that one goes the
            // general way.
            if taken < BLOCK_ACCESSES && from < batch.accesses.len() {
                self.run_one(batch.record(from), batch.cores, partial);
                from += 1;
            }
        }
    }

    /// True when it processes gathered accesses.
    fn is_gathered(&self) -> bool {
        !self.is_tlb && self.strides.is_none() && self.shard.mask == 0 && self.hierarchy.has_stages()
    }

    /// Processes the contents of its gatherer.
    fn run_own(&mut self, owners: Owners<'_>) {
        let gathered = self.gatherer.gathered(0);
        self.line_accesses += gathered.reads + gathered.writes;
        self.hierarchy.run_stages(&mut self.stages, Block { gathered, owners }, &mut self.gain);
    }

    /// Its gatherer.
    pub(super) fn gatherer(&mut self, cores: &Cores) -> Option<&mut Gatherer> {
        self.fit(cores);
        self.is_gathered().then_some(&mut self.gatherer)
    }

    /// Processes the gathered accesses of a thread, the only one there is. Returns their reads and writes.
    pub(super) fn run_gathered(&mut self, only: ThreadNumber) -> [u64; 2] {
        self.run_own(Owners::One(only));
        self.gatherer.totals()
    }

    /// Processes what was gathered for its shard.
    pub(super) fn run_block(&mut self, block: Block<'_>) {
        self.line_accesses += block.gathered.reads + block.gathered.writes;
        self.hierarchy.run_stages(&mut self.stages, block, &mut self.gain);
    }

    /// Gives each present core its caches.
    fn fit(&mut self, cores: &Cores) {
        if self.cores < cores.count() {
            self.cores = cores.count();
            self.hierarchy.fit_cores(self.cores);
        }
    }

    /// The loop for all other configurations.
    fn run_any(&mut self, batch: Batch<'_>, partial: &mut Vec<Partial>) {
        for index in 0..batch.accesses.len() {
            self.run_one(batch.record(index), batch.cores, partial);
        }
    }

    /// Processes the lines of a record that belong to it.
    #[inline]
    pub(super) fn run_one(&mut self, record: Option<Record>, cores: &Cores, partial: &mut Vec<Partial>) {
        let Some(Record { access, index, field, place }) = record else { return };
        let (shift, shard) = (self.hierarchy.first_shift(), self.shard);
        let core = cores.of(access.thread);
        let mut worst = 0;
        for_each_line(&access, shift, |at| {
            if at >> shift & shard.mask != shard.bits {
                return;
            }
            if let Some(next_uses) = &self.next_uses {
                // Next uses are numbered by line access, exactly as they are counted here.
                let next = next_uses.get(self.line_accesses as usize).copied().unwrap_or(NEVER);
                let own = if self.config.levels.first().is_some_and(|level| level.is_private) { core } else { 0 };
                if let Some(store) = self.hierarchy.levels.first_mut().and_then(|l| l.stores.get_mut(own)) {
                    store.set_next_use(u64::from(next));
                }
            }
            self.line_accesses += 1;
            let bytes = touched_bytes(&access, at, shift);
            let served = self.hierarchy.access(LineAccess { core, at, is_write: access.is_write(), bytes });
            // A record waits for its slowest line, so that level served it.
            worst = worst.max(served);
        });
        self.fetch_strides(&access, core, place);
        if worst > 0 && self.shard.mask != 0 {
            // The record may have lines in other shards.
            partial.push(Partial { index, served: worst, thread: access.thread, field });
        } else if worst > 0 {
            self.gain.note(access.thread, field, worst);
        }
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
            // The access itself brings in its own line.
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

    /// Adds its counts.
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

/// The gatherer for a configuration in this many shards.
pub(super) fn gatherer(config: &Config, shards: u64) -> Gatherer {
    let first = config.levels.first().map(|level| level.geometry());
    let (shift, sets) = first.map_or((0, 1), |of| (of.shift, of.sets as u64));
    Gatherer::new(shift, sets, shards)
}

/// How many shards a configuration may have for this many threads; a power of two.
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
    // A power of two that divides the sets of all levels: lines of one set are in one shard then.
    while shards * 2 <= (threads as u64).min(SHARDS_MAX) && fits(shards * 2) {
        shards *= 2;
    }
    shards
}

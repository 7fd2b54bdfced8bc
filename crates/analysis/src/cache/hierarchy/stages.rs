//! Many accesses at once, level by level, where no level knows of those below.
//!
//! In a NINE hierarchy a level's lines depend on what it is asked for and on nothing below. So a level works off all of a
//! block before the next one begins, and leaves behind what the next is asked for, in order. Each loop is short, without
//! branches that chance decides, and its level's lines stay near.

use std::ops::Range;

use crate::cache::config::{Geometry, Inclusion};
use crate::cache::simulation::{Batch, Gain};
use crate::cache::store::recency::Recency;
use crate::cache::store::{DIRTY, Held, Store};

use super::{Hierarchy, Level};

/// Bit of an [`Op`]: it writes, and the line is dirty from then on; in other levels than the first, the line is taken back.
pub(in crate::cache) const WRITES: u64 = DIRTY as u64;

/// Bit of an [`Op`] of the first level: it begins with a write.
pub(in crate::cache) const FIRST_WRITES: u64 = 2;

/// What a level is asked for: of the first, accesses to one line in a row; of others, a line, or to take one back. The
/// first byte of the line, in whose lowest bits [`WRITES`] and [`FIRST_WRITES`] are: lines have 8 bytes at least.
pub(in crate::cache) type Op = u64;

/// What levels are asked for.
#[derive(Debug, Default)]
pub(in crate::cache) struct Asked {
    pub(in crate::cache) ops: Vec<Op>,
    /// Numbers in the batch of the accesses that ask; of no use where all records of a block are counted as one.
    pub(in crate::cache) indexes: Vec<u32>,
}

impl Asked {
    /// Makes room for so many ops.
    #[inline]
    pub(in crate::cache) fn fit(&mut self, most: usize) {
        if self.ops.len() < most {
            self.ops.resize(most, 0);
            self.indexes.resize(most, 0);
        }
    }
}

/// What levels are asked for; memory that is used again.
#[derive(Debug, Default)]
pub(in crate::cache) struct Stages {
    pub(in crate::cache) asked: Asked,
    next: Asked,
}

/// What the accesses of a block are.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Block<'a> {
    pub(in crate::cache) batch: Batch<'a>,
    /// Ops of the first level.
    pub(in crate::cache) ops: usize,
    pub(in crate::cache) reads: u64,
    pub(in crate::cache) writes: u64,
    /// Number in the batch of the only thread's first access; `None` where each record is counted for itself.
    pub(in crate::cache) thread_of: Option<u32>,
}

/// What a stage counted.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    /// Lines that were asked for and not here, and those of them that were written.
    misses: u64,
    write_misses: u64,
    fills: u64,
    evictions: u64,
    /// What the next level is asked for: lines, and to take back dirty ones.
    asked: usize,
}

impl Hierarchy {
    /// True where [`Self::run_stages`] may be used.
    pub(in crate::cache) fn has_stages(&self) -> bool {
        let is_nine = self.inclusion == Inclusion::Nine && !self.is_coherent();
        is_nine && self.levels.first().is_some_and(|first| !first.is_write_through && first.is_stage())
    }

    /// Works off what the first level is asked for: the ops of a block from number 1 on. No two neighbours are of the same
    /// line.
    pub(in crate::cache) fn run_stages(&mut self, stages: &mut Stages, block: Block<'_>, gain: &mut Gain) {
        let Stages { asked, next } = stages;
        let Some(first) = self.levels.first_mut() else { return };
        let found = first.stage::<true>((asked, 1..block.ops + 1), next, (block, 0), gain);
        first.counts.read_misses += found.misses - found.write_misses;
        first.counts.write_misses += found.write_misses;
        first.counts.read_hits += block.reads - (found.misses - found.write_misses);
        first.counts.write_hits += block.writes - found.write_misses;
        let (mut count, mut lines) = (found.asked, found.misses);
        self.see_all(next.ops.get(..count).unwrap_or_default());
        for number in 1.. {
            std::mem::swap(asked, next);
            match self.levels.get_mut(number) {
                Some(level) if level.is_stage() => {
                    let found = level.stage::<false>((asked, 0..count), next, (block, number), gain);
                    level.counts.read_hits += lines - found.misses;
                    level.counts.read_misses += found.misses;
                    level.counts.writebacks_in += count as u64 - lines;
                    if let Some(index) = block.thread_of {
                        gain.note_many(lines - found.misses, block.batch, index, number);
                    }
                    (count, lines) = (found.asked, found.misses);
                }
                Some(_) => return self.run_singly(asked, count, number, block, gain),
                None => {
                    self.memory_reads += lines;
                    self.memory_writes += count as u64 - lines;
                    return tell_memory(asked, count, lines, (block, number), gain);
                }
            }
        }
    }

    /// Tells coherence what the only core misses.
    fn see_all(&mut self, ops: &[Op]) {
        if self.coherence.is_some() {
            ops.iter().filter(|op| *op & WRITES == 0).for_each(|op| self.see(*op));
        }
    }

    /// Levels that are no stages, one op after the other.
    fn run_singly(&mut self, asked: &Asked, count: usize, number: usize, block: Block<'_>, gain: &mut Gain) {
        for (op, index) in asked.ops.iter().zip(&asked.indexes).take(count) {
            let at = op & !(WRITES | FIRST_WRITES);
            if op & WRITES != 0 {
                self.write_back(0, number, at, true);
            } else {
                let served = self.read(0, number, at, true).level;
                gain.note_many(1, block.batch, block.thread_of.unwrap_or(*index), served);
            }
        }
    }
}

/// Counts the records that memory served.
fn tell_memory(asked: &Asked, count: usize, lines: u64, (block, number): (Block<'_>, usize), gain: &mut Gain) {
    if let Some(index) = block.thread_of {
        return gain.note_many(lines, block.batch, index, number);
    }
    for (op, index) in asked.ops.iter().zip(&asked.indexes).take(count) {
        gain.note_many(u64::from(op & WRITES == 0), block.batch, *index, number);
    }
}

impl Level {
    /// True for a level that may work by stages: few ways, one cache for all cores there are, lines for what is written,
    /// and nothing watches it.
    fn is_stage(&self) -> bool {
        self.is_plain && self.allocates_on_write && matches!(self.stores.as_slice(), [Store::Recency(_)])
    }

    /// Works off what the level is asked for; what it asks of the next is in `next`.
    fn stage<const FIRST: bool>(
        &mut self,
        (asked, range): (&Asked, Range<usize>),
        next: &mut Asked,
        of: (Block<'_>, usize),
        gain: &mut Gain,
    ) -> Counted {
        // Each op asks for a line and gives one back at most, and one place more is written to in passing.
        next.fit(range.len() * 2 + 1);
        let ops = asked.ops.get(range.clone()).unwrap_or_default();
        let indexes = asked.indexes.get(range).unwrap_or_default();
        let Self { geometry, stores, set_misses, counts, .. } = self;
        let Some(Store::Recency(store)) = stores.first_mut() else { return Counted::default() };
        let stage = Stage { store, set_misses, geometry: *geometry, ops, indexes, next };
        let counted = match (stage.store.is_wide(), of.0.thread_of.is_some()) {
            (false, true) => stage.run::<FIRST, false, false>(of, gain),
            (false, false) => stage.run::<FIRST, false, true>(of, gain),
            (true, _) => stage.run::<FIRST, true, true>(of, gain),
        };
        counts.fills += counted.fills;
        counts.evictions += counted.evictions;
        counts.writebacks_out += counted.asked as u64 - counted.misses;
        counted
    }
}

/// What the loop of a level works on.
struct Stage<'a> {
    store: &'a mut Recency,
    set_misses: &'a mut [u64],
    geometry: Geometry,
    ops: &'a [Op],
    indexes: &'a [u32],
    next: &'a mut Asked,
}

impl Stage<'_> {
    /// The loop of a level. With `EACH`, numbers of accesses are handed on.
    #[inline(always)]
    fn run<const FIRST: bool, const WIDE: bool, const EACH: bool>(
        self,
        (block, number): (Block<'_>, usize),
        gain: &mut Gain,
    ) -> Counted {
        let Self { store, set_misses, geometry, ops, indexes, next } = self;
        let (shift, sets) = (geometry.shift, geometry.sets as u64);
        let is_power_of_two = sets.is_power_of_two();
        let (next_ops, next_indexes) = (next.ops.as_mut_slice(), next.indexes.as_mut_slice());
        let mut counted = Counted::default();
        let mut asked = 0;
        for (place, op) in ops.iter().enumerate() {
            let line = op >> shift;
            let set = (if is_power_of_two { line & (sets - 1) } else { line % sets.max(1) }) as usize;
            let taken = store.take::<WIDE>(set, Held { line, flags: (op & WRITES) as u8 });
            // Of other levels, what is written is taken back from above: no line is asked for.
            let is_asking = FIRST | (op & WRITES == 0);
            let is_miss = !taken.is_hit & is_asking;
            if let Some(misses) = set_misses.get_mut(set) {
                *misses += u64::from(is_miss);
            }
            if FIRST {
                counted.write_misses += u64::from(is_miss & (op & FIRST_WRITES != 0));
            }
            counted.misses += u64::from(is_miss);
            counted.fills += u64::from(!taken.is_hit);
            counted.evictions += u64::from(taken.is_evicted());
            let index = if EACH { indexes.get(place).copied().unwrap_or(0) } else { 0 };
            if EACH && !FIRST && block.thread_of.is_none() {
                gain.note_many(u64::from(taken.is_hit & is_asking), block.batch, index, number);
            }
            for (op, is_asked) in
                [(op & !(WRITES | FIRST_WRITES), is_miss), (taken.line() << shift | WRITES, taken.is_dirty())]
            {
                if let Some(place) = next_ops.get_mut(asked) {
                    *place = op;
                }
                if EACH && let Some(place) = next_indexes.get_mut(asked) {
                    *place = index;
                }
                asked += usize::from(is_asked);
            }
        }
        counted.asked = asked;
        counted
    }
}

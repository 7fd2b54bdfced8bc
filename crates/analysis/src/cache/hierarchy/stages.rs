//! Many accesses at once, level by level, where no level depends on those below.
//!
//! In a NINE hierarchy a level's lines depend on what it is asked for and on nothing below. So a level processes an
//! entire block before the next level begins, and leaves what the next is asked for, in order. Each loop is short,
//! without unpredictable branches, and its level's lines stay in the cache.

use anytrace_core::access::gather::{FIRST_WRITES, Gathered, Op, WRITES};
use anytrace_core::access::{ThreadNumber, USUAL_LINE_SHIFT};

use crate::cache::batch::Batch;
use crate::cache::config::{Config, Geometry, Inclusion, Policy};
use crate::cache::store::recency::{Rule, Set, Sets, WAYS_MAX, is_usual, with_sets};
use crate::cache::store::{DIRTY, Store};
use crate::cache::tally::Gain;

use super::{Hierarchy, Level};

// What a level is asked for: the first, accesses to one line in a row; others, a line, or to take back a dirty one
// ([`WRITES`]). Lines have at least 8 bytes, and the bit for a dirty line is the bit for a written line.
const _: () = assert!(WRITES == DIRTY as u64);

/// What a level is asked for by the one above.
#[derive(Debug, Default)]
struct Asked {
    ops: Vec<Op>,
    /// Numbers of the accesses that ask; unused where all records of a block are counted as one.
    indexes: Vec<u32>,
}

impl Asked {
    /// Makes room for this many ops.
    fn fit(&mut self, most: usize) {
        if self.ops.len() < most {
            self.ops.resize(most, 0);
            self.indexes.resize(most, 0);
        }
    }
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(in crate::cache) struct Stages {
    asked: Asked,
    next: Asked,
}

/// The owners of the records of a block.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) enum Owners<'a> {
    /// All of one thread, and of no field that is counted.
    One(ThreadNumber),
    /// All of one thread, and each of a field.
    Fields(ThreadNumber, &'a [u32]),
    /// Each its own.
    Each(Batch<'a>),
}

impl<'a> Owners<'a> {
    /// The owners of these records.
    pub(in crate::cache) fn of(batch: Batch<'a>) -> Self {
        match batch.only {
            Some(thread) if batch.fields.is_empty() => Self::One(thread),
            Some(thread) => Self::Fields(thread, batch.fields),
            None => Self::Each(batch),
        }
    }

    /// Counts records that a server beyond the first level served; none is right, too.
    #[inline]
    fn note_all(self, gain: &mut Gain, records: u64, served: usize) {
        if let Self::One(thread) | Self::Fields(thread, _) = self {
            gain.note_thread(thread, records, served);
        }
    }

    /// Counts the record with a number, or none, beside [`Self::note_all`].
    #[inline(always)]
    fn note_each(self, gain: &mut Gain, records: u64, index: u32, served: usize) {
        let index = index as usize;
        match self {
            Self::One(_) => (),
            Self::Fields(_, fields) => gain.note_field(fields.get(index).copied(), records, served),
            Self::Each(batch) => {
                let Some(access) = batch.accesses.get(index) else { return };
                gain.note_thread(access.thread, records, served);
                gain.note_field(batch.fields.get(index).copied(), records, served);
            }
        }
    }

    /// True when only the number of records matters.
    const fn is_one(self) -> bool {
        matches!(self, Self::One(_))
    }
}

/// What a block asks of the first level, and the owners of its records.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Block<'a> {
    pub(in crate::cache) gathered: Gathered<'a>,
    pub(in crate::cache) owners: Owners<'a>,
}

/// True where many accesses can go through the levels at once, for this many cores: no level depends on those below,
/// and the first is of the most frequent kind.
pub(in crate::cache) fn has_stages(config: &Config, cores: usize) -> bool {
    let Some(first) = config.levels.first() else { return false };
    let is_shared = cores == 1 || !first.is_private;
    let is_plain = !first.is_write_through && first.allocates_on_write && !first.prefetch.is_any();
    let is_few = first.geometry().ways <= WAYS_MAX;
    let is_by_order = is_few && matches!(first.policy, Policy::Lru | Policy::Fifo);
    config.inclusion == Inclusion::Nine && is_shared && is_plain && is_by_order
}

/// The counters of a stage.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    /// Lines that were asked for and absent, and those of them that were written.
    misses: u64,
    write_misses: u64,
    fills: u64,
    /// Fills that evicted no line.
    had_room: u64,
    /// What the next level is asked for: lines, and to take back dirty ones.
    asked: usize,
}

impl Hierarchy {
    /// True where [`Self::run_stages`] may be used.
    pub(in crate::cache) fn has_stages(&self) -> bool {
        let is_nine = self.inclusion == Inclusion::Nine && !self.is_coherent();
        is_nine && self.levels.first().is_some_and(|first| !first.is_write_through && first.is_stage())
    }

    /// Processes what a block asks of the first level.
    pub(in crate::cache) fn run_stages(&mut self, stages: &mut Stages, block: Block<'_>, gain: &mut Gain) {
        let Stages { asked, next } = stages;
        let Block { gathered, owners } = block;
        let levels = self.levels.len();
        let is_watched = self.coherence.is_some();
        // Below the last level only counts matter, unless someone must know which records, or which lines, they were.
        let is_last = |number: usize| number + 1 == levels && owners.is_one() && !is_watched;
        let Some(first) = self.levels.first_mut() else { return };
        let found = first.stage::<true>((gathered.ops, gathered.indexes), (next, is_last(0)), (owners, 0), gain);
        first.counts.read_misses += found.misses - found.write_misses;
        first.counts.write_misses += found.write_misses;
        first.counts.read_hits += gathered.reads - (found.misses - found.write_misses);
        first.counts.write_hits += gathered.writes - found.write_misses;
        let (mut count, mut lines) = (found.asked, found.misses);
        self.see_all(next.ops.get(..count).unwrap_or_default());
        for number in 1.. {
            // What the level above asked for becomes the input; its old memory receives the next output.
            std::mem::swap(asked, next);
            let (ops, indexes) = (asked.ops.get(..count), asked.indexes.get(..count));
            let these = (ops.unwrap_or_default(), indexes.unwrap_or_default());
            match self.levels.get_mut(number) {
                Some(level) if level.is_stage() => {
                    let found = level.stage::<false>(these, (next, is_last(number)), (owners, number), gain);
                    level.counts.read_hits += lines - found.misses;
                    level.counts.read_misses += found.misses;
                    // Each op is either a line that is asked for or a dirty one that is handed down.
                    level.counts.writebacks_in += count as u64 - lines;
                    owners.note_all(gain, lines - found.misses, number);
                    (count, lines) = (found.asked, found.misses);
                }
                Some(_) => return self.run_singly(these, number, owners, gain),
                None => {
                    self.memory_reads += lines;
                    self.memory_writes += count as u64 - lines;
                    return count_memory(these, lines, (owners, number), gain);
                }
            }
        }
    }

    /// Informs coherence of the misses of the only core.
    fn see_all(&mut self, ops: &[Op]) {
        if self.coherence.is_some() {
            ops.iter().filter(|op| *op & WRITES == 0).for_each(|op| self.see(*op));
        }
    }

    /// Levels that are not stages, one op after the other.
    fn run_singly(&mut self, (ops, indexes): (&[Op], &[u32]), number: usize, owners: Owners<'_>, gain: &mut Gain) {
        for (op, index) in ops.iter().zip(indexes) {
            let at = op & !(WRITES | FIRST_WRITES);
            if op & WRITES != 0 {
                self.write_back(0, number, at, true);
            } else {
                let served = self.read(0, number, at, true).level;
                owners.note_all(gain, 1, served);
                owners.note_each(gain, 1, *index, served);
            }
        }
    }
}

/// Counts the records that memory served.
fn count_memory((ops, indexes): (&[Op], &[u32]), lines: u64, (owners, number): (Owners<'_>, usize), gain: &mut Gain) {
    owners.note_all(gain, lines, number);
    if !owners.is_one() {
        for (op, index) in ops.iter().zip(indexes) {
            owners.note_each(gain, u64::from(op & WRITES == 0), *index, number);
        }
    }
}

impl Level {
    /// True for a level that can work by stages: few ways, one cache for all cores, write-allocate, and nothing
    /// observes it.
    fn is_stage(&self) -> bool {
        self.is_plain && self.allocates_on_write && matches!(self.stores.as_slice(), [Store::Recency(_)])
    }

    /// Processes what the level is asked for; `next` receives what it asks of the next level, unless `is_last`: then
    /// that is only counted.
    fn stage<const FIRST: bool>(
        &mut self,
        (ops, indexes): (&[Op], &[u32]),
        (next, is_last): (&mut Asked, bool),
        of: (Owners<'_>, usize),
        gain: &mut Gain,
    ) -> Counted {
        // Each op asks for one line and returns one at most; places after the last are written in passing.
        next.fit(ops.len() * 2 + 2);
        let Self { geometry, stores, set_misses, counts, .. } = self;
        let Some(Store::Recency(store)) = stores.first_mut() else { return Counted::default() };
        let Geometry { shift, sets, .. } = *geometry;
        let stage = Stage { set_misses, geometry: *geometry, rule: store.rule, ops, indexes, next };
        let has_usual_lines = shift == USUAL_LINE_SHIFT && sets.is_power_of_two();
        let counted = with_sets!(&mut store.sets, sets => {
            match (of.0.is_one(), is_last, has_usual_lines && is_usual(sets, store.rule)) {
                (true, true, true) => stage.run::<FIRST, false, true, true>(sets, of, gain),
                (true, true, false) => stage.run::<FIRST, false, true, false>(sets, of, gain),
                (true, false, true) => stage.run::<FIRST, false, false, true>(sets, of, gain),
                (true, false, false) => stage.run::<FIRST, false, false, false>(sets, of, gain),
                (false, _, true) => stage.run::<FIRST, true, false, true>(sets, of, gain),
                (false, _, false) => stage.run::<FIRST, true, false, false>(sets, of, gain),
            }
        });
        counts.fills += counted.fills;
        counts.evictions += counted.fills - counted.had_room;
        counts.writebacks_out += counted.asked as u64 - counted.misses;
        counted
    }
}

/// The arguments of a level's loop.
struct Stage<'a> {
    set_misses: &'a mut [u64],
    geometry: Geometry,
    rule: Rule,
    ops: &'a [Op],
    indexes: &'a [u32],
    next: &'a mut Asked,
}

impl Stage<'_> {
    /// The loop of a level. With `EACH`, numbers of accesses are passed on; with `LAST`, what the next level is asked
    /// for is counted and not passed on; with `USUAL`, lines have 64 bytes, sets are selected by their low bits, and
    /// [`Set::take`] has a usual rule. Sums are in separate variables, because the compiler keeps those in registers.
    #[inline(never)]
    fn run<const FIRST: bool, const EACH: bool, const LAST: bool, const USUAL: bool>(
        self,
        rows: &mut [impl Set],
        (owners, number): (Owners<'_>, usize),
        gain: &mut Gain,
    ) -> Counted {
        let Self { set_misses, geometry, rule, ops, indexes, next } = self;
        let shift = if USUAL { USUAL_LINE_SHIFT } else { geometry.shift };
        let (sets, line_mask) = (geometry.sets as u64, u64::MAX << shift);
        let is_masked = USUAL || sets.is_power_of_two();
        let (next_ops, next_indexes) = (next.ops.as_mut_slice(), next.indexes.as_mut_slice());
        let mut indexes = indexes.iter();
        let (mut first_writes, mut fills, mut asked) = (0, 0, 0);
        // The number of victims, and from bit 32 on the number of misses: a block has far fewer.
        let mut sums = 0;
        for op in ops {
            let line = op >> shift;
            let set = (if is_masked { line & (sets - 1) } else { line % sets.max(1) }) as usize;
            let (Some(row), Some(set_misses)) = (rows.get_mut(set), set_misses.get_mut(set)) else { break };
            let taken = row.take::<USUAL>(op & line_mask, op & WRITES, rule);
            // In other levels, a written line is taken back from above: no line is asked for.
            let miss = if FIRST { taken.missing } else { taken.missing & (op ^ WRITES) };
            *set_misses += miss;
            sums += miss << 32 | taken.left();
            if FIRST {
                first_writes += miss.wrapping_neg() & op & FIRST_WRITES;
            } else {
                fills += taken.missing;
            }
            let index = if EACH { indexes.next().copied().unwrap_or(0) } else { 0 };
            if EACH && !FIRST && (taken.missing | op) & 1 == 0 {
                owners.note_each(gain, 1, index, number);
            }
            // The second place is written where a line is asked for, else the first.
            let second = asked + miss as usize;
            if !LAST && let Some(place) = next_ops.get_mut(asked) {
                *place = op & !(WRITES | FIRST_WRITES);
            }
            if !LAST && let Some(place) = next_ops.get_mut(second) {
                *place = taken.at() | WRITES;
            }
            if EACH && let Some(places) = next_indexes.get_mut(asked..).and_then(<[u32]>::first_chunk_mut::<2>) {
                *places = [index; 2];
            }
            asked = second + taken.dirty() as usize;
        }
        let (misses, left) = (sums >> 32, sums & u64::from(u32::MAX));
        let had_room = (left - (asked as u64 - misses)) / 2;
        let fills = if FIRST { misses } else { fills };
        Counted { misses, write_misses: first_writes / FIRST_WRITES, fills, had_room, asked }
    }
}

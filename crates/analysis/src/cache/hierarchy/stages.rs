//! Many accesses at once, level by level, where no level knows of those below.
//!
//! In a NINE hierarchy a level's lines depend on what it is asked for and on nothing below. So a level works off all of a
//! block before the next one begins, and leaves behind what the next is asked for, in order. Each loop is short, without
//! branches that chance decides, and its level's lines stay near.

use crate::cache::config::Inclusion;
use crate::cache::simulation::{Batch, Gain};
use crate::cache::store::recency::Recency;
use crate::cache::store::{DIRTY, Held, Store};

use super::{Hierarchy, Level};

/// Flag of an [`Op`] of the first level: it begins with a write.
pub(in crate::cache) const FIRST_WRITES: u8 = 2;

/// What a level is asked for: of the first, accesses to one line in a row; of others, a line or to take one back.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cache) struct Op {
    /// First byte of the line.
    pub(in crate::cache) at: u64,
    /// Number in the batch of the access that asks.
    pub(in crate::cache) index: u32,
    /// `DIRTY` where something is written; [`FIRST_WRITES`].
    pub(in crate::cache) flags: u8,
}

/// What levels are asked for; memory that is used again.
#[derive(Debug, Default)]
pub(in crate::cache) struct Stages {
    pub(in crate::cache) ops: Vec<Op>,
    next: Vec<Op>,
}

/// What a stage counted.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    /// Misses of first reads and first writes.
    misses: [u64; 2],
    /// Hits of lines asked for, and lines taken back.
    hits: u64,
    taken_back: u64,
    fills: u64,
    evictions: u64,
    dirty: u64,
}

impl Hierarchy {
    /// True where [`Self::run_stages`] may be used.
    pub(in crate::cache) fn has_stages(&self) -> bool {
        let is_nine = self.inclusion == Inclusion::Nine && !self.is_coherent();
        is_nine && self.levels.first().is_some_and(|first| !first.is_write_through && first.is_stage())
    }

    /// Works off what the first level is asked for: `asked` ops from number 1 on, with so many reads and writes in all.
    /// No two neighbours are of the same line.
    pub(in crate::cache) fn run_stages(
        &mut self,
        stages: &mut Stages,
        asked: usize,
        accesses: [u64; 2],
        batch: Batch<'_>,
        gain: &mut Gain,
    ) {
        let Stages { ops, next } = stages;
        let mut count = 0;
        if let (Some(first), Some(ops)) = (self.levels.first_mut(), ops.get(1..=asked)) {
            let (counted, asked) = first.stage::<true>(ops, next, (batch, 0), gain);
            first.counts.read_hits += accesses[0] - counted.misses[0];
            first.counts.write_hits += accesses[1] - counted.misses[1];
            first.counts.read_misses += counted.misses[0];
            first.counts.write_misses += counted.misses[1];
            count = asked;
        }
        self.see_all(next.get(..count).unwrap_or_default());
        for number in 1.. {
            std::mem::swap(ops, next);
            let asked = ops.get(..count).unwrap_or_default();
            match self.levels.get_mut(number) {
                Some(level) if level.is_stage() => {
                    let (counted, more) = level.stage::<false>(asked, next, (batch, number), gain);
                    level.counts.read_hits += counted.hits;
                    level.counts.read_misses += counted.misses[0];
                    level.counts.writebacks_in += counted.taken_back;
                    count = more;
                }
                Some(_) => return self.run_singly(asked, number, batch, gain),
                None => return self.reach_memory(asked, number, batch, gain),
            }
        }
    }

    /// Tells coherence what the only core misses.
    fn see_all(&mut self, ops: &[Op]) {
        if self.coherence.is_some() {
            ops.iter().filter(|op| op.flags & DIRTY == 0).for_each(|op| self.see(op.at));
        }
    }

    /// Levels that are no stages, one op after the other.
    fn run_singly(&mut self, ops: &[Op], number: usize, batch: Batch<'_>, gain: &mut Gain) {
        for op in ops {
            if op.flags & DIRTY != 0 {
                self.write_back(0, number, op.at, true);
            } else {
                let served = self.read(0, number, op.at, true).level;
                gain.note_if(true, batch, op.index, served);
            }
        }
    }

    fn reach_memory(&mut self, ops: &[Op], number: usize, batch: Batch<'_>, gain: &mut Gain) {
        let mut writes = 0;
        for op in ops {
            let is_write = op.flags & DIRTY != 0;
            writes += u64::from(is_write);
            gain.note_if(!is_write, batch, op.index, number);
        }
        self.memory_writes += writes;
        self.memory_reads += ops.len() as u64 - writes;
    }
}

impl Level {
    /// True for a level that may work by stages: few ways, one cache for all cores there are, lines for what is written,
    /// and nothing watches it.
    fn is_stage(&self) -> bool {
        self.is_plain && self.allocates_on_write && matches!(self.stores.as_slice(), [Store::Recency(_)])
    }

    /// Works off what the level is asked for; how many ops it asks of the next, which are in `next`.
    fn stage<const FIRST: bool>(
        &mut self,
        ops: &[Op],
        next: &mut Vec<Op>,
        of: (Batch<'_>, usize),
        gain: &mut Gain,
    ) -> (Counted, usize) {
        // Each op asks for a line and gives one back at most, and one place more is written to in passing.
        if next.len() < ops.len() * 2 + 1 {
            next.resize(ops.len() * 2 + 1, Op::default());
        }
        let Self { geometry, stores, set_misses, counts, .. } = self;
        let Some(Store::Recency(store)) = stores.first_mut() else { return (Counted::default(), 0) };
        let place = |at: u64| (at >> geometry.shift, geometry.set(at >> geometry.shift));
        let (counted, asked) = if store.is_wide() {
            run::<FIRST, true>(store, set_misses, geometry.shift, place, (ops, next), of, gain)
        } else {
            run::<FIRST, false>(store, set_misses, geometry.shift, place, (ops, next), of, gain)
        };
        counts.fills += counted.fills;
        counts.evictions += counted.evictions;
        counts.writebacks_out += counted.dirty;
        (counted, asked)
    }
}

/// The loop of a level.
#[inline(always)]
fn run<const FIRST: bool, const WIDE: bool>(
    store: &mut Recency,
    set_misses: &mut [u64],
    shift: u32,
    place: impl Fn(u64) -> (u64, usize),
    (ops, next): (&[Op], &mut [Op]),
    (batch, number): (Batch<'_>, usize),
    gain: &mut Gain,
) -> (Counted, usize) {
    let mut counted = Counted::default();
    let mut asked = 0;
    for op in ops {
        let (line, set) = place(op.at);
        let taken = store.take::<WIDE>(set, Held { line, flags: op.flags & DIRTY });
        // Of other levels, what is written is taken back from above: no line is asked for.
        let is_asking = FIRST | (op.flags & DIRTY == 0);
        let is_miss = !taken.is_hit & is_asking;
        if let Some(misses) = set_misses.get_mut(set) {
            *misses += u64::from(is_miss);
        }
        let begins_with_write = FIRST & (op.flags & FIRST_WRITES != 0);
        counted.misses[0] += u64::from(is_miss & !begins_with_write);
        counted.misses[1] += u64::from(is_miss & begins_with_write);
        counted.taken_back += u64::from(!is_asking);
        counted.fills += u64::from(!taken.is_hit);
        counted.evictions += u64::from(taken.is_evicted());
        counted.dirty += u64::from(taken.is_dirty());
        if !FIRST {
            let is_served = taken.is_hit & is_asking;
            counted.hits += u64::from(is_served);
            gain.note_if(is_served, batch, op.index, number);
        }
        if let Some(place) = next.get_mut(asked) {
            *place = Op { at: op.at, index: op.index, flags: 0 };
        }
        asked += usize::from(is_miss);
        if let Some(place) = next.get_mut(asked) {
            *place = Op { at: taken.line() << shift, index: op.index, flags: DIRTY };
        }
        asked += usize::from(taken.is_dirty());
    }
    (counted, asked)
}

//! From accesses to what the first level is asked for: ops, of which each is many accesses.
//!
//! An access to the line that was used last in its set changes nothing but that the line may be written: it joins the
//! op before. So a short table of the latest lines, by set, takes most accesses out of the way of the caches.

use std::hint::select_unpredictable;
use std::ops::Range;

use anytrace_core::access::Access;

use crate::cache::config::Config;
use crate::cache::hierarchy::{FIRST_WRITES, Op, WRITES};

/// Accesses that go through all levels together: what they ask for fits a first-level cache.
const BLOCK_ACCESSES: usize = 1024;

/// Sets, or groups of them, whose latest line is kept.
const SLOTS: usize = 64;

/// Most shards.
pub(super) const SHARDS_MAX: u64 = SLOTS as u64;

/// The line that was used last in a set, and the place of its op.
#[derive(Debug, Clone, Copy)]
struct Latest {
    at: u64,
    place: u32,
}

/// No line begins there.
const NONE: Latest = Latest { at: u64::MAX, place: 0 };

/// What one shard is asked for by a block.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Gathered<'a> {
    pub(in crate::cache) ops: &'a [Op],
    /// Numbers of the accesses that each op began with, where they were wanted.
    pub(in crate::cache) indexes: &'a [u32],
    pub(in crate::cache) reads: u64,
    pub(in crate::cache) writes: u64,
}

/// What a block is made with.
#[derive(Debug)]
pub(in crate::cache) struct Gatherer {
    shift: u32,
    /// Which bits of a line's number choose its slot.
    slots: u64,
    /// Which bits of it choose its shard.
    shards: u64,
    latest: [Latest; SLOTS],
    /// One shard after the other, each with room for a block.
    ops: Vec<Op>,
    indexes: Vec<u32>,
    has_indexes: bool,
    counts: [Counts; SLOTS],
}

/// What is counted of a shard.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    ops: u32,
    accesses: u32,
    writes: u32,
}

/// Where a block ended.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Ended<'a> {
    /// Number of the first access that is not in the block.
    pub(in crate::cache) at: usize,
    /// That access, when it touches several lines or none.
    pub(in crate::cache) odd: Option<&'a Access>,
}

impl Gatherer {
    /// For a configuration in so many shards, a power of two.
    pub(in crate::cache) fn new(config: &Config, shards: u64) -> Self {
        let geometry = config.levels.first().map(|level| level.geometry());
        let (shift, sets) = geometry.map_or((0, 1), |of| (of.shift, of.sets as u64));
        // Lines of one slot that follow each other are then of one set. Where sets are no low bits, it is one slot.
        let slots = if sets.is_power_of_two() { (sets - 1) & (SLOTS as u64 - 1) } else { 0 };
        let shards = shards.clamp(1, SHARDS_MAX);
        let room = BLOCK_ACCESSES * shards as usize;
        Self {
            shift,
            slots,
            shards: shards - 1,
            latest: [NONE; SLOTS],
            ops: vec![0; room],
            indexes: vec![0; room],
            has_indexes: false,
            counts: [Counts::default(); SLOTS],
        }
    }

    /// Gathers accesses from a number on, up to a block or to one that is not of one line. `with_indexes` keeps which
    /// access each op began with; their numbers begin with `base`.
    pub(in crate::cache) fn gather<'a>(
        &mut self,
        accesses: &'a [Access],
        from: usize,
        base: usize,
        with_indexes: bool,
    ) -> Ended<'a> {
        self.clear();
        self.has_indexes = with_indexes;
        let rest = accesses.get(from..).unwrap_or_default();
        let block = rest.get(..BLOCK_ACCESSES).unwrap_or(rest);
        let first = (base + from) as u32;
        let taken = match (self.shards == 0, with_indexes) {
            (true, false) => self.run::<false, false>(block, first),
            (true, true) => self.run::<false, true>(block, first),
            (false, false) => self.run::<true, false>(block, first),
            (false, true) => self.run::<true, true>(block, first),
        };
        Ended { at: from + taken, odd: block.get(taken) }
    }

    /// What the block asks of a shard.
    pub(in crate::cache) fn gathered(&self, shard: u64) -> Gathered<'_> {
        let counts = self.counts.get(shard as usize).copied().unwrap_or_default();
        let range = self.room_of(shard);
        let range = range.start..range.start + counts.ops as usize;
        let indexes = if self.has_indexes { range.clone() } else { 0..0 };
        Gathered {
            ops: self.ops.get(range).unwrap_or_default(),
            indexes: self.indexes.get(indexes).unwrap_or_default(),
            reads: u64::from(counts.accesses - counts.writes),
            writes: u64::from(counts.writes),
        }
    }

    fn room_of(&self, shard: u64) -> Range<usize> {
        let start = shard as usize * BLOCK_ACCESSES;
        start..start + BLOCK_ACCESSES
    }

    /// Forgets a block.
    fn clear(&mut self) {
        let shards = self.shards as usize + 1;
        if let Some(counts) = self.counts.get_mut(..shards) {
            counts.fill(Counts::default());
        }
        self.latest.fill(NONE);
    }

    /// The loop over accesses; the number of those taken.
    #[inline(always)]
    fn run<const SHARDED: bool, const INDEXED: bool>(&mut self, block: &[Access], first: u32) -> usize {
        let Self { shift, slots, shards, latest, ops, indexes, counts, .. } = self;
        let (shift, slots, shards) = (*shift, *slots, *shards);
        let line_bytes = 1_u64 << shift;
        let mut only = Counts::default();
        let mut taken = 0;
        for (access, index) in block.iter().zip(first..) {
            let within = access.address & (line_bytes - 1);
            // Records of no bytes wrap to a huge number here and are sorted out with those of several lines.
            let last = within + u64::from(u32::from(access.bytes).wrapping_sub(1));
            if last >= line_bytes {
                break;
            }
            let at = access.address - within;
            let line = at >> shift;
            let latest = &mut latest[(line & slots) as usize & (SLOTS - 1)];
            let is_new = at != latest.at;
            let write = u64::from(access.is_write());
            let shard = if SHARDED { (line & shards) as usize & (SLOTS - 1) } else { 0 };
            let count = if SHARDED { &mut counts[shard] } else { &mut only };
            // The next place is written to in any case, and counts where the line is new.
            let next = (shard * BLOCK_ACCESSES) as u32 + count.ops;
            let place = select_unpredictable(is_new, next, latest.place);
            count.ops += u32::from(is_new);
            count.writes += write as u32;
            if SHARDED {
                count.accesses += 1;
            }
            *latest = Latest { at, place };
            if let Some(op) = ops.get_mut(next as usize) {
                *op = at | (write * FIRST_WRITES);
            }
            if let Some(op) = ops.get_mut(place as usize) {
                *op |= write * WRITES;
            }
            if INDEXED && let Some(at) = indexes.get_mut(next as usize) {
                *at = index;
            }
            taken += 1;
        }
        if !SHARDED {
            counts[0] = Counts { accesses: taken as u32, ..only };
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::{AccessFlags, AccessKind};

    use super::*;
    use crate::cache::config::Level;

    fn access(address: u64, bytes: u16, is_write: bool) -> Access {
        let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
        Access { address, seq: 0, thread: 0, bytes, kind, flags: AccessFlags::NONE }
    }

    fn config(sets: u64) -> Config {
        Config::new("c", vec![Level::new("L1", sets * 128, 64, 2)])
    }

    #[test]
    fn accesses_to_the_latest_line_of_a_set_join_its_op() {
        let accesses = [
            access(4096, 8, false),
            access(4160, 8, true),
            access(4104, 4, true),
            access(4160 + 4 * 64, 8, false),
            access(4160, 8, false),
            access(4096, 64, false),
            access(4100, 61, false),
        ];
        let mut gatherer = Gatherer::new(&config(4), 1);
        let ended = gatherer.gather(&accesses, 0, 10, true);
        assert_eq!((ended.at, ended.odd), (6, accesses.last()));
        let found = gatherer.gathered(0);
        // The line at 4160 has lost its place as the latest of its set.
        assert_eq!(found.ops, [4096 | WRITES, 4160 | WRITES | FIRST_WRITES, 4160 + 256, 4160]);
        assert_eq!((found.indexes, found.reads, found.writes), (&[10, 11, 13, 14][..], 4, 2));
        assert_eq!(gatherer.gather(&accesses, 7, 10, true).at, 7);
        assert!(gatherer.gathered(0).ops.is_empty());
    }

    #[test]
    fn shards_have_the_lines_of_their_low_bits() {
        let accesses: Vec<_> = (0..3000).map(|n| access((n * 48) & !7, 8, n % 3 == 0)).collect();
        let (mut whole, mut parts) = (Gatherer::new(&config(64), 1), Gatherer::new(&config(64), 4));
        let mut from = 0;
        while from < accesses.len() {
            let ended = whole.gather(&accesses, from, 0, true);
            assert_eq!(parts.gather(&accesses, from, 0, true).at, ended.at);
            let all = whole.gathered(0);
            let mut sum = [0; 2];
            for shard in 0..4 {
                let part = parts.gathered(shard);
                let own: Vec<_> = all.ops.iter().filter(|op| *op >> 6 & 3 == shard).copied().collect();
                assert_eq!(part.ops, own);
                assert_eq!(part.ops.len(), part.indexes.len());
                sum = [sum[0] + part.reads, sum[1] + part.writes];
            }
            assert_eq!(sum, [all.reads, all.writes]);
            from = ended.at.max(from + 1);
        }
    }

    #[test]
    fn records_of_no_bytes_and_of_several_lines_end_a_block() {
        for (address, bytes) in [(64, 0), (65, 0), (127, 0), (127, 2), (64, 65), (64, u16::MAX), (u64::MAX, 2)] {
            let odd = [access(address, bytes, false)];
            let ended = Gatherer::new(&config(8), 1).gather(&odd, 0, 0, false);
            assert_eq!((ended.at, ended.odd), (0, odd.first()), "{address} {bytes}");
        }
        let last = [access(u64::MAX, 1, false)];
        assert_eq!(Gatherer::new(&config(8), 1).gather(&last, 0, 0, false).at, 1);
    }

    #[test]
    fn sets_that_are_no_low_bits_have_one_slot() {
        let accesses = [access(0, 8, false), access(192, 8, false), access(0, 8, false), access(8, 8, true)];
        let mut gatherer = Gatherer::new(&config(3), 1);
        gatherer.gather(&accesses, 0, 0, false);
        let found = gatherer.gathered(0);
        assert_eq!((found.ops, found.indexes), (&[0, 192, WRITES][..], &[][..]));
    }
}

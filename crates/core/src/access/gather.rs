//! Combines accesses into what a first level of caches is asked for: ops, each of which is many accesses.
//!
//! An access to the line that was used last in its set changes nothing except that the line may be written, so it joins
//! the previous op. A short table of the latest line of each set thus keeps most accesses away from the caches.
//!
//! A format may gather its records directly from their bytes: see
//! [`AccessSink::gatherer`](super::AccessSink::gatherer).

use std::hint::select_unpredictable;
use std::ops::Range;

use super::USUAL_LINE_SHIFT;

/// Most accesses gathered at once: what they ask for fits a first-level cache.
pub const BLOCK_ACCESSES: usize = 1024;

/// Sets, or groups of sets, whose latest line is kept.
const SLOTS: usize = 64;

/// Most shards.
pub const SHARDS_MAX: u64 = SLOTS as u64;

/// Accesses to one line in a row: the first byte of the line, in whose lowest bits [`WRITES`] and [`FIRST_WRITES`] are.
pub type Op = u64;

/// Bit of an [`Op`]: one of the accesses writes.
pub const WRITES: Op = 1;

/// Bit of an [`Op`]: it begins with a write.
pub const FIRST_WRITES: Op = 2;

/// A record that may be gathered.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u16,
    /// True for a write.
    pub is_write: bool,
    /// Not 0 for records that must not be gathered. A number, so that a single branch decides about all reasons.
    pub foreign: u64,
}

/// No line begins there.
const NOWHERE: u64 = u64::MAX;

/// What a block asks of one shard.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<'a> {
    /// In the order of accesses.
    pub ops: &'a [Op],
    /// Number of the first access of each op, where indexes were wanted.
    pub indexes: &'a [u32],
    /// Accesses that read.
    pub reads: u64,
    /// Accesses that write.
    pub writes: u64,
}

/// What a block is built with.
#[derive(Debug)]
pub struct Gatherer {
    shift: u32,
    /// Which bits of a line's number choose its slot.
    slots: u64,
    /// Which bits of it choose its shard.
    shards: u64,
    /// The line that was used last in a set.
    latest: [u64; SLOTS],
    /// The place of its op.
    places: [u32; SLOTS],
    /// One shard after the other, each with room for a block.
    ops: Vec<Op>,
    indexes: Vec<u32>,
    has_indexes: bool,
    counts: [Counts; SLOTS],
}

/// The counters of a shard.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    ops: u32,
    accesses: u32,
    writes: u32,
}

impl Gatherer {
    /// For a first level with this many sets and lines of 2 to the power of `line_shift` bytes (2 to 63), in this many
    /// shards. The number of shards is a power of two: the low bits of a line select its shard.
    pub fn new(line_shift: u32, sets: u64, shards: u64) -> Self {
        // Consecutive lines of one slot are then of one set. Where sets are not selected by low bits, there is one
        // slot.
        let slots = if sets.is_power_of_two() { (sets - 1) & (SLOTS as u64 - 1) } else { 0 };
        let shards = shards.clamp(1, SHARDS_MAX);
        let room = BLOCK_ACCESSES * shards as usize;
        Self {
            shift: line_shift.clamp(2, 63),
            slots,
            shards: shards - 1,
            latest: [NOWHERE; SLOTS],
            places: [0; SLOTS],
            ops: vec![0; room],
            indexes: vec![0; room],
            has_indexes: false,
            counts: [Counts::default(); SLOTS],
        }
    }

    /// Gathers records up to a full block, a foreign record, or a record that is not of one line. Returns their number.
    #[inline]
    pub fn gather<T>(&mut self, records: &[T], candidate: impl Fn(&T) -> Candidate) -> usize {
        self.clear(false);
        match (self.shift == USUAL_LINE_SHIFT, self.shards == 0) {
            (true, true) => self.run::<T, true, false, false>(records, candidate, 0),
            (false, true) => self.run::<T, false, false, false>(records, candidate, 0),
            (true, false) => self.run::<T, true, true, false>(records, candidate, 0),
            (false, false) => self.run::<T, false, true, false>(records, candidate, 0),
        }
    }

    /// As [`Self::gather`], and keeps which record each op began with: their numbers begin with `first`.
    #[inline]
    pub fn gather_indexed<T>(&mut self, records: &[T], candidate: impl Fn(&T) -> Candidate, first: u32) -> usize {
        self.clear(true);
        match (self.shift == USUAL_LINE_SHIFT, self.shards == 0) {
            (true, true) => self.run::<T, true, false, true>(records, candidate, first),
            (false, true) => self.run::<T, false, false, true>(records, candidate, first),
            (true, false) => self.run::<T, true, true, true>(records, candidate, first),
            (false, false) => self.run::<T, false, true, true>(records, candidate, first),
        }
    }

    /// What the block asks of a shard.
    pub fn gathered(&self, shard: u64) -> Gathered<'_> {
        let counts = self.counts.get(shard as usize).copied().unwrap_or_default();
        let range = Self::room_of(shard);
        let range = range.start..range.start + counts.ops as usize;
        let indexes = if self.has_indexes { range.clone() } else { 0..0 };
        Gathered {
            ops: self.ops.get(range).unwrap_or_default(),
            indexes: self.indexes.get(indexes).unwrap_or_default(),
            reads: u64::from(counts.accesses - counts.writes),
            writes: u64::from(counts.writes),
        }
    }

    /// Accesses of all shards in the block: reads and writes.
    pub fn totals(&self) -> [u64; 2] {
        let counts = self.counts.get(..=self.shards as usize).unwrap_or_default();
        counts.iter().fold([0; 2], |[reads, writes], of| {
            [reads + u64::from(of.accesses - of.writes), writes + u64::from(of.writes)]
        })
    }

    fn room_of(shard: u64) -> Range<usize> {
        let start = shard as usize * BLOCK_ACCESSES;
        start..start + BLOCK_ACCESSES
    }

    /// Forgets a block.
    fn clear(&mut self, has_indexes: bool) {
        let shards = self.shards as usize + 1;
        if let Some(counts) = self.counts.get_mut(..shards) {
            counts.fill(Counts::default());
        }
        self.latest.fill(NOWHERE);
        self.has_indexes = has_indexes;
    }

    /// The loop over records; the number of those taken.
    #[inline(always)]
    fn run<T, const USUAL: bool, const SHARDED: bool, const INDEXED: bool>(
        &mut self,
        records: &[T],
        candidate: impl Fn(&T) -> Candidate,
        first: u32,
    ) -> usize {
        let Self { shift, slots, shards, latest, places, ops, indexes, counts, .. } = self;
        let (shift, slots, shards) = (if USUAL { USUAL_LINE_SHIFT } else { *shift }, *slots, *shards);
        let within_line = (1_u64 << shift) - 1;
        let mut only = Counts::default();
        let mut taken = 0;
        for (record, index) in records.get(..BLOCK_ACCESSES).unwrap_or(records).iter().zip(first..) {
            let Candidate { address, bytes, is_write, foreign } = candidate(record);
            let within = address & within_line;
            // Sizes of no bytes wrap to a huge number here and are rejected together with those of several lines.
            let last = within + u64::from(u32::from(bytes).wrapping_sub(1));
            if (last >> shift) | foreign != 0 {
                break;
            }
            let at = address - within;
            let line = at >> shift;
            let slot = (line & slots) as usize & (SLOTS - 1);
            let is_new = latest[slot] != at;
            let write = u64::from(is_write);
            let shard = if SHARDED { (line & shards) as usize & (SLOTS - 1) } else { 0 };
            let count = if SHARDED { &mut counts[shard] } else { &mut only };
            let next = (shard * BLOCK_ACCESSES) as u32 + count.ops;
            let place = select_unpredictable(is_new, next, places[slot]);
            (latest[slot], places[slot]) = (at, place);
            count.ops += u32::from(is_new);
            count.writes += write as u32;
            if SHARDED {
                count.accesses += 1;
            }
            // No branch: which line follows is unpredictable.
            if let Some(op) = ops.get_mut(place as usize) {
                *op = select_unpredictable(is_new, at | (write * FIRST_WRITES), *op) | (write * WRITES);
            }
            // The next place is written in any case, and counts only if the line is new.
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
    use std::collections::BTreeSet;

    use super::*;

    /// Address, bytes, whether it writes.
    type One = (u64, u16, bool);

    fn candidate(&(address, bytes, is_write): &One) -> Candidate {
        Candidate { address, bytes, is_write, foreign: 0 }
    }

    fn gatherer(sets: u64, shards: u64) -> Gatherer {
        Gatherer::new(6, sets, shards)
    }

    #[test]
    fn accesses_to_the_latest_line_of_a_set_join_its_op() {
        let accesses = [
            (4096, 8, false),
            (4160, 8, true),
            (4104, 4, true),
            (4160 + 4 * 64, 8, false),
            (4160, 8, false),
            (4096, 64, false),
            (4100, 61, false),
        ];
        let mut gatherer = gatherer(4, 1);
        assert_eq!(gatherer.gather_indexed(&accesses, candidate, 10), 6);
        let found = gatherer.gathered(0);
        // The line at 4160 has lost its place as the latest of its set.
        let ops = [4096 | WRITES, 4160 | WRITES | FIRST_WRITES, 4160 + 256, 4160];
        assert_eq!(found.ops, ops);
        assert_eq!((found.indexes, found.reads, found.writes), (&[10, 11, 13, 14][..], 4, 2));
        assert_eq!(gatherer.totals(), [4, 2]);
        assert_eq!(gatherer.gather(&accesses[..6], candidate), 6);
        assert_eq!((gatherer.gathered(0).ops, gatherer.gathered(0).indexes), (&ops[..], &[][..]));
        assert_eq!(gatherer.gather_indexed(&accesses[6..], candidate, 10), 0);
        assert!(gatherer.gathered(0).ops.is_empty());
    }

    #[test]
    fn shards_have_the_lines_of_their_low_bits() {
        let accesses: Vec<One> = (0..3000).map(|n| ((n * 48) & !7, 8, n % 3 == 0)).collect();
        for (shift, sets) in [(6, 64), (5, 16)] {
            let (mut one, mut parts) = (Gatherer::new(shift, sets, 1), Gatherer::new(shift, sets, 4));
            let mut rest = accesses.as_slice();
            while !rest.is_empty() {
                let taken = one.gather_indexed(rest, candidate, 7);
                assert_eq!(parts.gather_indexed(rest, candidate, 7), taken);
                let all = one.gathered(0);
                assert_eq!(parts.totals(), [all.reads, all.writes]);
                for shard in 0..4 {
                    let part = parts.gathered(shard);
                    let own: Vec<_> = all.ops.iter().filter(|op| *op >> shift & 3 == shard).copied().collect();
                    assert_eq!(part.ops, own);
                    assert_eq!(part.ops.len(), part.indexes.len());
                }
                rest = &rest[taken.max(1)..];
            }
        }
    }

    #[test]
    fn each_op_is_what_its_accesses_do() {
        let accesses: Vec<One> = (0..1000_u64).map(|n| (n * n % 4096 * 8, 8, n % 7 < 3)).collect();
        for (shift, sets) in [(6, 64), (6, 8), (6, 3), (7, 64), (4, 1024)] {
            let mut gatherer = Gatherer::new(shift, sets, 1);
            assert_eq!(gatherer.gather_indexed(&accesses, candidate, 0), accesses.len());
            let found = gatherer.gathered(0);
            let of = |n: &u32| accesses[*n as usize];
            for (op, n) in found.ops.iter().zip(found.indexes) {
                let (address, _, is_write) = of(n);
                assert_eq!(*op >> shift, address >> shift);
                assert_eq!(*op & FIRST_WRITES != 0, is_write);
                assert!(!is_write || *op & WRITES != 0);
            }
            // The lines that were written, and no others.
            let written: BTreeSet<u64> =
                found.ops.iter().filter(|op| *op & WRITES != 0).map(|op| op >> shift).collect();
            let due: BTreeSet<u64> = accesses.iter().filter(|of| of.2).map(|of| of.0 >> shift).collect();
            assert_eq!(written, due);
            assert_eq!(found.reads + found.writes, 1000);
        }
    }

    #[test]
    fn records_of_no_bytes_of_several_lines_and_foreign_ones_end_a_block() {
        for (address, bytes) in [(64, 0), (65, 0), (127, 0), (127, 2), (64, 65), (64, u16::MAX), (u64::MAX, 2)] {
            let odd = [(64, 8, true), (address, bytes, false)];
            assert_eq!(gatherer(8, 1).gather(&odd, candidate), 1, "{address} {bytes}");
            assert_eq!(gatherer(8, 1).gather_indexed(&odd, candidate, 0), 1, "{address} {bytes}");
        }
        assert_eq!(gatherer(8, 1).gather(&[(u64::MAX, 1, false)], candidate), 1);
        let foreign = |of: &One| Candidate { foreign: of.0 >> 63, ..candidate(of) };
        assert_eq!(gatherer(8, 2).gather(&[(0, 1, false), (64, 1, true), (1 << 63, 1, false)], foreign), 2);
    }

    #[test]
    fn a_block_has_room_for_so_many() {
        let accesses: Vec<One> = (0..3 * BLOCK_ACCESSES as u64).map(|n| (n * 64, 8, false)).collect();
        for shards in [1, 64, 1000] {
            let mut gatherer = gatherer(64, shards);
            assert_eq!(gatherer.gather(&accesses, candidate), BLOCK_ACCESSES);
            assert_eq!(gatherer.totals(), [BLOCK_ACCESSES as u64, 0]);
        }
    }

    #[test]
    fn sets_that_are_no_low_bits_have_one_slot() {
        let accesses = [(0, 8, false), (192, 8, false), (0, 8, false), (8, 8, true)];
        let mut gatherer = gatherer(3, 1);
        gatherer.gather(&accesses, candidate);
        assert_eq!(gatherer.gathered(0).ops, [0, 192, WRITES]);
    }
}

//! Few ways, in the order of their last use (LRU) or of their fill (FIFO).
//!
//! A set keeps the numbers of its ways in order, the latest first, and with each a byte of its line's hash, its *mark*.
//! The marks show where in the order a line can be, so that one comparison decides, and no line moves when the order
//! changes.

mod bytes;

use std::hint::{black_box, select_unpredictable};

use super::{DIRTY, EMPTY, PREFETCHED, StoredLine};
use crate::cache::config::Geometry;
use bytes::Bytes;

/// Most ways: bytes of a number.
pub(in crate::cache) const WAYS_MAX: usize = 16;

/// Bits of an entry that are flags.
const FLAGS: u64 = (DIRTY | PREFETCHED) as u64;

/// Bit of an entry that is empty, and of those of prefetched lines.
const VACANT: u64 = PREFETCHED as u64;

const _: () = assert!(EMPTY & FLAGS == VACANT);

/// The result of [`Set::take`].
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Taken {
    /// 1 where the line was not here, or else 0.
    pub(in crate::cache) missing: u64,
    /// The entry that was replaced; 0 where the line was present.
    gone: u64,
}

impl Taken {
    /// 1 where an evicted line was written, or else 0; and 2 where the place was empty. (So that one sum counts both.)
    #[inline(always)]
    pub(in crate::cache) fn left(self) -> u64 {
        self.gone & FLAGS
    }

    /// 1 where an evicted line was written, or else 0.
    #[inline(always)]
    pub(in crate::cache) fn dirty(self) -> u64 {
        self.gone & u64::from(DIRTY)
    }

    /// First byte of the evicted line, if there is one.
    #[inline(always)]
    pub(in crate::cache) fn at(self) -> u64 {
        self.gone & !FLAGS
    }
}

/// Which line has to go.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Rule {
    /// Ways less one.
    pub(in crate::cache) last: usize,
    /// True for LRU, false for FIFO.
    pub(in crate::cache) by_use: bool,
}

/// A set of up to `N` ways, a power of two.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Row<B, const N: usize> {
    /// Numbers of ways, the latest in the lowest byte; ways that are empty are the highest.
    order: B,
    /// The mark of each way, in the same order.
    marks: B,
    /// Lines by their first byte, with flags in its lowest bits; a line stays where it is.
    entries: [u64; N],
}

/// The operations of a set of any number of ways.
pub(in crate::cache) trait Set {
    /// The number of ways there is room for.
    const WAYS: usize;

    /// Uses the line at an address, or inserts it where it is absent. There are no prefetched lines. With `USUAL`,
    /// whatever the rule says, the policy is LRU and all ways there is room for are used. No branch depends on the
    /// result: where that is unpredictable, mispredicted branches would cost more than everything else.
    fn take<const USUAL: bool>(&mut self, at: u64, flags: u64, rule: Rule) -> Taken;

    /// Place in the order of the line at an address.
    fn place_of(&self, at: u64) -> Option<usize>;

    /// The entry at a place in the order.
    fn entry(&mut self, place: usize) -> &mut u64;

    /// Makes the entry at a place the latest.
    fn refresh(&mut self, place: usize);

    /// Empties the place of a line, and makes it the last.
    fn clear(&mut self, place: usize, last: usize) -> u64;

    /// Inserts a line at the last place and makes it the latest; returns the previous entry.
    fn put(&mut self, entry: u64, last: usize) -> u64;

    /// All entries.
    fn entries(&self) -> &[u64];
}

impl<B: Bytes, const N: usize> Row<B, N> {
    fn empty() -> Self {
        Self { order: B::COUNTED, marks: B::default(), entries: [EMPTY; N] }
    }

    #[inline(always)]
    fn way(&self, place: usize) -> usize {
        usize::from(self.order.get(place)) & (N - 1)
    }

    /// Which of several candidate places is that of the line at an address: its bit, or none. Rare: two lines with the
    /// same mark. The compiler must not know what was compared, because it would branch on it everywhere.
    #[inline(always)]
    fn choose(&self, at: u64) -> B {
        black_box(self.search(at).map_or(B::NONE, B::bit_of))
    }

    #[inline(always)]
    fn search(&self, at: u64) -> Option<usize> {
        (0..N).find(|place| self.entries[self.way(*place)] & !FLAGS == at)
    }
}

impl<B: Bytes, const N: usize> Set for Row<B, N> {
    const WAYS: usize = N;

    #[inline(always)]
    fn take<const USUAL: bool>(&mut self, at: u64, flags: u64, rule: Rule) -> Taken {
        let Rule { last, by_use } = if USUAL { Rule { last: N - 1, by_use: true } } else { rule };
        let mark = mark_of(at);
        let mut candidates = self.marks.equal(mark);
        if candidates.has_more() {
            candidates = self.choose(at);
        }
        // Without a candidate some place is looked at: an entry that is the line is a hit, whichever place it is.
        let way = usize::from(self.order.at_first(candidates)) & (N - 1);
        let last_way = self.way(last);
        // Without the line's address only the flags of an entry are left.
        let (had, victim) = (self.entries[way] ^ at, self.entries[last_way]);
        let is_hit = had <= FLAGS;
        let way = select_unpredictable(is_hit, way, last_way);
        let up_to_hit = if by_use { candidates.up_to_first() } else { B::NONE };
        let moved = select_unpredictable(is_hit, up_to_hit, if USUAL && N >= 8 { B::ALL } else { B::up_to(last) });
        self.order = self.order.moved_first(moved, way as u8);
        self.marks = self.marks.moved_first(moved, mark);
        self.entries[way] = at | flags | select_unpredictable(is_hit, had, 0);
        Taken { missing: u64::from(!is_hit), gone: select_unpredictable(is_hit, 0, victim) }
    }

    #[inline]
    fn place_of(&self, at: u64) -> Option<usize> {
        let candidates = self.marks.equal(mark_of(at));
        if candidates.has_more() {
            return self.search(at);
        }
        let place = candidates.first() & (N - 1);
        (self.entries[self.way(place)] & !FLAGS == at).then_some(place)
    }

    #[inline]
    fn entry(&mut self, place: usize) -> &mut u64 {
        let way = self.way(place);
        &mut self.entries[way]
    }

    #[inline]
    fn refresh(&mut self, place: usize) {
        let up_to = B::up_to(place);
        self.marks = self.marks.moved_first(up_to, self.marks.get(place));
        self.order = self.order.moved_first(up_to, self.order.get(place));
    }

    fn clear(&mut self, place: usize, last: usize) -> u64 {
        let way = self.way(place);
        self.marks = self.marks.moved_last(place, last, 0);
        self.order = self.order.moved_last(place, last, way as u8);
        std::mem::replace(&mut self.entries[way], EMPTY)
    }

    #[inline]
    fn put(&mut self, entry: u64, last: usize) -> u64 {
        let (way, up_to) = (self.way(last), B::up_to(last));
        self.order = self.order.moved_first(up_to, way as u8);
        self.marks = self.marks.moved_first(up_to, mark_of(entry & !FLAGS));
        std::mem::replace(&mut self.entries[way], entry)
    }

    fn entries(&self) -> &[u64] {
        &self.entries
    }
}

/// The sets, by how many ways they have room for.
#[derive(Debug, Clone)]
pub(in crate::cache) enum Sets {
    Two(Vec<Row<u64, 2>>),
    Eight(Vec<Row<u64, 8>>),
    Sixteen(Vec<Row<u128, 16>>),
}

/// Calls with the sets, whichever they are.
macro_rules! with_sets {
    ($of:expr, $sets:ident => $work:expr) => {
        match $of {
            Sets::Two($sets) => $work,
            Sets::Eight($sets) => $work,
            Sets::Sixteen($sets) => $work,
        }
    };
}

pub(in crate::cache) use with_sets;

/// True where `USUAL` of [`Set::take`] is right.
pub(in crate::cache) fn is_usual<S: Set>(_: &[S], rule: Rule) -> bool {
    rule.by_use && rule.last + 1 == S::WAYS
}

/// The lines.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Recency {
    pub(in crate::cache) sets: Sets,
    pub(in crate::cache) rule: Rule,
    /// log2 of a line's bytes; 3 at least.
    shift: u32,
}

impl Recency {
    pub(super) fn new(geometry: &Geometry, by_use: bool) -> Self {
        let Geometry { sets, ways, shift } = *geometry;
        let sets = match ways {
            0..=2 => Sets::Two(vec![Row::empty(); sets]),
            3..=8 => Sets::Eight(vec![Row::empty(); sets]),
            _ => Sets::Sixteen(vec![Row::empty(); sets]),
        };
        Self { sets, rule: Rule { last: ways.saturating_sub(1), by_use }, shift }
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<StoredLine> {
        let stored = |entry: &u64| (*entry != EMPTY).then(|| self.stored(*entry));
        with_sets!(&self.sets, sets => sets.iter().flat_map(|set| set.entries().iter().filter_map(stored)).collect())
    }

    fn stored(&self, entry: u64) -> StoredLine {
        StoredLine { line: entry >> self.shift, flags: (entry & FLAGS) as u8 }
    }

    /// Uses a line: see [`super::Store::touch`].
    #[inline]
    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let (at, by_use) = (line << self.shift, self.rule.by_use);
        with_sets!(&mut self.sets, sets => {
            let set = sets.get_mut(set)?;
            let place = set.place_of(at)?;
            let entry = set.entry(place);
            let had = (*entry & FLAGS) as u8;
            *entry = *entry & !u64::from(PREFETCHED) | u64::from(flags);
            if by_use {
                set.refresh(place);
            }
            Some(had)
        })
    }

    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        let at = line << self.shift;
        with_sets!(&self.sets, sets => {
            let set = sets.get(set)?;
            set.place_of(at)?;
            set.entries().iter().find(|entry| *entry & !FLAGS == at).map(|entry| (entry & FLAGS) as u8)
        })
    }

    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        let (at, last) = (line << self.shift, self.rule.last);
        with_sets!(&mut self.sets, sets => {
            let set = sets.get_mut(set)?;
            let place = set.place_of(at)?;
            Some((set.clear(place, last) & FLAGS) as u8)
        })
    }

    pub(super) fn clean(&mut self, set: usize, line: u64) {
        let at = line << self.shift;
        with_sets!(&mut self.sets, sets => {
            let Some(set) = sets.get_mut(set) else { return };
            let Some(place) = set.place_of(at) else { return };
            *set.entry(place) &= !u64::from(DIRTY);
        });
    }

    /// Puts a line in: see [`super::Store::insert`].
    #[inline]
    pub(super) fn insert(&mut self, set: usize, stored: StoredLine) -> Option<StoredLine> {
        let (entry, last) = (stored.line << self.shift | u64::from(stored.flags), self.rule.last);
        let gone = with_sets!(&mut self.sets, sets => sets.get_mut(set)?.put(entry, last));
        (gone != EMPTY).then(|| self.stored(gone))
    }
}

/// The byte that represents a line.
#[inline(always)]
fn mark_of(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(of: &mut Recency, set: usize, stored: StoredLine) -> Taken {
        let (at, flags, rule) = (stored.line << of.shift, u64::from(stored.flags), of.rule);
        with_sets!(&mut of.sets, sets => match is_usual(sets, rule) {
            true => sets[set].take::<true>(at, flags, rule),
            false => sets[set].take::<false>(at, flags, rule),
        })
    }

    #[test]
    fn a_line_taken_is_one_touched_or_put_in() {
        let mut x = 88_172_645_463_325_252_u64;
        let shapes =
            [(1, true), (2, false), (2, true), (3, true), (8, true), (8, false), (11, true), (16, true), (16, false)];
        for (ways, by_use) in shapes {
            let geometry = Geometry { sets: 3, ways, shift: 6 };
            let (mut slow, mut fast) = (Recency::new(&geometry, by_use), Recency::new(&geometry, by_use));
            for _ in 0..20_000 {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                let stored = StoredLine { line: (x >> 40) % (ways as u64 * 6), flags: (x >> 20 & 1) as u8 };
                let set = (stored.line % 3) as usize;
                let is_hit = slow.touch(set, stored.line, stored.flags).is_some();
                let gone = if is_hit { None } else { slow.insert(set, stored) };
                let taken = take(&mut fast, set, stored);
                assert_eq!((taken.missing == 0, taken.left() & VACANT != 0), (is_hit, !is_hit && gone.is_none()));
                assert_eq!(taken.dirty() == 1, gone.is_some_and(|gone| gone.flags & DIRTY != 0));
                assert!(gone.is_none_or(|gone| gone.line << 6 == taken.at()));
                if x >> 50 & 7 == 0 {
                    let line = (x >> 30) % (ways as u64 * 6);
                    let set = (line % 3) as usize;
                    assert_eq!(slow.probe(set, line), fast.probe(set, line));
                    assert_eq!(slow.remove(set, line), fast.remove(set, line));
                }
            }
            assert_eq!(slow.lines(), fast.lines());
        }
    }
}

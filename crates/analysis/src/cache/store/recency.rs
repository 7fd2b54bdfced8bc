//! Few ways, by the order of their last use (LRU) or of their fill (FIFO).
//!
//! A set keeps the numbers of its ways in order, the latest first, and with each a byte of its line's hash, its *mark*.
//! The marks say where in the order a line can be, so that one comparison decides, and no line moves when the order
//! changes.

mod marks;

use std::hint::select_unpredictable;

use super::{DIRTY, EMPTY, Held, PREFETCHED};
use crate::cache::config::Geometry;
use marks::{Marks, NOWHERE, moved_first, moved_last};

/// Most ways: nibbles of a number.
pub(in crate::cache) const WAYS_MAX: usize = 16;

/// Bits of an entry that are flags.
const FLAGS: u64 = (DIRTY | PREFETCHED) as u64;

/// What [`Row::take`] met.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Taken {
    pub(in crate::cache) is_hit: bool,
    /// What was in the line's place.
    gone: u64,
}

impl Taken {
    /// True where a line was put in and none had to go.
    #[inline(always)]
    pub(in crate::cache) fn had_room(self) -> bool {
        self.gone == EMPTY
    }

    /// True where a line had to go that was written.
    #[inline(always)]
    pub(in crate::cache) fn is_dirty(self) -> bool {
        // An empty place is not dirty.
        !self.is_hit & (self.gone & u64::from(DIRTY) != 0)
    }

    /// First byte of the line that had to go, where there is one.
    #[inline(always)]
    pub(in crate::cache) fn at(self) -> u64 {
        self.gone & !FLAGS
    }
}

/// A set of up to `N` ways, a power of two.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Row<M, const N: usize> {
    /// Numbers of ways, the latest in the lowest nibble; ways that are empty are the highest.
    order: u64,
    /// The mark of each way, in the same order.
    marks: M,
    /// Lines by their first byte, with flags in its lowest bits; a line stays where it is.
    entries: [u64; N],
}

/// What sets of any number of ways can do.
pub(in crate::cache) trait Set {
    /// Uses the line at an address, or puts it in where it is not here. `last` is the number of ways less one; without
    /// `BY_USE`, using a line does not make it the latest. No branch depends on which it is: where that is a matter of
    /// chance, wrong guesses of the processor would cost more than all the rest.
    fn take<const BY_USE: bool>(&mut self, at: u64, flags: u64, last: usize) -> Taken;

    /// Place in the order of the line at an address.
    fn place_of(&self, at: u64) -> Option<usize>;

    /// The entry at a place in the order.
    fn entry(&mut self, place: usize) -> &mut u64;

    /// Makes the entry at a place the latest.
    fn refresh(&mut self, place: usize);

    /// Empties the place of a line, and makes it the last.
    fn clear(&mut self, place: usize, last: usize) -> u64;

    /// Puts a line in at the last place, and makes it the latest; what was there.
    fn put(&mut self, entry: u64, last: usize) -> u64;

    /// All entries.
    fn entries(&self) -> &[u64];
}

impl<M: Marks, const N: usize> Row<M, N> {
    fn empty() -> Self {
        Self { order: 0xfedc_ba98_7654_3210, marks: M::default(), entries: [EMPTY; N] }
    }

    #[inline(always)]
    fn way(&self, place: usize) -> usize {
        (self.order >> (4 * place)) as usize & (N - 1)
    }

    #[cold]
    #[inline(never)]
    fn search(&self, at: u64) -> usize {
        (0..N).find(|place| self.entries[self.way(*place)] & !FLAGS == at).unwrap_or(0)
    }
}

impl<M: Marks, const N: usize> Set for Row<M, N> {
    #[inline(always)]
    fn take<const BY_USE: bool>(&mut self, at: u64, flags: u64, last: usize) -> Taken {
        let mark = mark_of(at);
        let candidates = self.marks.equal(mark);
        // Where there is no candidate, some place is looked at: an entry that is the line is a hit, whichever it is.
        let mut place = candidates.first() & (N - 1);
        if candidates.has_more() {
            // Seldom: two lines have one mark.
            place = self.search(at);
        }
        let way = self.way(place);
        let is_hit = self.entries[way] & !FLAGS == at;
        let place = select_unpredictable(is_hit, place, last);
        let way = select_unpredictable(is_hit, way, self.way(last));
        let moved = if BY_USE { place } else { select_unpredictable(is_hit, NOWHERE, place) };
        self.order = moved_first(self.order, moved, way);
        self.marks = self.marks.moved_first(moved, mark);
        let gone = self.entries[way];
        self.entries[way] = at | flags | gone & u64::from(DIRTY) & u64::from(is_hit);
        Taken { is_hit, gone }
    }

    #[inline]
    fn place_of(&self, at: u64) -> Option<usize> {
        let candidates = self.marks.equal(mark_of(at));
        let place = if candidates.has_more() { self.search(at) } else { candidates.first() & (N - 1) };
        (self.entries[self.way(place)] & !FLAGS == at).then_some(place)
    }

    #[inline]
    fn entry(&mut self, place: usize) -> &mut u64 {
        let way = self.way(place);
        &mut self.entries[way]
    }

    #[inline]
    fn refresh(&mut self, place: usize) {
        self.marks = self.marks.moved_first(place, self.marks.get(place));
        self.order = moved_first(self.order, place, self.way(place));
    }

    fn clear(&mut self, place: usize, last: usize) -> u64 {
        let way = self.way(place);
        self.marks = self.marks.moved_last(place, last);
        self.order = moved_last(self.order, place, last, way);
        std::mem::replace(&mut self.entries[way], EMPTY)
    }

    #[inline]
    fn put(&mut self, entry: u64, last: usize) -> u64 {
        let way = self.way(last);
        self.order = moved_first(self.order, last, way);
        self.marks = self.marks.moved_first(last, mark_of(entry & !FLAGS));
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

/// The lines.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Recency {
    pub(in crate::cache) sets: Sets,
    /// Ways less one.
    pub(in crate::cache) last: usize,
    /// True for LRU, false for FIFO.
    pub(in crate::cache) by_use: bool,
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
        Self { sets, last: ways.saturating_sub(1), by_use, shift }
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<Held> {
        let held = |entry: &u64| (*entry != EMPTY).then(|| self.held(*entry));
        with_sets!(&self.sets, sets => sets.iter().flat_map(|set| set.entries().iter().filter_map(held)).collect())
    }

    fn held(&self, entry: u64) -> Held {
        Held { line: entry >> self.shift, flags: (entry & FLAGS) as u8 }
    }

    /// Uses a line: see [`super::Store::touch`].
    #[inline]
    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let (at, by_use) = (line << self.shift, self.by_use);
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
        let (at, last) = (line << self.shift, self.last);
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
    pub(super) fn insert(&mut self, set: usize, held: Held) -> Option<Held> {
        let (entry, last) = (held.line << self.shift | u64::from(held.flags), self.last);
        let gone = with_sets!(&mut self.sets, sets => sets.get_mut(set)?.put(entry, last));
        (gone != EMPTY).then(|| self.held(gone))
    }
}

/// The byte that stands for a line.
#[inline(always)]
fn mark_of(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(of: &mut Recency, set: usize, held: Held) -> Taken {
        let (at, flags, last, by_use) = (held.line << of.shift, u64::from(held.flags), of.last, of.by_use);
        with_sets!(&mut of.sets, sets => match by_use {
            true => sets[set].take::<true>(at, flags, last),
            false => sets[set].take::<false>(at, flags, last),
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
                let held = Held { line: (x >> 40) % (ways as u64 * 6), flags: (x >> 20 & 1) as u8 };
                let set = (held.line % 3) as usize;
                let is_hit = slow.touch(set, held.line, held.flags).is_some();
                let gone = if is_hit { None } else { slow.insert(set, held) };
                let taken = take(&mut fast, set, held);
                assert_eq!((taken.is_hit, taken.had_room()), (is_hit, !is_hit && gone.is_none()));
                assert_eq!(taken.is_dirty(), gone.is_some_and(|gone| gone.flags & DIRTY != 0));
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

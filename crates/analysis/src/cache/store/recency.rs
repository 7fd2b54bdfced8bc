//! Few ways, by the order of their last use (LRU) or of their fill (FIFO).
//!
//! A set keeps the order of its ways in the nibbles of one number, the latest lowest, and a byte of each line's hash in
//! two more. So most misses are known from the bytes alone, and no line moves when the order changes.

use std::hint::select_unpredictable;

use super::{DIRTY, EMPTY, FLAG_BITS, Held, PREFETCHED};
use crate::cache::config::Geometry;

/// Most ways: nibbles of a number.
pub(super) const WAYS_MAX: usize = 16;

/// Bits of an entry that are no flags.
const LINE: u64 = !((DIRTY | PREFETCHED) as u64);

const NIBBLES: u64 = 0x1111_1111_1111_1111;
const BYTES: u64 = 0x0101_0101_0101_0101;

/// A set without its lines.
#[derive(Debug, Clone, Copy)]
struct Meta {
    /// Numbers of ways, the latest in the lowest nibble; ways that are empty are the highest.
    order: u64,
    /// A byte for each way: 0 where it is empty, else with the highest bit set.
    marks: [u64; 2],
}

/// What [`Recency::take`] met.
#[derive(Debug, Clone, Copy)]
pub(in crate::cache) struct Taken {
    pub(in crate::cache) is_hit: bool,
    /// What was in the line's place.
    gone: u64,
}

impl Taken {
    /// True where a line had to go.
    #[inline]
    pub(in crate::cache) fn is_evicted(self) -> bool {
        !self.is_hit & (self.gone != EMPTY)
    }

    /// True where a line had to go that was written.
    #[inline]
    pub(in crate::cache) fn is_dirty(self) -> bool {
        // An empty place is not dirty.
        !self.is_hit & (self.gone & u64::from(DIRTY) != 0)
    }

    /// The line that had to go, where there is one.
    #[inline]
    pub(in crate::cache) fn line(self) -> u64 {
        self.gone >> FLAG_BITS
    }
}

/// The lines.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Recency {
    ways: usize,
    /// True for LRU, false for FIFO.
    by_use: bool,
    metas: Vec<Meta>,
    /// Sets after one another; a line stays where it is.
    entries: Vec<u64>,
}

impl Recency {
    pub(super) fn new(geometry: &Geometry, by_use: bool) -> Self {
        let meta = Meta { order: 0xfedc_ba98_7654_3210, marks: [0; 2] };
        let Geometry { sets, ways, .. } = *geometry;
        Self { ways, by_use, metas: vec![meta; sets], entries: vec![EMPTY; ways * sets] }
    }

    pub(super) fn entries(&self) -> &[u64] {
        &self.entries
    }

    /// Uses a line: see [`super::Store::touch`].
    #[inline]
    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let way = self.way_of(set, line)?;
        if self.by_use {
            let meta = self.metas.get_mut(set)?;
            meta.order = moved_first(meta.order, way);
        }
        let entry = self.entries.get_mut(set * self.ways + way)?;
        let had = Held::of(*entry).flags;
        *entry = *entry & !u64::from(PREFETCHED) | u64::from(flags);
        Some(had)
    }

    /// True when [`Self::take`] wants `WIDE`.
    pub(in crate::cache) fn is_wide(&self) -> bool {
        self.ways > 8
    }

    /// Uses a line, or puts it in where it is not here. No branch depends on which it is: where that is a matter of
    /// chance, wrong guesses of the processor would cost more than all the rest.
    #[inline(always)]
    pub(in crate::cache) fn take<const WIDE: bool>(&mut self, set: usize, held: Held) -> Taken {
        let Self { ways, by_use, metas, entries } = self;
        let Some(meta) = metas.get_mut(set) else { return Taken { is_hit: false, gone: EMPTY } };
        let base = set * *ways;
        let wanted = held.line << FLAG_BITS;
        let marked = mark_of(held.line);
        let [low, high] = candidates::<WIDE>(meta, marked);
        let found = low.trailing_zeros() as usize / 8;
        let beyond = 8 + high.trailing_zeros() as usize / 8;
        // Where there is no candidate, some way is looked at: an entry that is the line is a hit, whichever it is. One of
        // another set never is.
        let mut found = if WIDE { select_unpredictable(low != 0, found, beyond & 15) } else { found & 7 };
        let mut is_hit = entries.get(base + found).is_some_and(|entry| entry & LINE == wanted);
        let others = low & low.wrapping_sub(1) | if WIDE { high & high.wrapping_sub(1) | low.min(high) } else { 0 };
        if others != 0 && !is_hit {
            // Seldom: another line has the same mark.
            let way = way_of(meta, entries, base, held.line);
            is_hit = way.is_some();
            found = way.unwrap_or(0);
        }
        let victim = (meta.order >> (4 * (*ways - 1)) & 15) as usize;
        let way = select_unpredictable(is_hit, found, victim);
        let moved = moved_first(meta.order, way);
        meta.order = select_unpredictable(is_hit & !*by_use, meta.order, moved);
        mark::<WIDE>(meta, way, marked);
        let Some(entry) = entries.get_mut(base + way) else { return Taken { is_hit, gone: EMPTY } };
        let gone = *entry;
        *entry = wanted | u64::from(held.flags) | gone & u64::from(DIRTY) & u64::from(is_hit);
        Taken { is_hit, gone }
    }

    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        let way = self.way_of(set, line)?;
        self.entries.get(set * self.ways + way).map(|entry| Held::of(*entry).flags)
    }

    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        let way = self.way_of(set, line)?;
        let last = self.ways as u32 - 1;
        let meta = self.metas.get_mut(set)?;
        mark::<true>(meta, way, 0);
        meta.order = moved_last(meta.order, way, last);
        let entry = self.entries.get_mut(set * self.ways + way)?;
        let had = Held::of(*entry).flags;
        *entry = EMPTY;
        Some(had)
    }

    pub(super) fn clean(&mut self, set: usize, line: u64) {
        let at = self.way_of(set, line).map(|way| set * self.ways + way);
        if let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) {
            *entry &= !u64::from(DIRTY);
        }
    }

    /// Puts a line in: see [`super::Store::insert`].
    #[inline]
    pub(super) fn insert(&mut self, set: usize, held: Held) -> Option<Held> {
        let last = self.ways as u32 - 1;
        let meta = self.metas.get_mut(set)?;
        // The last in order is the victim, or empty.
        let way = (meta.order >> (4 * last) & 15) as usize;
        let shown = u64::MAX >> (60 - 4 * last);
        meta.order = (meta.order << 4 | way as u64) & shown | meta.order & !shown;
        mark::<true>(meta, way, mark_of(held.line));
        let entry = self.entries.get_mut(set * self.ways + way)?;
        let gone = std::mem::replace(entry, held.entry());
        (gone != EMPTY).then(|| Held::of(gone))
    }

    fn way_of(&self, set: usize, line: u64) -> Option<usize> {
        way_of(self.metas.get(set)?, &self.entries, set * self.ways, line)
    }
}

/// The way of a line in a set whose entries begin at `base`.
fn way_of(meta: &Meta, entries: &[u64], base: usize, line: u64) -> Option<usize> {
    let wanted = Held { line, flags: 0 }.entry();
    for (word, mut candidates) in candidates::<true>(meta, mark_of(line)).into_iter().enumerate() {
        while candidates != 0 {
            let way = word * 8 + candidates.trailing_zeros() as usize / 8;
            if entries.get(base + way).is_some_and(|entry| entry & LINE == wanted) {
                return Some(way);
            }
            candidates &= candidates - 1;
        }
    }
    None
}

/// The ways whose marks are one, by the highest bit of each byte. A byte above such a one may be set wrongly.
#[inline(always)]
fn candidates<const WIDE: bool>(meta: &Meta, wanted: u64) -> [u64; 2] {
    let equal = |marks: u64| {
        let differing = marks ^ (BYTES * wanted);
        differing.wrapping_sub(BYTES) & !differing & (BYTES << 7)
    };
    let [low, high] = meta.marks;
    [equal(low), if WIDE { equal(high) } else { 0 }]
}

/// The byte that stands for a line; its highest bit is set.
#[inline]
fn mark_of(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 | 0x80
}

#[inline]
fn mark<const WIDE: bool>(meta: &mut Meta, way: usize, mark: u64) {
    let shift = way % 8 * 8;
    if let Some(word) = meta.marks.get_mut(if WIDE { way / 8 } else { 0 }) {
        *word = *word & !(0xff << shift) | mark << shift;
    }
}

/// Which nibble of an order a way is in, as a number of bits.
#[inline]
fn place_of(order: u64, way: usize) -> u32 {
    let differing = order ^ (NIBBLES * way as u64);
    let equal = differing.wrapping_sub(NIBBLES) & !differing & (NIBBLES << 3);
    // The lowest is right, whatever a borrow does to those above.
    equal.trailing_zeros() & !3
}

/// The order with a way moved to its front.
#[inline]
fn moved_first(order: u64, way: usize) -> u64 {
    let at = place_of(order, way);
    let newer = order & ((1 << at) - 1);
    let older = order & (u64::MAX << at << 4);
    older | newer << 4 | way as u64
}

/// The order with a way moved behind the others up to nibble `last`.
fn moved_last(order: u64, way: usize, last: u32) -> u64 {
    let at = place_of(order, way);
    let newer = order & ((1 << at) - 1);
    let shown = u64::MAX >> (60 - 4 * last);
    let older = (order & shown & (u64::MAX << at << 4)) >> 4;
    order & !shown | (way as u64) << (4 * last) | older | newer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_moved_by_nibbles() {
        assert_eq!(moved_first(0xfedc_ba98_7654_3210, 15), 0xedcb_a987_6543_210f);
        assert_eq!(moved_first(0xfedc_ba98_7654_3210, 0), 0xfedc_ba98_7654_3210);
        assert_eq!(moved_first(0x3210, 2), 0x3102);
        assert_eq!(moved_last(0xfedc_ba98_7654_3210, 1, 3), 0xfedc_ba98_7654_1320);
        assert_eq!(moved_last(0xfedc_ba98_7654_3210, 0, 15), 0x0fed_cba9_8765_4321);
        assert_eq!(moved_last(0xfedc_ba98_7654_3210, 15, 15), 0xfedc_ba98_7654_3210);
    }

    #[test]
    fn a_line_taken_is_one_touched_or_put_in() {
        let mut x = 88_172_645_463_325_252_u64;
        for (ways, by_use) in [(1, true), (3, true), (8, true), (8, false), (11, true), (16, true), (16, false)] {
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
                let taken = if ways > 8 { fast.take::<true>(set, held) } else { fast.take::<false>(set, held) };
                assert_eq!((taken.is_hit, taken.is_evicted()), (is_hit, gone.is_some()));
                assert_eq!(taken.is_dirty(), gone.is_some_and(|gone| gone.flags & DIRTY != 0));
                assert!(gone.is_none_or(|gone| gone.line == taken.line()));
            }
            assert_eq!(slow.entries, fast.entries);
        }
    }
}

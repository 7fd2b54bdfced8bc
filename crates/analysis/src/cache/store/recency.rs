//! Few ways, by the order of their last use (LRU) or of their fill (FIFO).
//!
//! A set keeps the order of its ways in the nibbles of one number, the latest lowest, and a byte of each line's hash in
//! two more. So most misses are known from the bytes alone, and no line moves when the order changes.

use super::{DIRTY, EMPTY, Held, PREFETCHED};
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

    /// Uses a line if it is the latest of its set: the most likely case, in which the order stays.
    #[inline(always)]
    pub(in crate::cache) fn touch_latest(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let latest = (self.metas.get(set)?.order & 15) as usize;
        let entry = self.entries.get_mut(set * self.ways + latest)?;
        (*entry & LINE == Held { line, flags: 0 }.entry()).then(|| use_entry(entry, flags))
    }

    /// Uses a line: see [`super::Store::touch`].
    #[inline]
    pub(in crate::cache) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        self.touch_latest(set, line, flags).or_else(|| self.touch_older(set, line, flags))
    }

    /// Uses a line that is not the latest of its set.
    #[inline]
    pub(in crate::cache) fn touch_older(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let way = self.way_of(set, line)?;
        if self.by_use {
            let meta = self.metas.get_mut(set)?;
            meta.order = moved_first(meta.order, way);
        }
        self.entries.get_mut(set * self.ways + way).map(|entry| use_entry(entry, flags))
    }

    pub(super) fn probe(&self, set: usize, line: u64) -> Option<u8> {
        let way = self.way_of(set, line)?;
        self.entries.get(set * self.ways + way).map(|entry| Held::of(*entry).flags)
    }

    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        let way = self.way_of(set, line)?;
        let last = self.ways as u32 - 1;
        let meta = self.metas.get_mut(set)?;
        mark(meta, way, 0);
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
    pub(in crate::cache) fn insert(&mut self, set: usize, held: Held) -> Option<Held> {
        let last = self.ways as u32 - 1;
        let meta = self.metas.get_mut(set)?;
        // The last in order is the victim, or empty.
        let way = (meta.order >> (4 * last) & 15) as usize;
        let shown = u64::MAX >> (60 - 4 * last);
        meta.order = (meta.order << 4 | way as u64) & shown | meta.order & !shown;
        mark(meta, way, mark_of(held.line));
        let entry = self.entries.get_mut(set * self.ways + way)?;
        let gone = std::mem::replace(entry, held.entry());
        (gone != EMPTY).then(|| Held::of(gone))
    }

    #[inline]
    fn way_of(&self, set: usize, line: u64) -> Option<usize> {
        let wanted = mark_of(line);
        let wanted_entry = Held { line, flags: 0 }.entry();
        let meta = self.metas.get(set)?;
        for (word, marks) in meta.marks.iter().enumerate() {
            // A byte that is equal becomes 0, and its highest bit is set here; a byte above it may be set wrongly.
            let differing = marks ^ (BYTES * wanted);
            let mut candidates = differing.wrapping_sub(BYTES) & !differing & (BYTES << 7);
            while candidates != 0 {
                let way = word * 8 + candidates.trailing_zeros() as usize / 8;
                if self.entries.get(set * self.ways + way).is_some_and(|entry| entry & LINE == wanted_entry) {
                    return Some(way);
                }
                candidates &= candidates - 1;
            }
            if self.ways <= 8 {
                return None;
            }
        }
        None
    }
}

/// Gives an entry more flags; those it had.
#[inline]
fn use_entry(entry: &mut u64, flags: u8) -> u8 {
    let had = Held::of(*entry).flags;
    *entry = *entry & !u64::from(PREFETCHED) | u64::from(flags);
    had
}

/// The byte that stands for a line; its highest bit is set.
#[inline]
fn mark_of(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 | 0x80
}

#[inline]
fn mark(meta: &mut Meta, way: usize, mark: u64) {
    let shift = way % 8 * 8;
    if let Some(word) = meta.marks.get_mut(way / 8) {
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
}

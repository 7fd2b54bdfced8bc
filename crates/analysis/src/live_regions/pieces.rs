//! The visible parts of the live regions: a map of pieces that do not overlap.
//!
//! A region that was never covered is one piece. One that was covered, if only in part, is also kept in a tree over all
//! covered regions, and its pieces are listed. Where a region that had covered others is removed, its pieces become
//! *unsettled*: the tree is asked which region is visible there when an address in them is looked up.

use std::collections::{BTreeMap, BTreeSet};

use super::recent::NO_SLOT;
use super::stabbing::Stabbing;

/// Owner of an unsettled piece.
const UNSETTLED: u32 = u32::MAX - 1;

#[derive(Debug, Clone, Copy)]
struct Piece {
    last: u64,
    owner: u32,
}

/// The map.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    by_start: BTreeMap<u64, Piece>,
    /// All live regions that were ever covered, by their number.
    covered: Stabbing<u32>,
    /// Slots of these.
    is_covered: Vec<bool>,
    /// Slots of regions that covered something when they were added.
    is_covering: Vec<bool>,
    /// Slot and start of each piece of a covered region.
    pieces_of: BTreeSet<(u32, u64)>,
}

impl Pieces {
    /// Puts a region over all others; `extent` returns start, last address and number of those it may cover.
    pub(super) fn cover(&mut self, start: u64, last: u64, slot: u32, extent: impl Fn(u32) -> Option<(u64, u64, u64)>) {
        set(&mut self.is_covered, slot, false);
        let mut is_covering = false;
        let reaching = self.by_start.range(..start).next_back().filter(|(_, piece)| piece.last >= start);
        if let Some((from, piece)) = reaching.map(|(from, piece)| (*from, *piece)) {
            is_covering = true;
            self.note_covered(piece.owner, &extent);
            self.take(from);
            self.put(from, Piece { last: start - 1, ..piece });
            self.put_rest(last, piece);
        }
        // Each iteration takes a piece away, and each piece was put there by an earlier call: the cost is paid once per
        // piece.
        while let Some((from, piece)) = self.by_start.range(start..=last).next().map(|(from, piece)| (*from, *piece)) {
            is_covering = true;
            self.note_covered(piece.owner, &extent);
            self.take(from);
            self.put_rest(last, piece);
        }
        set(&mut self.is_covering, slot, is_covering);
        self.put(start, Piece { last, owner: slot });
    }

    /// Removes a region; `number` is the one from its `extent`.
    pub(super) fn uncover(&mut self, start: u64, last: u64, number: u64, slot: u32) {
        let is_covering = is_set(&self.is_covering, slot);
        if !is_set(&self.is_covered, slot) {
            self.take(start);
            if is_covering {
                self.unsettle(start, last);
            }
            return;
        }
        // Before its pieces become unsettled: they must not be settled with the region that goes.
        self.covered.remove(start, last, number);
        while let Some((_, from)) = self.pieces_of.range((slot, 0)..=(slot, u64::MAX)).next().copied() {
            let Some(piece) = self.take(from) else { return };
            if is_covering {
                self.unsettle(from, piece.last);
            }
        }
        set(&mut self.is_covered, slot, false);
    }

    /// The visible region at an address, and the widest known range around it with the same answer.
    pub(super) fn find(&mut self, address: u64) -> (u64, u64, u32) {
        let before = self.by_start.range(..=address).next_back().map(|(from, piece)| (*from, *piece));
        match before {
            Some((from, piece)) if piece.last >= address && piece.owner == UNSETTLED => {
                self.settle(address, from, piece.last)
            }
            Some((from, piece)) if piece.last >= address => (from, piece.last, piece.owner),
            _ => {
                let first = before.map_or(0, |(_, piece)| piece.last + 1);
                let after = self.by_start.range(address..).next();
                (first, after.map_or(u64::MAX, |(from, _)| from - 1), NO_SLOT)
            }
        }
    }

    /// Determines the visible region in the part of an unsettled piece that contains an address.
    fn settle(&mut self, address: u64, from: u64, to: u64) -> (u64, u64, u32) {
        // Only the part around the address is settled; the rest waits until it is asked for.
        let (first, last) = self.covered.around(address);
        let (first, last) = (first.max(from), last.min(to));
        self.take(from);
        if from < first {
            self.put(from, Piece { last: first - 1, owner: UNSETTLED });
        }
        if last < to {
            self.put(last + 1, Piece { last: to, owner: UNSETTLED });
        }
        match self.covered.latest(address) {
            None => (first, last, NO_SLOT),
            Some((_, owner)) => {
                let (first, last) = self.join(first, last, owner);
                self.put(first, Piece { last, owner });
                (first, last, owner)
            }
        }
    }

    fn unsettle(&mut self, start: u64, last: u64) {
        let (start, last) = self.join(start, last, UNSETTLED);
        self.put(start, Piece { last, owner: UNSETTLED });
    }

    /// Removes the pieces of `owner` on both sides of a range and returns the range extended by them.
    fn join(&mut self, start: u64, last: u64, owner: u32) -> (u64, u64) {
        let (mut first, mut end) = (start, last);
        let left = self.by_start.range(..start).next_back();
        if let Some((from, piece)) = left.filter(|(_, piece)| piece.owner == owner && piece.last + 1 == start) {
            first = *from;
            debug_assert!(piece.last < start);
        }
        let right = last.checked_add(1).and_then(|next| Some((next, *self.by_start.get(&next)?)));
        if let Some((next, piece)) = right.filter(|(_, piece)| piece.owner == owner) {
            end = piece.last;
            self.take(next);
        }
        if first != start {
            self.take(first);
        }
        (first, end)
    }

    fn note_covered(&mut self, owner: u32, extent: &impl Fn(u32) -> Option<(u64, u64, u64)>) {
        if owner == UNSETTLED || is_set(&self.is_covered, owner) {
            return;
        }
        if let Some((start, last, number)) = extent(owner) {
            self.covered.insert(start, last, number, owner);
            self.pieces_of.insert((owner, start));
            set(&mut self.is_covered, owner, true);
        }
    }

    /// Reinserts the part of a piece after `last`.
    fn put_rest(&mut self, last: u64, piece: Piece) {
        if let Some(after) = last.checked_add(1).filter(|after| *after <= piece.last) {
            self.put(after, piece);
        }
    }

    fn put(&mut self, start: u64, piece: Piece) {
        self.by_start.insert(start, piece);
        if piece.owner != UNSETTLED && is_set(&self.is_covered, piece.owner) {
            self.pieces_of.insert((piece.owner, start));
        }
    }

    fn take(&mut self, start: u64) -> Option<Piece> {
        let piece = self.by_start.remove(&start)?;
        if piece.owner != UNSETTLED && is_set(&self.is_covered, piece.owner) {
            self.pieces_of.remove(&(piece.owner, start));
        }
        Some(piece)
    }
}

fn is_set(bits: &[bool], slot: u32) -> bool {
    bits.get(slot as usize).copied().unwrap_or(false)
}

fn set(bits: &mut Vec<bool>, slot: u32, value: bool) {
    let at = slot as usize;
    if at >= bits.len() {
        if !value {
            return;
        }
        bits.resize(at + 1, false);
    }
    if let Some(bit) = bits.get_mut(at) {
        *bit = value;
    }
}

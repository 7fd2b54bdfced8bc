//! Merges all threads of an FDR trace in order of time.
//!
//! Each thread is a lane positioned at its next moment; the lane with the earliest moment emits it. Only the positions
//! of the lanes are stored. Where time goes backwards within a thread, the moments concerned are sorted in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use anytrace_core::Error;

use crate::wire::moment::Moments;
use crate::wire::record::Orders;

use super::decode::{BareMoment, Decoder};
use super::index::{Index, Owner, Piece};
use super::store::Store;

/// Up to this many threads are compared one by one.
const SCANNED_MAX: usize = 12;

/// Emits all moments in order of time; those of one time in the order of threads in the index.
pub(crate) fn merge<M: Moments>(
    all: &[u8],
    index: &Index,
    layout: Orders,
    version: u16,
    moments: &mut M,
) -> Result<(), Error> {
    let lane =
        |owner| Lane::new(all, index.pieces(owner), Decoder::new(layout, version, owner), earliest(index, owner));
    emit(index.owners.iter().map(lane).collect(), u64::MAX, moments)
}

/// A range of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Between {
    pub(crate) start: u64,
    /// Exclusive; `None` for no end.
    pub(crate) end: Option<u64>,
}

/// As [`merge`], limited to a range of time. Each thread must be in order.
pub(crate) fn merge_between<M: Moments>(
    all: &[u8],
    index: &Index,
    (layout, version): (Orders, u16),
    between: Between,
    moments: &mut M,
) -> Result<(), Error> {
    let Between { start, end } = between;
    let last = end.map_or(u64::MAX, |end| end.saturating_sub(1));
    let mut lanes = Vec::with_capacity(index.owners.len());
    for owner in &index.owners {
        let pieces = index.pieces_between(owner, start, last);
        let mut lane = Lane::new(all, pieces, Decoder::new(layout, version, owner), Vec::new());
        lane.start = start;
        lanes.push(lane);
    }
    emit(lanes, last, moments)
}

/// Emits the moments of all lanes up to a time.
fn emit<'a, I: Iterator<Item = (u64, &'a Piece)>, M: Moments>(
    mut lanes: Vec<Lane<'a, I>>,
    last: u64,
    moments: &mut M,
) -> Result<(), Error> {
    let mut times = Vec::with_capacity(lanes.len());
    // `times` and `lanes` have the same length and order from here on.
    lanes.retain_mut(|lane| {
        let first = lane.first().filter(|&tsc| tsc <= last);
        times.extend(first);
        first.is_some()
    });
    if times.len() <= SCANNED_MAX {
        return scan(lanes, times, last, moments);
    }
    let mut heap: BinaryHeap<_> = times.iter().enumerate().map(|(n, &tsc)| Reverse((tsc, n))).collect();
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((_, n)) = *top;
        let Some(lane) = lanes.get_mut(n) else { break };
        lane.emit(moments)?;
        match lane.step().filter(|&tsc| tsc <= last) {
            // Changing the top in place costs one sift; taking it out and putting it back would cost two.
            Some(tsc) => *top = Reverse((tsc, n)),
            None => {
                PeekMut::pop(top);
            }
        }
    }
    Ok(())
}

/// As [`emit`] for a few lanes, which are at these times: the earliest is searched for each time, without any branch
/// that the processor would have to predict.
fn scan<'a, I: Iterator<Item = (u64, &'a Piece)>, M: Moments>(
    mut lanes: Vec<Lane<'a, I>>,
    mut times: Vec<u64>,
    last: u64,
    moments: &mut M,
) -> Result<(), Error> {
    while let Some((&first, others)) = times.split_first() {
        // Of equal times the first lane's is emitted first.
        let (mut earliest, mut n) = (first, 0);
        for (other, &tsc) in others.iter().enumerate() {
            let is_earlier = tsc < earliest;
            earliest = if is_earlier { tsc } else { earliest };
            n = if is_earlier { other + 1 } else { n };
        }
        let (Some(lane), Some(time)) = (lanes.get_mut(n), times.get_mut(n)) else { break };
        lane.emit(moments)?;
        match lane.step() {
            Some(tsc) if tsc <= last => *time = tsc,
            _ => {
                // `remove` and not `swap_remove`: of equal times the first lane comes first, so their order must stay.
                lanes.remove(n);
                times.remove(n);
            }
        }
    }
    Ok(())
}

/// One thread, positioned at a moment.
struct Lane<'a, I> {
    all: &'a [u8],
    pieces: I,
    /// Earliest time of the pieces from each one on; empty if the thread is in order.
    earliest: Vec<u64>,
    /// Number of pieces begun.
    begun: usize,
    /// Moments before it are skipped at the start.
    start: u64,
    decoder: Decoder<'a>,
    current: Option<BareMoment<'a>>,
    /// Moments that had to be sorted, and how many of them are done.
    store: Store,
    stored: usize,
}

impl<'a, I: Iterator<Item = (u64, &'a Piece)>> Lane<'a, I> {
    fn new(all: &'a [u8], pieces: I, decoder: Decoder<'a>, earliest: Vec<u64>) -> Self {
        let (begun, start, current, store, stored) = (0, 0, None, Store::default(), 0);
        Self { all, pieces, earliest, begun, start, decoder, current, store, stored }
    }

    /// Advances to the first moment that is not too early.
    fn first(&mut self) -> Option<u64> {
        loop {
            let tsc = self.step()?;
            if tsc >= self.start {
                return Some(tsc);
            }
        }
    }

    /// Advances to the next moment and returns its time; `None` at the end.
    #[inline]
    fn step(&mut self) -> Option<u64> {
        loop {
            if self.stored < self.store.entries.len() {
                self.stored += 1;
                if let Some(entry) = self.store.entries.get(self.stored - 1) {
                    self.current = None;
                    return Some(entry.tsc);
                }
            }
            self.current = self.decoder.next();
            if let Some(found) = &self.current {
                return Some(found.moment.tsc);
            }
            // All sorted moments were emitted: the next pieces may be stored in their place.
            self.store.clear();
            self.stored = 0;
            self.begin_piece()?;
        }
    }

    /// Emits the moment at which the lane is.
    #[inline(always)]
    fn emit<M: Moments>(&self, moments: &mut M) -> Result<(), Error> {
        if let Some(found) = &self.current {
            return moments.moment(&self.decoder.complete(found));
        }
        let entry = self.stored.checked_sub(1).and_then(|n| self.store.entries.get(n));
        entry.map_or(Ok(()), |entry| moments.moment(&self.store.moment(entry)))
    }

    /// Enters the next piece; where it overlaps later pieces, sorts all that overlap each other.
    #[cold]
    fn begin_piece(&mut self) -> Option<()> {
        let (buffer, piece) = self.next_piece()?;
        let mut latest = piece.max;
        self.decoder.start(self.all, buffer, piece);
        if piece.is_sorted && !self.reaches_over(latest) {
            return Some(());
        }
        loop {
            while let Some(found) = self.decoder.next() {
                self.store.push(&self.decoder.complete(&found));
            }
            if !self.reaches_over(latest) {
                break;
            }
            let Some((buffer, piece)) = self.next_piece() else { break };
            latest = latest.max(piece.max);
            self.decoder.start(self.all, buffer, piece);
        }
        // Stable: moments of one time keep the order of the file.
        self.store.entries.sort_by_key(|entry| entry.tsc);
        Some(())
    }

    fn next_piece(&mut self) -> Option<(u64, &'a Piece)> {
        self.begun += 1;
        self.pieces.next()
    }

    /// True when a piece after those begun has times before this one.
    fn reaches_over(&self, latest: u64) -> bool {
        self.earliest.get(self.begun).is_some_and(|&earliest| earliest < latest)
    }
}

/// True when time never goes backwards in a thread.
pub(crate) fn is_in_order(index: &Index, owner: &Owner) -> bool {
    let mut last = 0;
    index.pieces(owner).all(|(_, piece)| {
        let follows = piece.is_sorted && last <= piece.min;
        last = piece.max;
        follows
    })
}

/// Earliest time of the pieces from each one on; empty if they are in order.
fn earliest(index: &Index, owner: &Owner) -> Vec<u64> {
    if is_in_order(index, owner) {
        return Vec::new();
    }
    let mut times: Vec<u64> = index.pieces(owner).map(|(_, piece)| piece.min).collect();
    let mut earliest = u64::MAX;
    for time in times.iter_mut().rev() {
        // From the end on, so that each piece knows the earliest time of all that follow.
        earliest = earliest.min(*time);
        *time = earliest;
    }
    times
}

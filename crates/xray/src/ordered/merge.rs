//! All threads of an FDR trace together in order of time.
//!
//! Each thread is a lane that stands at its next moment; the lane whose moment is earliest gives it. Nothing is kept
//! but the places of the lanes. Only where time goes back within a thread are the moments concerned sorted in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use anytrace_core::Error;

use crate::moment::Moments;
use crate::record::Layout;

use super::decode::{Decoder, Found};
use super::index::{Index, Owner, Piece};
use super::store::Store;

/// Gives all moments in order of time; those of one time in the order of threads in the index.
pub(crate) fn merge<M: Moments>(
    all: &[u8],
    index: &Index,
    layout: Layout,
    version: u16,
    moments: &mut M,
) -> Result<(), Error> {
    let lane =
        |owner| Lane::new(all, index.pieces(owner), Decoder::new(layout, version, owner), earliest(index, owner));
    let mut lanes: Vec<_> = index.owners.iter().map(lane).collect();
    let mut heap = BinaryHeap::with_capacity(lanes.len());
    for (n, lane) in lanes.iter_mut().enumerate() {
        heap.extend(lane.step().map(|tsc| Reverse((tsc, n))));
    }
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((_, n)) = *top;
        let Some(lane) = lanes.get_mut(n) else { break };
        lane.give(moments)?;
        match lane.step() {
            Some(tsc) => *top = Reverse((tsc, n)),
            None => {
                PeekMut::pop(top);
            }
        }
    }
    Ok(())
}

/// One thread, standing at a moment.
struct Lane<'a, I> {
    all: &'a [u8],
    pieces: I,
    /// Earliest time of the pieces from each one on; empty where the thread is in order.
    earliest: Vec<u64>,
    /// Pieces begun.
    begun: usize,
    decoder: Decoder<'a>,
    current: Option<Found<'a>>,
    /// Moments that had to be sorted, and how many of them were stepped over.
    store: Store,
    stored: usize,
}

impl<'a, I: Iterator<Item = (u64, &'a Piece)>> Lane<'a, I> {
    fn new(all: &'a [u8], pieces: I, decoder: Decoder<'a>, earliest: Vec<u64>) -> Self {
        let (begun, current, store, stored) = (0, None, Store::default(), 0);
        Self { all, pieces, earliest, begun, decoder, current, store, stored }
    }

    /// Goes to the next moment and returns its time; `None` at the end.
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
            self.store.clear();
            self.stored = 0;
            self.begin_piece()?;
        }
    }

    /// Gives the moment at which the lane stands.
    #[inline]
    fn give<M: Moments>(&self, moments: &mut M) -> Result<(), Error> {
        if let Some(found) = &self.current {
            return moments.moment(&self.decoder.complete(found));
        }
        let entry = self.stored.checked_sub(1).and_then(|n| self.store.entries.get(n));
        entry.map_or(Ok(()), |entry| moments.moment(&self.store.moment(entry)))
    }

    /// Goes into the next piece; where it overlaps those behind it, sorts as many as hang together.
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
        self.store.entries.sort_by_key(|entry| entry.tsc);
        Some(())
    }

    fn next_piece(&mut self) -> Option<(u64, &'a Piece)> {
        self.begun += 1;
        self.pieces.next()
    }

    /// True when a piece behind those begun has times before this one.
    fn reaches_over(&self, latest: u64) -> bool {
        self.earliest.get(self.begun).is_some_and(|&earliest| earliest < latest)
    }
}

/// Earliest time of the pieces from each one on; nothing where they are in order.
fn earliest(index: &Index, owner: &Owner) -> Vec<u64> {
    let mut last = 0;
    let is_in_order = index.pieces(owner).all(|(_, piece)| {
        let follows = piece.is_sorted && last <= piece.min;
        last = piece.max;
        follows
    });
    if is_in_order {
        return Vec::new();
    }
    let mut times: Vec<u64> = index.pieces(owner).map(|(_, piece)| piece.min).collect();
    let mut earliest = u64::MAX;
    for time in times.iter_mut().rev() {
        earliest = earliest.min(*time);
        *time = earliest;
    }
    times
}

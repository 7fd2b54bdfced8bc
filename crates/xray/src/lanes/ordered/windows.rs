//! A trace cut into ranges of time, each of which can be sorted by itself.

use anytrace_core::Error;

use crate::wire::moment::Moments;
use crate::wire::record::Orders;

use super::index::{Index, Piece};
use super::merge::{self, Between};

/// A window has records of about this many bytes: some twenty thousand.
const WINDOW_BYTES: u64 = 128 * 1024;

/// Largest window: the output made from it is buffered in memory.
const WINDOW_BYTES_MAX: u64 = 2 << 20;

/// Consecutive ranges of time that together have all moments.
pub(crate) struct Windows<'a> {
    all: &'a [u8],
    index: &'a Index,
    layout: Orders,
    version: u16,
    /// Where windows begin; each ends where the next begins, and the last has no end.
    starts: Vec<u64>,
}

impl<'a> Windows<'a> {
    /// Cuts a trace. `None` if that does not pay: a short trace, a thread in which time goes backwards, many moments at
    /// one time, or threads with so few records that finding them in each window would take longer than everything
    /// else.
    pub(crate) fn of(all: &'a [u8], index: &'a Index, layout: Orders, version: u16) -> Option<Self> {
        Self::cut(all, index, (layout, version), WINDOW_BYTES)
    }

    pub(super) fn cut(all: &'a [u8], index: &'a Index, form: (Orders, u16), window_bytes: u64) -> Option<Self> {
        if !index.owners.iter().all(|owner| merge::is_in_order(index, owner)) {
            return None;
        }
        let mut pieces: Vec<&Piece> =
            index.owners.iter().flat_map(|owner| index.pieces(owner)).map(|(_, p)| p).collect();
        pieces.sort_unstable_by_key(|piece| piece.min);
        let starts = starts(&pieces, window_bytes);
        let (layout, version) = form;
        (starts.len() > 1 && is_worth_it(&pieces, &starts)).then_some(Self { all, index, layout, version, starts })
    }

    /// How many there are: at least two.
    pub(crate) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Emits the moments of one window as [`super::Ordered::by_time`] would.
    pub(crate) fn emit<M: Moments>(&self, window: usize, moments: &mut M) -> Result<(), Error> {
        let Some(&start) = self.starts.get(window) else { return Ok(()) };
        let between = Between { start, end: self.starts.get(window + 1).copied() };
        merge::merge_between(self.all, self.index, (self.layout, self.version), between, moments)
    }
}

/// Where windows of about that many bytes begin, from pieces in order of their first time.
fn starts(pieces: &[&Piece], window_bytes: u64) -> Vec<u64> {
    let (mut starts, mut bytes) = (vec![0], 0);
    let mut last = pieces.first().map_or(0, |piece| piece.min);
    for piece in pieces {
        if bytes >= window_bytes && piece.min > last {
            starts.push(piece.min);
            (bytes, last) = (0, piece.min);
        }
        bytes += piece.bytes;
    }
    starts
}

/// True when no window is too large, and pieces that span several windows are not read too often.
fn is_worth_it(pieces: &[&Piece], starts: &[u64]) -> bool {
    let mut sizes = vec![0_u64; starts.len()];
    let (mut read, mut all) = (0_u64, 0_u64);
    for piece in pieces {
        all += piece.bytes;
        let first = starts.partition_point(|&start| start <= piece.min).saturating_sub(1);
        let behind = starts.partition_point(|&start| start <= piece.max);
        for size in sizes.get_mut(first..behind).unwrap_or_default() {
            *size += piece.bytes;
            read += piece.bytes;
            // Also ends the sum early, where many pieces span many windows.
            if *size > WINDOW_BYTES_MAX {
                return false;
            }
        }
    }
    // Each window reads a piece only up to the window's end, so half of the sum is read.
    read / 6 <= all
}

//! What of an event is needed for spans, sorted by row and time in bounded memory.

use anytrace_core::Error;
use anytrace_core::bytes::array_at;
use anytrace_core::runs::{Runs, Stored};

use crate::model::names::NameNumber;

/// What an event does on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A duration of known length.
    Complete,
    Begin,
    End,
    Instant,
    Counter,
    FlowOut,
    FlowIn,
    /// Begins a span after ending all that are open: another thread runs.
    Switch,
    /// Ends all spans that are open.
    Idle,
}

const KINDS: [Kind; 9] = [
    Kind::Complete,
    Kind::Begin,
    Kind::End,
    Kind::Instant,
    Kind::Counter,
    Kind::FlowOut,
    Kind::FlowIn,
    Kind::Switch,
    Kind::Idle,
];

/// An event. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) row: u32,
    pub(super) name: NameNumber,
    pub(super) time: u64,
    /// The end of a complete duration, the number of an arrow.
    pub(super) end: u64,
    pub(super) seq: u64,
    pub(super) kind: Kind,
    pub(super) bytes: u32,
}

const ITEM_BYTES: usize = 37;

impl Item {
    /// Of durations that begin at one time, the longest encloses the others.
    pub(super) fn key(&self) -> (u32, u64, u64, u64) {
        let rank = if self.kind == Kind::Complete { u64::MAX - self.end } else { u64::MAX };
        // Other events are in the order of the trace.
        let rank = if self.kind == Kind::Complete && self.end > self.time { rank } else { u64::MAX };
        (self.row, self.time, rank, self.seq)
    }
}

impl Stored for Item {
    const BEFORE: Self = Self { row: 0, name: 0, time: 0, end: 0, seq: 0, kind: Kind::Instant, bytes: 0 };

    fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
        for four in [self.row, self.name, self.bytes] {
            out.extend_from_slice(&four.to_le_bytes());
        }
        for eight in [self.time, self.end, self.seq] {
            out.extend_from_slice(&eight.to_le_bytes());
        }
        out.push(self.kind as u8);
    }

    fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
        let four = |at| array_at::<4>(bytes, at).map(u32::from_le_bytes);
        let eight = |at| array_at::<8>(bytes, at).map(u64::from_le_bytes);
        let kind = *KINDS.get(usize::from(*bytes.get(36)?))?;
        let (row, name, length) = (four(0)?, four(4)?, four(8)?);
        let item = Self { row, name, time: eight(12)?, end: eight(20)?, seq: eight(28)?, kind, bytes: length };
        Some((item, ITEM_BYTES))
    }

    fn payload(&self) -> usize {
        self.bytes as usize
    }
}

/// A chunk is written to a temporary file when it reaches this size.
const CHUNK_BYTES: usize = 16 << 20;

/// What receives items in order.
pub(super) type Each<'a> = dyn FnMut(&Item, &[u8]) -> Result<(), Error> + 'a;

/// Sorts items with their bytes.
#[derive(Debug)]
pub(super) struct Sorter {
    items: Vec<(Item, usize)>,
    arena: Vec<u8>,
    runs: Runs,
    chunk_bytes: usize,
}

impl Default for Sorter {
    fn default() -> Self {
        Self { items: Vec::new(), arena: Vec::new(), runs: Runs::default(), chunk_bytes: CHUNK_BYTES }
    }
}

impl Sorter {
    /// Adds an item.
    #[inline]
    pub(super) fn push(&mut self, mut item: Item, bytes: &[u8]) -> Result<(), Error> {
        let Ok(length) = u32::try_from(bytes.len()) else { return Ok(()) };
        item.bytes = length;
        self.items.push((item, self.arena.len()));
        self.arena.extend_from_slice(bytes);
        let is_full = self.items.len() * size_of::<(Item, usize)>() + self.arena.len() >= self.chunk_bytes;
        if is_full { self.spill() } else { Ok(()) }
    }

    /// Visits all items in order.
    pub(super) fn each(mut self, visit: &mut Each<'_>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.items.sort_by_key(|(item, _)| item.key());
            return self.sorted().try_for_each(|(item, bytes)| visit(item, bytes));
        }
        self.spill()?;
        (self.items, self.arena) = (Vec::new(), Vec::new());
        self.runs.each(Item::key, &mut |item, bytes| visit(item, bytes))
    }

    fn sorted(&self) -> impl Iterator<Item = (&Item, &[u8])> {
        self.items.iter().map(|(item, at)| (item, self.arena.get(*at..*at + item.bytes as usize).unwrap_or_default()))
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.items.sort_by_key(|(item, _)| item.key());
        let mut runs = std::mem::take(&mut self.runs);
        runs.add(self.sorted(), Item::key)?;
        self.runs = runs;
        self.items.clear();
        self.arena.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_into_memory_does_not_change_the_order() {
        for chunk_bytes in [1, 300, 1 << 20] {
            let mut sorter = Sorter { chunk_bytes, ..Sorter::default() };
            for seq in 0..100_u64 {
                let kind = KINDS[usize::try_from(seq % 9).unwrap()];
                let (row, time) = ((seq % 3) as u32, seq * 37 % 20);
                let item = Item { row, name: 1, time, end: time + seq % 7, seq, kind, bytes: 0 };
                sorter.push(item, &vec![7; usize::try_from(seq % 5).unwrap()]).unwrap();
            }
            let mut found = Vec::new();
            sorter
                .each(&mut |item, bytes| {
                    assert_eq!((bytes.len() as u64, item.kind), (item.seq % 5, KINDS[(item.seq % 9) as usize]));
                    found.push(item.key());
                    Ok(())
                })
                .unwrap();
            assert!(found.len() == 100 && found.is_sorted(), "{chunk_bytes}: {found:?}");
        }
    }
}

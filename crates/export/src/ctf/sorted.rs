//! Events in the order of their times, in bounded memory.

use anytrace_core::Error;
use anytrace_core::runs::{Runs, Stored};

/// Bytes of events, and events, that are sorted in memory.
const CHUNK_BYTES: usize = 12 << 20;
const CHUNK_EVENTS: usize = 256 << 10;

/// The place of an event in the chunk, or on disk its time and length.
#[derive(Debug, Clone, Copy)]
struct Item {
    time: u64,
    start: u32,
    length: u32,
}

impl Stored for Item {
    const BEFORE: Self = Self { time: 0, start: 0, length: 0 };

    fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
    }

    fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
        let (time, rest) = bytes.split_first_chunk()?;
        let (length, _) = rest.split_first_chunk()?;
        Some((Self { time: u64::from_le_bytes(*time), start: 0, length: u32::from_le_bytes(*length) }, 12))
    }

    fn payload(&self) -> usize {
        self.length as usize
    }
}

/// Events to be sorted. Those of one time stay in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    items: Vec<Item>,
    bytes: Vec<u8>,
    /// The time of the last one, and whether none came before it that is later.
    last: u64,
    is_unordered: bool,
    runs: Runs,
}

impl Sorted {
    /// Adds an event.
    pub(super) fn push(&mut self, time: u64, event: &[u8]) -> Result<(), Error> {
        let is_full = self.items.len() >= CHUNK_EVENTS || self.bytes.len() + event.len() > CHUNK_BYTES;
        if is_full && !self.items.is_empty() {
            self.spill()?;
        }
        let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        // No event has more: its name and attributes are of one batch.
        let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(event);
        self.is_unordered |= time < self.last;
        self.last = time;
        self.items.push(Item { time, start, length });
        Ok(())
    }

    /// Visits all in order.
    pub(super) fn each(mut self, visit: &mut impl FnMut(u64, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.sort();
            let bytes = &self.bytes;
            return self.items.iter().try_for_each(|item| visit(item.time, of(bytes, item)));
        }
        self.spill()?;
        (self.items, self.bytes) = (Vec::new(), Vec::new());
        self.runs.each(|item: &Item| item.time, &mut |item: &Item, event| visit(item.time, event))
    }

    fn sort(&mut self) {
        if self.is_unordered {
            self.items.sort_by_key(|item| item.time);
        }
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.sort();
        let bytes = &self.bytes;
        self.runs.add(self.items.iter().map(|item| (item, of(bytes, item))), |item| item.time)?;
        self.items.clear();
        self.bytes.clear();
        (self.last, self.is_unordered) = (0, false);
        Ok(())
    }
}

fn of<'a>(bytes: &'a [u8], item: &Item) -> &'a [u8] {
    bytes.get(item.start as usize..item.start as usize + item.length as usize).unwrap_or_default()
}

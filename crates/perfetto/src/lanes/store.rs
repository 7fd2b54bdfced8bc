//! Stores any number of events by row in bounded memory, and returns those of some rows in the order of their times.
//!
//! Most traces have each row in order already; where one is not, it is sorted. When memory is full, all rows are
//! appended to a temporary file, sorted, and merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;

use crate::model::event::Number;
use crate::model::names::NameNumber;
use crate::wire::proto::{push_varint, varint};

/// Memory for events; more are written to disk.
const MEMORY_BYTES: usize = 32 << 20;
/// How much of a block is read at once.
const READ_BYTES: usize = 32 << 10;

/// What is stored of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kept {
    Begin,
    End,
    Instant,
    /// Only arrows.
    Arrows,
    /// A slice with its length.
    Complete(u64),
    Counter(Number),
    /// Begins a slice after ending all that are open.
    Switch,
    /// Ends all slices that are open.
    Idle,
}

impl Kept {
    /// Of slices that begin at one time, the longest encloses the others.
    fn rank(self) -> u64 {
        if let Self::Complete(length) = self { u64::MAX - length } else { 0 }
    }
}

/// An event with the bytes of its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item<'a> {
    pub(super) time: u64,
    pub(super) seq: u64,
    pub(super) name: NameNumber,
    pub(super) kept: Kept,
    pub(super) parts: &'a [u8],
}

impl Item<'_> {
    fn key(&self) -> (u64, u64, u64) {
        (self.time, self.kept.rank(), self.seq)
    }
}

/// Appends an event; times and numbers are differences to the event before.
fn encode(out: &mut Vec<u8>, (time, seq): (u64, u64), item: &Item<'_>) {
    let zigzag = |now: u64, before: u64| {
        let difference = now.wrapping_sub(before).cast_signed();
        ((difference << 1) ^ (difference >> 63)).cast_unsigned()
    };
    push_varint(out, zigzag(item.time, time), 0);
    push_varint(out, zigzag(item.seq, seq), 0);
    let (kind, number) = match item.kept {
        Kept::Begin => (0, None),
        Kept::End => (1, None),
        Kept::Instant => (2, None),
        Kept::Arrows => (3, None),
        Kept::Complete(length) => (4, Some(length)),
        Kept::Counter(Number::Int(value)) => (5, Some(value.cast_unsigned())),
        Kept::Counter(Number::Float(value)) => (6, Some(value.to_bits())),
        Kept::Switch => (7, None),
        Kept::Idle => (8, None),
    };
    push_varint(out, u64::from(item.name) << 4 | kind, 0);
    if let Some(number) = number {
        push_varint(out, number, 0);
    }
    push_varint(out, item.parts.len() as u64, 0);
    out.extend_from_slice(item.parts);
}

/// Reads an event back; returns it with its length. `None` where the bytes end first.
fn decode(bytes: &[u8], (time, seq): (u64, u64)) -> Option<(Item<'_>, usize)> {
    let unzigzag = |value: u64, before: u64| {
        let difference = (value >> 1) ^ (value & 1).wrapping_neg();
        before.wrapping_add(difference)
    };
    let (time_step, at) = varint(bytes, 0)?;
    let (seq_step, at) = varint(bytes, at)?;
    let (word, mut at) = varint(bytes, at)?;
    let mut number = || {
        let (value, next) = varint(bytes, at)?;
        at = next;
        Some(value)
    };
    let kept = match word & 15 {
        0 => Kept::Begin,
        1 => Kept::End,
        2 => Kept::Instant,
        3 => Kept::Arrows,
        4 => Kept::Complete(number()?),
        5 => Kept::Counter(Number::Int(number()?.cast_signed())),
        6 => Kept::Counter(Number::Float(f64::from_bits(number()?))),
        7 => Kept::Switch,
        _ => Kept::Idle,
    };
    let length = usize::try_from(number()?).ok()?;
    let end = at.checked_add(length)?;
    let parts = bytes.get(at..end)?;
    let name = NameNumber::try_from(word >> 4).ok()?;
    Some((Item { time: unzigzag(time_step, time), seq: unzigzag(seq_step, seq), name, kept, parts }, end))
}

/// The events of a row that are in memory.
#[derive(Debug, Default)]
struct Row {
    bytes: Vec<u8>,
    last: (u64, u64),
    last_key: (u64, u64, u64),
    is_unsorted: bool,
    /// Where its sorted blocks are in the file.
    blocks: Vec<(u64, u64)>,
}

impl Row {
    fn sort(&mut self) {
        if !std::mem::take(&mut self.is_unsorted) {
            return;
        }
        let mut places = Vec::new();
        let (mut at, mut last) = (0, (0, 0));
        while let Some((item, used)) = self.bytes.get(at..).and_then(|rest| decode(rest, last)) {
            places.push((item.key(), at, last));
            last = (item.time, item.seq);
            at += used;
        }
        places.sort_by_key(|(key, ..)| *key);
        let mut sorted = Vec::with_capacity(self.bytes.len());
        let mut before = (0, 0);
        for (_, at, last) in places {
            let Some((item, _)) = self.bytes.get(at..).and_then(|rest| decode(rest, last)) else { continue };
            encode(&mut sorted, before, &item);
            before = (item.time, item.seq);
        }
        self.bytes = sorted;
    }
}

/// Events by row.
#[derive(Debug)]
pub(super) struct Store {
    rows: Vec<Row>,
    bytes: usize,
    memory_bytes: usize,
    file: Option<File>,
    file_bytes: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self { rows: Vec::new(), bytes: 0, memory_bytes: MEMORY_BYTES, file: None, file_bytes: 0 }
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("sorting in a temporary file", error)
}

impl Store {
    /// Adds an event to a row.
    #[inline]
    pub(super) fn push(&mut self, row: usize, item: &Item<'_>) -> Result<(), Error> {
        if row >= self.rows.len() {
            self.rows.resize_with(row + 1, Row::default);
        }
        let Some(row) = self.rows.get_mut(row) else { return Ok(()) };
        let before = row.bytes.len();
        encode(&mut row.bytes, row.last, item);
        row.last = (item.time, item.seq);
        let key = item.key();
        row.is_unsorted |= key < row.last_key;
        row.last_key = key;
        self.bytes += row.bytes.len() - before;
        if self.bytes >= self.memory_bytes { self.spill() } else { Ok(()) }
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile().map_err(failed)?,
        };
        for row in self.rows.iter_mut().filter(|row| !row.bytes.is_empty()) {
            row.sort();
            file.write_all(&row.bytes).map_err(failed)?;
            let end = self.file_bytes + row.bytes.len() as u64;
            row.blocks.push((self.file_bytes, end));
            self.file_bytes = end;
            row.bytes = Vec::new();
            (row.last, row.last_key) = ((0, 0), (0, 0, 0));
        }
        self.bytes = 0;
        self.file = Some(file);
        Ok(())
    }

    /// Passes the events of some rows to a visitor, in the order of their times, with the number of their row among
    /// these.
    pub(super) fn each(
        &mut self,
        rows: &[usize],
        visit: &mut dyn FnMut(usize, &Item<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut sources = Vec::new();
        for (of, row) in rows.iter().enumerate() {
            let Some(row) = self.rows.get_mut(*row) else { continue };
            row.sort();
            for &(at, end) in &row.blocks {
                sources.push(Block::new(of, Vec::new(), at, end));
            }
            let rest = std::mem::take(&mut row.bytes);
            if !rest.is_empty() {
                sources.push(Block::new(of, rest, 0, 0));
            }
        }
        let file = &mut self.file;
        if let [only] = sources.as_mut_slice() {
            let of = only.of;
            while let Some(item) = only.next(file)? {
                visit(of, &item)?;
            }
            return Ok(());
        }
        let mut heap = BinaryHeap::new();
        for (n, source) in sources.iter_mut().enumerate() {
            if let Some(item) = source.next(file)? {
                heap.push(Reverse((item.key(), n)));
                source.step_back();
            }
        }
        while let Some(Reverse((_, n))) = heap.pop() {
            let Some(source) = sources.get_mut(n) else { break };
            let of = source.of;
            // As long as it is first, it goes on.
            let until = heap.peek().map(|Reverse((key, n))| (*key, *n));
            while let Some(item) = source.next(file)? {
                if until.is_some_and(|until| (item.key(), n) > until) {
                    heap.push(Reverse((item.key(), n)));
                    source.step_back();
                    break;
                }
                visit(of, &item)?;
            }
        }
        Ok(())
    }
}

/// Sorted events of a row, in memory or in the file.
struct Block {
    of: usize,
    buffer: Vec<u8>,
    at: usize,
    /// What of the file is not in the buffer yet.
    from: u64,
    until: u64,
    last: (u64, u64),
    /// Where the last event began, for one step back.
    before: (usize, (u64, u64)),
}

impl Block {
    fn new(of: usize, buffer: Vec<u8>, from: u64, until: u64) -> Self {
        Self { of, buffer, at: 0, from, until, last: (0, 0), before: (0, (0, 0)) }
    }

    fn step_back(&mut self) {
        (self.at, self.last) = self.before;
    }

    fn next(&mut self, file: &mut Option<File>) -> Result<Option<Item<'_>>, Error> {
        while decode(self.buffer.get(self.at..).unwrap_or_default(), self.last).is_none() {
            if !self.refill(file)? {
                return Ok(None);
            }
        }
        let Some((item, used)) = decode(self.buffer.get(self.at..).unwrap_or_default(), self.last) else {
            return Ok(None);
        };
        self.before = (self.at, self.last);
        self.at += used;
        self.last = (item.time, item.seq);
        Ok(Some(item))
    }

    /// Reads more; false if there is none.
    #[cold]
    fn refill(&mut self, file: &mut Option<File>) -> Result<bool, Error> {
        let Some(file) = file.as_mut().filter(|_| self.from < self.until) else { return Ok(false) };
        self.buffer.drain(..self.at);
        self.at = 0;
        let have = self.buffer.len();
        // Events that are longer than the buffer make it grow by halves.
        let left = usize::try_from(self.until - self.from).unwrap_or(usize::MAX);
        let more = READ_BYTES.max(have).min(left);
        self.buffer.resize(have + more, 0);
        file.seek(SeekFrom::Start(self.from)).map_err(failed)?;
        file.read_exact(self.buffer.get_mut(have..).unwrap_or_default()).map_err(failed)?;
        self.from += more as u64;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 0x1234_5678_9abc_def1_u64;
        move |below| {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % below
        }
    }

    #[test]
    fn rows_come_back_in_order_whatever_fits_into_memory() {
        for memory_bytes in [1, 300, 5000, 1 << 20] {
            let mut random = random();
            let mut store = Store { memory_bytes, ..Store::default() };
            let mut expected = Vec::new();
            for seq in 0..500 {
                let time = if random(4) == 0 { random(1000) } else { seq * 10 };
                let kept = match random(4) {
                    0 => Kept::Begin,
                    1 => Kept::Complete(random(50)),
                    2 => Kept::Counter(Number::Int(-3)),
                    _ => Kept::Counter(Number::Float(0.5)),
                };
                let row = usize::try_from(random(5)).unwrap_or(0);
                let parts = vec![7; usize::try_from(random(40)).unwrap_or(0)];
                let item = Item { time, seq, name: 9, kept, parts: &parts };
                store.push(row, &item).unwrap_or_else(|error| panic!("{error}"));
                if row < 3 {
                    expected.push((item.key(), row, parts));
                }
            }
            expected.sort();
            let mut found = Vec::new();
            let mut take = |of: usize, item: &Item<'_>| {
                found.push((item.key(), of, item.parts.to_vec()));
                Ok(())
            };
            store.each(&[0, 1, 2], &mut take).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found, expected, "{memory_bytes} bytes");
        }
    }

    #[test]
    fn an_event_longer_than_what_is_read_at_once_comes_back() {
        let mut store = Store { memory_bytes: 1, ..Store::default() };
        let parts = vec![1; 3 * READ_BYTES];
        let item = Item { time: u64::MAX, seq: 3, name: 1, kept: Kept::Begin, parts: &parts };
        store.push(0, &item).unwrap_or_else(|error| panic!("{error}"));
        let mut count = 0;
        let mut take = |_: usize, found: &Item<'_>| {
            assert_eq!(*found, item);
            count += 1;
            Ok(())
        };
        store.each(&[0], &mut take).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(count, 1);
    }
}

//! Stores any number of events by row in bounded memory, and returns those of some rows in the order of their times.
//!
//! Most traces have each row in order already. A row that is not becomes several segments, each in order, which are
//! merged at the end; short ones are sorted. When memory is full, all rows are appended to a temporary file, each as
//! one block.

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
/// A segment that is shorter than this is sorted where an event is earlier than the one before; a longer one ends
/// there.
const SEGMENT_BYTES: usize = 64 << 10;

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

/// Appends a number, most of which are short.
#[inline(always)]
fn put(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(byte) if byte < 0x80 => out.push(byte),
        _ => push_varint(out, value, 0),
    }
}

/// Set in the word of an event that has parts.
const PARTS: u64 = 16;

/// Appends an event; times and numbers are differences to the event before.
#[inline]
fn encode(out: &mut Vec<u8>, (time, seq): (u64, u64), item: &Item<'_>) {
    let zigzag = |now: u64, before: u64| {
        let difference = now.wrapping_sub(before).cast_signed();
        ((difference << 1) ^ (difference >> 63)).cast_unsigned()
    };
    put(out, zigzag(item.time, time));
    put(out, zigzag(item.seq, seq));
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
    let parts = if item.parts.is_empty() { 0 } else { PARTS };
    put(out, u64::from(item.name) << 5 | parts | kind);
    if let Some(number) = number {
        put(out, number);
    }
    if !item.parts.is_empty() {
        put(out, item.parts.len() as u64);
        out.extend_from_slice(item.parts);
    }
}

/// An event in a row's bytes.
#[derive(Debug, Clone, Copy)]
struct Decoded {
    time: u64,
    seq: u64,
    name: NameNumber,
    kept: Kept,
    /// Where its parts begin.
    parts: usize,
    /// Where it ends, and its parts do.
    end: usize,
}

impl Decoded {
    #[inline]
    fn item<'a>(&self, bytes: &'a [u8]) -> Item<'a> {
        let parts = bytes.get(self.parts..self.end).unwrap_or_default();
        Item { time: self.time, seq: self.seq, name: self.name, kept: self.kept, parts }
    }
}

/// Reads an event back. `None` where the bytes end first.
#[inline]
fn decode(bytes: &[u8], at: usize, (time, seq): (u64, u64)) -> Option<Decoded> {
    let unzigzag = |value: u64, before: u64| {
        let difference = (value >> 1) ^ (value & 1).wrapping_neg();
        before.wrapping_add(difference)
    };
    let (time_step, at) = varint(bytes, at)?;
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
    let length = if word & PARTS == 0 { 0 } else { usize::try_from(number()?).ok()? };
    let end = at.checked_add(length).filter(|end| *end <= bytes.len())?;
    let name = NameNumber::try_from(word >> 5).ok()?;
    Some(Decoded { time: unzigzag(time_step, time), seq: unzigzag(seq_step, seq), name, kept, parts: at, end })
}

/// The events of a row that are in memory: segments, each in order. Differences count from 0 in each.
#[derive(Debug, Default)]
struct Row {
    bytes: Vec<u8>,
    /// Where all segments but the last end.
    ends: Vec<usize>,
    last: (u64, u64),
    last_key: (u64, u64, u64),
    /// True if the last segment is not in order.
    is_unsorted: bool,
    /// The latest time of an event or of a counter that is not stored.
    latest: u64,
    /// Where its sorted blocks are in the file.
    blocks: Vec<(u64, u64)>,
}

impl Row {
    /// An event that is earlier than the one before, or follows one that was: where the last segment is long, another
    /// begins.
    #[cold]
    fn turn(&mut self) {
        let start = self.ends.last().copied().unwrap_or(0);
        if self.bytes.len() - start >= SEGMENT_BYTES {
            // What came before is sorted only if it was not in order by itself.
            self.end_segment();
        } else {
            self.is_unsorted = true;
        }
    }

    fn end_segment(&mut self) {
        if std::mem::take(&mut self.is_unsorted) {
            self.sort(self.ends.last().copied().unwrap_or(0));
        }
        self.ends.push(self.bytes.len());
        (self.last, self.last_key) = ((0, 0), (0, 0, 0));
    }

    /// Sorts the last segment.
    fn sort(&mut self, start: usize) {
        let mut places = Vec::new();
        let (mut at, mut last) = (start, (0, 0));
        while let Some(found) = decode(&self.bytes, at, last) {
            places.push((found.item(&[]).key(), at, last));
            last = (found.time, found.seq);
            at = found.end;
        }
        if places.is_sorted_by_key(|(key, ..)| *key) {
            return;
        }
        places.sort_by_key(|(key, ..)| *key);
        let mut sorted = Vec::with_capacity(self.bytes.len() - start);
        let mut before = (0, 0);
        for (_, at, last) in places {
            let Some(found) = decode(&self.bytes, at, last) else { continue };
            encode(&mut sorted, before, &found.item(&self.bytes));
            before = (found.time, found.seq);
        }
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(&sorted);
    }

    /// Takes all that is in memory: segments in order.
    fn take(&mut self) -> Vec<Vec<u8>> {
        self.end_segment();
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut ends = std::mem::take(&mut self.ends);
        ends.pop();
        let mut segments: Vec<_> = ends.into_iter().rev().map(|end| bytes.split_off(end)).collect();
        segments.push(bytes);
        segments.retain(|segment| !segment.is_empty());
        segments.reverse();
        segments
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
        let Some(row) = self.row(row) else { return Ok(()) };
        let before = row.bytes.len();
        let key = item.key();
        if key < row.last_key || row.is_unsorted {
            row.turn();
        }
        encode(&mut row.bytes, row.last, item);
        row.last = (item.time, item.seq);
        row.last_key = key;
        row.latest = row.latest.max(item.time);
        // Sorting may have made them fewer.
        let after = row.bytes.len();
        self.bytes = (self.bytes + after).saturating_sub(before);
        if self.bytes >= self.memory_bytes { self.spill() } else { Ok(()) }
    }

    /// Learns that something happens at a time of a row, without storing it.
    #[inline]
    pub(super) fn pass(&mut self, row: usize, time: u64) {
        if let Some(row) = self.row(row) {
            row.latest = row.latest.max(time);
        }
    }

    /// The latest time of some rows.
    pub(super) fn latest(&self, rows: &[usize]) -> u64 {
        rows.iter().filter_map(|row| self.rows.get(*row)).map(|row| row.latest).max().unwrap_or(0)
    }

    #[inline]
    fn row(&mut self, row: usize) -> Option<&mut Row> {
        if row >= self.rows.len() {
            self.rows.resize_with(row + 1, Row::default);
        }
        self.rows.get_mut(row)
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile().map_err(failed)?,
        };
        for row in self.rows.iter_mut().filter(|row| !row.bytes.is_empty()) {
            let block = merged(row.take())?;
            file.write_all(&block).map_err(failed)?;
            let end = self.file_bytes + block.len() as u64;
            row.blocks.push((self.file_bytes, end));
            self.file_bytes = end;
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
        visit: impl FnMut(usize, &Item<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut sources = Vec::new();
        for (of, row) in rows.iter().enumerate() {
            let Some(row) = self.rows.get_mut(*row) else { continue };
            sources.extend(row.blocks.iter().map(|&(at, end)| Block::new(of, Vec::new(), at, end)));
            sources.extend(row.take().into_iter().map(|segment| Block::new(of, segment, 0, 0)));
        }
        merge(sources, &mut self.file, visit)
    }
}

/// Segments as one.
fn merged(mut segments: Vec<Vec<u8>>) -> Result<Vec<u8>, Error> {
    if segments.len() < 2 {
        return Ok(segments.pop().unwrap_or_default());
    }
    let mut out = Vec::with_capacity(segments.iter().map(Vec::len).sum());
    let mut last = (0, 0);
    let sources = segments.into_iter().map(|segment| Block::new(0, segment, 0, 0)).collect();
    merge(sources, &mut None, |_, item| {
        encode(&mut out, last, item);
        last = (item.time, item.seq);
        Ok(())
    })?;
    Ok(out)
}

/// Passes the events of sorted sources to a visitor, in the order of their times; of equal ones, those of the first
/// source first.
fn merge(
    mut sources: Vec<Block>,
    file: &mut Option<File>,
    mut visit: impl FnMut(usize, &Item<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
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

    #[inline]
    fn next(&mut self, file: &mut Option<File>) -> Result<Option<Item<'_>>, Error> {
        let found = loop {
            match decode(&self.buffer, self.at, self.last) {
                Some(found) => break found,
                None if self.refill(file)? => {}
                None => return Ok(None),
            }
        };
        self.before = (self.at, self.last);
        self.at = found.end;
        self.last = (found.time, found.seq);
        Ok(Some(found.item(&self.buffer)))
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
        for (memory_bytes, count) in
            [(1, 500), (300, 500), (5000, 500), (1 << 20, 500), (1 << 20, 20_000), (2 << 20, 40_000)]
        {
            let mut random = random();
            let mut store = Store { memory_bytes, ..Store::default() };
            let mut expected = Vec::new();
            for seq in 0..count {
                // Now and then one is early, and then all begin again.
                let time = if random(4) == 0 { random(1000) } else { seq * 10 % 150_000 };
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
            let take = |of: usize, item: &Item<'_>| {
                found.push((item.key(), of, item.parts.to_vec()));
                Ok(())
            };
            store.each(&[0, 1, 2], take).unwrap_or_else(|error| panic!("{error}"));
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
        let take = |_: usize, found: &Item<'_>| {
            assert_eq!(*found, item);
            count += 1;
            Ok(())
        };
        store.each(&[0], take).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(count, 1);
    }
}

//! Sorts any number of events in bounded memory: chunks are sorted in memory, written as runs on disk, and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;

use super::chunk::Chunk;
use super::event::{Sorted, StoredEvent, decode, encode};

/// Runs merged at once. More are merged into one first, so that buffers do not grow with the trace.
const FAN_IN: usize = 64;

/// How much of a run is read or written at once.
const READ_BYTES: usize = 64 << 10;
const WRITE_BYTES: usize = 256 << 10;

/// Sorts events.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    chunk: Chunk,
    levels: Vec<Level>,
    out: Vec<u8>,
}

/// Runs of about one size, one after another in a file.
#[derive(Debug)]
struct Level {
    file: File,
    bytes: u64,
    runs: Vec<(u64, u64)>,
}

impl Level {
    fn new() -> Result<Self, Error> {
        Ok(Self { file: tempfile::tempfile().map_err(failed)?, bytes: 0, runs: Vec::new() })
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("sorting in a temporary file", error)
}

impl Sorter {
    /// Adds an event with its bytes: description, attributes, nesting.
    #[inline]
    pub(super) fn push(&mut self, event: StoredEvent, bytes: [&[u8]; 3]) -> Result<(), Error> {
        self.chunk.push(event, bytes);
        if self.chunk.is_full() { self.spill() } else { Ok(()) }
    }

    /// Visits all events in order.
    pub(crate) fn each(mut self, visit: &mut impl FnMut(&Sorted<'_>) -> Result<(), Error>) -> Result<(), Error> {
        if self.levels.is_empty() {
            self.chunk.sort();
            return self.chunk.sorted().try_for_each(|(event, bytes)| visit(&event.with(bytes)));
        }
        if !self.chunk.is_empty() {
            self.spill()?;
        }
        self.chunk = Chunk::default();
        self.out = Vec::new();
        let mut runs = Vec::new();
        for level in &self.levels {
            runs.extend(level.runs.iter().map(|&(at, end)| Run::new(&level.file, at, end)));
        }
        merge(runs, &mut |event, bytes| visit(&event.with(bytes)))
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.chunk.sort();
        if self.levels.is_empty() {
            self.levels.push(Level::new()?);
        }
        let Some(level) = self.levels.first_mut() else { return Ok(()) };
        let mut writer = RunWriter::new(level, &mut self.out);
        for (event, bytes) in self.chunk.sorted() {
            writer.push(event, bytes)?;
        }
        writer.finish()?;
        self.chunk.clear();
        let mut full = 0;
        while self.levels.get(full).is_some_and(|level| level.runs.len() >= FAN_IN) {
            self.merge_level(full)?;
            full += 1;
        }
        Ok(())
    }

    /// Merges all runs of this level into one run of the next level.
    fn merge_level(&mut self, number: usize) -> Result<(), Error> {
        if self.levels.len() == number + 1 {
            self.levels.push(Level::new()?);
        }
        let Some((from, to)) = self.levels.split_at_mut_checked(number + 1) else { return Ok(()) };
        let (Some(from), Some(to)) = (from.last_mut(), to.first_mut()) else { return Ok(()) };
        let mut writer = RunWriter::new(to, &mut self.out);
        let runs = from.runs.iter().map(|&(at, end)| Run::new(&from.file, at, end)).collect();
        merge(runs, &mut |event, bytes| writer.push(event, bytes))?;
        writer.finish()?;
        from.runs.clear();
        from.bytes = 0;
        from.file.set_len(0).map_err(failed)
    }
}

/// A run being written.
struct RunWriter<'a> {
    level: &'a mut Level,
    out: &'a mut Vec<u8>,
    start: u64,
    last: StoredEvent,
}

impl<'a> RunWriter<'a> {
    fn new(level: &'a mut Level, out: &'a mut Vec<u8>) -> Self {
        let start = level.bytes;
        out.clear();
        Self { level, out, start, last: StoredEvent::BEFORE }
    }

    #[inline]
    fn push(&mut self, event: &StoredEvent, bytes: &[u8]) -> Result<(), Error> {
        encode(self.out, &self.last, event, bytes);
        self.last = *event;
        if self.out.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        self.level.file.seek(SeekFrom::Start(self.level.bytes)).map_err(failed)?;
        self.level.file.write_all(self.out).map_err(failed)?;
        self.level.bytes += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        self.write()?;
        self.level.runs.push((self.start, self.level.bytes));
        Ok(())
    }
}

/// A run being read.
struct Run<'a> {
    file: &'a File,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Start of the unread part of the buffer.
    from: usize,
    /// The next event, and where its bytes are in the buffer.
    head: StoredEvent,
    head_at: usize,
}

impl<'a> Run<'a> {
    fn new(file: &'a File, at: u64, end: u64) -> Self {
        Self { file, at, end, buffer: Vec::new(), from: 0, head: StoredEvent::BEFORE, head_at: 0 }
    }

    /// Advances to the next event; false at the end.
    #[inline]
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let rest = self.buffer.get(self.from..).unwrap_or_default();
            if let Some((next, used)) = decode(rest, &self.head)
                && used + next.bytes() <= rest.len()
            {
                self.head = next;
                self.head_at = self.from + used;
                self.from = self.head_at + next.bytes();
                return Ok(true);
            }
            if !self.refill()? {
                return Ok(false);
            }
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<bool, Error> {
        self.buffer.drain(..self.from);
        self.from = 0;
        let left = self.end - self.at;
        // An event that is longer than the buffer needs more room.
        let wanted = u64::try_from(READ_BYTES.max(self.buffer.len())).unwrap_or(left).min(left);
        if wanted == 0 {
            return Ok(false);
        }
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.at)).map_err(failed)?;
        let got = file.take(wanted).read_to_end(&mut self.buffer).map_err(failed)?;
        self.at += got as u64;
        if got == 0 {
            return Err(Error::io("sorting in a temporary file", std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(true)
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(self.head_at..self.from).unwrap_or_default()
    }
}

/// Visits the events of sorted runs in order. A run continues as long as it has the least event, which for traces is
/// long.
fn merge(
    mut runs: Vec<Run<'_>>,
    visit: &mut impl FnMut(&StoredEvent, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut heads = BinaryHeap::with_capacity(runs.len());
    for (number, run) in runs.iter_mut().enumerate() {
        if run.advance()? {
            heads.push(Reverse((run.head.key(), number)));
        }
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let Some(run) = runs.get_mut(number) else { break };
        let rival = heads.peek().map(|Reverse((key, _))| *key);
        loop {
            visit(&run.head, run.bytes())?;
            if !run.advance()? {
                run.buffer = Vec::new();
                break;
            }
            if rival.is_some_and(|rival| rival < run.head.key()) {
                heads.push(Reverse((run.head.key(), number)));
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events with bytes, spread over lanes, in the order of a linear congruential sequence.
    fn events(count: u64) -> Vec<(StoredEvent, Vec<u8>)> {
        (0..count)
            .map(|n| {
                let mixed = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 20;
                let start = mixed % 1000;
                let event = StoredEvent {
                    stream: (mixed >> 12) as u32 % 3,
                    home: (mixed >> 12) as u32 % 3,
                    lane: (mixed >> 16) % 5,
                    substream: (mixed >> 16) % 5,
                    start,
                    end: start + (mixed >> 24) % 7,
                    order: n / 3,
                    seq: n,
                    name: n as u32,
                    ..StoredEvent::BEFORE
                };
                (event, vec![n as u8; (mixed % 4) as usize])
            })
            .collect()
    }

    type Row = (u32, u64, u64, u64, u64, Vec<u8>);

    fn by_sorter(events: &[(StoredEvent, Vec<u8>)], spill_every: usize) -> Vec<Row> {
        let mut sorter = Sorter::default();
        for (n, (event, bytes)) in events.iter().enumerate() {
            sorter.push(*event, [bytes, &[], &[]]).unwrap();
            if (n + 1) % spill_every == 0 {
                sorter.spill().unwrap();
            }
        }
        let mut found = Vec::new();
        let mut keep = |e: &Sorted<'_>| {
            found.push((e.stream, e.substream, e.start, e.end, e.seq, e.description.to_vec()));
            Ok(())
        };
        sorter.each(&mut keep).unwrap();
        found
    }

    #[test]
    fn any_number_of_runs_and_levels_gives_the_order_of_a_plain_sort() {
        let events = events(20_000);
        let mut plain = events.clone();
        plain.sort_by_key(|(event, _)| event.key());
        let expected: Vec<Row> =
            plain.into_iter().map(|(e, bytes)| (e.stream, e.substream, e.start, e.end, e.seq, bytes)).collect();
        // The last one makes more than 64 times 64 runs: three levels.
        for spill_every in [usize::MAX, 7000, 100, 4] {
            assert_eq!(by_sorter(&events, spill_every), expected, "{spill_every}");
        }
    }

    #[test]
    fn an_event_longer_than_a_buffer_survives() {
        let long = vec![9; 3 * READ_BYTES];
        let events = [
            (StoredEvent { seq: 1, ..StoredEvent::BEFORE }, long.clone()),
            (StoredEvent { start: 5, end: 5, ..StoredEvent::BEFORE }, long),
        ];
        let found = by_sorter(&events, 1);
        assert_eq!(found.iter().map(|row| row.5.len()).collect::<Vec<_>>(), [3 * READ_BYTES; 2]);
    }
}

//! Sorting in bounded memory, the part on disk: sorted runs in temporary files, merged when all are written.
//!
//! What a sorter keeps in memory, and how it sorts that, is its own affair. Memory here is a buffer for each of at most
//! 64 runs, whatever their number.
//!
//! ```
//! use anytrace_core::runs::{Runs, Stored};
//!
//! #[derive(Clone, Copy)]
//! struct Byte(u8);
//!
//! impl Stored for Byte {
//!     const BEFORE: Self = Self(0);
//!     fn encode(&self, _last: &Self, out: &mut Vec<u8>) {
//!         out.push(self.0);
//!     }
//!     fn decode(bytes: &[u8], _last: &Self) -> Option<(Self, usize)> {
//!         Some((Self(*bytes.first()?), 1))
//!     }
//!     fn payload(&self) -> usize {
//!         0
//!     }
//! }
//!
//! let mut runs = Runs::default();
//! for sorted in [[1, 4], [2, 3]] {
//!     runs.add(sorted.map(Byte).iter().map(|byte| (byte, &[][..])), |byte| byte.0)?;
//! }
//! let mut found = Vec::new();
//! runs.each(|byte: &Byte| byte.0, &mut |byte: &Byte, _| Ok(found.push(byte.0)))?;
//! assert_eq!(found, [1, 2, 3, 4]);
//! # Ok::<(), anytrace_core::Error>(())
//! ```

mod sorter;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use crate::Error;
pub use sorter::{Keyed, Sorter};

/// Runs merged at once. More are merged into one first, so that buffers do not grow with the trace.
const FAN_IN: usize = 64;

/// How much of a run is read or written at once.
const READ_BYTES: usize = 64 << 10;
const WRITE_BYTES: usize = 256 << 10;

/// What is sorted. Behind each on disk are bytes that belong to it.
pub trait Stored: Copy {
    /// What comes before the first of a run.
    const BEFORE: Self;

    /// Appends it; `last` is the one before it in the run.
    fn encode(&self, last: &Self, out: &mut Vec<u8>);

    /// Reads what [`Self::encode`] wrote, with its length; `None` where the bytes end first.
    fn decode(bytes: &[u8], last: &Self) -> Option<(Self, usize)>;

    /// How many bytes belong to it.
    fn payload(&self) -> usize;
}

/// Sorted runs on disk.
#[derive(Debug, Default)]
pub struct Runs {
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

impl Runs {
    /// True while nothing was written.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Writes a run: what comes is in the order of its keys.
    ///
    /// # Errors
    /// I/O.
    pub fn add<'a, T: Stored + 'a, K: Ord + Copy>(
        &mut self,
        sorted: impl Iterator<Item = (&'a T, &'a [u8])>,
        key: impl Fn(&T) -> K,
    ) -> Result<(), Error> {
        if self.levels.is_empty() {
            self.levels.push(Level::new()?);
        }
        let Some(level) = self.levels.first_mut() else { return Ok(()) };
        let mut writer = RunWriter::new(level, &mut self.out);
        for (item, bytes) in sorted {
            writer.push(item, bytes)?;
        }
        writer.finish()?;
        let mut full = 0;
        while self.levels.get(full).is_some_and(|level| level.runs.len() >= FAN_IN) {
            self.merge_level(full, &key)?;
            full += 1;
        }
        Ok(())
    }

    /// Visits everything in order; of equal keys, those of an earlier run come first.
    ///
    /// # Errors
    /// I/O, and what `visit` returns.
    pub fn each<T: Stored, K: Ord + Copy>(
        mut self,
        key: impl Fn(&T) -> K,
        visit: &mut impl FnMut(&T, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out = Vec::new();
        // Runs of a higher level were written before those of a lower one.
        let all = self.levels.iter().rev().flat_map(|level| level.runs.iter().map(|&run| Run::new(&level.file, run)));
        merge(all.collect(), &key, visit)
    }

    /// Merges all runs of this level into one run of the next level.
    fn merge_level<T: Stored, K: Ord + Copy>(&mut self, number: usize, key: &impl Fn(&T) -> K) -> Result<(), Error> {
        if self.levels.len() == number + 1 {
            self.levels.push(Level::new()?);
        }
        let Some((from, to)) = self.levels.split_at_mut_checked(number + 1) else { return Ok(()) };
        let (Some(from), Some(to)) = (from.last_mut(), to.first_mut()) else { return Ok(()) };
        let mut writer = RunWriter::new(to, &mut self.out);
        let runs = from.runs.iter().map(|&run| Run::new(&from.file, run)).collect();
        merge(runs, key, &mut |item, bytes| writer.push(item, bytes))?;
        writer.finish()?;
        from.runs.clear();
        from.bytes = 0;
        from.file.set_len(0).map_err(failed)
    }
}

/// A run being written.
struct RunWriter<'a, T> {
    level: &'a mut Level,
    out: &'a mut Vec<u8>,
    start: u64,
    last: T,
}

impl<'a, T: Stored> RunWriter<'a, T> {
    fn new(level: &'a mut Level, out: &'a mut Vec<u8>) -> Self {
        let start = level.bytes;
        out.clear();
        Self { level, out, start, last: T::BEFORE }
    }

    #[inline]
    fn push(&mut self, item: &T, bytes: &[u8]) -> Result<(), Error> {
        item.encode(&self.last, self.out);
        self.out.extend_from_slice(bytes);
        self.last = *item;
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
struct Run<'a, T> {
    file: &'a File,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Start of the unread part of the buffer.
    from: usize,
    /// The next item, and where its bytes are in the buffer.
    head: T,
    head_at: usize,
}

impl<'a, T: Stored> Run<'a, T> {
    fn new(file: &'a File, (at, end): (u64, u64)) -> Self {
        Self { file, at, end, buffer: Vec::new(), from: 0, head: T::BEFORE, head_at: 0 }
    }

    /// Advances to the next item; false at the end.
    #[inline]
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let rest = self.buffer.get(self.from..).unwrap_or_default();
            if let Some((next, used)) = T::decode(rest, &self.head)
                && used + next.payload() <= rest.len()
            {
                self.head = next;
                self.head_at = self.from + used;
                self.from = self.head_at + next.payload();
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
        // An item that is longer than the buffer needs more room.
        let wanted = u64::try_from(READ_BYTES.max(self.buffer.len())).unwrap_or(left).min(left);
        if wanted == 0 {
            return Ok(false);
        }
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.at)).map_err(failed)?;
        let got = file.take(wanted).read_to_end(&mut self.buffer).map_err(failed)?;
        self.at += got as u64;
        if got == 0 {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(true)
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(self.head_at..self.from).unwrap_or_default()
    }
}

/// Visits the items of sorted runs in order. A run continues as long as it has the least item, which for traces is long.
fn merge<T: Stored, K: Ord + Copy>(
    mut runs: Vec<Run<'_, T>>,
    key: &impl Fn(&T) -> K,
    visit: &mut impl FnMut(&T, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut heads = BinaryHeap::with_capacity(runs.len());
    for (number, run) in runs.iter_mut().enumerate() {
        if run.advance()? {
            heads.push(Reverse((key(&run.head), number)));
        }
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let Some(run) = runs.get_mut(number) else { break };
        let rival = heads.peek().map(|Reverse(rival)| *rival);
        loop {
            visit(&run.head, run.bytes())?;
            if !run.advance()? {
                run.buffer = Vec::new();
                break;
            }
            let next = (key(&run.head), number);
            if rival.is_some_and(|rival| rival < next) {
                heads.push(Reverse(next));
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, written as the difference to the one before, with as many bytes behind it as `length`.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Item {
        number: u64,
        seq: u64,
        length: u32,
    }

    impl Stored for Item {
        const BEFORE: Self = Self { number: 0, seq: 0, length: 0 };

        fn encode(&self, last: &Self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.number.wrapping_sub(last.number).to_le_bytes());
            out.extend_from_slice(&self.seq.to_le_bytes());
            out.extend_from_slice(&self.length.to_le_bytes());
        }

        fn decode(bytes: &[u8], last: &Self) -> Option<(Self, usize)> {
            let number = crate::bytes::array_at::<8>(bytes, 0).map(u64::from_le_bytes)?;
            let seq = crate::bytes::array_at::<8>(bytes, 8).map(u64::from_le_bytes)?;
            let length = crate::bytes::array_at::<4>(bytes, 16).map(u32::from_le_bytes)?;
            Some((Self { number: number.wrapping_add(last.number), seq, length }, 20))
        }

        fn payload(&self) -> usize {
            self.length as usize
        }
    }

    fn items(count: u64) -> Vec<(Item, Vec<u8>)> {
        let item = |seq: u64| {
            let mixed = seq.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 20;
            let length = (mixed % 4) as u32;
            (Item { number: mixed % 100, seq, length }, vec![seq as u8; length as usize])
        };
        (0..count).map(item).collect()
    }

    /// What comes of runs of this many items each.
    fn merged(items: &[(Item, Vec<u8>)], run: usize) -> Vec<(Item, Vec<u8>)> {
        let mut runs = Runs::default();
        assert!(runs.is_empty());
        for chunk in items.chunks(run) {
            let mut sorted: Vec<_> = chunk.iter().map(|(item, bytes)| (item, bytes.as_slice())).collect();
            sorted.sort_by_key(|(item, _)| item.number);
            runs.add(sorted.into_iter(), |item| item.number).unwrap();
        }
        assert!(!runs.is_empty());
        let mut found = Vec::new();
        let mut keep = |item: &Item, bytes: &[u8]| {
            found.push((*item, bytes.to_vec()));
            Ok(())
        };
        runs.each(|item: &Item| item.number, &mut keep).unwrap();
        found
    }

    #[test]
    fn any_number_of_runs_and_levels_is_a_stable_sort() {
        let items = items(20_000);
        let mut expected = items.clone();
        expected.sort_by_key(|(item, _)| item.number);
        // The last one makes more than 64 times 64 runs: three levels.
        for run in [20_000, 7000, 100, 4] {
            assert!(merged(&items, run) == expected, "{run}");
        }
    }

    #[test]
    fn what_is_longer_than_a_buffer_survives() {
        let long = |number| (Item { number, seq: 0, length: 3 * READ_BYTES as u32 }, vec![9; 3 * READ_BYTES]);
        assert!(merged(&[long(5), long(1)], 1) == [long(1), long(5)]);
    }

    #[test]
    fn what_a_visitor_says_ends_it() {
        let mut runs = Runs::default();
        let items = items(10);
        runs.add(items[..1].iter().map(|(item, bytes)| (item, bytes.as_slice())), |item| item.number).unwrap();
        let stopped = runs.each(|item: &Item| item.number, &mut |_, _| Err(Error::usage("stop")));
        assert!(stopped.unwrap_err().to_string().contains("stop"));
    }
}

//! Sorts any number of items in bounded memory: chunks are sorted in memory, written to a temporary file as runs, and
//! merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;

use super::item::{ITEM_BYTES, Item, Key, Order, failed};

/// A chunk is written when it reaches this size.
const CHUNK_BYTES: usize = 12 << 20;

/// Runs merged at once. More are merged into one first, so that buffers do not grow with the trace.
const FAN_IN: usize = 64;

/// How much of a run is read or written at once.
const READ_BYTES: usize = 32 << 10;
const WRITE_BYTES: usize = 256 << 10;

/// What receives items in order.
pub(crate) type Each<'a> = dyn FnMut(&Item, &[u8]) -> Result<(), Error> + 'a;

/// Sorts items.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    order: Order,
    items: Vec<(Item, usize)>,
    arena: Vec<u8>,
    levels: Vec<Level>,
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

impl Sorter {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    /// Adds an item with the bytes of its events.
    #[inline]
    pub(crate) fn push(&mut self, mut item: Item, bytes: &[u8], end_bytes: &[u8]) -> Result<(), Error> {
        // A record is not longer than its limit; what is longer all the same is left out.
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok();
        (item.bytes, item.end_bytes) = (0, 0);
        let at = self.arena.len();
        if let (Some(first), Some(second)) = (length(bytes), length(end_bytes)) {
            (item.bytes, item.end_bytes) = (first, second);
            self.arena.extend_from_slice(bytes);
            self.arena.extend_from_slice(end_bytes);
        }
        self.items.push((item, at));
        let is_full = self.items.len() * size_of::<(Item, usize)>() + self.arena.len() >= CHUNK_BYTES;
        if is_full { self.spill() } else { Ok(()) }
    }

    /// Visits all items in order.
    pub(crate) fn each(mut self, visit: &mut Each<'_>) -> Result<(), Error> {
        if self.levels.is_empty() {
            self.sort();
            for (item, at) in &self.items {
                visit(item, self.arena.get(*at..*at + item.payload()).unwrap_or_default())?;
            }
            return Ok(());
        }
        if !self.items.is_empty() {
            self.spill()?;
        }
        (self.items, self.arena) = (Vec::new(), Vec::new());
        let runs = self.levels.iter().flat_map(|level| level.runs.iter().map(|&run| Run::new(&level.file, run)));
        merge(runs.collect(), self.order, visit)
    }

    fn sort(&mut self) {
        let order = self.order;
        // Most chunks are a few sorted runs, which a stable sort merges.
        self.items.sort_by_key(|(item, _)| order.key(item));
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.sort();
        if self.levels.is_empty() {
            self.levels.push(Level::new()?);
        }
        let Some(level) = self.levels.first_mut() else { return Ok(()) };
        let mut writer = RunWriter::new(level);
        for (item, at) in &self.items {
            writer.push(item, self.arena.get(*at..*at + item.payload()).unwrap_or_default())?;
        }
        writer.finish()?;
        self.items.clear();
        self.arena.clear();
        // The memory for one long event must not be kept.
        self.arena.shrink_to(CHUNK_BYTES);
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
        let mut writer = RunWriter::new(to);
        let runs = from.runs.iter().map(|&run| Run::new(&from.file, run)).collect();
        merge(runs, self.order, &mut |item, bytes| writer.push(item, bytes))?;
        writer.finish()?;
        from.runs.clear();
        from.bytes = 0;
        from.file.set_len(0).map_err(failed)
    }
}

/// A run being written.
struct RunWriter<'a> {
    level: &'a mut Level,
    out: Vec<u8>,
    start: u64,
}

impl<'a> RunWriter<'a> {
    fn new(level: &'a mut Level) -> Self {
        let start = level.bytes;
        Self { level, out: Vec::with_capacity(WRITE_BYTES), start }
    }

    fn push(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        item.encode(&mut self.out);
        self.out.extend_from_slice(bytes);
        if self.out.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        self.level.file.seek(SeekFrom::Start(self.level.bytes)).map_err(failed)?;
        self.level.file.write_all(&self.out).map_err(failed)?;
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
    head: Item,
}

impl<'a> Run<'a> {
    fn new(file: &'a File, (at, end): (u64, u64)) -> Self {
        Self { file, at, end, buffer: Vec::new(), from: 0, head: Item::default() }
    }

    /// Advances to the next item; false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let rest = self.buffer.get(self.from..).unwrap_or_default();
            let mut wanted = ITEM_BYTES;
            if let Some(item) = Item::decode(rest) {
                wanted += item.payload();
                if rest.len() >= wanted {
                    self.head = item;
                    self.from += wanted;
                    return Ok(true);
                }
            }
            if !self.refill(wanted)? {
                return Ok(false);
            }
        }
    }

    #[cold]
    fn refill(&mut self, wanted: usize) -> Result<bool, Error> {
        self.buffer.drain(..self.from);
        self.from = 0;
        let left = self.end - self.at;
        let wanted = u64::try_from(READ_BYTES.max(wanted)).unwrap_or(left).min(left);
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
        self.buffer.get(self.from - self.head.payload()..self.from).unwrap_or_default()
    }
}

/// Visits the items of sorted runs in order.
fn merge(mut runs: Vec<Run<'_>>, order: Order, visit: &mut Each<'_>) -> Result<(), Error> {
    let mut heads: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::with_capacity(runs.len());
    for (number, run) in runs.iter_mut().enumerate() {
        if run.advance()? {
            heads.push(Reverse((order.key(&run.head), number)));
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
            let key = order.key(&run.head);
            if rival.is_some_and(|rival| rival < key) {
                heads.push(Reverse((key, number)));
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: u64) -> Vec<(Item, Vec<u8>)> {
        (0..count)
            .map(|seq| {
                let mixed = seq.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 20;
                let start = (mixed % 1000).cast_signed() - 500;
                let item = Item {
                    home: (mixed >> 12) as u32 % 3,
                    owner: (mixed >> 16) % 5,
                    start,
                    end: start + ((mixed >> 24) % 7).cast_signed(),
                    seq,
                    bytes: (mixed % 4) as u32,
                    ..Item::default()
                };
                (item, vec![seq as u8; (mixed % 4) as usize])
            })
            .collect()
    }

    #[test]
    fn any_number_of_runs_and_levels_gives_the_order_of_a_plain_sort() {
        let items = items(20_000);
        for order in [Order::Pairs, Order::Nesting, Order::Owners] {
            let mut expected = items.clone();
            expected.sort_by_key(|(item, _)| order.key(item));
            // The last one makes more than 64 times 64 runs: three levels.
            for spill_every in [usize::MAX, 7000, 4] {
                let mut sorter = Sorter::new(order);
                for (n, (item, bytes)) in items.iter().enumerate() {
                    sorter.push(*item, bytes, &[]).unwrap();
                    if (n + 1) % spill_every == 0 {
                        sorter.spill().unwrap();
                    }
                }
                let mut found = Vec::new();
                let mut keep = |item: &Item, bytes: &[u8]| {
                    found.push((*item, bytes.to_vec()));
                    Ok(())
                };
                sorter.each(&mut keep).unwrap();
                assert!(found == expected, "{order:?}, {spill_every}");
            }
        }
    }

    #[test]
    fn an_event_longer_than_a_buffer_survives() {
        let long = vec![9; 3 * READ_BYTES];
        let mut sorter = Sorter::new(Order::Nesting);
        for start in [5, 1] {
            sorter.push(Item { start, ..Item::default() }, &long, b"end").unwrap();
            sorter.spill().unwrap();
        }
        let mut found = Vec::new();
        let mut keep = |item: &Item, bytes: &[u8]| {
            found.push((item.start, bytes.len()));
            Ok(())
        };
        sorter.each(&mut keep).unwrap();
        assert_eq!(found, [(1, 3 * READ_BYTES + 3), (5, 3 * READ_BYTES + 3)]);
    }
}

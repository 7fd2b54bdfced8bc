//! What the records of each chunk have in common, from the rows of the table `events`.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::parts::{bit_of, signed};
use super::{Index, NAMED_MAX, OTHERS, Open};
use crate::table::{Batch, BatchColumn, EVENTS, Scan, Values};
use crate::{Collect, Error, Format, OpenOptions, Sink, SpanOptions, tables};

/// Chunks that are read at once.
const RUN: usize = 16;

/// The columns that are read, in this order.
const COLUMNS: [&str; 4] = ["seq", "thread", "time_ns", "kind"];

/// Fills rows, times, threads and kinds of an index that has one chunk, and reports what is wrong.
pub(super) fn describe_all(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    index: &mut Index,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let described = read(format, open, options, index, 0..index.chunks.len(), sink)?;
    name(index, described);
    Ok(())
}

/// Fills rows, times, threads and kinds of all chunks; on all threads of `options`.
pub(super) fn describe(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    index: &mut Index,
) -> Result<(), Error> {
    let has_parts = index.chunks.len() > 1;
    let runs = if has_parts { index.chunks.len().div_ceil(RUN) } else { 1 };
    let next = AtomicUsize::new(0);
    let described = Mutex::new(vec![Described::default(); index.chunks.len()]);
    let of = &*index;
    let work = || -> Result<(), Error> {
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs {
                return Ok(());
            }
            let start = run * RUN;
            let end = if has_parts { (start + RUN).min(of.chunks.len()) } else { of.chunks.len() };
            // What is wrong was reported when the marks were found.
            let found = read(format, open, options, of, start..end, &mut Collect::default())?;
            let mut all = described.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter_mut().skip(start).zip(found).for_each(|(place, found)| *place = found);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..options.threads.min(runs)).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let stopped = || Err(Error::usage("a thread that reads the trace stopped"));
        threads.into_iter().fold(mine, |all, thread| all.and(thread.join().unwrap_or_else(|_| stopped())))
    })?;
    let described = described.into_inner().unwrap_or_else(PoisonError::into_inner);
    name(index, described);
    Ok(())
}

/// One chunk.
#[derive(Debug, Clone, Default)]
struct Described {
    rows: u64,
    time: Option<RangeInclusive<i64>>,
    threads: Few<i64>,
    kinds: Few<String>,
}

/// Distinct values, as far as they are few.
#[derive(Debug, Clone)]
struct Few<T> {
    values: Vec<T>,
    has_others: bool,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { values: Vec::new(), has_others: false }
    }
}

impl<T> Few<T> {
    fn add(&mut self, is_known: impl Fn(&T) -> bool, make: impl FnOnce() -> T) {
        match self.values.iter().rposition(is_known) {
            // What was seen last is likely next.
            Some(at) => {
                let last = self.values.len() - 1;
                self.values.swap(at, last);
            }
            None if self.values.len() < NAMED_MAX => self.values.push(make()),
            None => self.has_others = true,
        }
    }

    /// A bit for each value; new ones get a name while there is room.
    fn bits(&self, names: &mut Vec<T>) -> u64
    where
        T: Clone + Ord,
    {
        let mut values: Vec<&T> = self.values.iter().collect();
        values.sort_unstable();
        let mut bits = if self.has_others { OTHERS } else { 0 };
        for value in values {
            if !names.contains(value) && names.len() < NAMED_MAX {
                names.push(value.clone());
            }
            bits |= bit_of(names.iter().position(|known| known == value));
        }
        bits
    }
}

/// Gives threads and kinds their bits, in the order of the chunks.
fn name(index: &mut Index, described: Vec<Described>) {
    for (chunk, found) in index.chunks.iter_mut().zip(described) {
        chunk.rows = found.rows;
        chunk.time = found.time;
        chunk.threads = found.threads.bits(&mut index.threads);
        chunk.kinds = found.kinds.bits(&mut index.kinds);
    }
}

/// Reads a run of chunks.
fn read(
    format: &dyn Format,
    open: &Open<'_>,
    options: &OpenOptions,
    index: &Index,
    run: std::ops::Range<usize>,
    sink: &mut dyn Sink,
) -> Result<Vec<Described>, Error> {
    let mut found = vec![Described::default(); run.len()];
    let mut part = index.entire();
    if run.len() < index.chunks.len() {
        let mark = |at: usize| index.chunks.get(at).map(|chunk| chunk.mark.clone());
        part.from = mark(run.start).filter(|_| run.start > 0);
        part.until = mark(run.end).map(|mark| mark.offset);
    }
    let starts: Vec<i64> =
        (run.start + 1..run.end).filter_map(|at| index.chunks.get(at).map(|chunk| signed(chunk.mark.seq))).collect();
    let mut take = |batch: Batch| -> Result<(), Error> {
        note(&batch, &starts, &mut found);
        Ok(())
    };
    let options = OpenOptions { part: Some(part), threads: 1, ..options.clone() };
    let trace = format.open(open()?, &options)?;
    let scan = Scan::columns_of(&EVENTS, &COLUMNS)?;
    tables::read(format, trace, EVENTS.name, &scan, &SpanOptions::default(), &mut take, sink)?;
    Ok(found)
}

/// Takes the rows of a batch, which are in the order of their numbers.
fn note(batch: &Batch, starts: &[i64], found: &mut [Described]) {
    let [seq, thread, time, kind] = batch.columns.as_slice() else { return };
    let Values::Int64(seq) = &seq.values else { return };
    let mut row = 0;
    while row < batch.rows {
        let Some(&first) = seq.get(row) else { return };
        let chunk = starts.partition_point(|start| *start <= first);
        let end = match starts.get(chunk) {
            Some(next) => row + seq.get(row..).unwrap_or_default().partition_point(|seq| seq < next),
            None => batch.rows,
        };
        let Some(described) = found.get_mut(chunk) else { return };
        described.rows += (end - row) as u64;
        note_times(described, time, row..end);
        note_threads(described, thread, row..end);
        note_kinds(described, kind, row..end);
        row = end.max(row + 1);
    }
}

fn note_times(described: &mut Described, column: &BatchColumn, rows: std::ops::Range<usize>) {
    let Values::Int64(values) = &column.values else { return };
    let mut known = described.time.take().map(RangeInclusive::into_inner);
    if column.validity.is_empty() {
        let values = values.get(rows).unwrap_or_default();
        if let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) {
            known = Some(known.map_or((*min, *max), |(low, high)| (low.min(*min), high.max(*max))));
        }
    } else {
        for value in rows.filter(|row| column.is_valid(*row)).filter_map(|row| values.get(row)) {
            known = Some(known.map_or((*value, *value), |(low, high)| (low.min(*value), high.max(*value))));
        }
    }
    described.time = known.map(|(low, high)| low..=high);
}

fn note_threads(described: &mut Described, column: &BatchColumn, rows: std::ops::Range<usize>) {
    let Values::Int64(values) = &column.values else { return };
    let mut last = None;
    for row in rows.filter(|row| column.is_valid(*row)) {
        let Some(&thread) = values.get(row) else { return };
        if last != Some(thread) {
            described.threads.add(|known| *known == thread, || thread);
            last = Some(thread);
        }
    }
}

fn note_kinds(described: &mut Described, column: &BatchColumn, rows: std::ops::Range<usize>) {
    let Values::Name { keys, names } = &column.values else { return };
    let mut seen: u128 = 0;
    for &key in keys.get(rows).unwrap_or_default() {
        // Kinds are few: the first numbers of a dictionary.
        let bit = u32::try_from(key).ok().and_then(|key| 1_u128.checked_shl(key)).unwrap_or(0);
        if bit != 0 && seen & bit != 0 {
            continue;
        }
        seen |= bit;
        let kind = names.get(key);
        described.kinds.add(|known| known == kind, || kind.to_owned());
    }
}

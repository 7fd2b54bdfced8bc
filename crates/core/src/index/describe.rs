//! What the records of each chunk have in common, from the rows of the table `events`.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::parts::{bit_of, signed};
use super::{Index, NAMED_MAX, OTHERS, Open, RowGroup};
use crate::table::{Batch, BatchColumn, EVENTS, Scan, Values};
use crate::{Collect, Error, Format, OpenOptions, Sink, SpanOptions, tables};

/// Chunks that are read at once.
const RUN: usize = 16;

/// The columns that are read, in this order.
const COLUMNS: [&str; 5] = ["seq", "thread", "time_ns", "duration_ns", "kind"];

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
pub(super) struct Described {
    rows: u64,
    time: Option<RangeInclusive<i64>>,
    threads: Few<i64>,
    kinds: Few<String>,
    starts: Presence,
    durations: Presence,
}

impl Described {
    /// Adds rows that a format has found itself.
    pub(super) fn add(&mut self, group: &RowGroup<'_>) {
        self.rows += group.rows;
        if let Some(thread) = group.thread {
            self.threads.add(|known| *known == thread, || thread);
        }
        if let Some(time) = &group.time {
            self.add_time(time);
        }
        for kind in group.kinds {
            let add = |few: &mut Few<String>| few.add(|known| known == kind, || (*kind).to_owned());
            add(&mut self.kinds);
            add(self.starts.side(group.time.is_some()));
            add(self.durations.side(group.has_durations));
        }
    }

    /// Adds the rows of the chunk that follows.
    pub(super) fn join(&mut self, next: &Self) {
        self.rows += next.rows;
        if let Some(time) = &next.time {
            self.add_time(time);
        }
        self.threads.join(&next.threads);
        self.kinds.join(&next.kinds);
        self.starts.join(&next.starts);
        self.durations.join(&next.durations);
    }

    fn add_time(&mut self, time: &RangeInclusive<i64>) {
        let known = self.time.as_ref().unwrap_or(time);
        self.time = Some(*known.start().min(time.start())..=*known.end().max(time.end()));
    }
}

/// Kinds of rows with a value in a column, and kinds of rows without one.
#[derive(Debug, Clone, Default)]
struct Presence {
    with: Few<String>,
    without: Few<String>,
}

impl Presence {
    fn side(&mut self, has_value: bool) -> &mut Few<String> {
        if has_value { &mut self.with } else { &mut self.without }
    }

    fn join(&mut self, next: &Self) {
        self.with.join(&next.with);
        self.without.join(&next.without);
    }

    /// True when a row has no value although rows of its kind have one: what it would be is not known.
    fn is_unknown(&self, known: &BTreeSet<String>) -> bool {
        !known.is_empty() && (self.without.has_others || self.without.values.iter().any(|kind| known.contains(kind)))
    }
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

    fn join(&mut self, next: &Self)
    where
        T: Clone + PartialEq,
    {
        self.has_others |= next.has_others;
        next.values.iter().for_each(|value| self.add(|known| known == value, || value.clone()));
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
pub(super) fn name(index: &mut Index, described: Vec<Described>) {
    let kinds = |of: fn(&Described) -> &Presence| -> BTreeSet<String> {
        described.iter().flat_map(|found| of(found).with.values.iter().cloned()).collect()
    };
    let (timed, lasting) = (kinds(|found| &found.starts), kinds(|found| &found.durations));
    for (chunk, found) in index.chunks.iter_mut().zip(described) {
        chunk.rows = found.rows;
        chunk.time = if found.starts.is_unknown(&timed) {
            Some(i64::MIN..=i64::MAX)
        } else if found.durations.is_unknown(&lasting) {
            found.time.map(|time| *time.start()..=i64::MAX)
        } else {
            found.time
        };
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
    run: Range<usize>,
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
    let empty = format.empty_event_columns();
    let columns: Vec<&str> = COLUMNS.into_iter().filter(|column| !empty.contains(column)).collect();
    let mut take = |batch: Batch| -> Result<(), Error> {
        note(&batch, &columns, &starts, &mut found);
        Ok(())
    };
    let options = OpenOptions { part: Some(part), threads: 1, ..options.clone() };
    let trace = format.open(open()?, &options)?;
    let scan = Scan::columns_of(&EVENTS, &columns)?;
    tables::read(format, trace, EVENTS.name, &scan, &SpanOptions::default(), &mut take, sink)?;
    Ok(found)
}

/// Takes the rows of a batch, which are in the order of their numbers.
fn note(batch: &Batch, columns: &[&str], starts: &[i64], found: &mut [Described]) {
    let column = |name| columns.iter().position(|column| *column == name).and_then(|at| batch.columns.get(at));
    let [seq, thread, time, duration, kind] = COLUMNS.map(column);
    let Some(Values::Int64(seq)) = seq.map(|column| &column.values) else { return };
    let Some(kind) = kind else { return };
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
        let kinds = note_kinds(&mut described.kinds, kind, row..end, |_| true);
        if let Some(thread) = thread {
            note_threads(described, thread, row..end);
        }
        if let Some(time) = time {
            note_times(described, time, duration, row..end);
            note_presence(&mut described.starts, time, kind, (row..end, kinds));
        }
        if let Some(duration) = duration {
            note_presence(&mut described.durations, duration, kind, (row..end, kinds));
        }
        row = end.max(row + 1);
    }
}

fn note_times(described: &mut Described, starts: &BatchColumn, durations: Option<&BatchColumn>, rows: Range<usize>) {
    let Values::Int64(values) = &starts.values else { return };
    let durations = durations.filter(|column| !is_none(column, rows.clone()));
    let mut known = described.time.take().map(RangeInclusive::into_inner);
    let mut add = |low: i64, high: i64| {
        known = Some(known.map_or((low, high), |(lowest, highest)| (lowest.min(low), highest.max(high))));
    };
    match durations.map(|column| &column.values) {
        // Where there is no duration its value is 0.
        Some(Values::Int64(lengths)) => {
            for row in rows.filter(|row| starts.is_valid(*row)) {
                let (Some(&start), Some(&length)) = (values.get(row), lengths.get(row)) else { break };
                add(start, start.saturating_add(length));
            }
        }
        _ if starts.validity.is_empty() => {
            let values = values.get(rows).unwrap_or_default();
            if let (Some(low), Some(high)) = (values.iter().min(), values.iter().max()) {
                add(*low, *high);
            }
        }
        _ => rows.filter(|row| starts.is_valid(*row)).filter_map(|row| values.get(row)).for_each(|at| add(*at, *at)),
    }
    described.time = known.map(|(low, high)| low..=high);
}

/// True when no row has a value.
fn is_none(column: &BatchColumn, rows: Range<usize>) -> bool {
    !column.validity.is_empty() && column.validity.get(rows).is_none_or(|valid| !valid.contains(&true))
}

fn note_threads(described: &mut Described, column: &BatchColumn, rows: Range<usize>) {
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

/// Adds the kinds of the rows that a predicate keeps; returns their numbers as bits, none where one of them has no bit.
fn note_kinds(
    found: &mut Few<String>,
    column: &BatchColumn,
    rows: Range<usize>,
    keeps: impl Fn(usize) -> bool,
) -> u128 {
    let Values::Name { keys, names } = &column.values else { return 0 };
    let (mut seen, mut is_all) = (0_u128, true);
    for (row, &key) in rows.clone().zip(keys.get(rows).unwrap_or_default()) {
        // Kinds are few: the first numbers of a dictionary.
        let bit = u32::try_from(key).ok().and_then(|key| 1_u128.checked_shl(key)).unwrap_or(0);
        if bit != 0 && seen & bit != 0 || !keeps(row) {
            continue;
        }
        seen |= bit;
        is_all &= bit != 0;
        let kind = names.get(key);
        found.add(|known| known == kind, || kind.to_owned());
    }
    if is_all { seen } else { 0 }
}

/// Notes which kinds have a value in a column and which have none. `kinds` are those of the rows.
fn note_presence(found: &mut Presence, column: &BatchColumn, kind: &BatchColumn, (rows, kinds): (Range<usize>, u128)) {
    if is_none(column, rows.clone()) {
        note_bits(&mut found.without, kind, kinds, rows);
    } else if column.validity.is_empty() {
        note_bits(&mut found.with, kind, kinds, rows);
    } else {
        note_kinds(&mut found.with, kind, rows.clone(), |row| column.is_valid(row));
        note_kinds(&mut found.without, kind, rows, |row| !column.is_valid(row));
    }
}

/// Adds the kinds of all rows; `kinds` are their numbers, unless it is 0.
fn note_bits(found: &mut Few<String>, column: &BatchColumn, kinds: u128, rows: Range<usize>) {
    let Values::Name { names, .. } = &column.values else { return };
    if kinds == 0 {
        note_kinds(found, column, rows, |_| true);
        return;
    }
    for key in (0..i32::try_from(u128::BITS).unwrap_or(0)).filter(|key| kinds >> key & 1 == 1) {
        let kind = names.get(key);
        found.add(|known| known == kind, || kind.to_owned());
    }
}

//! Rows that meet the conditions: a format may hand out more than it was asked for.

use std::ops::RangeInclusive;

use anytrace_core::Error;
use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Filter, Scan, Strings, Table, Values};

/// Columns that a range of time is about; a table has at most one of them.
const TIMES: [&str; 3] = ["time_ns", "start", "start_ns"];

/// What of a table is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Names of columns; `None` is all.
    pub(crate) columns: Option<Vec<String>>,
    /// The first time that is wanted.
    pub(crate) start: Option<i64>,
    /// The first time after those.
    pub(crate) end: Option<i64>,
    /// Values of `thread`.
    pub(crate) thread: Option<Vec<i64>>,
}

/// Conditions on rows, and the scan that gives what they are about.
pub(crate) struct Conditions {
    pub(crate) scan: Scan,
    /// Columns asked for; the scan has more after them where a condition needs them.
    asked: usize,
    time: Option<(usize, RangeInclusive<i64>)>,
    thread: Option<(usize, Vec<i64>)>,
}

impl Conditions {
    /// The conditions on the rows of a table, and the numbers of the columns asked for.
    pub(crate) fn new(table: &Table, wanted: &Wanted) -> Result<(Self, Vec<usize>), Error> {
        let asked = match &wanted.columns {
            None => (0..table.columns.len()).collect(),
            Some(names) => names.iter().map(|name| column(table, name)).collect::<Result<Vec<_>, _>>()?,
        };
        let mut columns = asked.clone();
        let mut filter = Filter::default();
        let time = match time_range(wanted) {
            None => None,
            Some(range) => {
                filter.time = Some(range.clone());
                let at = TIMES.iter().find_map(|name| integer(table, name)).ok_or_else(|| {
                    Error::usage(format!("table {} has no column of times: start and end do not apply", table.name))
                })?;
                Some((place(&mut columns, at), range))
            }
        };
        let thread = match &wanted.thread {
            None => None,
            Some(ids) => {
                filter.threads = Some(ids.clone());
                let at = integer(table, "thread").ok_or_else(|| {
                    Error::usage(format!("table {} has no column of threads: thread does not apply", table.name))
                })?;
                Some((place(&mut columns, at), ids.clone()))
            }
        };
        let scan = Scan { columns: Some(columns), filter };
        Ok((Self { scan, asked: asked.len(), time, thread }, asked))
    }

    /// The rows that meet them, in the columns asked for.
    pub(crate) fn apply(&self, mut batch: Batch) -> Batch {
        if self.time.is_some() || self.thread.is_some() {
            let kept: Vec<bool> = (0..batch.rows).map(|row| self.has(&batch, row)).collect();
            batch = rows_of(batch, &kept);
        }
        batch.columns.truncate(self.asked);
        batch
    }

    fn has(&self, batch: &Batch, row: usize) -> bool {
        let value = |column: usize| batch.columns.get(column).and_then(|column| number(column, row));
        let in_time =
            |(column, range): &(usize, RangeInclusive<i64>)| value(*column).is_some_and(|n| range.contains(&n));
        let of_thread = |(column, ids): &(usize, Vec<i64>)| value(*column).is_some_and(|id| ids.contains(&id));
        self.time.as_ref().is_none_or(in_time) && self.thread.as_ref().is_none_or(of_thread)
    }
}

fn column(table: &Table, name: &str) -> Result<usize, Error> {
    let known = || table.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
    table
        .column(name)
        .ok_or_else(|| Error::usage(format!("table {} has no column {name}; it has {}", table.name, known())))
}

/// The number of a column of integers.
fn integer(table: &Table, name: &str) -> Option<usize> {
    let is_integer = |column: &Column| {
        matches!(column.kind, ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt32 | ColumnType::UInt64)
    };
    table.column(name).filter(|at| table.columns.get(*at).is_some_and(is_integer))
}

/// Where a column is among those that are scanned; added where it is not.
fn place(columns: &mut Vec<usize>, wanted: usize) -> usize {
    columns.iter().position(|column| *column == wanted).unwrap_or_else(|| {
        columns.push(wanted);
        columns.len() - 1
    })
}

/// Times from `start` to before `end`.
fn time_range(wanted: &Wanted) -> Option<RangeInclusive<i64>> {
    if wanted.start.is_none() && wanted.end.is_none() {
        return None;
    }
    let start = wanted.start.unwrap_or(i64::MIN);
    Some(match wanted.end {
        None => start..=i64::MAX,
        // No time is before the first.
        Some(i64::MIN) => RangeInclusive::new(1, 0),
        Some(end) => start..=end - 1,
    })
}

fn number(column: &BatchColumn, row: usize) -> Option<i64> {
    if !column.is_valid(row) {
        return None;
    }
    match &column.values {
        Values::Int32(values) => values.get(row).map(|n| i64::from(*n)),
        Values::Int64(values) => values.get(row).copied(),
        Values::UInt32(values) => values.get(row).map(|n| i64::from(*n)),
        Values::UInt64(values) => values.get(row).and_then(|n| i64::try_from(*n).ok()),
        _ => None,
    }
}

/// The rows that are kept.
fn rows_of(batch: Batch, kept: &[bool]) -> Batch {
    let rows = kept.iter().filter(|is_kept| **is_kept).count();
    if rows == batch.rows {
        return batch;
    }
    let columns = batch.columns.into_iter().map(|column| {
        let validity = if column.validity.is_empty() { Vec::new() } else { only(column.validity, kept) };
        BatchColumn { values: values_of(column.values, kept), validity }
    });
    Batch { rows, columns: columns.collect() }
}

fn only<T>(values: Vec<T>, kept: &[bool]) -> Vec<T> {
    values.into_iter().zip(kept).filter(|(_, is_kept)| **is_kept).map(|(value, _)| value).collect()
}

fn values_of(values: Values, kept: &[bool]) -> Values {
    match values {
        Values::Boolean(values) => Values::Boolean(only(values, kept)),
        Values::Int32(values) => Values::Int32(only(values, kept)),
        Values::Int64(values) => Values::Int64(only(values, kept)),
        Values::UInt32(values) => Values::UInt32(only(values, kept)),
        Values::UInt64(values) => Values::UInt64(only(values, kept)),
        Values::Float64(values) => Values::Float64(only(values, kept)),
        Values::Text(strings) => Values::Text(strings_of(&strings, kept)),
        Values::Bytes(strings) => Values::Bytes(strings_of(&strings, kept)),
        Values::Name { keys, names } => Values::Name { keys: only(keys, kept), names },
    }
}

fn strings_of(strings: &Strings, kept: &[bool]) -> Strings {
    let mut out = Strings::default();
    for (row, _) in kept.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
        out.bytes.extend_from_slice(strings.get(row));
        out.offsets.push(i32::try_from(out.bytes.len()).unwrap_or(i32::MAX));
    }
    out
}

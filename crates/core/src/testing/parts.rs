//! What must hold of every trace that is read in parts, whatever the bytes.

use serde_json::Value as Json;

use super::dumps::examine_dumps;
use super::tables::Read;
use crate::index::{Index, Part, build_bytes, describe_again, is_of_spans};
use crate::table::{Filter, Scan, Table};
use crate::{Collect, Format, OpenOptions, Severity, tables};

/// Numbers of parts that are tried.
const COUNTS: [usize; 5] = [1, 2, 4, 7, 64];

/// Distances of marks, in bytes, that are tried.
const DISTANCES: [u64; 3] = [1, 300, 5000];

/// Reads each table of [`Format::part_tables`] in parts, with marks at several distances: the rows in order (those of
/// spans in any order: a trace read at once has them thread by thread) and the sorted diagnostics are those of the trace read at once, and an index that leaves out what a filter excludes leaves out
/// nothing else. A dump in parts is the dump of the trace. Returns the largest number of parts.
///
/// # Panics
/// Where one of this does not hold.
pub fn examine_parts(format: &dyn Format, bytes: &[u8]) -> usize {
    let mut most = 0;
    for every_bytes in DISTANCES {
        let index = index_of(format, bytes, every_bytes);
        for name in format.part_tables() {
            let table = tables::all(format).into_iter().find(|table| table.name == *name);
            let table = table.unwrap_or_else(|| panic!("{} has no table {name}", format.name()));
            most = most.max(examine(format, bytes, &table, &index));
        }
        if index.chunks.len() > 1 && (every_bytes > 1 || bytes.len() < 2000) {
            examine_dumps(format, bytes, &index);
        }
    }
    most
}

/// The index of a trace, written and read.
fn index_of(format: &dyn Format, bytes: &[u8], every_bytes: u64) -> Index {
    let options = OpenOptions { threads: 2, ..OpenOptions::default() };
    let made = build_bytes(format, bytes, &options, every_bytes, &mut Collect::default());
    let index = made.unwrap_or_else(|error| panic!("no index: {error}"));
    let read = Index::decode(&index.encode()).unwrap_or_else(|fault| panic!("its own index: {fault}"));
    assert!(read == index, "an index changes when it is written");
    let again = describe_again(format, bytes, &options, &index).unwrap_or_else(|error| panic!("no rows: {error}"));
    if format.part_tables().contains(&"events") {
        let differs = index.chunks.iter().zip(&again.chunks).find(|(one, other)| one != other);
        assert!(differs.is_none(), "an index and the rows of its trace: {differs:?}");
        assert!(index == again, "{:?} {:?}, {:?} {:?}", index.threads, index.kinds, again.threads, again.kinds);
    }
    index
}

fn read(format: &dyn Format, bytes: &[u8], table: &Table, filter: &Filter, part: Option<Part>) -> Read {
    let scan = Scan { filter: filter.clone(), ..Scan::default() };
    let options = OpenOptions { part, ..OpenOptions::default() };
    super::tables::rows_with(format, bytes, table, &scan, &options)
        .unwrap_or_else(|error| panic!("{}: {error}", table.name))
}

fn examine(format: &dyn Format, bytes: &[u8], table: &Table, index: &Index) -> usize {
    let reports = |read: &Read| {
        let mut texts: Vec<String> = read.1.iter().map(ToString::to_string).collect();
        texts.sort_unstable();
        texts
    };
    let ordered = |mut rows: Vec<Vec<Json>>| {
        if is_of_spans(table) {
            rows.sort_by_cached_key(|row| Json::from(row.clone()).to_string());
        }
        rows
    };
    let mut all = read(format, bytes, table, &Filter::default(), None);
    all.0 = ordered(all.0);
    if table.name == "events" {
        for number in format.empty_event_columns().iter().filter_map(|name| table.column(name)) {
            assert!(all.0.iter().all(|row| row[number].is_null()), "column {number} of events is not empty");
        }
    }
    let mut most = 0;
    for count in COUNTS {
        let parts = index.parts(table, &Filter::default(), count);
        most = most.max(parts.len());
        assert!(parts.len() <= 2 * count, "{} parts instead of {count}", parts.len());
        let mut joined = Read::default();
        for part in parts {
            let (rows, damage) = read(format, bytes, table, &Filter::default(), Some(part));
            joined.0.extend(rows);
            joined.1.extend(damage);
        }
        joined.0 = ordered(joined.0);
        let differs = joined.0.iter().zip(&all.0).position(|(one, other)| one != other);
        let differs = differs.map(|row| (row, &joined.0[row], &all.0[row]));
        assert!(differs.is_none(), "{} in {count} parts: {differs:?}", table.name);
        assert_eq!(joined.0.len(), all.0.len(), "{} in {count} parts", table.name);
        assert_eq!(reports(&joined), reports(&all), "{} in {count} parts", table.name);
    }
    for (filter, keeps) in filters(table, &all.0) {
        let wanted: Vec<_> = all.0.iter().filter(|row| keeps(row)).collect();
        let parts = index.parts(table, &filter, 7);
        let found: Vec<_> =
            parts.into_iter().flat_map(|part| read(format, bytes, table, &filter, Some(part)).0).collect();
        let found = ordered(found);
        let found: Vec<_> = found.iter().filter(|row| keeps(row)).collect();
        assert!(found == wanted, "{}: {filter:?} loses rows", table.name);
    }
    let damaged = index.chunks.iter().any(|chunk| chunk.is_damaged);
    let mut reported = all.1;
    if is_of_spans(table) {
        // No filter leaves out the last part, which may report what concerns all of them.
        let mut parts = index.parts(table, &Filter::default(), 64);
        parts.pop();
        reported =
            parts.into_iter().flat_map(|part| read(format, bytes, table, &Filter::default(), Some(part)).1).collect();
    }
    let is_reported = reported.iter().any(|diagnostic| diagnostic.severity > Severity::Note);
    assert!(damaged || !is_reported, "the index does not know that the trace is damaged");
    most
}

type Keeps = Box<dyn Fn(&[Json]) -> bool>;

/// Filters that keep a few rows in the middle, and what they keep.
fn filters(table: &Table, all: &[Vec<Json>]) -> Vec<(Filter, Keeps)> {
    let mut made: Vec<(Filter, Keeps)> = Vec::new();
    let Some(middle) = all.get(all.len() / 2) else { return made };
    let mut range = |column: &str, set: &dyn Fn(&mut Filter, i64)| {
        let Some((number, at)) = table.column(column).and_then(|number| Some((number, middle[number].as_i64()?)))
        else {
            return;
        };
        let mut filter = Filter::default();
        set(&mut filter, at);
        let of = filter.clone();
        made.push((
            filter,
            Box::new(move |row: &[Json]| {
                row[number].as_i64().is_some_and(|value| {
                    of.seq.as_ref().or(of.time.as_ref()).is_none_or(|range| range.contains(&value))
                        && of.threads.as_ref().is_none_or(|threads| threads.contains(&value))
                })
            }),
        ));
    };
    range("seq", &|filter, at| filter.seq = Some(at..=at.saturating_add(5)));
    range("start", &|filter, at| filter.time = Some(at..=at.saturating_add(1000)));
    range("time_ns", &|filter, at| filter.time = Some(at..=at.saturating_add(1000)));
    range("thread", &|filter, at| filter.threads = Some(vec![at]));
    if let Some(number) = table.column("kind")
        && let Some(kind) = middle[number].as_str().map(str::to_owned)
    {
        let filter = Filter { kinds: Some(vec![kind.clone()]), ..Filter::default() };
        made.push((filter, Box::new(move |row: &[Json]| row[number] == kind.as_str())));
    }
    made
}

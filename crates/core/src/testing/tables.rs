//! What must hold of every table of every format, whatever the bytes.

use serde_json::{Value as Json, json};

use crate::table::{self, Batch, BatchColumn, ColumnType, Scan, Table, Values};
use crate::{Collect, Diagnostic, Error, Format, Input, OpenOptions, SpanOptions, tables};

/// A table as rows of JSON values, and what was reported.
pub type Read = (Vec<Vec<Json>>, Vec<Diagnostic>);

/// Reads a table of a trace; checks each batch on the way.
///
/// # Errors
/// What reading it returns.
///
/// # Panics
/// Where a batch does not agree with the table's columns.
pub fn rows(format: &dyn Format, bytes: &[u8], of: &Table, scan: &Scan) -> Result<Read, Error> {
    rows_with(format, bytes, of, scan, &OpenOptions::default())
}

/// As [`rows`], of a trace that is opened with these options.
///
/// # Errors
/// As [`rows`].
///
/// # Panics
/// As [`rows`].
pub fn rows_with(
    format: &dyn Format,
    bytes: &[u8],
    of: &Table,
    scan: &Scan,
    options: &OpenOptions,
) -> Result<Read, Error> {
    let trace = format.open(Input::from_bytes("table", bytes.to_vec()), options)?;
    let (mut made, mut damage) = (Vec::new(), Collect::default());
    let chosen: Vec<usize> = scan.columns.clone().unwrap_or_else(|| (0..of.columns.len()).collect());
    let mut take = |batch: Batch| -> Result<(), Error> {
        assert!(batch.rows > 0 && batch.rows <= table::BATCH_ROWS, "{}: {} rows", of.name, batch.rows);
        assert_eq!(batch.columns.len(), chosen.len(), "{}", of.name);
        for (column, number) in batch.columns.iter().zip(&chosen) {
            let wanted = &of.columns[*number];
            assert_eq!(column.values.len(), batch.rows, "{}.{}", of.name, wanted.name);
            assert_eq!(kind_of(&column.values), wanted.kind, "{}.{}", of.name, wanted.name);
            assert!(column.validity.is_empty() || column.validity.len() == batch.rows, "{}.{}", of.name, wanted.name);
            let has_absent = column.validity.contains(&false);
            assert!(wanted.is_nullable || !has_absent, "{}.{} has no value in a row", of.name, wanted.name);
        }
        made.extend((0..batch.rows).map(|row| batch.columns.iter().map(|column| cell(column, row)).collect()));
        Ok(())
    };
    tables::read(format, trace, of.name, scan, &SpanOptions::default(), &mut take, &mut damage)?;
    Ok((made, damage.0))
}

fn kind_of(values: &Values) -> ColumnType {
    match values {
        Values::Boolean(_) => ColumnType::Boolean,
        Values::Int32(_) => ColumnType::Int32,
        Values::Int64(_) => ColumnType::Int64,
        Values::UInt32(_) => ColumnType::UInt32,
        Values::UInt64(_) => ColumnType::UInt64,
        Values::Float64(_) => ColumnType::Float64,
        Values::Text(_) => ColumnType::Text,
        Values::Bytes(_) => ColumnType::Bytes,
        Values::Name { .. } => ColumnType::Name,
    }
}

/// A value as JSON; bytes are an array of numbers.
fn cell(column: &BatchColumn, row: usize) -> Json {
    if !column.is_valid(row) {
        return Json::Null;
    }
    let text = |bytes: &[u8]| json!(std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("no UTF-8: {error}")));
    match &column.values {
        Values::Boolean(values) => json!(values[row]),
        Values::Int32(values) => json!(values[row]),
        Values::Int64(values) => json!(values[row]),
        Values::UInt32(values) => json!(values[row]),
        Values::UInt64(values) => json!(values[row]),
        Values::Float64(values) => json!(values[row].to_bits()),
        Values::Text(strings) => text(strings.get(row)),
        Values::Bytes(strings) => json!(strings.get(row)),
        Values::Name { keys, names } => {
            assert!(usize::try_from(keys[row]).is_ok_and(|key| key < names.len()), "a key without a name");
            text(names.get(keys[row]).as_bytes())
        }
    }
}

/// Checks every table of a trace: columns one at a time and in other orders are those of the entire table, a filter
/// leaves nothing out that it should not, reports do not depend on what is asked for, attributes are JSON objects.
/// Returns the rows of each table.
///
/// # Panics
/// Where one of this does not hold.
pub fn examine_tables(format: &dyn Format, bytes: &[u8]) -> Vec<(&'static str, Vec<Vec<Json>>)> {
    let tables = tables::all(format);
    assert_eq!(tables.first().map(|first| first.name), Some("events"), "{}", format.name());
    tables.iter().map(|of| (of.name, examine_table(format, bytes, of))).collect()
}

fn examine_table(format: &dyn Format, bytes: &[u8], of: &Table) -> Vec<Vec<Json>> {
    let read = |scan: &Scan| rows(format, bytes, of, scan).unwrap_or_else(|error| panic!("{}: {error}", of.name));
    let (all, damage) = read(&Scan::default());
    let reported = |damage: &[Diagnostic]| damage.iter().map(ToString::to_string).collect::<Vec<_>>();
    for number in 0..of.columns.len() {
        let (one, again) = read(&Scan { columns: Some(vec![number]), ..Scan::default() });
        let column: Vec<_> = all.iter().map(|row| vec![row[number].clone()]).collect();
        assert!(one == column, "{}.{} alone differs", of.name, of.columns[number].name);
        assert_eq!(reported(&again), reported(&damage), "{}", of.name);
    }
    let reversed: Vec<usize> = (0..of.columns.len()).rev().collect();
    let (backwards, _) = read(&Scan { columns: Some(reversed), ..Scan::default() });
    assert!(backwards.iter().zip(&all).all(|(back, row)| back.iter().rev().eq(row)), "{}", of.name);
    let (none, _) = read(&Scan { columns: Some(Vec::new()), ..Scan::default() });
    assert_eq!(none.len(), all.len(), "{} without columns", of.name);
    filters(of, &all, &read);
    if let Some(number) = of.column("attributes") {
        for row in all.iter().filter(|row| !row[number].is_null()) {
            let text = row[number].as_str().unwrap_or_default();
            let parsed: Result<Json, _> = serde_json::from_str(text);
            let is_deep = parsed.as_ref().is_err_and(|error| error.to_string().starts_with("recursion limit"));
            assert!(is_deep || parsed.is_ok_and(|json| json.is_object()), "{}: {text}", of.name);
        }
    }
    all
}

/// A filter may keep more than is wanted, never less.
fn filters(of: &Table, all: &[Vec<Json>], read: &dyn Fn(&Scan) -> Read) {
    let middle = |number: usize| all.get(all.len() / 2).and_then(|row| row[number].as_i64());
    let check = |scan: &Scan, keeps: &dyn Fn(&Vec<Json>) -> bool, what: &str| {
        let (kept, _) = read(scan);
        let kept: Vec<_> = kept.into_iter().filter(|row| keeps(row)).collect();
        let wanted: Vec<_> = all.iter().filter(|row| keeps(row)).cloned().collect();
        assert!(kept == wanted, "{}: the filter by {what} loses rows", of.name);
    };
    if let Some((number, at)) = of.column("seq").and_then(|number| Some((number, middle(number)?))) {
        let mut scan = Scan::default();
        scan.filter.seq = Some(at..=at.saturating_add(5));
        check(&scan, &|row| row[number].as_i64().is_some_and(|seq| scan.filter.has_seq(seq)), "seq");
    }
    let time = ["time_ns", "start", "start_ns"].iter().find_map(|name| of.column(name));
    if let Some((number, at)) = time.and_then(|number| Some((number, middle(number)?))) {
        let mut scan = Scan::default();
        scan.filter.time = Some(at..=at.saturating_add(1000));
        check(&scan, &|row| row[number].as_i64().is_some_and(|time| scan.filter.has_time(time)), "time");
    }
    if let Some((number, at)) = of.column("thread").and_then(|number| Some((number, middle(number)?))) {
        let mut scan = Scan::default();
        scan.filter.threads = Some(vec![at]);
        check(&scan, &|row| row[number].as_i64() == Some(at), "thread");
    }
    if let Some(number) = of.column("kind")
        && let Some(kind) = all.get(all.len() / 2).and_then(|row| row[number].as_str())
    {
        let mut scan = Scan::default();
        scan.filter.kinds = Some(vec![kind.to_owned()]);
        check(&scan, &|row| row[number] == kind, "kind");
    }
}

//! The trace as tables: `events`, which every format has, and `records` with the fields as columns.

use anytrace_core::table::{Column, ColumnType, EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::text::{push_dec, push_json_bytes};
use anytrace_core::{Error, Place, Sink, Step, Summary};

use crate::wire::reader::Reader;
use crate::wire::record::{NAME, Record};

/// The tables of the format.
pub(crate) static TABLES: [Table; 2] = [EVENTS, RECORDS];

const RECORDS: Table = Table {
    name: "records",
    help: "a record",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record in the trace, from 0"),
        Column::new("number", ColumnType::UInt64, "its own number"),
        Column::new("text", ColumnType::Text, "its text"),
    ],
};

/// What the column `kind` has.
const KIND: &str = "record";

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    mut reader: Reader,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Some(wanted) = TABLES.iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("{NAME} traces have no table {table}")));
    };
    let is_events = wanted.name == EVENTS.name;
    let filter = &scan.filter;
    let mut rows = Rows::new(wanted, scan, out);
    while let Some(step) = reader.next()? {
        match step {
            Step::Damage(diagnostic) => sink.report(diagnostic)?,
            Step::Record(place, record) => {
                let seq = i64::try_from(place.seq).unwrap_or(i64::MAX);
                if filter.ends_before(seq) {
                    break;
                }
                if !filter.has_seq(seq) || is_events && !filter.has_kind(KIND) {
                    continue;
                }
                if is_events {
                    event(&mut rows, place, &record);
                } else {
                    rows.count(place.seq);
                    rows.uint64(record.number);
                    rows.raw_text(record.text);
                }
                rows.end()?;
            }
        }
    }
    rows.finish()?;
    let passed = reader.passed();
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// A row of `events`. The format has no threads, no times and no names.
fn event(rows: &mut Rows<'_>, place: Place, record: &Record<'_>) {
    rows.count(place.seq);
    rows.count(place.offset);
    rows.int64(None);
    rows.int64(None);
    rows.int64(None);
    rows.name(KIND);
    rows.name(None);
    rows.text_with(|| {
        let mut json = b"{\"number\":".to_vec();
        push_dec(&mut json, record.number);
        json.extend_from_slice(b",\"text\":");
        push_json_bytes(&mut json, record.text);
        json.push(b'}');
        String::from_utf8(json).ok()
    });
}

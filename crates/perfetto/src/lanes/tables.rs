//! The trace as tables: `events`, which every format has, and `packets` with the fields that all packets may have.

use anytrace_core::table::{Column, ColumnType, EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Place, Sink, Step, Summary};

use crate::model::names::Names;
use crate::verbs::lines::{event_kind, push_json_packet};
use crate::verbs::select::{Examiner, Facts, has_events};
use crate::wire::reader::Reader;
use crate::wire::record::{NAME, Record};

/// The tables of the format.
pub(crate) static TABLES: [Table; 2] = [EVENTS, PACKETS];

const PACKETS: Table = Table {
    name: "packets",
    help: "a packet",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the packet in the trace, from 0"),
        Column::new("offset", ColumnType::Int64, "its first byte"),
        Column::new("kind", ColumnType::Name, "the name of its data"),
        Column::new("field", ColumnType::UInt32, "the field number of its data; 0 for none"),
        Column::new("sequence", ColumnType::UInt32, "trusted_packet_sequence_id; 0 for none"),
        Column::nullable("timestamp", ColumnType::UInt64, "as on the wire, on its own clock"),
        Column::nullable("clock", ColumnType::UInt32, "timestamp_clock_id, where the packet has it"),
        Column::new("bytes", ColumnType::Int64, "length of the packet without tag and length"),
        Column::new("data_bytes", ColumnType::Int64, "length of its data"),
        Column::new("interned_bytes", ColumnType::Int64, "length of its interned data"),
    ],
};

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    mut reader: Reader,
    distinct_max: usize,
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
    let mut examiner = Examiner::new(distinct_max);
    while let Some(step) = reader.next()? {
        match step {
            Step::Damage(diagnostic) => sink.report(diagnostic)?,
            Step::Record(place, record) => {
                let seq = i64::try_from(place.seq).unwrap_or(i64::MAX);
                if filter.ends_before(seq) {
                    break;
                }
                // Times and names depend on all packets before.
                let facts = if is_events { examiner.facts(place, &record)? } else { None };
                let kind = if is_events { event_kind(&record) } else { record.kind_name() };
                if !filter.has_seq(seq) || !filter.has_kind(kind) {
                    continue;
                }
                if is_events {
                    event(&mut rows, place, &record, &facts.unwrap_or_default(), &examiner.session.names, kind);
                } else {
                    packet(&mut rows, place, &record);
                }
                rows.end()?;
            }
        }
    }
    rows.finish()?;
    let passed = reader.passed();
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A row of `events`: a bundle of the kernel's events is one, with the earliest time in it.
fn event(rows: &mut Rows<'_>, place: Place, record: &Record<'_>, facts: &Facts, names: &Names, kind: &'static str) {
    rows.count(place.seq);
    rows.count(place.offset);
    rows.int64(facts.thread.map(signed));
    rows.int64(facts.times.map(|(start, _)| signed(start)));
    let length = facts.times.filter(|_| has_events(record) && facts.name.is_none());
    rows.int64(length.map(|(start, end)| signed(end.saturating_sub(start))));
    rows.name(kind);
    let name = facts.name.filter(|_| kind != "slice_end").map(|name| anytrace_core::text::shown(names.get(name)));
    rows.name(name.as_deref());
    rows.text_with(|| {
        let mut json = b"{\"packet\":".to_vec();
        push_json_packet(&mut json, record.body());
        json.push(b'}');
        String::from_utf8(json).ok()
    });
}

fn packet(rows: &mut Rows<'_>, place: Place, record: &Record<'_>) {
    rows.count(place.seq);
    rows.count(place.offset);
    rows.name(record.kind_name());
    rows.uint32(record.kind());
    rows.uint32(record.sequence());
    rows.uint64(record.timestamp());
    rows.uint32(record.head.clock);
    rows.count(record.body().len() as u64);
    rows.count(record.data().len() as u64);
    rows.count(record.interned().map_or(0, <[u8]>::len) as u64);
}

//! The recording as tables: `events`, which every format has, and `samples`.

use anytrace_core::table::{Column, ColumnType, EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Place, Sink, Summary};

use crate::model::session::{Entered, Go, Session, What, walk};
use crate::verbs::lines::push_fields;
use crate::wire::reader::Reader;
use crate::wire::record::{NAME, Record};
use crate::wire::text::Content;

/// The tables of the format.
pub(crate) static TABLES: [Table; 2] = [EVENTS, SAMPLES];

const SAMPLES: Table = Table {
    name: "samples",
    help: "a sample",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of its record, from 0"),
        Column::new("event", ColumnType::Name, "the event that was sampled"),
        Column::nullable("process", ColumnType::Int64, "process id"),
        Column::nullable("thread", ColumnType::Int64, "thread id"),
        Column::nullable("cpu", ColumnType::Int64, "processor"),
        Column::nullable("time_ns", ColumnType::Int64, "nanoseconds on the clock of the recording"),
        Column::new("period", ColumnType::UInt64, "how many events it represents"),
        Column::nullable("ip", ColumnType::UInt64, "address of the instruction"),
        Column::nullable("addresses", ColumnType::Int64, "addresses on its stack, marks included"),
    ],
};

/// Reads a recording as the rows of a table.
pub(crate) fn read(
    mut reader: Reader,
    distinct_max: usize,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Some(wanted) = TABLES.iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("{NAME} recordings have no table {table}")));
    };
    let is_events = wanted.name == EVENTS.name;
    let filter = &scan.filter;
    let mut rows = Rows::new(wanted, scan, out);
    let mut session = Session::new(distinct_max);
    let passed = walk(&mut reader, &mut session, sink, |session, place, record, entered, _| {
        let seq = i64::try_from(place.seq).unwrap_or(i64::MAX);
        if filter.ends_before(seq) {
            return Ok(Go::Stop);
        }
        let is_wanted = if is_events { filter.has_kind(record.kind_name()) } else { entered.is_sample() };
        if !is_wanted || !filter.has_seq(seq) {
            return Ok(Go::On);
        }
        let (thread, time) = (signed(entered.thread), signed(entered.time_ns));
        if time.is_some_and(|time| !filter.has_time(time)) || thread.is_some_and(|thread| !filter.has_thread(thread)) {
            return Ok(Go::On);
        }
        if is_events {
            event(&mut rows, place, record, entered, session);
        } else {
            sample(&mut rows, place, entered, session);
        }
        rows.end()?;
        Ok(Go::On)
    })?;
    rows.finish()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

fn signed(value: Option<u64>) -> Option<i64> {
    value.and_then(|value| i64::try_from(value).ok())
}

fn event(rows: &mut Rows<'_>, place: Place, record: &Record<'_>, entered: &Entered<'_>, session: &Session) {
    rows.count(place.seq);
    rows.count(place.offset);
    rows.int64(signed(entered.thread));
    rows.int64(signed(entered.time_ns));
    rows.int64(None);
    rows.name(record.kind_name());
    match record {
        Record::Line(line) if matches!(line.content, Content::Frame(_)) => match &line.content {
            Content::Frame(frame) => rows.raw_name(frame.symbol),
            _ => rows.name(None),
        },
        _ if entered.is_sample() => rows.name(session.event_name(entered.event)),
        _ => rows.name(None),
    }
    rows.text_with(|| {
        let mut json = Vec::new();
        push_fields(&mut json, record, entered, session);
        match json.first_mut() {
            Some(first) => *first = b'{',
            None => json.push(b'{'),
        }
        json.push(b'}');
        String::from_utf8(json).ok()
    });
}

fn sample(rows: &mut Rows<'_>, place: Place, entered: &Entered<'_>, session: &Session) {
    rows.count(place.seq);
    rows.name(session.event_name(entered.event));
    rows.int64(signed(entered.process));
    rows.int64(signed(entered.thread));
    rows.int64(entered.cpu.map(i64::from));
    rows.int64(signed(entered.time_ns));
    rows.uint64(entered.weight);
    let sample = if let What::Sample(sample) = &entered.what { Some(sample) } else { None };
    rows.uint64(sample.and_then(|sample| sample.ip));
    rows.count(sample.map(|sample| sample.chain.len() as u64));
}

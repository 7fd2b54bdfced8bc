//! The trace as tables: `events`, which every format has.

use anytrace_core::table::{EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Sink, Summary};

use crate::verbs::facts::{Facts, name};
use crate::verbs::lines::push_fields;
use crate::verbs::walk::{Go, walk};
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// The tables of the format.
pub(crate) static TABLES: [Table; 1] = [EVENTS];

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    mut reader: Reader,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    if table != EVENTS.name {
        return Err(Error::usage(format!("{NAME} traces have no table {table}")));
    }
    let filter = &scan.filter;
    let mut rows = Rows::new(&EVENTS, scan, out);
    let passed = walk(&mut reader, sink, |reader, place, _| {
        let seq = i64::try_from(place.seq).unwrap_or(i64::MAX);
        if filter.ends_before(seq) {
            return Ok(Go::Stop);
        }
        let kind = reader.record().kind.name();
        if !filter.has_seq(seq) || !filter.has_kind(kind) {
            return Ok(Go::On);
        }
        let facts = Facts::of(reader).unwrap_or_default();
        let signed = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let (thread, time) = (signed(facts.thread), signed(facts.time_ns));
        if time.is_some_and(|time| !filter.has_time(time)) || thread.is_some_and(|thread| !filter.has_thread(thread)) {
            return Ok(Go::On);
        }
        rows.count(place.seq);
        rows.count(place.offset);
        rows.int64(thread);
        rows.int64(time);
        rows.int64(None);
        rows.name(kind);
        rows.raw_name(name(reader).map(str::as_bytes));
        rows.text_with(|| {
            let mut json = Vec::new();
            push_fields(&mut json, reader);
            match json.first_mut() {
                Some(first) => *first = b'{',
                None => json.push(b'{'),
            }
            json.push(b'}');
            String::from_utf8(json).ok()
        });
        rows.end()?;
        Ok(Go::On)
    })?;
    rows.finish()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

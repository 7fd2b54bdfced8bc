//! The trace as tables: `events`, which every format has.

use anytrace_core::table::{EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Sink, Summary};

use crate::model::session::{Facts, Go, Session, walk};
use crate::verbs::lines::push_fields;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// The tables of the format.
pub(crate) static TABLES: [Table; 1] = [EVENTS];

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    mut reader: Reader,
    distinct_max: usize,
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
    let mut session = Session::new(distinct_max);
    let passed = walk(&mut reader, &mut session, sink, |session, place, record, content, _| {
        let seq = i64::try_from(place.seq).unwrap_or(i64::MAX);
        if filter.ends_before(seq) {
            return Ok(Go::Stop);
        }
        if !filter.has_seq(seq) || !filter.has_kind(record.kind_name()) {
            return Ok(Go::On);
        }
        let facts = content.as_ref().map_or_else(|_| Facts::default(), |content| session.facts(content));
        let signed = |value: Option<u64>| value.and_then(|value| i64::try_from(value).ok());
        let (thread, time) = (signed(facts.thread.map(|(_, thread)| thread)), signed(facts.time_ns));
        if time.is_some_and(|time| !filter.has_time(time)) || thread.is_some_and(|thread| !filter.has_thread(thread)) {
            return Ok(Go::On);
        }
        rows.count(place.seq);
        rows.count(place.offset);
        rows.int64(thread);
        rows.int64(time);
        rows.int64(signed(facts.duration_ns));
        rows.name(record.kind_name());
        rows.raw_name(facts.name.map(|name| session.names.get(name)));
        rows.text_with(|| {
            let mut json = Vec::new();
            push_fields(&mut json, &content, session);
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

//! The trace as tables: `events`, which every format has. Its spans are a table too, made of [`super::spans`].

use anytrace_core::table::{EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::text::{push_json_bytes, shown};
use anytrace_core::{Error, Place, Sink, Summary};

use crate::wire::event::{Event, Id, name};
use crate::wire::json::first_lenient;
use crate::wire::reader::{Reader, Visit};
use crate::wire::record::{Kind, NAME, Record};

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
    let rows = Rows::new(&EVENTS, scan, out);
    let mut made = Made { rows, scan, is_done: false, room: Vec::new() };
    let passed = reader.walk(&mut made, sink)?;
    made.rows.finish()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

/// Thread and time of an event, as far as it has them.
pub(super) fn row_of(record: &Record<'_>) -> (Option<i64>, Option<i64>, Option<i64>) {
    let Ok(event) = Event::of(record) else { return (None, None, None) };
    let thread = match event.thread {
        Id::Number(number) if record.thread.is_some() => i64::try_from(number).ok(),
        _ => None,
    };
    let time = event.kind.has_time().then_some(event.start.ns);
    (thread, time, (event.kind == Kind::Complete).then_some(event.duration.ns))
}

/// An event as strict JSON: its own text, or an object with that.
fn attributes(text: &[u8]) -> String {
    if first_lenient(text).is_none() {
        return shown(text).into_owned();
    }
    let mut out = b"{\"text\":".to_vec();
    push_json_bytes(&mut out, text);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

struct Made<'a> {
    rows: Rows<'a>,
    scan: &'a Scan,
    is_done: bool,
    room: Vec<u8>,
}

impl Visit for Made<'_> {
    fn record(&mut self, record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let seq = i64::try_from(at.seq).unwrap_or(i64::MAX);
        let filter = &self.scan.filter;
        self.is_done = filter.ends_before(seq.saturating_add(1));
        let kind = record.kind().name();
        if !filter.has_seq(seq) || !filter.has_kind(kind) {
            return Ok(());
        }
        let (thread, time, duration) = row_of(record);
        if time.is_some_and(|time| !filter.has_time(time)) || thread.is_some_and(|thread| !filter.has_thread(thread)) {
            return Ok(());
        }
        let rows = &mut self.rows;
        rows.count(at.seq);
        rows.count(at.offset);
        rows.int64(thread);
        rows.int64(time);
        rows.int64(duration);
        rows.name(kind);
        if record.name.is_some() {
            rows.raw_name(name(record, &mut self.room));
        } else {
            rows.name(None);
        }
        rows.text_with(|| Some(attributes(record.text)));
        rows.end()
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

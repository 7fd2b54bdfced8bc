//! The tables `events`, `packets` and `attributes`: rows in the order of packets.

use anytrace_core::table::{EVENTS, Filter, RowSink, Rows, Scan, Table};
use anytrace_core::text::{push_dec, push_json_str};
use anytrace_core::{Diagnostic, Error, Place, Sink, Summary};

use super::PACKETS;
use crate::verbs::jsonl::{push_option_value, push_type, push_value};
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::{Attribute, Event, Metadata, Record, Value};

/// Reads a trace as the rows of one of the three tables.
pub(super) fn read(
    mut reader: Reader,
    table: &Table,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let kind = match table.name {
        name if name == EVENTS.name => Kind::Events,
        name if name == PACKETS.name => Kind::Packets,
        _ => Kind::Attributes,
    };
    let rows = Rows::new(table, scan, out);
    let mut made = Made { rows, filter: &scan.filter, kind, line: Vec::new(), is_done: false, sink };
    let summary = reader.read(&mut made)?;
    made.rows.finish()?;
    Ok(summary)
}

#[derive(Clone, Copy)]
enum Kind {
    Events,
    Packets,
    Attributes,
}

struct Made<'a> {
    rows: Rows<'a>,
    filter: &'a Filter,
    kind: Kind,
    /// The attributes of a row of `events`, or the type of an attribute.
    line: Vec<u8>,
    is_done: bool,
    sink: &'a mut dyn Sink,
}

impl Made<'_> {
    fn event(&mut self, event: &Event<'_>, place: Place, bytes: usize) -> Result<(), Error> {
        let header = &event.header;
        if !self.filter.has_kind("event") || !self.filter.has_thread(i64::from(header.stream)) {
            return Ok(());
        }
        self.line.clear();
        let rows = &mut self.rows;
        rows.count(place.seq);
        rows.count(place.offset);
        rows.int64(i64::from(header.stream));
        rows.count(header.start_ns);
        rows.count(header.end_ns.saturating_sub(header.start_ns));
        rows.name("event");
        rows.name(event.description());
        if rows.wants_next() {
            push_event(&mut self.line, event, bytes);
        }
        rows.text(std::str::from_utf8(&self.line).ok());
        rows.end()
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, place: Place, bytes: usize) -> Result<(), Error> {
        let filter = self.filter;
        if !filter.has_kind("metadata") || filter.threads.is_some() || filter.time.is_some() {
            return Ok(());
        }
        self.line.clear();
        let rows = &mut self.rows;
        rows.count(place.seq);
        rows.count(place.offset);
        rows.int64(None);
        rows.int64(None);
        rows.int64(None);
        rows.name("metadata");
        rows.name(metadata.option());
        if rows.wants_next() {
            self.line.extend_from_slice(b"{\"size\":");
            push_dec(&mut self.line, bytes);
            push_option_value(&mut self.line, metadata);
            self.line.push(b'}');
        }
        rows.text(std::str::from_utf8(&self.line).ok());
        rows.end()
    }

    fn packet(&mut self, event: &Event<'_>, place: Place) -> Result<(), Error> {
        let (rows, header) = (&mut self.rows, &event.header);
        rows.count(place.seq);
        rows.count(place.offset);
        rows.int64(i64::from(header.stream));
        rows.int64(i64::from(header.counter));
        rows.uint64(header.substream);
        rows.count(header.start_ns);
        rows.count(header.end_ns);
        rows.name(event.description());
        rows.end()
    }

    fn attribute(&mut self, attribute: &Attribute<'_>, seq: u64) -> Result<(), Error> {
        self.line.clear();
        push_type(&mut self.line, &attribute.value);
        let head = (seq, attribute.name, std::str::from_utf8(&self.line).unwrap_or_default());
        let mut position = 0;
        each(&attribute.value, &mut |value| {
            let rows = &mut self.rows;
            rows.count(head.0);
            rows.int32(position);
            rows.name(head.1);
            rows.name(head.2);
            push_scalar(rows, value);
            position = position.saturating_add(1);
            rows.end()
        })
    }
}

/// The members of a line of `dump --format jsonl` that have no column.
fn push_event(line: &mut Vec<u8>, event: &Event<'_>, bytes: usize) {
    let header = &event.header;
    let fields = [
        (&b"{\"size\":"[..], bytes as u64),
        (b",\"counter\":", u64::from(header.counter)),
        (b",\"substream\":", header.substream),
        (b",\"end\":", header.end_ns),
    ];
    for (name, value) in fields {
        line.extend_from_slice(name);
        push_dec(line, value);
    }
    line.extend_from_slice(b",\"attributes\":[");
    for (index, attribute) in event.attributes().enumerate() {
        line.extend_from_slice(if index > 0 { b",[" } else { b"[" });
        push_json_str(line, attribute.name);
        line.extend_from_slice(b",\"");
        push_type(line, &attribute.value);
        line.extend_from_slice(b"\",");
        push_value(line, &attribute.value);
        line.push(b']');
    }
    line.extend_from_slice(b"]}");
}

/// Calls `take` with a value, or with the innermost elements of an array. Recursion is bounded by the depth that
/// recovery searches.
fn each(value: &Value<'_>, take: &mut dyn FnMut(&Value<'_>) -> Result<(), Error>) -> Result<(), Error> {
    match value {
        Value::Array(array) => array.values().try_for_each(|value| each(&value, take)),
        value => take(value),
    }
}

/// The columns of values.
fn push_scalar(rows: &mut Rows<'_>, value: &Value<'_>) {
    rows.int64(if let Value::Signed(value) = value { Some(*value) } else { None });
    rows.uint64(if let Value::Unsigned(value) = value { Some(*value) } else { None });
    rows.float64(if let Value::Float(value) = value { Some(*value) } else { None });
    rows.boolean(None);
    rows.text(if let Value::Text(value) = value { Some(*value) } else { None });
    rows.bytes(None);
}

impl Visitor for Made<'_> {
    #[inline]
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        let seq = i64::try_from(place.seq).unwrap_or(i64::MAX);
        self.is_done = self.filter.ends_before(seq.saturating_add(1));
        if !self.filter.has_seq(seq) {
            return Ok(());
        }
        let start = |event: &Event<'_>| i64::try_from(event.header.start_ns).unwrap_or(i64::MAX);
        match (self.kind, packet) {
            (Kind::Events, Record::Metadata(metadata)) => self.metadata(metadata, place, bytes.len()),
            (_, Record::Metadata(_)) => Ok(()),
            (Kind::Attributes, Record::Event(event)) => {
                event.attributes().try_for_each(|attribute| self.attribute(&attribute, place.seq))
            }
            (_, Record::Event(event)) if !self.filter.has_time(start(event)) => Ok(()),
            (Kind::Events, Record::Event(event)) => self.event(event, place, bytes.len()),
            (Kind::Packets, Record::Event(event)) => self.packet(event, place),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

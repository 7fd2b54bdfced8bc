//! Spans of any source, written as a Heph trace: every verb then reads what was measured.

use std::io::Write;

use anytrace_core::span::{
    EdgeBatch, EdgeKind, Location, NameId, SpanSource, TimeUnit, Track, TrackId, Value, push_json_value,
};
use anytrace_core::{Error, SpanSink};
use anytrace_export::timeline::Timeline;

use crate::wire::record::Header;
use crate::wire::writer::Writer;

/// Bytes of a text: a string of the format has 16 bits for its length.
const TEXT_BYTES_MAX: usize = 60_000;

/// Attributes of an event, at most.
const ATTRIBUTES_MAX: usize = 256;

/// A value of an attribute.
#[derive(Debug, Clone)]
enum Kept {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
}

/// What began and has not ended.
#[derive(Debug)]
struct Begun {
    start: u64,
    name: NameId,
    attributes: Vec<(NameId, Kept)>,
}

/// A track: a stream of the trace.
#[derive(Debug, Default)]
struct Lane {
    open: Vec<Begun>,
    counter: u32,
}

/// Writes each span as an event when it ends, each instant as one of no length. Tracks are streams, numbered from 1;
/// counters are points with an attribute `value`, arrows are left out.
#[derive(Debug)]
pub struct SpanWriter<W: Write> {
    /// Until the end.
    writer: Option<Writer<W>>,
    lanes: Vec<Lane>,
    names: Vec<String>,
    unit: TimeUnit,
}

impl<W: Write> SpanWriter<W> {
    /// Begins a trace.
    pub fn new(to: W) -> Self {
        Self { writer: Some(Writer::new(to)), lanes: Vec::new(), names: Vec::new(), unit: TimeUnit::Nanoseconds }
    }

    fn writer(&mut self) -> Result<&mut Writer<W>, Error> {
        self.writer.as_mut().ok_or_else(|| Error::usage("the trace has ended"))
    }

    fn event(&mut self, track: TrackId, event: &Begun, end: u64) -> Result<(), Error> {
        let Self { writer: Some(writer), lanes, names, unit, .. } = self else { return Ok(()) };
        let Some(lane) = lanes.get_mut(track as usize) else { return Ok(()) };
        let ns = |time: u64| unit.sum_to_ns(u128::from(time)).and_then(|ns| u64::try_from(ns).ok()).unwrap_or(time);
        let name = |id: NameId| names.get(id as usize).map_or("", String::as_str);
        let header = Header {
            stream: track.saturating_add(1),
            counter: lane.counter,
            substream: 0,
            start_ns: ns(event.start),
            end_ns: ns(end),
        };
        lane.counter = lane.counter.wrapping_add(1);
        let mut written = writer.event(&header, name(event.name));
        for (key, value) in &event.attributes {
            let key = name(*key);
            written = match value {
                Kept::Unsigned(value) => written.unsigned(key, *value),
                Kept::Signed(value) => written.signed(key, *value),
                Kept::Float(value) => written.float(key, *value),
                Kept::Text(value) => written.text(key, value),
            };
        }
        written.finish()
    }
}

/// As much of a text as a string of the format can have.
fn cut(text: &str) -> String {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default().to_owned()
}

fn kept(value: Value<'_>) -> Kept {
    match value {
        Value::U64(value) | Value::Address(value) => Kept::Unsigned(value),
        Value::I64(value) => Kept::Signed(value),
        Value::F64(value) => Kept::Float(value),
        Value::Bool(value) => Kept::Unsigned(value.into()),
        Value::Text(text) => Kept::Text(cut(&String::from_utf8_lossy(text))),
        Value::Bytes(_) | Value::Array(_) => {
            let mut text = Vec::new();
            push_json_value(&mut text, value);
            Kept::Text(cut(&String::from_utf8_lossy(&text)))
        }
    }
}

impl<W: Write> SpanSink for SpanWriter<W> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.unit = source.unit;
        let epoch = source.epoch_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
        self.writer()?.epoch(epoch)
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        self.lanes.push(Lane::default());
        let name = track.name.clone().unwrap_or_else(|| format!("thread {}", track.thread));
        self.writer()?.thread(id.saturating_add(1), &cut(&name))
    }

    fn name(&mut self, _: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        self.names.push(cut(&String::from_utf8_lossy(name)));
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let attributes = || batch.attributes(edge).take(ATTRIBUTES_MAX).map(|(key, value)| (key, kept(value)));
            let point = |attributes| Begun { start: edge.time, name: edge.name, attributes };
            match edge.kind {
                EdgeKind::Begin => {
                    if let Some(lane) = self.lanes.get_mut(edge.track as usize) {
                        lane.open.push(point(attributes().collect()));
                    }
                }
                EdgeKind::End => {
                    let begun = self.lanes.get_mut(edge.track as usize).and_then(|lane| lane.open.pop());
                    if let Some(mut begun) = begun {
                        begun.attributes.extend(attributes());
                        self.event(edge.track, &begun, edge.time)?;
                    }
                }
                EdgeKind::Instant | EdgeKind::Counter => {
                    self.event(edge.track, &point(attributes().collect()), edge.time)?;
                }
                EdgeKind::FlowOut | EdgeKind::FlowIn => {}
            }
        }
        Ok(())
    }
}

impl<W: Write + Send> Timeline for SpanWriter<W> {
    fn finish(&mut self) -> Result<(), Error> {
        self.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop))
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::{Edge, EdgeFlags, NO_CPU};
    use anytrace_core::{Collect, Format, Input, OpenOptions, SpanOptions, each_span};

    use super::*;
    use crate::Heph;

    fn edge(time: u64, track: TrackId, name: NameId, kind: EdgeKind) -> Edge {
        Edge { seq: 0, time, track, name, attributes: (0, 0), cpu: NO_CPU, kind, flags: EdgeFlags::NONE }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_spans() {
        let mut bytes = Vec::new();
        let mut writer = SpanWriter::new(&mut bytes);
        let source =
            SpanSource { format: "x", unit: TimeUnit::Nanoseconds, origin: 0, epoch_ns: Some(1_000_000), uptime: None };
        writer.source(&source).unwrap();
        for (id, name) in [(0, Some("calls".to_owned())), (1, None)] {
            writer.track(id, &Track { thread: 7, name, ..Track::default() }).unwrap();
        }
        for (id, name) in (0..).zip([&b"frame"[..], b"glClear", b"call", b"\xff"]) {
            writer.name(id, name, None).unwrap();
        }
        let mut batch = EdgeBatch::default();
        batch.push(edge(10, 0, 0, EdgeKind::Begin));
        batch.push(edge(12, 0, 1, EdgeKind::Begin));
        batch.attribute(2, Value::U64(9));
        batch.attribute(3, Value::Text(&[b'x'; 70_000]));
        batch.push(edge(20, 0, 1, EdgeKind::End));
        batch.push(edge(25, 1, 1, EdgeKind::Instant));
        batch.push(edge(30, 0, 0, EdgeKind::End));
        writer.edges(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let trace = Heph.open(Input::from_bytes("t", bytes), &OpenOptions::default()).unwrap();
        let mut found = Vec::new();
        let mut diagnostics = Collect::default();
        each_span(trace, &SpanOptions::default(), &mut diagnostics, |span| {
            let track = span.track.name.clone().unwrap_or_default();
            found.push((track, span.name.to_owned(), span.start, span.end, span.depth));
            Ok(())
        })
        .unwrap();
        found.sort();
        let row = |track: &str, name: &str, start, end, depth| (track.to_owned(), name.to_owned(), start, end, depth);
        assert_eq!(
            found,
            [
                row("calls", "frame", 10, 30, 0),
                row("calls", "glClear", 12, 20, 1),
                row("thread 7", "glClear", 25, 25, 0)
            ]
        );
    }
}

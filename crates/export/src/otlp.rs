//! OpenTelemetry's OTLP as JSON lines: one request (`TracesData`) a line, as its file exporter writes them and its file
//! receiver reads them; each can be sent to a collector as it is.
//!
//! Streams: memory grows with open spans, their events up to a bound, distinct names and tracks. Every span has its
//! parent's id. Ids are derived from the identity of a span in its trace (Heph: stream and counter; else process,
//! thread and record) and from the trace's name, format and epoch, so the same trace always yields the same ids, and so
//! does a part of it. Attributes keep their types; a repeated key gets a number, because OTLP allows each key once.
//! Instants are events of the span around them; instants without such a span, and those past 16 MiB of them, are spans
//! of no length. Counters and flows, which OTLP's spans cannot express, are left out. Times of a trace without an epoch
//! count from 1970, which the resource's `anytrace.clock` states. Format: the proto3 JSON mapping of
//! opentelemetry-proto, where ids are hexadecimal.

use std::collections::HashMap;
use std::io::Write;

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::{Error, SpanSink, text};

use crate::pen::Pen;
use crate::timeline::clock::{Clock, NO_SOURCE};
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{self, Fragments, shown};

/// `SPAN_KIND_INTERNAL`.
const KIND: &str = "1";

/// Most spans of a line, and bytes after which the next one begins: receivers refuse requests of more than 4 MiB.
const LINE_SPANS_MAX: u32 = 1000;
const LINE_BYTES_MAX: usize = 1 << 20;

/// Most bytes of events that are buffered until their spans end.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Keys of one span that are compared one by one.
const KEYS_SEARCHED: usize = 32;

/// OTLP being written.
pub struct Otlp<'a> {
    pen: Pen<'a>,
    title: String,
    clock: Clock,
    has_source: bool,
    /// What begins a line.
    head: Vec<u8>,
    /// Spans and bytes in the line that is being written.
    line: Option<(u32, usize)>,
    has_line: bool,
    trace_id: String,
    /// Makes ids of one trace differ from those of others.
    seed: u64,
    tracks: Vec<OnTrack>,
    /// Bytes of events of open spans.
    event_bytes: usize,
    /// `"…"` of each name.
    names: Fragments,
    /// Names as bytes, for keys that repeat.
    plain: Fragments,
    sources: Fragments,
}

struct OnTrack {
    /// The attributes that every span of the track has.
    attributes: Vec<u8>,
    /// Process and thread, for ids.
    place: (u64, u64),
    open: Vec<Open>,
}

/// A span that has begun.
struct Open {
    id: u64,
    parent: Option<u64>,
    begin: Edge,
    attributes: Vec<u8>,
    /// Its events, each with a comma before.
    events: Vec<u8>,
}

impl<'a> Otlp<'a> {
    /// Begins; it is complete after [`Timeline::finish`].
    pub fn new(outlet: Outlet<'a>) -> Self {
        let out: &'a mut (dyn Write + Send) = outlet.out;
        Self {
            pen: Pen::new(out),
            title: outlet.title.to_owned(),
            clock: Clock::default(),
            has_source: false,
            head: Vec::new(),
            line: None,
            has_line: false,
            trace_id: String::new(),
            seed: 0,
            tracks: Vec::new(),
            event_bytes: 0,
            names: Fragments::default(),
            plain: Fragments::default(),
            sources: Fragments::default(),
        }
    }

    /// The id of a span of a track.
    fn id(&self, edge: &Edge, identity: Option<u64>) -> u64 {
        let own = match identity {
            Some(identity) => mixed(identity ^ self.seed),
            None => {
                let (process, thread) = self.tracks.get(edge.track as usize).map_or((0, 0), |track| track.place);
                mixed(mixed(mixed(process ^ self.seed) ^ thread) ^ edge.seq)
            }
        };
        // An id of zeros is none.
        own.max(1)
    }

    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge, identity: Option<(u64, Option<u64>)>) {
        match edge.kind {
            EdgeKind::Begin => {
                let open = self.begun(batch, edge, identity);
                if let Some(track) = self.tracks.get_mut(edge.track as usize) {
                    track.open.push(open);
                }
            }
            EdgeKind::End => {
                let Some(open) = self.tracks.get_mut(edge.track as usize).and_then(|track| track.open.pop()) else {
                    return;
                };
                let mut more = Vec::new();
                self.attributes(&mut more, batch, edge);
                self.event_bytes -= open.events.len().min(self.event_bytes);
                self.span(&open, edge.time, open.begin.flags.with(edge.flags), &more);
            }
            EdgeKind::Instant => {
                let open = self.begun(batch, edge, identity);
                if self.event(&open) {
                    return;
                }
                self.span(
                    &open,
                    edge.time,
                    edge.flags,
                    b",{\"key\":\"anytrace.kind\",\"value\":{\"stringValue\":\"instant\"}}",
                );
            }
            EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => {}
        }
    }

    fn begun(&self, batch: &EdgeBatch, edge: &Edge, identity: Option<(u64, Option<u64>)>) -> Open {
        let id = self.id(edge, identity.map(|(own, _)| own));
        let around = self.tracks.get(edge.track as usize).and_then(|track| track.open.last());
        let parent = match identity {
            Some((_, parent)) => parent.map(|parent| self.id(edge, Some(parent))),
            None => around.map(|open| open.id),
        };
        let mut attributes = Vec::new();
        self.attributes(&mut attributes, batch, edge);
        Open { id, parent, begin: *edge, attributes, events: Vec::new() }
    }

    /// Adds an instant to the events of the span around it; false where there is no such span, or no room.
    fn event(&mut self, instant: &Open) -> bool {
        if self.event_bytes >= EVENT_BYTES_MAX {
            return false;
        }
        let time = self.unix_ns(instant.begin.time);
        let Some(track) = self.tracks.get_mut(instant.begin.track as usize) else { return false };
        let Some(around) = track.open.iter_mut().rev().find(|open| Some(open.id) == instant.parent) else {
            return false;
        };
        let before = around.events.len();
        let out = &mut around.events;
        out.extend_from_slice(b",{\"timeUnixNano\":\"");
        text::push_dec(out, time);
        out.extend_from_slice(b"\",\"name\":");
        out.extend_from_slice(self.names.get(instant.begin.name));
        out.extend_from_slice(b",\"attributes\":[");
        let mut attributes = instant.attributes.clone();
        attributes.extend_from_slice(self.sources.get(instant.begin.name));
        push_flags(&mut attributes, instant.begin.flags);
        out.extend_from_slice(attributes.strip_prefix(b",").unwrap_or(&attributes));
        out.extend_from_slice(b"]}");
        self.event_bytes += out.len() - before;
        true
    }

    /// Attributes, each with a comma before.
    fn attributes(&self, out: &mut Vec<u8>, batch: &EdgeBatch, edge: &Edge) {
        let mut keys: Vec<NameId> = Vec::new();
        // A search is faster for as many keys as spans have, but an event may have thousands.
        let mut counts: HashMap<NameId, usize> = HashMap::new();
        for (key, value) in batch.attributes(edge) {
            let before = if keys.len() < KEYS_SEARCHED {
                keys.push(key);
                keys.iter().filter(|one| **one == key).count() - 1
            } else {
                let count = counts.entry(key).or_insert_with(|| keys.iter().filter(|one| **one == key).count());
                *count += 1;
                *count - 1
            };
            out.extend_from_slice(b",{\"key\":");
            if before == 0 {
                out.extend_from_slice(self.names.get(key));
            } else {
                let key = shown(self.plain.get(key)).into_owned();
                text::push_json_str(out, &format!("{key}#{}", before + 1));
            }
            out.extend_from_slice(b",\"value\":");
            push_value(out, value);
            out.push(b'}');
        }
        if let Some(cpu) = words::cpu(edge.cpu).filter(|_| edge.kind != EdgeKind::End) {
            push_text_attribute(out, "anytrace.cpu", &cpu.to_string());
        }
    }

    fn span(&mut self, open: &Open, end: u64, flags: EdgeFlags, more: &[u8]) {
        let start = self.unix_ns(open.begin.time);
        let end = self.unix_ns(end).max(start);
        let (spans, bytes) = self.begin_span();
        let out = &mut self.pen.bytes;
        let before = out.len();
        out.extend_from_slice(b"{\"traceId\":\"");
        out.extend_from_slice(self.trace_id.as_bytes());
        out.extend_from_slice(b"\",\"spanId\":\"");
        text::push_hex_bytes(out, &open.id.to_be_bytes());
        if let Some(parent) = open.parent {
            out.extend_from_slice(b"\",\"parentSpanId\":\"");
            text::push_hex_bytes(out, &parent.to_be_bytes());
        }
        out.extend_from_slice(b"\",\"name\":");
        out.extend_from_slice(self.names.get(open.begin.name));
        out.extend_from_slice(b",\"kind\":");
        out.extend_from_slice(KIND.as_bytes());
        out.extend_from_slice(b",\"startTimeUnixNano\":\"");
        text::push_dec(out, start);
        out.extend_from_slice(b"\",\"endTimeUnixNano\":\"");
        text::push_dec(out, end);
        out.extend_from_slice(b"\",\"attributes\":[");
        if let Some(track) = self.tracks.get(open.begin.track as usize) {
            out.extend_from_slice(&track.attributes);
        }
        out.extend_from_slice(&open.attributes);
        out.extend_from_slice(more);
        out.extend_from_slice(self.sources.get(open.begin.name));
        push_flags(out, flags);
        out.push(b']');
        if let Some(events) = open.events.strip_prefix(b",") {
            out.extend_from_slice(b",\"events\":[");
            out.extend_from_slice(events);
            out.push(b']');
        }
        out.push(b'}');
        self.line = Some((spans + 1, bytes + out.len() - before));
    }

    /// What comes before a span; gives what is in its line already.
    fn begin_span(&mut self) -> (u32, usize) {
        if let Some((spans, bytes)) = self.line {
            if spans < LINE_SPANS_MAX && bytes < LINE_BYTES_MAX {
                self.pen.push(",");
                return (spans, bytes);
            }
            self.end_line();
        }
        self.begin_line();
        (0, 0)
    }

    fn begin_line(&mut self) {
        self.pen.bytes.extend_from_slice(&self.head);
        self.line = Some((0, 0));
        self.has_line = true;
    }

    fn end_line(&mut self) {
        self.pen.push("]}]}]}\n");
        self.line = None;
    }

    /// Nanoseconds since 1970, or since the trace's own beginning of time; times before it are 0.
    fn unix_ns(&self, time: u64) -> u64 {
        let origin = match (self.clock.origin_epoch_ns(), self.clock.origin_ns()) {
            (Some(epoch), _) => epoch,
            (None, origin) => i128::from(origin.unwrap_or(0)),
        };
        u64::try_from(origin + i128::from(self.clock.since_origin(time))).unwrap_or(0)
    }
}

/// Spreads a number over all bits, one to one (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number for bytes.
fn folded(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |all, &byte| mixed(all ^ u64::from(byte)))
}

fn push_flags(out: &mut Vec<u8>, flags: EdgeFlags) {
    if flags != EdgeFlags::NONE {
        let mut words = Vec::new();
        words::push_flags(&mut words, flags);
        push_text_attribute(out, "anytrace.flags", &shown(&words));
    }
}

fn push_text_attribute(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(b",{\"key\":");
    text::push_json_str(out, key);
    out.extend_from_slice(b",\"value\":{\"stringValue\":");
    text::push_json_str(out, value);
    out.extend_from_slice(b"}}");
}

/// An `AnyValue`. Numbers of 64 bits are strings in proto3's JSON; unsigned ones that `int64` cannot hold are text.
fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    let mut quoted = |kind: &str, text: &str| {
        out.extend_from_slice(format!("{{\"{kind}\":").as_bytes());
        text::push_json_str(out, text);
        out.push(b'}');
    };
    match value {
        Value::U64(v) if v > i64::MAX as u64 => quoted("stringValue", &v.to_string()),
        Value::U64(v) => quoted("intValue", &v.to_string()),
        Value::I64(v) => quoted("intValue", &v.to_string()),
        Value::F64(v) if v.is_nan() => quoted("doubleValue", "NaN"),
        Value::F64(v) if v.is_infinite() => quoted("doubleValue", if v > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::F64(v) => out.extend_from_slice(format!("{{\"doubleValue\":{v:?}}}").as_bytes()),
        Value::Bool(v) => out.extend_from_slice(format!("{{\"boolValue\":{v}}}").as_bytes()),
        Value::Address(v) => quoted("stringValue", &format!("{v:#x}")),
        Value::Text(v) => quoted("stringValue", &shown(v)),
        Value::Bytes(v) => quoted("bytesValue", &base64_simd::STANDARD.encode_to_string(v)),
        Value::Array(items) => {
            out.extend_from_slice(b"{\"arrayValue\":{\"values\":[");
            for (n, item) in items.enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                push_value(out, item);
            }
            out.extend_from_slice(b"]}}");
        }
    }
}

impl SpanSink for Otlp<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        self.has_source = true;
        let epoch = self.clock.origin_epoch_ns().map_or(0, |ns| folded(&ns.to_le_bytes()));
        // The epoch of the origin differs between parts of a trace; that of time 0 does not.
        let epoch = source.epoch_ns.map_or(epoch, |ns| folded(&ns.to_le_bytes()));
        self.seed = mixed(folded(source.format.as_bytes()) ^ epoch).wrapping_add(folded(self.title.as_bytes()));
        self.trace_id = format!("{:016x}{:016x}", mixed(self.seed), mixed(!self.seed).max(1));
        let clock = match (self.clock.is_real(), self.clock.origin_epoch_ns()) {
            (true, Some(_)) => "unix",
            (true, None) => "relative",
            (false, _) => self.clock.word(),
        };
        let out = &mut self.head;
        out.clear();
        out.extend_from_slice(
            b"{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":",
        );
        push_value(out, Value::Text(self.title.as_bytes()));
        out.push(b'}');
        push_text_attribute(out, "anytrace.format", source.format);
        push_text_attribute(out, "anytrace.clock", clock);
        out.extend_from_slice(b"]},\"scopeSpans\":[{\"scope\":{\"name\":\"anytrace\",\"version\":\"");
        out.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
        out.extend_from_slice(b"\"},\"spans\":[");
        Ok(())
    }

    fn wants_identities(&self) -> bool {
        true
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        let mut attributes = b"{\"key\":\"thread.id\",\"value\":".to_vec();
        push_value(&mut attributes, Value::U64(track.thread));
        attributes.push(b'}');
        push_text_attribute(&mut attributes, "thread.name", &words::label(track));
        if track.process != 0 {
            attributes.extend_from_slice(b",{\"key\":\"process.pid\",\"value\":");
            push_value(&mut attributes, Value::U64(track.process));
            attributes.push(b'}');
        }
        self.tracks.push(OnTrack { attributes, place: (track.process, track.thread), open: Vec::new() });
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.names.add(|out| text::push_json_str(out, &shown(name)));
        self.plain.add(|out| out.extend_from_slice(name));
        self.sources.add(|out| {
            if let Some(location) = location {
                push_text_attribute(out, "code.file.path", &location.file);
                if location.line > 0 {
                    out.extend_from_slice(b",{\"key\":\"code.line.number\",\"value\":");
                    push_value(out, Value::U64(location.line.into()));
                    out.push(b'}');
                }
            }
        });
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for (edge, identity) in batch.identified() {
            self.edge(batch, edge, identity);
            self.pen.rest()?;
        }
        Ok(())
    }
}

impl Timeline for Otlp<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        if !self.has_source {
            self.source(&NO_SOURCE)?;
        }
        // A trace without spans has a line too.
        if !self.has_line {
            self.begin_line();
        }
        if self.line.is_some() {
            self.end_line();
        }
        self.pen.finish()
    }
}

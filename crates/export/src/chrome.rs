//! Chrome's trace events as JSON: for Perfetto UI, `chrome://tracing` and speedscope.
//!
//! Streams: memory grows with distinct names and tracks only. Spans are pairs of `B` and `E`, nested on each track as
//! the source guarantees, or one `X` where the source knows the end of a span at its beginning; times are microseconds
//! with three decimals, exact to the nanosecond. They count from one day before the trace's origin ([`LEAD_NS`]; from
//! time 0 where that is later), because Perfetto drops negative times and larger ones are not exact in JavaScript;
//! viewers show a trace from its first event anyway. Attributes, processor (`cpu`), source location (`src`) and flags
//! are in `args`. Metadata events name processes and threads; a further lane of a thread is a thread of its own whose
//! `thread_name` event keeps the real numbers. Format: "Trace Event Format", Google, and Perfetto's importer.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::{Error, SpanSink, text};

use crate::formatters::Formatters;
use crate::pen::Pen;
use crate::timeline::clock::{Clock, NO_SOURCE};
use crate::timeline::numbers::{Numbering, Numbers};
use crate::timeline::output::Timeline;
use crate::timeline::words::{self, Fragments, shown};

/// How long before the trace's origin `ts` 0 is, at most: room for events before the origin.
pub const LEAD_NS: u64 = 86_400_000_000_000;

/// A Chrome trace being written.
pub struct Chrome<'a> {
    pen: Pen<'a>,
    has_source: bool,
    numbering: Numbering,
    known: Arc<Known>,
    formatters: Formatters<Events>,
    events: Events,
    is_first: bool,
    /// The end of an arrow that is not written yet: one that goes on from there makes it a step.
    end: Option<ArrowEnd>,
}

/// What all events need.
#[derive(Debug, Clone, Default)]
struct Known {
    clock: Clock,
    lead_ns: i64,
    /// `"pid":…,"tid":…` of each track.
    places: Fragments,
    /// `"name":"…"` of each name.
    names: Fragments,
    /// `"…":` of each name, where it is a key.
    keys: Fragments,
    /// `"src":"…"` of each name that has a place.
    sources: Fragments,
    /// For each process its first track, whose counters carry their plain name.
    plain: BTreeMap<u32, TrackId>,
    /// Thread number by track, and process.
    numbers: Vec<Numbers>,
}

/// Events that do not depend on those around them.
#[derive(Default)]
struct Events {
    known: Option<Arc<Known>>,
    batches: Vec<EdgeBatch>,
    /// How many of the batches have any.
    used: usize,
}

impl Events {
    /// Fills the next batch.
    fn add(&mut self, fill: impl FnOnce(&mut EdgeBatch)) {
        if self.batches.len() == self.used {
            self.batches.push(EdgeBatch::default());
        }
        if let Some(next) = self.batches.get_mut(self.used) {
            fill(next);
            self.used += 1;
        }
    }
}

/// Batches that are formatted at once: a thread that waits is woken less often.
const BATCHES: usize = 8;

/// The end of an arrow.
struct ArrowEnd {
    track: TrackId,
    time: u64,
    number: u64,
    /// Its event, behind the phase.
    event: Vec<u8>,
}

impl<'a> Chrome<'a> {
    /// Begins a trace; it is complete after [`Timeline::finish`].
    pub fn new(out: &'a mut (dyn Write + Send), threads: usize) -> Self {
        let format = |events: &Events, out: &mut Vec<u8>| {
            let Some(known) = &events.known else { return };
            for batch in events.batches.iter().take(events.used) {
                for edge in batch.edges() {
                    out.extend_from_slice(b",\n");
                    known.event(out, batch, edge);
                }
            }
        };
        Self {
            pen: Pen::new(out),
            has_source: false,
            numbering: Numbering::default(),
            known: Arc::default(),
            formatters: Formatters::new(threads, format),
            events: Events::default(),
            is_first: true,
            end: None,
        }
    }

    /// What is known, to be changed: no thread uses it then.
    fn known(&mut self) -> Result<&mut Known, Error> {
        self.catch_up()?;
        debug_assert_eq!(Arc::strong_count(&self.known), 1, "a copy for each name would be too much");
        Ok(Arc::make_mut(&mut self.known))
    }

    /// Has the events formatted that were collected.
    fn give(&mut self) -> Result<(), Error> {
        let mut empty = self.formatters.spare().unwrap_or_default();
        (empty.known, empty.used) = (None, 0);
        let mut events = std::mem::replace(&mut self.events, empty);
        events.known = Some(Arc::clone(&self.known));
        self.formatters.give(events, &mut self.pen)
    }

    /// Writes all events that came. Those that were not given yet are formatted here: before each new name they may be
    /// few.
    fn catch_up(&mut self) -> Result<(), Error> {
        self.formatters.finish(&mut self.pen)?;
        if self.events.used > 0 {
            self.events.known = Some(Arc::clone(&self.known));
            self.formatters.here(&self.events, &mut self.pen)?;
            (self.events.known, self.events.used) = (None, 0);
        }
        Ok(())
    }

    /// Begins the next event of the array.
    #[inline]
    fn next(&mut self) {
        if self.end.is_some() {
            self.end_arrow("{\"ph\":\"f\",\"bp\":\"e\",");
        }
        self.pen.push(if self.is_first { "\n" } else { ",\n" });
        self.is_first = false;
    }

    #[cold]
    fn end_arrow(&mut self, phase: &str) {
        let Some(end) = self.end.take() else { return };
        self.pen.push(phase);
        self.pen.bytes.extend_from_slice(&end.event);
    }

    fn metadata(&mut self, what: &str, track: TrackId, append: impl FnOnce(&mut Vec<u8>)) {
        self.next();
        self.pen.push("{\"ph\":\"M\",\"name\":\"");
        self.pen.push(what);
        self.pen.push("\",");
        self.pen.bytes.extend_from_slice(self.known.places.get(track));
        self.pen.push(",\"args\":{");
        append(&mut self.pen.bytes);
        self.pen.push("}}");
    }

    fn process(&mut self, id: TrackId, track: &Track, numbers: Numbers) {
        let name = match &track.process_name {
            None if u64::from(numbers.process) == track.process => None,
            None if track.process == 0 => Some("unknown process".to_owned()),
            None => Some(format!("process {}", track.process)),
            Some(name) => Some(name.clone()),
        };
        if let Some(name) = name {
            self.metadata("process_name", id, |out| {
                out.extend_from_slice(b"\"name\":");
                text::push_json_str(out, &name);
            });
        }
        if let Some(note) = self.known.clock.note() {
            self.metadata("process_labels", id, |out| {
                out.extend_from_slice(b"\"labels\":");
                text::push_json_str(out, &note);
            });
        }
        let rank = self.known.plain.len();
        self.metadata("process_sort_index", id, |out| {
            out.extend_from_slice(b"\"sort_index\":");
            text::push_dec(out, rank);
        });
    }

    /// An event that may begin or end an arrow.
    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge) {
        if edge.kind == EdgeKind::FlowOut && self.goes_on(batch, edge) {
            // A chain of arrows of one number is one flow with steps: a second begin of it would be an error.
            return self.end_arrow("{\"ph\":\"t\",");
        }
        self.next();
        let start = self.pen.bytes.len();
        self.known.event(&mut self.pen.bytes, batch, edge);
        if edge.kind == EdgeKind::FlowIn {
            let (track, time, number) = (edge.track, edge.time, flow_number(batch, edge));
            self.end = Some(ArrowEnd { track, time, number, event: self.pen.bytes.split_off(start) });
        }
    }

    /// Whether these events cannot be formatted without those before them.
    fn depends(&self, batch: &EdgeBatch) -> bool {
        let is_flow = |edge: &Edge| matches!(edge.kind, EdgeKind::FlowOut | EdgeKind::FlowIn);
        self.is_first || self.end.is_some() || batch.edges().iter().any(is_flow)
    }

    fn one_by_one(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        self.catch_up()?;
        for edge in batch.edges() {
            self.edge(batch, edge);
            self.pen.rest()?;
        }
        Ok(())
    }

    /// True where an arrow begins at the end of the last one of its number.
    fn goes_on(&self, batch: &EdgeBatch, edge: &Edge) -> bool {
        self.end.as_ref().is_some_and(|end| {
            let is_there = (end.track, end.time) == (edge.track, edge.time);
            // Its attributes would be lost.
            is_there && end.number == flow_number(batch, edge) && batch.attributes(edge).nth(1).is_none()
        })
    }
}

impl Known {
    fn event(&self, out: &mut Vec<u8>, batch: &EdgeBatch, edge: &Edge) {
        if edge.flags.has(EdgeFlags::COMPLETE) {
            return self.complete(out, batch, edge);
        }
        out.extend_from_slice(match edge.kind {
            EdgeKind::Begin => b"{\"ph\":\"B\",",
            EdgeKind::End => b"{\"ph\":\"E\",",
            EdgeKind::Instant => b"{\"ph\":\"i\",\"s\":\"t\",",
            EdgeKind::Counter => b"{\"ph\":\"C\",",
            EdgeKind::FlowOut => b"{\"ph\":\"s\",",
            EdgeKind::FlowIn => b"",
        });
        let is_flow = matches!(edge.kind, EdgeKind::FlowOut | EdgeKind::FlowIn);
        if is_flow {
            // Consumers join the ends of a flow by category, name and number; only the number is sure to be shared.
            out.extend_from_slice(b"\"cat\":\"flow\",\"name\":\"flow\"");
        } else {
            out.extend_from_slice(self.names.get(edge.name));
        }
        out.push(b',');
        out.extend_from_slice(self.places.get(edge.track));
        out.extend_from_slice(b",\"ts\":");
        let ts = self.clock.since_origin(edge.time).saturating_add(self.lead_ns);
        push_us(out, ts.max(0).cast_unsigned());
        match edge.kind {
            EdgeKind::Counter => self.counter(out, batch, edge),
            EdgeKind::FlowOut | EdgeKind::FlowIn => self.flow(out, batch, edge),
            _ => self.arguments(out, batch, edge, 0),
        }
        out.push(b'}');
    }

    /// A span emitted as one event.
    #[inline]
    fn complete(&self, out: &mut Vec<u8>, batch: &EdgeBatch, edge: &Edge) {
        out.extend_from_slice(b"{\"ph\":\"X\",");
        out.extend_from_slice(self.names.get(edge.name));
        out.push(b',');
        out.extend_from_slice(self.places.get(edge.track));
        out.extend_from_slice(b",\"ts\":");
        let start = self.clock.since_origin(edge.time).saturating_add(self.lead_ns).max(0);
        push_us(out, start.cast_unsigned());
        out.extend_from_slice(b",\"dur\":");
        let end = match batch.attributes(edge).next() {
            Some((_, Value::U64(end))) => end.max(edge.time),
            _ => edge.time,
        };
        let end = self.clock.since_origin(end).saturating_add(self.lead_ns).max(start);
        push_us(out, start.abs_diff(end));
        let flags = EdgeFlags(edge.flags.0 & !EdgeFlags::COMPLETE.0);
        self.arguments(out, batch, &Edge { flags, ..*edge }, 1);
        out.push(b'}');
    }

    /// Writes `args`, if there is anything to put there. The first `skip` attributes were written elsewhere.
    fn arguments(&self, out: &mut Vec<u8>, batch: &EdgeBatch, edge: &Edge, skip: usize) {
        let is_span_end = edge.kind == EdgeKind::End;
        let cpu = words::cpu(edge.cpu).filter(|_| !is_span_end);
        let source = if is_span_end { &[][..] } else { self.sources.get(edge.name) };
        let own = batch.attributes(edge).skip(skip);
        if cpu.is_none() && edge.flags == EdgeFlags::NONE && source.is_empty() && usize::from(edge.attributes.1) <= skip
        {
            return;
        }
        out.extend_from_slice(b",\"args\":{");
        let start = out.len();
        if let Some(cpu) = cpu {
            out.extend_from_slice(b"\"cpu\":");
            text::push_dec(out, cpu);
        }
        if edge.flags != EdgeFlags::NONE {
            separate(out, start);
            out.extend_from_slice(b"\"flags\":\"");
            words::push_flags(out, edge.flags);
            out.push(b'"');
        }
        if !source.is_empty() {
            separate(out, start);
            out.extend_from_slice(source);
        }
        for (key, value) in own {
            separate(out, start);
            out.extend_from_slice(self.keys.get(key));
            words::push_json_value(out, value);
        }
        out.push(b'}');
    }

    fn counter(&self, out: &mut Vec<u8>, batch: &EdgeBatch, edge: &Edge) {
        let numbers = self.numbers.get(edge.track as usize);
        // A process has one counter of a name, unless an id distinguishes them.
        if let Some(numbers) = numbers
            && self.plain.get(&numbers.process) != Some(&edge.track)
        {
            out.extend_from_slice(b",\"id\":\"");
            text::push_dec(out, numbers.thread);
            out.push(b'"');
        }
        out.extend_from_slice(b",\"args\":{\"value\":");
        match batch.attributes(edge).next() {
            // Numbers stay numbers here, whatever their size: a counter is drawn.
            Some((_, Value::U64(v) | Value::Address(v))) => text::push_dec(out, v),
            Some((_, Value::I64(v))) => text::push_dec(out, v),
            Some((_, Value::Bool(v))) => text::push_dec(out, u8::from(v)),
            Some((_, Value::F64(v))) if v.is_finite() => words::push_json_value(out, Value::F64(v)),
            _ => out.push(b'0'),
        }
        out.push(b'}');
    }

    fn flow(&self, out: &mut Vec<u8>, batch: &EdgeBatch, edge: &Edge) {
        out.extend_from_slice(b",\"id\":\"");
        text::push_hex(out, flow_number(batch, edge));
        out.push(b'"');
        self.arguments(out, batch, edge, 1);
    }
}

/// The number that both ends of a flow share.
pub(crate) fn flow_number(batch: &EdgeBatch, edge: &Edge) -> u64 {
    match batch.attributes(edge).next() {
        Some((_, Value::U64(v) | Value::Address(v))) => v,
        Some((_, Value::I64(v))) => v.cast_unsigned(),
        _ => 0,
    }
}

/// Nanoseconds as microseconds with three decimals.
#[inline]
fn push_us(out: &mut Vec<u8>, ns: u64) {
    text::push_dec(out, ns / 1000);
    let rest = u32::try_from(ns % 1000).unwrap_or(0);
    let digit = |n: u32| b'0' + u8::try_from(n % 10).unwrap_or(0);
    out.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
}

fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b',');
    }
}

impl SpanSink for Chrome<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        let clock = Clock::new(source);
        let lead_ns = clock.length(source.origin).min(LEAD_NS);
        let mut facts = clock.facts();
        let known = self.known()?;
        (known.clock, known.lead_ns) = (clock, lead_ns.cast_signed());
        self.has_source = true;
        self.pen.push("{\"displayTimeUnit\":\"ns\",\"otherData\":{");
        facts.push(("origin-ts-ns", lead_ns.to_string()));
        for (n, (key, value)) in facts.iter().enumerate() {
            self.pen.push(if n == 0 { "\"" } else { ",\"" });
            self.pen.push(key);
            self.pen.push("\":");
            text::push_json_str(&mut self.pen.bytes, value);
        }
        self.pen.push("},\"traceEvents\":[");
        Ok(())
    }

    fn takes_complete(&self) -> bool {
        true
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        let numbers = self.numbering.of(track);
        let known = self.known()?;
        known.numbers.push(numbers);
        known.places.add(|out| {
            out.extend_from_slice(b"\"pid\":");
            text::push_dec(out, numbers.process);
            out.extend_from_slice(b",\"tid\":");
            text::push_dec(out, numbers.thread);
        });
        if !known.plain.contains_key(&numbers.process) {
            self.process(id, track, numbers);
            self.known()?.plain.insert(numbers.process, id);
        }
        if track.name.is_some() || numbers.are_changed {
            self.metadata("thread_name", id, |out| {
                out.extend_from_slice(b"\"name\":");
                text::push_json_str(out, &words::label(track));
                if numbers.are_changed {
                    for (key, value) in [("pid", track.process), ("tid", track.thread), ("lane", track.lane.into())] {
                        out.extend_from_slice(format!(",\"{key}\":").as_bytes());
                        words::push_json_value(out, Value::U64(value));
                    }
                }
            });
        }
        self.metadata("thread_sort_index", id, |out| {
            out.extend_from_slice(b"\"sort_index\":");
            text::push_dec(out, id);
        });
        self.pen.rest()
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        let name = shown(name);
        let known = self.known()?;
        known.names.add(|out| {
            out.extend_from_slice(b"\"name\":");
            text::push_json_str(out, &name);
        });
        known.keys.add(|out| {
            text::push_json_str(out, &words::key(&name));
            out.push(b':');
        });
        known.sources.add(|out| {
            if let Some(location) = location {
                out.extend_from_slice(b"\"src\":");
                text::push_json_str(out, &words::place(location));
            }
        });
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        if self.depends(batch) {
            return self.one_by_one(batch);
        }
        self.events.add(|next| next.copy_from(batch));
        if self.events.used < BATCHES { Ok(()) } else { self.give() }
    }

    fn take_edges(&mut self, batch: &mut EdgeBatch) -> Result<(), Error> {
        if self.depends(batch) {
            self.one_by_one(batch)?;
        } else {
            self.events.add(|next| std::mem::swap(next, batch));
        }
        batch.clear();
        if self.events.used < BATCHES { Ok(()) } else { self.give() }
    }
}

impl Timeline for Chrome<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        if !self.has_source {
            self.source(&NO_SOURCE)?;
        }
        self.catch_up()?;
        self.end_arrow("{\"ph\":\"f\",\"bp\":\"e\",");
        self.pen.push("\n]}\n");
        self.pen.finish()
    }
}

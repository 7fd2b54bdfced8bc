//! The tables `spans` and `stacks`, made of the lane of spans.

use super::{Column, ColumnType, RowSink, Rows, Scan, Table};
use crate::hash::{Map, Set};
use crate::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NO_CPU, NameId, SpanOptions, SpanSink, SpanSource, TimeUnit, Track,
    TrackId, push_json_value,
};
use crate::text::{push_json_str, shown};
use crate::{Error, Sink, Summary, Trace};

/// Most spans open at once, over all tracks.
const OPEN_MAX: usize = 1 << 20;

/// Intervals with their place in the call tree; inner ones come before those around them.
pub const SPANS: Table = Table {
    name: "spans",
    help: "a span: what began and ended, with its place in the call tree",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record that begins it"),
        Column::new("end_seq", ColumnType::Int64, "number of the record that ends it"),
        Column::new("track", ColumnType::UInt32, "number of the row on which it nests"),
        Column::new("process", ColumnType::Int64, "process id; 0 where unknown"),
        Column::new("thread", ColumnType::Int64, "thread id, or the number of what the format has instead"),
        Column::new("lane", ColumnType::Int32, "which of the rows of its thread, from 0"),
        Column::new("depth", ColumnType::Int32, "spans around it"),
        Column::new("name", ColumnType::Name, "its name"),
        Column::new("start", ColumnType::Int64, "when it begins, in `unit`"),
        Column::new("duration", ColumnType::Int64, "how long it is, in `unit`, with the spans inside it"),
        Column::new("self", ColumnType::Int64, "how long it is without the spans inside it, in `unit`"),
        Column::new("unit", ColumnType::Name, "unit of times: ns, tick or record"),
        Column::nullable("cpu", ColumnType::Int32, "processor on which it begins"),
        Column::new("flags", ColumnType::Name, "tail, deduced, open, chained"),
        Column::new("stack", ColumnType::UInt64, "hash of the names from the outermost span to this one"),
        Column::nullable("parent", ColumnType::Int64, "`seq` of the span around it"),
        Column::nullable("attributes", ColumnType::Text, "attributes as a JSON object"),
    ],
};

/// Different stacks of spans.
pub const STACKS: Table = Table {
    name: "stacks",
    help: "a stack of names, from the outermost span to one inside it",
    columns: &[
        Column::new("stack", ColumnType::UInt64, "hash of the names; `spans` has it too"),
        Column::nullable("parent", ColumnType::UInt64, "the stack without its last name"),
        Column::new("name", ColumnType::Name, "its last name"),
        Column::new("depth", ColumnType::Int32, "names before the last"),
    ],
};

/// Number of the column `attributes`.
const ATTRIBUTES: usize = 16;

/// Reads a trace as the rows of [`SPANS`].
///
/// # Errors
/// As [`Trace::spans`]; [`crate::Kind::Limit`] if more than 1,048,576 spans are open at once.
pub(super) fn spans(
    trace: Box<dyn Trace>,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut made = SpanRows { rows: Rows::new(&SPANS, scan, out), scan, nest: Nest::default() };
    let summary = trace.spans(options, &mut made, sink)?;
    made.rows.finish()?;
    Ok(summary)
}

/// Reads a trace as the rows of [`STACKS`].
///
/// # Errors
/// As [`spans`].
pub(super) fn stacks(
    trace: Box<dyn Trace>,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut made = StackRows { rows: Rows::new(&STACKS, scan, out), seen: Set::default(), nest: Nest::default() };
    let summary = trace.spans(options, &mut made, sink)?;
    made.rows.finish()?;
    Ok(summary)
}

/// A span that ended.
struct EndedSpan<'a> {
    /// Number of the record that begins it.
    seq: u64,
    /// Number of the record that ends it.
    end_seq: u64,
    /// Begin, in the source's unit.
    start: u64,
    /// Length.
    duration: u64,
    /// Length without the spans inside it.
    self_time: u64,
    /// Spans around it.
    depth: usize,
    /// Number of its track.
    track: TrackId,
    /// Its name.
    name: NameId,
    /// Processor; [`NO_CPU`] where unknown.
    cpu: u16,
    /// What is special about it.
    flags: EdgeFlags,
    /// Hash of its stack.
    stack: u64,
    /// Record number of the span around it.
    parent: Option<u64>,
    /// Members of a JSON object, without braces.
    attributes: &'a str,
}

/// What is open on each track, and what was announced.
#[derive(Default)]
struct Nest {
    unit: Option<TimeUnit>,
    rows: Vec<(Track, Vec<Open>)>,
    names: Vec<Name>,
    open: usize,
    /// How often each key occurred in the span at hand.
    keys: Map<NameId, u32>,
}

struct Name {
    text: Box<str>,
    hash: u64,
}

struct Open {
    seq: u64,
    start: u64,
    /// Time of the spans inside it that have ended.
    inner: u64,
    stack: u64,
    name: NameId,
    cpu: u16,
    flags: EdgeFlags,
    attributes: String,
}

impl Nest {
    fn track(&mut self, track: &Track) {
        self.rows.push((track.clone(), Vec::new()));
    }

    fn name(&mut self, name: &[u8]) {
        self.names.push(Name { text: shown(name).into(), hash: hash_of(name) });
    }

    fn text(&self, name: NameId) -> &str {
        self.names.get(name as usize).map_or("", |name| &name.text)
    }

    /// The stack and the depth of the span that begins.
    fn begin(&mut self, edge: &Edge, attributes: String) -> Result<Option<(u64, Option<u64>, usize)>, Error> {
        let name = self.names.get(edge.name as usize).map_or(0, |name| name.hash);
        let Some((_, open)) = self.rows.get_mut(edge.track as usize) else { return Ok(None) };
        if self.open >= OPEN_MAX {
            return Err(Error::limit(format!("more than {OPEN_MAX} spans are open at once")));
        }
        self.open += 1;
        let (parent, depth) = (open.last().map(|span| span.stack), open.len());
        let stack = stack_of(parent.unwrap_or(0), name);
        let (seq, start, name, cpu, flags) = (edge.seq, edge.time, edge.name, edge.cpu, edge.flags);
        open.push(Open { seq, start, inner: 0, stack, name, cpu, flags, attributes });
        Ok(Some((stack, parent, depth)))
    }

    fn end(
        &mut self,
        edge: &Edge,
        more: &str,
        take: impl FnOnce(&Self, &EndedSpan<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some((_, open)) = self.rows.get_mut(edge.track as usize) else { return Ok(()) };
        let Some(mut span) = open.pop() else { return Ok(()) };
        self.open -= 1;
        // A clock that went back makes a span of no length.
        let duration = edge.time.max(span.start) - span.start;
        let depth = open.len();
        let parent = open.last_mut().map(|around| {
            around.inner = around.inner.saturating_add(duration);
            around.seq
        });
        if !more.is_empty() {
            if !span.attributes.is_empty() {
                span.attributes.push(',');
            }
            span.attributes.push_str(more);
        }
        let ended = EndedSpan {
            seq: span.seq,
            end_seq: edge.seq,
            start: span.start,
            duration,
            self_time: duration.saturating_sub(span.inner),
            depth,
            track: edge.track,
            name: span.name,
            cpu: span.cpu,
            flags: EdgeFlags(span.flags.0 | edge.flags.0),
            stack: span.stack,
            parent,
            attributes: &span.attributes,
        };
        take(self, &ended)
    }

    /// The attributes of an edge as members of a JSON object. Keys may occur more than once in a trace, in JSON they
    /// should not: the second of `key` is `key#2`.
    fn attributes(&mut self, batch: &EdgeBatch, edge: &Edge) -> String {
        if edge.attributes.1 == 0 {
            return String::new();
        }
        let mut out = Vec::new();
        if self.keys.capacity() > 1024 {
            self.keys = Map::default();
        }
        self.keys.clear();
        for (key, value) in batch.attributes(edge) {
            if !out.is_empty() {
                out.push(b',');
            }
            let nth = self.keys.entry(key).or_default();
            *nth += 1;
            let name = self.names.get(key as usize).map_or("", |name| &name.text);
            match *nth {
                1 => push_json_str(&mut out, name),
                nth => push_json_str(&mut out, &format!("{name}#{nth}")),
            }
            out.push(b':');
            push_json_value(&mut out, value);
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

struct SpanRows<'a> {
    rows: Rows<'a>,
    scan: &'a Scan,
    nest: Nest,
}

impl SpanSink for SpanRows<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.nest.unit = Some(source.unit);
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        self.rows.wants(ATTRIBUTES)
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.nest.track(track);
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        self.nest.name(name);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let wants_attributes = self.wants_attributes();
        let (rows, scan) = (&mut self.rows, self.scan);
        for edge in batch.edges() {
            let attributes = match edge.kind {
                EdgeKind::Begin | EdgeKind::End if wants_attributes => self.nest.attributes(batch, edge),
                _ => String::new(),
            };
            match edge.kind {
                EdgeKind::Begin => {
                    self.nest.begin(edge, attributes)?;
                }
                EdgeKind::End => self.nest.end(edge, &attributes, |nest, span| push(nest, span, scan, rows))?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn push(nest: &Nest, span: &EndedSpan<'_>, scan: &Scan, rows: &mut Rows<'_>) -> Result<(), Error> {
    let Some((track, _)) = nest.rows.get(span.track as usize) else { return Ok(()) };
    let (seq, start, thread) = (signed(span.seq), signed(span.start), track.thread.cast_signed());
    if !scan.filter.has_seq(seq) || !scan.filter.has_time(start) || !scan.filter.has_thread(thread) {
        return Ok(());
    }
    rows.int64(seq);
    rows.count(span.end_seq);
    rows.uint32(span.track);
    rows.int64(track.process.cast_signed());
    rows.int64(thread);
    rows.int32(i32::try_from(track.lane).unwrap_or(i32::MAX));
    rows.int32(i32::try_from(span.depth).unwrap_or(i32::MAX));
    rows.numbered_name(span.name, || nest.text(span.name).into());
    rows.int64(start);
    rows.count(span.duration);
    rows.count(span.self_time);
    rows.name(nest.unit.map_or("record", TimeUnit::word));
    rows.int32((span.cpu != NO_CPU).then(|| i32::from(span.cpu)));
    rows.numbered_name(u32::from(span.flags.0), || flags(span.flags).into());
    rows.uint64(span.stack);
    rows.count(span.parent);
    rows.text_with(|| (!span.attributes.is_empty()).then(|| format!("{{{}}}", span.attributes)));
    rows.end()
}

/// Words of flags, with a comma between them; a span that never ended is `open`.
fn flags(flags: EdgeFlags) -> String {
    let words: Vec<_> = flags.words().map(|word| if word == "unfinished" { "open" } else { word }).collect();
    words.join(",")
}

struct StackRows<'a> {
    rows: Rows<'a>,
    seen: Set<u64>,
    nest: Nest,
}

impl SpanSink for StackRows<'_> {
    fn source(&mut self, _source: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.nest.track(track);
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        self.nest.name(name);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            match edge.kind {
                EdgeKind::Begin => {
                    let Some((stack, parent, depth)) = self.nest.begin(edge, String::new())? else { continue };
                    if !self.seen.insert(stack) {
                        continue;
                    }
                    self.rows.uint64(stack);
                    self.rows.uint64(parent);
                    self.rows.numbered_name(edge.name, || self.nest.text(edge.name).into());
                    self.rows.int32(i32::try_from(depth).unwrap_or(i32::MAX));
                    self.rows.end()?;
                }
                EdgeKind::End => self.nest.end(edge, "", |_, _| Ok(()))?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The hash of a name (FNV-1a, 64 bits). It is the same in every run and on every machine, because it is data: a trace
/// can be crafted so that two stacks share a number, but no table is indexed by it.
pub(super) fn hash_of(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The number of a stack: of the one around it and the hash of the last name.
#[inline]
fn stack_of(parent: u64, name: u64) -> u64 {
    let mixed = (parent.rotate_left(23) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

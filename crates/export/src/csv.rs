//! One row per span, for spreadsheets and databases (RFC 4180, line ends `\n`).
//!
//! Streams: a row is written when its span ends, so children precede their parents and memory grows with open spans,
//! distinct names and tracks. Instants, counters and flows are rows without a duration. Times count from the trace's
//! origin; the header names their unit: `start_ns`, or `start_tick`, `start_record` where the trace has no clock.

use std::sync::Arc;

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink, text};

use crate::cells::{Cells, push_doubled};
use crate::formatters::Formatters;
use crate::pen::Pen;
use crate::timeline::clock::{Clock, NO_SOURCE};
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{self, Fragments, shown};

/// Rows are formatted when they are so many, or their attributes take this much room.
const BATCH_ROWS: usize = 8 * 1024;
const ATTRIBUTE_BYTES_MAX: usize = 1024 * 1024;

/// A table being written.
pub struct Csv<'a> {
    pen: Pen<'a>,
    cells: Cells,
    has_source: bool,
    known: Arc<Known>,
    formatters: Formatters<Rows>,
    rows: Rows,
    open: Vec<Vec<Open>>,
    /// Attribute texts that are not in use, to be filled again.
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
}

/// What all rows need.
#[derive(Debug, Clone, Default)]
struct Known {
    clock: Clock,
    /// `TRACK,PROCESS,THREAD,LANE,` of each track.
    places: Fragments,
    /// The field `name` and the field `src` of each name.
    names: Fragments,
    sources: Fragments,
    /// `"KEY":` of each name, as JSON.
    keys: Fragments,
}

/// Rows that are not written yet, and the members of their JSON objects of attributes.
#[derive(Default)]
struct Rows {
    known: Option<Arc<Known>>,
    rows: Vec<Row>,
    attributes: Vec<u8>,
}

/// A span that has begun.
struct Open {
    begin: Edge,
    /// Begin and time spent in spans inside it, in nanoseconds or, without a clock, units.
    start: i64,
    inside: u64,
    /// Members of its JSON object of attributes.
    attributes: Vec<u8>,
}

impl<'a> Csv<'a> {
    /// Begins a table.
    pub fn new(outlet: Outlet<'a>) -> Self {
        let format = |rows: &Rows, out: &mut Vec<u8>| {
            let Some(known) = &rows.known else { return };
            for row in &rows.rows {
                known.row(out, row, rows.attributes.get(row.attributes.0..row.attributes.1).unwrap_or_default());
            }
        };
        Self {
            pen: Pen::new(outlet.out),
            cells: outlet.cells,
            has_source: false,
            known: Arc::default(),
            formatters: Formatters::new(outlet.threads, format),
            rows: Rows::default(),
            open: Vec::new(),
            spare: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// What is known, to be changed: no thread uses it then.
    fn known(&mut self) -> Result<&mut Known, Error> {
        self.formatters.finish(&mut self.pen)?;
        debug_assert_eq!(Arc::strong_count(&self.known), 1, "a copy for each name would be too much");
        Ok(Arc::make_mut(&mut self.known))
    }

    fn add(&mut self, row: Row, attributes: &[u8]) {
        let start = self.rows.attributes.len();
        self.rows.attributes.extend_from_slice(attributes);
        self.rows.rows.push(Row { attributes: (start, self.rows.attributes.len()), ..row });
    }

    /// Writes the rows, once they are many.
    fn rest(&mut self) -> Result<(), Error> {
        let is_full = self.rows.rows.len() >= BATCH_ROWS || self.rows.attributes.len() >= ATTRIBUTE_BYTES_MAX;
        if is_full { self.give() } else { Ok(()) }
    }

    fn give(&mut self) -> Result<(), Error> {
        let mut empty = self.formatters.spare().unwrap_or_default();
        empty.known = None;
        empty.rows.clear();
        empty.attributes.clear();
        let mut rows = std::mem::replace(&mut self.rows, empty);
        rows.known = Some(Arc::clone(&self.known));
        self.formatters.give(rows, &mut self.pen)
    }

    fn begin(&mut self, batch: &EdgeBatch, edge: &Edge) {
        let mut attributes = self.spare.pop().unwrap_or_default();
        attributes.clear();
        push_attributes(&mut attributes, &self.known.keys, batch, edge);
        if let Some(open) = self.open.get_mut(edge.track as usize) {
            let start = self.known.clock.since_origin(edge.time);
            open.push(Open { begin: *edge, start, inside: 0, attributes });
        }
    }

    fn end(&mut self, batch: &EdgeBatch, edge: &Edge) {
        let Some(open) = self.open.get_mut(edge.track as usize) else { return };
        let Some(mut span) = open.pop() else { return };
        let depth = open.len();
        // Of rounded times, so that start and duration add up to the end as the other outputs have it.
        let length = self.known.clock.since_origin(edge.time).saturating_sub(span.start).max(0).cast_unsigned();
        if let Some(parent) = open.last_mut() {
            parent.inside = parent.inside.saturating_add(length);
        }
        push_attributes(&mut span.attributes, &self.known.keys, batch, edge);
        let own = length.saturating_sub(span.inside);
        let lengths = Some((length, own));
        let flags = span.begin.flags.with(edge.flags);
        let row = Row { edge: span.begin, kind: "span", lengths, depth, flags, attributes: (0, 0) };
        self.add(row, &span.attributes);
        self.spare.push(span.attributes);
    }

    fn point(&mut self, batch: &EdgeBatch, edge: &Edge, kind: &'static str) {
        let depth = self.open.get(edge.track as usize).map_or(0, Vec::len);
        let mut attributes = std::mem::take(&mut self.scratch);
        attributes.clear();
        push_attributes(&mut attributes, &self.known.keys, batch, edge);
        let row = Row { edge: *edge, kind, lengths: None, depth, flags: edge.flags, attributes: (0, 0) };
        self.add(row, &attributes);
        self.scratch = attributes;
    }
}

impl Known {
    fn row(&self, out: &mut Vec<u8>, row: &Row, attributes: &[u8]) {
        text::push_dec(out, row.edge.seq);
        out.push(b',');
        out.extend_from_slice(row.kind.as_bytes());
        out.push(b',');
        out.extend_from_slice(self.places.get(row.edge.track));
        out.extend_from_slice(self.names.get(row.edge.name));
        out.push(b',');
        text::push_dec(out, self.clock.since_origin(row.edge.time));
        out.push(b',');
        if let Some((length, own)) = row.lengths {
            text::push_dec(out, length);
            out.push(b',');
            text::push_dec(out, own);
        } else {
            out.push(b',');
        }
        out.push(b',');
        text::push_dec(out, row.depth);
        out.push(b',');
        words::push_flags(out, row.flags);
        out.push(b',');
        if let Some(cpu) = words::cpu(row.edge.cpu) {
            text::push_dec(out, cpu);
        }
        out.push(b',');
        out.extend_from_slice(self.sources.get(row.edge.name));
        out.push(b',');
        if !attributes.is_empty() {
            out.extend_from_slice(b"\"{");
            push_doubled(out, attributes);
            out.extend_from_slice(b"}\"");
        }
        out.push(b'\n');
    }
}

/// The contents of a row besides its names and attributes.
struct Row {
    edge: Edge,
    kind: &'static str,
    /// Duration and self time, for spans.
    lengths: Option<(u64, u64)>,
    depth: usize,
    flags: EdgeFlags,
    /// Begin and end of its attributes.
    attributes: (usize, usize),
}

/// Appends members of a JSON object.
fn push_attributes(out: &mut Vec<u8>, keys: &Fragments, batch: &EdgeBatch, edge: &Edge) {
    for (key, value) in batch.attributes(edge) {
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(keys.get(key));
        words::push_json_value(out, value);
    }
}

impl SpanSink for Csv<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        let clock = Clock::new(source);
        let unit = clock.word();
        self.known()?.clock = clock;
        self.has_source = true;
        self.pen.push(&format!(
            "seq,kind,track,process,thread,lane,process_name,thread_name,name,start_{unit},duration_{unit},self_{unit},\
             depth,flags,cpu,src,attributes\n"
        ));
        Ok(())
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        self.open.push(Vec::new());
        let cells = self.cells;
        self.known()?.places.add(|out| {
            out.extend_from_slice(format!("{id},{},{},{},", track.process, track.thread, track.lane).as_bytes());
            cells.push(out, track.process_name.as_deref().unwrap_or_default());
            out.push(b',');
            cells.push(out, track.name.as_deref().unwrap_or_default());
            out.push(b',');
        });
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        let (name, cells) = (shown(name), self.cells);
        let known = self.known()?;
        known.names.add(|out| cells.push(out, &name));
        known.keys.add(|out| {
            text::push_json_str(out, &name);
            out.push(b':');
        });
        known.sources.add(|out| cells.push(out, &location.map(words::place).unwrap_or_default()));
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            match edge.kind {
                EdgeKind::Begin => self.begin(batch, edge),
                EdgeKind::End => self.end(batch, edge),
                EdgeKind::Instant => self.point(batch, edge, "instant"),
                EdgeKind::Counter => self.point(batch, edge, "counter"),
                EdgeKind::FlowOut => self.point(batch, edge, "flow-out"),
                EdgeKind::FlowIn => self.point(batch, edge, "flow-in"),
            }
            self.rest()?;
        }
        Ok(())
    }
}

impl Timeline for Csv<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        if !self.has_source {
            self.source(&NO_SOURCE)?;
        }
        self.give()?;
        self.formatters.finish(&mut self.pen)?;
        self.pen.finish()
    }
}

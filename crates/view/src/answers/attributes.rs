//! The attributes of a slice. Rows do not have them, so the trace is read again until the slice has ended. Of formats
//! without spans, a slice is a record, and its attributes are what the table `events` has of it.

use anytrace_core::span::{EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId, push_json_value};
use anytrace_core::table::{Batch, EVENTS, Filter, RowSink, Scan};
use anytrace_core::{Collect, Error, Format, Input, SpanOptions, SpanSink, tables};
use serde_json::{Map, Value};

use super::Work;
use super::tables::cell;
use crate::pyramid::{INSTANT, Slice};
use crate::reading::{open, span_options};
use crate::view::File;

/// Longest file that is read again.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Attributes of a slice, at most.
const ATTRIBUTES_MAX: usize = 1000;

/// The attributes of a slice of a track at a depth; `None` where it has none, or where reading would take long.
pub(super) fn of(work: &Work<'_>, file: &File, (track, depth): (usize, usize), slice: &Slice) -> Option<Value> {
    let is_short = std::fs::metadata(file.path()).is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
    if !is_short {
        return None;
    }
    let (format, input) = open(&file.current()).ok()??;
    if !format.has_spans() {
        let options = span_options(work.view, file, format).ok()?;
        return of_record(work, file, (format, input), &options, slice.start);
    }
    let trace = format.open(input, &file.source.open).ok()?;
    let track = TrackId::try_from(track).ok()?;
    let mut search = Search { work, track, depth, slice, open: 0, names: Vec::new(), own: None, found: None };
    // It ends with an error of its own as soon as the slice was found. A slice is found by its times: functions need no
    // names, which would be read from the program at each click.
    let _ = trace.spans(&SpanOptions::default(), &mut search, &mut Collect::default());
    search.found.filter(|found| !found.is_empty()).map(Value::Object)
}

/// What the table `events` has of a record.
fn of_record(
    work: &Work<'_>,
    file: &File,
    (format, input): (&'static dyn Format, Input),
    options: &SpanOptions,
    record: u64,
) -> Option<Value> {
    let seq = i64::try_from(record).ok()?;
    let trace = format.open(input, &file.source.open).ok()?;
    let scan = Scan { columns: None, filter: Filter { seq: Some(seq..=seq), ..Filter::default() } };
    let mut row = OneRow { work, seq, found: None };
    // It ends with an error of its own as soon as the record was found.
    let _ = tables::read(format, trace, EVENTS.name, &scan, options, &mut row, &mut Collect::default());
    row.found.map(Value::Object)
}

/// Waits for a record.
struct OneRow<'a> {
    work: &'a Work<'a>,
    seq: i64,
    found: Option<Map<String, Value>>,
}

impl RowSink for OneRow<'_> {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        self.work.check().map_err(|problem| Error::usage(problem.text))?;
        let named = || EVENTS.columns.iter().zip(&batch.columns);
        let is_it = |row: usize| {
            let seq = named().find(|(column, _)| column.name == "seq").map(|(_, values)| cell(values, row));
            seq.and_then(|seq| seq.as_i64()) == Some(self.seq)
        };
        let Some(row) = (0..batch.rows).find(|row| is_it(*row)) else { return Ok(()) };
        let mut found = Map::new();
        for (column, values) in named() {
            match (column.name, cell(values, row)) {
                (_, Value::Null) => {}
                // What the record itself calls its fields.
                ("attributes", Value::String(text)) => {
                    let own: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
                    found.extend(own.into_iter().take(ATTRIBUTES_MAX));
                }
                (name, value) => drop(found.insert(name.to_owned(), value)),
            }
        }
        self.found = Some(found);
        Err(Error::usage("found"))
    }
}

/// Waits for a slice.
struct Search<'a> {
    work: &'a Work<'a>,
    track: TrackId,
    depth: usize,
    slice: &'a Slice,
    /// Slices that are open on the track.
    open: usize,
    /// This trace's names.
    names: Vec<Box<[u8]>>,
    /// The attributes of a slice that began as the wanted one does.
    own: Option<Map<String, Value>>,
    found: Option<Map<String, Value>>,
}

impl Search<'_> {
    /// Adds the attributes of an edge. A key that occurs again gets a number, as in the table `spans`.
    fn take(&self, batch: &EdgeBatch, edge: &anytrace_core::span::Edge, into: &mut Map<String, Value>) {
        for (key, value) in batch.attributes(edge).take(ATTRIBUTES_MAX) {
            let key =
                self.names.get(key as usize).map_or_else(String::new, |key| String::from_utf8_lossy(key).into_owned());
            let mut text = Vec::new();
            push_json_value(&mut text, value);
            let value = serde_json::from_slice(&text).unwrap_or(Value::Null);
            let mut unique = key.clone();
            let mut nth = 2;
            while into.contains_key(&unique) && into.len() < ATTRIBUTES_MAX {
                unique = format!("{key}#{nth}");
                nth += 1;
            }
            into.insert(unique, value);
        }
    }
}

impl SpanSink for Search<'_> {
    fn source(&mut self, _: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn track(&mut self, _: TrackId, _: &Track) -> Result<(), Error> {
        Ok(())
    }

    fn name(&mut self, _: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        self.names.push(name.into());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        self.work.check().map_err(|problem| Error::usage(problem.text))?;
        let is_instant = self.slice.flags & INSTANT != 0;
        for edge in batch.edges().iter().filter(|edge| edge.track == self.track) {
            match edge.kind {
                EdgeKind::Begin => {
                    if !is_instant && self.open == self.depth && edge.time == self.slice.start {
                        let mut own = Map::new();
                        self.take(batch, edge, &mut own);
                        self.own = Some(own);
                    }
                    self.open += 1;
                }
                EdgeKind::End => {
                    self.open = self.open.saturating_sub(1);
                    if self.open == self.depth
                        && let Some(mut own) = self.own.take()
                        && edge.time == self.slice.end
                    {
                        self.take(batch, edge, &mut own);
                        self.found = Some(own);
                        return Err(Error::usage("found"));
                    }
                }
                EdgeKind::Instant if is_instant && self.open == self.depth && edge.time == self.slice.start => {
                    let mut own = Map::new();
                    self.take(batch, edge, &mut own);
                    self.found = Some(own);
                    return Err(Error::usage("found"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

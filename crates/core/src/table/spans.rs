//! The table `spans`, made of the lane of spans.

use super::nest::{EndedSpan, Nest};
use super::{Column, ColumnType, Filter, RowSink, Rows, Scan, Table, Values};
use crate::Error;
use crate::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NO_CPU, NameId, SpanSink, SpanSource, TimeUnit, Track, TrackId,
};

/// Spans that are turned into rows at once, and the size of their attributes beyond which fewer are.
const ENDED_MAX: usize = 128;
const TEXTS_MAX: usize = 1 << 20;

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

/// Number of the column `attributes`.
const ATTRIBUTES: usize = 16;

/// Makes the values of the columns after those of [`SPANS`]: one for each of these rows, given by the number of its
/// span's name, in each such column.
pub type MoreColumns<'a> = &'a dyn Fn(&[NameId], &mut Rows<'_>);

/// Makes the rows of [`SPANS`] of a format's edges, or of a table of its own that begins with these columns.
pub struct SpanRows<'a> {
    rows: Rows<'a>,
    filter: &'a Filter,
    nest: Nest,
    wants_attributes: bool,
    more: Option<MoreColumns<'a>>,
    /// Spans that are rows soon: columns are filled one after the other, which is faster than row by row.
    ended: Vec<EndedSpan>,
    /// The attributes of each, if they are wanted: where they end in `texts`.
    ends: Vec<usize>,
    texts: Vec<u8>,
    names: Vec<NameId>,
}

impl<'a> SpanRows<'a> {
    /// Rows for a sink; `more` makes the columns that `table` has beyond those of [`SPANS`].
    pub fn new(table: &Table, scan: &'a Scan, out: &'a mut dyn RowSink, more: Option<MoreColumns<'a>>) -> Self {
        let rows = Rows::new(table, scan, out);
        let wants_attributes = rows.wants(ATTRIBUTES);
        Self {
            rows,
            filter: &scan.filter,
            nest: Nest::default(),
            wants_attributes,
            more,
            ended: Vec::with_capacity(ENDED_MAX),
            ends: Vec::new(),
            texts: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Hands out the last rows. Call it once, after the last edge.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn finish(mut self) -> Result<(), Error> {
        self.fill()?;
        self.rows.finish()
    }

    #[inline]
    fn end(&mut self, edge: &Edge, batch: Option<&EdgeBatch>) -> Result<(), Error> {
        let Some(span) = self.nest.end(edge, batch) else { return Ok(()) };
        // A span that ends after the part that is read is a row of another part.
        let Some(nested) = self.nest.tracks.get_mut(span.track as usize) else { return Ok(()) };
        let is_wanted = !edge.flags.has(EdgeFlags::CONTINUES)
            && self.filter.has_seq(signed(span.seq))
            && self.filter.has_time(signed(span.start))
            && self.filter.has_thread(nested.track.thread.cast_signed());
        if is_wanted {
            self.ended.push(span);
        }
        if self.wants_attributes {
            if is_wanted {
                push_object(&mut self.texts, nested.attributes.get(span.attributes..).unwrap_or_default());
                self.ends.push(self.texts.len());
            }
            nested.attributes.truncate(span.attributes);
        }
        if self.ended.len() >= ENDED_MAX || self.texts.len() >= TEXTS_MAX { self.fill() } else { Ok(()) }
    }

    /// Turns the spans that ended into rows.
    fn fill(&mut self) -> Result<(), Error> {
        let (mut done, mut text_from) = (0, 0);
        while let Some(spans) = self.ended.get(done..).filter(|spans| !spans.is_empty()) {
            let spans = spans.get(..self.rows.room()).unwrap_or(spans);
            let count = spans.len();
            fill(&self.nest, spans, &mut self.rows);
            if self.wants_attributes {
                let ends = self.ends.get(done..done + count).unwrap_or_default();
                let texts = ends.iter().map(|end| {
                    let text = self.texts.get(std::mem::replace(&mut text_from, *end)..*end).unwrap_or_default();
                    let text = std::str::from_utf8(text).unwrap_or_default();
                    (!text.is_empty()).then_some(text)
                });
                self.rows.extend_texts(ATTRIBUTES, texts);
            }
            if let Some(more) = self.more {
                self.names.clear();
                self.names.extend(spans.iter().map(|span| span.name));
                more(&self.names, &mut self.rows);
            }
            self.rows.advance(count)?;
            done += count;
        }
        self.ended.clear();
        self.ends.clear();
        self.texts.clear();
        Ok(())
    }
}

impl SpanSink for SpanRows<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.nest.unit = Some(source.unit);
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        self.wants_attributes
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
            let all = batch;
            let batch = self.wants_attributes.then_some(batch);
            match edge.kind {
                EdgeKind::Begin if edge.flags.has(EdgeFlags::RESUMED) => {
                    self.nest.resume(edge, all, self.wants_attributes)?;
                }
                EdgeKind::Begin => drop(self.nest.begin(edge, batch)?),
                EdgeKind::End => self.end(edge, batch)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends a JSON object with these members, if there are any.
fn push_object(out: &mut Vec<u8>, members: &[u8]) {
    if !members.is_empty() {
        out.push(b'{');
        out.extend_from_slice(members);
        out.push(b'}');
    }
}

/// Fills the columns of [`SPANS`], numbered as there, but the attributes.
fn fill(nest: &Nest, spans: &[EndedSpan], rows: &mut Rows<'_>) {
    let track = |span: &EndedSpan| nest.tracks.get(span.track as usize).map(|nested| &nested.track);
    if let Some(Values::UInt32(column)) = rows.values(2) {
        column.extend(spans.iter().map(|span| span.track));
    }
    if let Some(Values::UInt64(column)) = rows.values(14) {
        column.extend(spans.iter().map(|span| span.stack));
    }
    let mut int64 = |column: usize, value: &dyn Fn(&[EndedSpan], &mut Vec<i64>)| {
        if let Some(Values::Int64(column)) = rows.values(column) {
            value(spans, column);
        }
    };
    int64(0, &|spans, column| column.extend(spans.iter().map(|span| signed(span.seq))));
    int64(1, &|spans, column| column.extend(spans.iter().map(|span| signed(span.end_seq))));
    int64(3, &|spans, column| {
        column.extend(spans.iter().map(|span| track(span).map_or(0, |track| track.process.cast_signed())));
    });
    int64(4, &|spans, column| {
        column.extend(spans.iter().map(|span| track(span).map_or(0, |track| track.thread.cast_signed())));
    });
    int64(8, &|spans, column| column.extend(spans.iter().map(|span| signed(span.start))));
    int64(9, &|spans, column| column.extend(spans.iter().map(|span| signed(span.duration))));
    int64(10, &|spans, column| column.extend(spans.iter().map(|span| signed(span.self_time))));
    if let Some(Values::Int32(column)) = rows.values(5) {
        column.extend(spans.iter().map(|span| track(span).map_or(0, |track| small(track.lane))));
    }
    if let Some(Values::Int32(column)) = rows.values(6) {
        column.extend(spans.iter().map(|span| small(span.depth)));
    }
    rows.extend_names(7, spans.iter().map(|span| span.name), |name| nest.text(name).into());
    let unit = nest.unit.map_or("record", TimeUnit::word);
    rows.repeat_name(11, unit, spans.len());
    rows.extend_int32(12, spans.iter().map(|span| (span.cpu != NO_CPU).then(|| i32::from(span.cpu))));
    rows.extend_names(13, spans.iter().map(|span| u32::from(span.flags.0)), |bits| flags(bits).into());
    rows.extend_int64(15, spans.iter().map(|span| span.parent.map(signed)));
}

fn small(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

/// Words of flags, with a comma between them; a span that never ended is `open`.
fn flags(bits: u32) -> String {
    let flags = EdgeFlags(u8::try_from(bits).unwrap_or_default());
    let words: Vec<_> = flags.words().map(|word| if word == "unfinished" { "open" } else { word }).collect();
    words.join(",")
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Value;
    use crate::table::{BATCH_ROWS, Batch};

    static CALLS: Table = Table {
        name: "calls",
        help: "",
        columns: &{
            let mut columns = [Column::new("id", ColumnType::Int32, ""); SPANS.columns.len() + 1];
            let mut at = 0;
            while at < SPANS.columns.len() {
                columns[at] = SPANS.columns[at];
                at += 1;
            }
            columns
        },
    };

    fn edge(kind: EdgeKind, seq: u64, time: u64, name: NameId) -> Edge {
        Edge { seq, time, track: 0, name, attributes: (0, 0), cpu: NO_CPU, kind, flags: EdgeFlags::NONE }
    }

    /// Batches of a table of what `emit` says.
    fn made(scan: &Scan, more: MoreColumns<'_>, emit: impl FnOnce(&mut SpanRows<'_>)) -> Vec<Batch> {
        let mut taken = Vec::new();
        let mut take = |batch: Batch| -> Result<(), Error> {
            taken.push(batch);
            Ok(())
        };
        let mut rows = SpanRows::new(&CALLS, scan, &mut take, Some(more));
        rows.track(0, &Track::default()).unwrap();
        for (id, name) in ["outer", "inner", "key"].iter().enumerate() {
            rows.name(u32::try_from(id).unwrap(), name.as_bytes(), None).unwrap();
        }
        emit(&mut rows);
        rows.finish().unwrap();
        taken
    }

    #[test]
    fn attributes_of_a_span_are_those_of_its_two_ends() {
        let scan = Scan::columns_of(&CALLS, &["name", "attributes", "id", "self", "parent"]).unwrap();
        let more = |names: &[NameId], rows: &mut Rows<'_>| {
            if let Some(Values::Int32(column)) = rows.values(SPANS.columns.len()) {
                column.extend(names.iter().map(|name| small(*name) + 40));
            }
        };
        let out = made(&scan, &more, |rows| {
            assert!(rows.wants_attributes());
            let mut batch = EdgeBatch::default();
            batch.push(edge(EdgeKind::Begin, 0, 10, 0));
            batch.attribute(2, Value::U64(1));
            batch.push(edge(EdgeKind::Begin, 1, 12, 1));
            batch.attribute(2, Value::Text(b"a"));
            batch.attribute(2, Value::Text(b"b"));
            batch.push(edge(EdgeKind::End, 2, 15, 1));
            batch.push(edge(EdgeKind::Begin, 3, 16, 1));
            batch.push(edge(EdgeKind::End, 4, 17, 1));
            rows.edges(&batch).unwrap();
            batch.clear();
            batch.push(edge(EdgeKind::End, 5, 20, 0));
            batch.attribute(1, Value::Bool(true));
            rows.edges(&batch).unwrap();
        });
        let [batch] = &out[..] else { panic!("{} batches", out.len()) };
        let [names, attributes, ids, self_times, parents] = &batch.columns[..] else { panic!("five columns") };
        let Values::Text(texts) = &attributes.values else { panic!("texts") };
        let text = |row| attributes.is_valid(row).then(|| String::from_utf8(texts.get(row).to_vec()).unwrap());
        assert_eq!(text(0).as_deref(), Some(r#"{"key":"a","key#2":"b"}"#));
        assert_eq!(text(1), None);
        assert_eq!(text(2).as_deref(), Some(r#"{"key":1,"inner":true}"#));
        assert_eq!(ids.values, Values::Int32(vec![41, 41, 40]));
        assert_eq!(self_times.values, Values::Int64(vec![3, 1, 6]));
        assert_eq!((&parents.values, &parents.validity[..]), (&Values::Int64(vec![0, 0, 0]), &[true, true, false][..]));
        let Values::Name { keys, names } = &names.values else { panic!("names") };
        assert_eq!(keys.iter().map(|key| names.get(*key)).collect::<Vec<_>>(), ["inner", "inner", "outer"]);
    }

    #[test]
    fn batches_are_full_whatever_the_number_of_spans_that_end_at_once() {
        let spans = BATCH_ROWS as u64 * 2 + 77;
        let scan = Scan::columns_of(&CALLS, &["seq", "flags"]).unwrap();
        let out = made(&scan, &|_, _| {}, |rows| {
            for chunk in (0..spans).collect::<Vec<_>>().chunks(333) {
                let mut batch = EdgeBatch::default();
                for seq in chunk {
                    batch.push(edge(EdgeKind::Begin, *seq, *seq, 0));
                    batch.push(edge(EdgeKind::End, *seq, *seq, 0));
                }
                rows.edges(&batch).unwrap();
            }
        });
        assert_eq!(out.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [BATCH_ROWS, BATCH_ROWS, 77]);
        let seqs: Vec<i64> = out
            .iter()
            .flat_map(|batch| match &batch.columns[0].values {
                Values::Int64(column) => column.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(seqs.iter().copied().eq(0..spans.cast_signed()));
    }

    #[test]
    fn what_is_left_out_takes_its_attributes_with_it() {
        let mut scan = Scan::columns_of(&CALLS, &["seq", "attributes"]).unwrap();
        scan.filter.seq = Some(1..=1);
        let out = made(&scan, &|_, _| {}, |rows| {
            let mut batch = EdgeBatch::default();
            for seq in 0..3 {
                batch.push(edge(EdgeKind::Begin, seq, seq, 0));
                batch.attribute(2, Value::U64(seq));
                batch.push(edge(EdgeKind::End, seq, seq, 0));
            }
            rows.edges(&batch).unwrap();
        });
        let Values::Text(texts) = &out[0].columns[1].values else { panic!("texts") };
        assert_eq!((out[0].rows, texts.get(0)), (1, &br#"{"key":1}"#[..]));
    }
}

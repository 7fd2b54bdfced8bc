//! The trace as the table `events`; `accesses`, `regions` and `types` are made of the lane of accesses.

use anytrace_core::table::{EVENTS, Filter, RowSink, Rows, Scan, Table, Values};
use anytrace_core::{Error, Place, Sink, Summary};

use crate::verbs::lines::push_attributes;
use crate::wire::parse::{access, parse_record, with_layout};
use crate::wire::reader::{Reader, Visit, after, run_of};
use crate::wire::record::{Body, Kind, Layout, Record};

/// The format's own tables.
pub(crate) static TABLES: [Table; 1] = [EVENTS];

// Columns of `EVENTS`.
const SEQ: usize = 0;
const OFFSET: usize = 1;
const THREAD: usize = 2;
const TIME: usize = 3;
const DURATION: usize = 4;
const KIND: usize = 5;
const NAME: usize = 6;
const ATTRIBUTES: usize = 7;

/// Reads a trace as the rows of a table.
pub(crate) fn read(
    reader: Reader,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Some(wanted) = TABLES.iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("cacheray traces have no table {table}")));
    };
    let rows = Rows::new(wanted, scan, out);
    let is_plain = scan.filter == Filter::default() && !rows.wants(ATTRIBUTES);
    let layout = *reader.layout();
    let mut made = Events { rows, filter: &scan.filter, layout, is_plain, is_done: false, attributes: Vec::new() };
    let passed = reader.walk(&mut made, sink)?;
    made.rows.finish()?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

struct Events<'a> {
    rows: Rows<'a>,
    filter: &'a Filter,
    layout: Layout,
    /// Accesses are added column by column.
    is_plain: bool,
    is_done: bool,
    /// The attributes of the record at hand.
    attributes: Vec<u8>,
}

impl Events<'_> {
    fn push(&mut self, record: &Record<'_>, at: Place) -> Result<(), Error> {
        let (seq, thread) = (signed(at.seq), record.thread.cast_signed());
        let kind = record.kind().name();
        if !self.filter.has_seq(seq) || !self.filter.has_thread(thread) || !self.filter.has_kind(kind) {
            return Ok(());
        }
        let rows = &mut self.rows;
        rows.int64(seq);
        rows.count(at.offset);
        rows.int64(thread);
        rows.int64(None);
        rows.int64(None);
        rows.name(kind);
        rows.raw_name(match record.body {
            Body::Add { name, .. } => Some(name),
            Body::Access { .. } | Body::Remove => None,
        });
        if rows.wants_next() {
            self.attributes.clear();
            push_attributes(&mut self.attributes, record);
        }
        rows.raw_text(self.attributes.as_slice());
        rows.end()
    }

    /// Accesses row by row.
    fn push_each(&mut self, run: &[u8], at: Place) -> Result<(), Error> {
        let stride = self.layout.access_bytes();
        for (n, bytes) in run.chunks_exact(stride).enumerate() {
            if let Ok((record, _)) = parse_record(bytes, self.layout) {
                self.push(&record, after(at, n, stride))?;
            }
        }
        Ok(())
    }

    fn note_end(&mut self, next: u64) {
        self.is_done = self.filter.ends_before(signed(next));
    }
}

/// Adds accesses column by column: several times faster than row by row.
fn push_columns<const STRIDE: usize, const BIG: bool>(
    events: &mut Events<'_>,
    run: &[u8],
    at: Place,
) -> Result<(), Error> {
    let (mut rest, _) = run.as_chunks::<STRIDE>();
    let mut at = at;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(events.rows.room()));
        push_records::<STRIDE, BIG>(&mut events.rows, now, at);
        events.rows.advance(now.len())?;
        at = after(at, now.len(), STRIDE);
        rest = later;
    }
    Ok(())
}

/// Adds the columns of accesses that fit the batch; attributes are not asked for.
fn push_records<const STRIDE: usize, const BIG: bool>(rows: &mut Rows<'_>, records: &[[u8; STRIDE]], at: Place) {
    let count = records.len();
    if let Some(Values::Int64(values)) = rows.values(SEQ) {
        values.extend((signed(at.seq)..).take(count));
    }
    if let Some(Values::Int64(values)) = rows.values(OFFSET) {
        values.extend((signed(at.offset)..).step_by(STRIDE).take(count));
    }
    if let Some(Values::Int64(values)) = rows.values(THREAD) {
        values.extend(records.iter().map(|record| access::<STRIDE, BIG>(record).3.cast_signed()));
    }
    rows.repeat_none(TIME, count);
    rows.repeat_none(DURATION, count);
    if rows.wants(KIND) {
        let known = [Kind::Read, Kind::Write].map(|kind| rows.key(KIND, kind.name()));
        if let Some(Values::Name { keys, .. }) = rows.values(KIND) {
            keys.extend(records.iter().map(|record| known[usize::from(record[0] & 1)]));
        }
    }
    rows.repeat_none(NAME, count);
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Visit for Events<'_> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        let run = run_of(window, self.layout);
        if self.is_plain {
            with_layout!(self.layout, push_columns, self, run, at)?;
        } else {
            self.push_each(run, at)?;
        }
        self.note_end(at.seq + (run.len() / self.layout.access_bytes()) as u64);
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.push(record, at)?;
        self.note_end(at.seq + 1);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

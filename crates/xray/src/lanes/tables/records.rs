//! The tables `events` and `custom_events`: a row a record.

use anytrace_core::span::TimeUnit;
use anytrace_core::table::{EVENTS, Filter, RowSink, Rows, Scan};
use anytrace_core::{Diagnostic, Error, Place, Sink, SpanOptions, Summary};

use super::{AnyRecord, CUSTOM_EVENTS, walk};
use crate::lanes::names::ColumnNames;
use crate::verbs::jsonl;
use crate::wire::basic::BasicVisitor;
use crate::wire::fdr::{Run, Visitor};
use crate::wire::marks::Known;
use crate::wire::moment::MomentKind;
use crate::wire::open::{XrayTrace, end};
use crate::wire::record::{BasicBody, BasicRecord, Body, Header, Metadata};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor};

/// Kinds of records that are runs of functions in an FDR trace.
const FUNCTION_KINDS: [&str; 4] = ["function-enter", "function-exit", "function-tail-exit", "function-enter-arg"];

/// Reads a trace as the rows of one of the two tables.
pub(super) fn read(
    trace: XrayTrace,
    table: &str,
    scan: &Scan,
    options: &SpanOptions,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let part = trace.part.clone();
    let opened = trace.start(sink)?;
    let is_custom = table == CUSTOM_EVENTS.name;
    let mut records = Records {
        rows: Rows::new(if is_custom { &CUSTOM_EVENTS } else { &EVENTS }, scan, out),
        filter: &scan.filter,
        has_functions: !is_custom && FUNCTION_KINDS.iter().any(|kind| scan.filter.has_kind(kind)),
        is_custom,
        unit: TimeUnit::Ticks { per_second: None },
        names: ColumnNames::new(options.symbols.as_deref()),
        known: Known::default(),
        line: Vec::new(),
        is_done: false,
        sink,
    };
    let (records_read, cursor) = walk(opened, &part, &mut records)?;
    let Records { rows, sink, .. } = records;
    rows.finish()?;
    Ok(Summary { records: records_read, bytes: end(&cursor, sink)? })
}

struct Records<'a> {
    rows: Rows<'a>,
    filter: &'a Filter,
    is_custom: bool,
    /// Function records are wanted.
    has_functions: bool,
    unit: TimeUnit,
    names: ColumnNames<'a>,
    known: Known,
    line: Vec<u8>,
    is_done: bool,
    sink: &'a mut dyn Sink,
}

/// What rows of all forms have.
struct Row<'r> {
    at: Place,
    thread: Option<u32>,
    tsc: Option<u64>,
    kind: &'static str,
    /// Function id, and the name in the trace.
    function: Option<(u32, &'r [u8])>,
}

impl Records<'_> {
    /// True when a record may be wanted by its number and thread.
    #[inline]
    fn wants(&mut self, at: Place, thread: Option<u32>) -> bool {
        let seq = i64::try_from(at.seq).unwrap_or(i64::MAX);
        self.is_done |= self.filter.ends_before(seq);
        self.filter.has_seq(seq)
            && thread.map_or(self.filter.threads.is_none(), |thread| self.filter.has_thread(i64::from(thread)))
    }

    /// Makes a row of `events`; `fields` appends the fields of the JSON line that have no column.
    fn event(&mut self, row: &Row<'_>, fields: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        if !self.wants(row.at, row.thread) || self.is_custom || !self.filter.has_kind(row.kind) {
            return Ok(());
        }
        let rows = &mut self.rows;
        rows.count(row.at.seq);
        rows.count(row.at.offset);
        rows.int64(row.thread.map(i64::from));
        rows.count(if rows.wants_next() { row.tsc.and_then(|tsc| self.unit.to_ns(tsc)) } else { None });
        rows.int64(None);
        rows.name(row.kind);
        match row.function {
            Some((function, name)) => self.names.push(function, name, rows),
            None => rows.name(None),
        }
        if rows.wants_next() {
            self.line.clear();
            fields(&mut self.line);
            // Each field follows a comma, the first that which becomes the opening brace.
            if let Some(first) = self.line.first_mut() {
                *first = b'{';
                self.line.push(b'}');
            }
        }
        rows.text(std::str::from_utf8(&self.line).ok().filter(|line| !line.is_empty()));
        rows.end()
    }

    /// Makes a row of `custom_events`.
    fn custom(&mut self, row: &Row<'_>, event_type: Option<u16>, data: &[u8]) -> Result<(), Error> {
        if !self.wants(row.at, row.thread) {
            return Ok(());
        }
        let rows = &mut self.rows;
        rows.count(row.at.seq);
        rows.int64(row.thread.map(i64::from));
        rows.count(row.tsc.and_then(|tsc| self.unit.to_ns(tsc)));
        rows.int32(event_type.map(i32::from));
        rows.bytes(data);
        rows.end()
    }

    /// True when no function record of a run is wanted.
    fn skips(&self, run: &Run<'_>) -> bool {
        let first = i64::try_from(run.at.seq).unwrap_or(i64::MAX);
        let after = first.saturating_add(run.len().cast_signed());
        !self.has_functions
            || self.filter.seq.as_ref().is_some_and(|seq| *seq.end() < first || *seq.start() >= after)
            || self.known.thread.is_some_and(|thread| !self.filter.has_thread(i64::from(thread)))
    }
}

impl AnyRecord for Records<'_> {
    fn begin(&mut self, header: &Header, known: Known) {
        self.known = known;
        self.unit = unit_of(header.cycle_frequency);
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

fn unit_of(cycle_frequency: u64) -> TimeUnit {
    TimeUnit::Ticks { per_second: (cycle_frequency > 0).then_some(cycle_frequency) }
}

impl Visitor for Records<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        if self.skips(&run) {
            self.known.clock.tsc = self.known.clock.tsc.wrapping_add(run.deltas().1);
            self.is_done |= self.filter.ends_before(i64::try_from(run.at.seq).unwrap_or(i64::MAX));
            return Ok(());
        }
        for (at, function) in run.records() {
            let tsc = self.known.clock.function(&function);
            let row = Row {
                at,
                thread: self.known.thread,
                tsc: self.known.has_base.then_some(tsc),
                kind: function.kind.name(),
                function: Some((function.id, &[])),
            };
            self.event(&row, |line| jsonl::push_function_fields(line, &function))?;
            if self.is_done {
                break;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], at: Place) -> Result<(), Error> {
        let tsc = self.known.metadata(&metadata.body);
        let row = Row { at, thread: self.known.thread, tsc, kind: metadata.body.name(), function: None };
        match metadata.body {
            Body::CustomEvent { data, .. } if self.is_custom => self.custom(&row, None, data),
            Body::TypedEvent { event_type, data, .. } if self.is_custom => self.custom(&row, Some(event_type), data),
            _ => self.event(&row, |line| jsonl::push_metadata_fields(line, metadata)),
        }
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        self.known.buffer_end();
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl BasicVisitor for Records<'_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], at: Place) -> Result<(), Error> {
        if self.is_done {
            return Ok(());
        }
        let tsc = match record.body {
            BasicBody::Function { tsc, .. } => Some(tsc),
            BasicBody::Argument { .. } => None,
        };
        let function = Some((record.id.cast_unsigned(), &[][..]));
        let row = Row { at, thread: Some(record.thread), tsc, kind: record.name(), function };
        self.event(&row, |line| jsonl::push_basic_fields(line, record, None))
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl YamlVisitor for Records<'_> {
    fn header(&mut self, header: &YamlHeader) -> Result<(), Error> {
        self.unit = unit_of(header.cycle_frequency);
        Ok(())
    }

    fn entry(&mut self, entry: &YamlEntry, at: Place, _line: u64) -> Result<(), Error> {
        let is_function = matches!(entry.kind, MomentKind::Function(_));
        let function = is_function.then_some((entry.function.cast_unsigned(), entry.name.as_slice()));
        let row = Row { at, thread: Some(entry.thread), tsc: Some(entry.tsc), kind: entry.kind.name(), function };
        match entry.kind {
            MomentKind::Custom if self.is_custom => self.custom(&row, None, &entry.data),
            MomentKind::Typed(number) if self.is_custom => self.custom(&row, Some(number), &entry.data),
            _ => self.event(&row, |line| jsonl::push_entry_fields(line, entry, None)),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

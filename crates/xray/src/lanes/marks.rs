//! Hands out the places where reading can begin.

use std::cell::Cell;

use anytrace_core::index::{ChunkSpans, Mark, MarkSink, Needs, Open};
use anytrace_core::span::TimeUnit;
use anytrace_core::{Collect, Cursor, Diagnostic, Error, OpenOptions, Place, Selection, Sink};

use crate::lanes::follow::{self, ChunkFacts, Follower};
use crate::lanes::ordered::{Indexer, emit_parallel};
use crate::lanes::row_groups::{RowGroups, kind_bit, ticks_of};
use crate::lanes::state::Shared;
use crate::verbs::pick::Picker;
use crate::wire::basic::{BasicVisitor, BasicWalk};
use crate::wire::fdr::{FdrWalk, GapKind, RUN_BYTES, Run, Visitor};
use crate::wire::marks::Known;
use crate::wire::moment::BasicMoments;
use crate::wire::open::{Form, Opened, XrayTrace, end};
use crate::wire::record::{
    BASIC_BYTES, BasicBody, BasicRecord, Body, FUNCTION_BYTES, HEADER_BYTES, Header, Metadata, TYPE_FDR,
};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor, walk_yaml};

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, with the rows and the spans of the chunks
/// between them, and reports damage. Text has no marks.
pub(crate) fn find(
    trace: XrayTrace,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let threads = trace.threads;
    let Opened { cursor, form, limits } = trace.start(sink)?;
    let every = usize::try_from(every_bytes).unwrap_or(usize::MAX);
    let mut spacing = Spacing { every_bytes, next: every_bytes.max(1).saturating_add(HEADER_BYTES as u64), out };
    let cursor = match form {
        Form::Empty | Form::Unreadable(_) => cursor,
        Form::Yaml => walk_yaml(cursor, &limits, &mut Passing { sink })?.1,
        Form::Binary(header, layout) if header.type_code == TYPE_FDR => {
            let mut walk = FdrWalk::new(cursor, header, layout, &limits);
            walk.run_bytes = every.clamp(FUNCTION_BYTES, RUN_BYTES);
            find_fdr(walk, threads, &mut spacing, sink)?
        }
        Form::Binary(header, layout) => {
            let walk = BasicWalk::new(cursor, layout);
            find_basic(walk, &header, every.clamp(BASIC_BYTES, RUN_BYTES), &mut spacing, sink)?
        }
    };
    end(&cursor, sink).map(|_| ())
}

/// Chooses among the places where reading can begin.
struct Spacing<'a> {
    every_bytes: u64,
    /// A step may take no bytes: a mark is the first place at its offset, where a part ends too.
    next: u64,
    out: &'a mut dyn MarkSink,
}

impl Spacing<'_> {
    fn mark(&mut self, mark: Mark) -> Result<(), Error> {
        self.next = mark.offset.saturating_add(self.every_bytes);
        self.out.mark(mark)
    }

    fn spans(&mut self, found: Option<(Vec<ChunkSpans>, Shared)>) {
        if let Some((spans, shared)) = found {
            self.out.share(shared.encode());
            self.out.spans(spans);
        }
    }
}

fn find_fdr(
    mut walk: FdrWalk,
    threads: usize,
    spacing: &mut Spacing<'_>,
    sink: &mut dyn Sink,
) -> Result<Cursor, Error> {
    // Buffers are read once more, each at its offset.
    let has_all = walk.cursor.as_slice().is_some() || walk.cursor.bring_at_hand();
    let (reports, version, mut marks) = (Cell::new(0), walk.header.version, Vec::new());
    let mut counting = Counting(&reports);
    let mut found = FdrMarks {
        known: Known::new(version),
        rows: RowGroups::new(&walk.header),
        spacing,
        sink,
        indexer: Indexer::new(&mut counting, version),
        facts: vec![ChunkFacts::default()],
    };
    while walk.step(&mut found)? {
        // An argument is read with its function record.
        if walk.cursor.offset() >= found.spacing.next && !walk.is_at_argument()? {
            let mark = walk.mark(&found.known);
            marks.push(mark.offset);
            found.end_chunk(reports.take());
            found.spacing.mark(mark)?;
        }
    }
    found.note(reports.take());
    found.rows.pass(found.spacing.out);
    let FdrMarks { indexer, facts, spacing, .. } = found;
    let index = indexer.finish();
    if let Some(all) = walk.cursor.as_slice().filter(|_| has_all) {
        let workers = threads.max(1);
        let followers =
            emit_parallel(all, &index, index.owners.iter().collect(), walk.layout, version, workers, || {
                Follower::new(&marks)
            })
            .unwrap_or_default();
        let tracks = index.owners.iter().map(|owner| (owner.process, owner.thread)).collect();
        let bytes = walk.cursor.offset();
        spacing.spans(follow::chunks(followers, Some(tracks), index.first_tsc(), &facts, bytes));
    }
    Ok(walk.cursor)
}

fn find_basic(
    mut walk: BasicWalk,
    header: &Header,
    reach: usize,
    spacing: &mut Spacing<'_>,
    sink: &mut dyn Sink,
) -> Result<Cursor, Error> {
    let mut follower = Follower::new(&[]);
    let mut found = BasicMarks {
        moments: BasicMoments::new(&mut follower, header.version),
        rows: RowGroups::new(header),
        spacing: &mut *spacing,
        sink,
        facts: vec![ChunkFacts::default()],
        is_at_mark: false,
        first_tsc: None,
        reports: 0,
    };
    while walk.step(reach, &mut found)? {
        if walk.cursor.offset() >= found.spacing.next && !walk.is_at_argument()? {
            let mark = walk.mark();
            found.end_chunk(mark.offset);
            found.spacing.mark(mark)?;
        }
    }
    found.note();
    found.rows.pass(found.spacing.out);
    let BasicMarks { moments, facts, first_tsc, .. } = found;
    moments.finish()?;
    // A trace out of order is sorted, all of it.
    if follower.is_in_order() {
        spacing.spans(follow::chunks(vec![follower], None, first_tsc, &facts, walk.cursor.offset()));
    }
    Ok(walk.cursor)
}

/// What a dump needs. Ticks that count from the earliest one need a pass over the trace, which reads no more than times.
pub(crate) fn dump_needs(
    selection: &Selection,
    open: &Open<'_>,
    options: &OpenOptions,
) -> Result<Option<Needs>, Error> {
    if !selection.own.is_empty() {
        return Ok(None);
    }
    let mut needs = Needs::of(selection);
    if let Some(threads) = &mut needs.filter.threads {
        // The table has 32 bits of each; a thread may be given with its sign.
        let unsigned = |thread: &i64| i32::try_from(*thread).map_or(*thread, |id| i64::from(id.cast_unsigned()));
        *threads = threads.iter().map(unsigned).collect();
    }
    if selection.time.is_none() {
        return Ok(Some(needs));
    }
    let sink = &mut Collect::default();
    let opened = XrayTrace::new(open()?, options).start(sink)?;
    let Form::Binary(Header { cycle_frequency, .. }, _) = opened.form else { return Ok(None) };
    let unit = TimeUnit::Ticks { per_second: (cycle_frequency > 0).then_some(cycle_frequency) };
    needs.start = opened.find_start(selection, sink)?.0;
    let pick = Picker::new(selection, needs.start, cycle_frequency, true)?;
    // Rounding keeps the order of times.
    let ns = |tsc: u64| unit.to_ns(tsc).map_or(i64::MAX, |ns| i64::try_from(ns).unwrap_or(i64::MAX));
    needs.filter.time = pick.bounds().filter(|_| cycle_frequency > 0).map(|(from, to)| ns(from)..=ns(to));
    Ok(Some(needs))
}

/// Counts diagnostics that marks do not report.
struct Counting<'a>(&'a Cell<u64>);

impl Sink for Counting<'_> {
    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.set(self.0.get() + 1);
        Ok(())
    }
}

/// Follows thread and time, counts rows, and cuts the trace into pieces.
struct FdrMarks<'a, 's> {
    known: Known,
    rows: RowGroups,
    spacing: &'a mut Spacing<'s>,
    sink: &'a mut dyn Sink,
    indexer: Indexer<'a>,
    facts: Vec<ChunkFacts>,
}

impl FdrMarks<'_, '_> {
    fn end_chunk(&mut self, reports: u64) {
        self.note(reports);
        self.rows.pass(self.spacing.out);
        self.facts.push(ChunkFacts { buffer: self.indexer.cut(), ..ChunkFacts::default() });
    }

    fn note(&mut self, reports: u64) {
        if let Some(facts) = self.facts.last_mut() {
            facts.is_damaged |= reports > 0;
        }
    }

    fn has_moment(&mut self) {
        if self.known.thread.is_none()
            && let Some(facts) = self.facts.last_mut()
        {
            facts.has_more_threads = true;
        }
    }
}

impl Visitor for FdrMarks<'_, '_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.has_moment();
        let Known { clock, thread, has_base } = self.known;
        let ticks = has_base.then(|| ticks_of(&run, clock.tsc));
        self.rows.add(thread, (run.len(), run.kinds()), ticks, self.spacing.out);
        self.indexer.functions(run)?;
        self.known.clock.tsc = self.indexer.clock().tsc;
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], at: Place) -> Result<(), Error> {
        if matches!(metadata.body, Body::CustomEvent { .. } | Body::TypedEvent { .. }) {
            self.has_moment();
        }
        let tick = self.known.metadata(&metadata.body);
        let row = (1, kind_bit(metadata.body.name()));
        self.rows.add(self.known.thread, row, tick.map(|tick| (tick, tick)), self.spacing.out);
        self.indexer.metadata(metadata, raw, at)
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], at: Place) -> Result<(), Error> {
        self.indexer.gap(kind, bytes, at)
    }

    fn buffer_end(&mut self, at: Place) -> Result<(), Error> {
        self.known.buffer_end();
        self.indexer.buffer_end(at)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Follows the calls of a Basic trace, and counts rows.
struct BasicMarks<'a, 's> {
    rows: RowGroups,
    spacing: &'a mut Spacing<'s>,
    moments: BasicMoments<'a, Follower>,
    sink: &'a mut dyn Sink,
    facts: Vec<ChunkFacts>,
    /// No function record since the last mark.
    is_at_mark: bool,
    first_tsc: Option<u64>,
    /// Diagnostics of the moments before this chunk.
    reports: u64,
}

impl BasicMarks<'_, '_> {
    fn end_chunk(&mut self, offset: u64) {
        self.note();
        self.rows.pass(self.spacing.out);
        self.moments.receiver().mark(offset);
        self.facts.push(ChunkFacts::default());
        self.is_at_mark = true;
    }

    fn note(&mut self) {
        let reports = self.moments.receiver().reports();
        if let Some(facts) = self.facts.last_mut() {
            facts.is_damaged |= reports > self.reports;
        }
        self.reports = reports;
    }
}

impl BasicVisitor for BasicMarks<'_, '_> {
    fn record(&mut self, record: &BasicRecord, raw: &[u8], at: Place) -> Result<(), Error> {
        let (kind, ticks) = match record.body {
            BasicBody::Function { kind, tsc, .. } => (1 << kind as u16, Some((tsc, tsc))),
            BasicBody::Argument { .. } => (kind_bit(record.name()), None),
        };
        self.rows.add(Some(record.thread), (1, kind), ticks, self.spacing.out);
        match record.body {
            BasicBody::Function { tsc, .. } => {
                self.is_at_mark = false;
                self.first_tsc = Some(self.first_tsc.map_or(tsc, |first| first.min(tsc)));
            }
            // After damage: it may be one of a function record before the mark.
            BasicBody::Argument { .. } if self.is_at_mark => {
                if let Some(facts) = self.facts.last_mut() {
                    facts.is_bound = true;
                }
            }
            BasicBody::Argument { .. } => {}
        }
        self.moments.record(record, raw, at)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Passes diagnostics on.
struct Passing<'a> {
    sink: &'a mut dyn Sink,
}

impl YamlVisitor for Passing<'_> {
    fn header(&mut self, _header: &YamlHeader) -> Result<(), Error> {
        Ok(())
    }

    fn entry(&mut self, _entry: &YamlEntry, _at: Place, _line: u64) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

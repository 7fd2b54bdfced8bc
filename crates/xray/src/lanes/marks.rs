//! Hands out the places where reading can begin.

use anytrace_core::index::{MarkSink, Needs, Open};
use anytrace_core::span::TimeUnit;
use anytrace_core::{Collect, Diagnostic, Error, OpenOptions, Place, Selection, Sink};

use crate::verbs::pick::Picker;
use crate::wire::basic::{BasicVisitor, BasicWalk};
use crate::wire::fdr::{FdrWalk, RUN_BYTES, Run, Visitor};
use crate::wire::marks::Known;
use crate::wire::open::{Form, Opened, XrayTrace, end};
use crate::wire::record::{BASIC_BYTES, BasicRecord, FUNCTION_BYTES, HEADER_BYTES, Header, Metadata, TYPE_FDR};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor, walk_yaml};

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, and reports damage. Text has no marks.
pub(crate) fn find(
    trace: XrayTrace,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let Opened { cursor, form, limits } = trace.start(sink)?;
    let every = usize::try_from(every_bytes).unwrap_or(usize::MAX);
    let mut passing = Passing { known: Known::default(), sink };
    // A step may take no bytes: a mark is the first place at its offset, where a part ends too.
    let mut next = every_bytes.max(1).saturating_add(HEADER_BYTES as u64);
    let cursor = match form {
        Form::Empty | Form::Unreadable(_) => cursor,
        Form::Yaml => walk_yaml(cursor, &limits, &mut passing)?.1,
        Form::Binary(header, layout) if header.type_code == TYPE_FDR => {
            passing.known = Known::new(header.version);
            let mut walk = FdrWalk::new(cursor, header, layout, &limits);
            walk.run_bytes = every.clamp(FUNCTION_BYTES, RUN_BYTES);
            while walk.step(&mut passing)? {
                // An argument is read with its function record.
                if walk.cursor.offset() >= next && !walk.is_at_argument()? {
                    let mark = walk.mark(&passing.known);
                    next = mark.offset.saturating_add(every_bytes);
                    out.mark(mark)?;
                }
            }
            walk.cursor
        }
        Form::Binary(_, layout) => {
            let mut walk = BasicWalk::new(cursor, layout);
            while walk.step(every.clamp(BASIC_BYTES, RUN_BYTES), &mut passing)? {
                if walk.cursor.offset() >= next && !walk.is_at_argument()? {
                    let mark = walk.mark();
                    next = mark.offset.saturating_add(every_bytes);
                    out.mark(mark)?;
                }
            }
            walk.cursor
        }
    };
    end(&cursor, passing.sink).map(|_| ())
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

/// Follows thread and time, and passes diagnostics on.
struct Passing<'a> {
    known: Known,
    sink: &'a mut dyn Sink,
}

impl Visitor for Passing<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let clock = &mut self.known.clock;
        clock.tsc = clock.tsc.wrapping_add(run.deltas().1);
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        self.known.metadata(&metadata.body);
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        self.known.buffer_end();
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl BasicVisitor for Passing<'_> {
    fn record(&mut self, _record: &BasicRecord, _raw: &[u8], _at: Place) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
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

//! Hands out the places where reading can begin.

use anytrace_core::index::{Mark, MarkSink, Needs, Open, RowGroup};
use anytrace_core::span::TimeUnit;
use anytrace_core::{Collect, Diagnostic, Error, OpenOptions, Place, Selection, Sink};

use crate::verbs::pick::Picker;
use crate::wire::basic::{BasicVisitor, BasicWalk};
use crate::wire::fdr::{FdrWalk, RUN_BYTES, Run, Visitor};
use crate::wire::marks::Known;
use crate::wire::open::{Form, Opened, XrayTrace, end};
use crate::wire::record::{
    BASIC_BYTES, BasicBody, BasicRecord, FUNCTION_BYTES, HEADER_BYTES, Header, KIND_NAMES, Metadata, TYPE_FDR,
};
use crate::wire::yaml::{YamlEntry, YamlHeader, YamlVisitor, walk_yaml};

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, with the rows between them, and reports
/// damage. Text has no marks.
pub(crate) fn find(
    trace: XrayTrace,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let Opened { cursor, form, limits } = trace.start(sink)?;
    let every = usize::try_from(every_bytes).unwrap_or(usize::MAX);
    let mut passing = Passing::new(out, sink);
    // A step may take no bytes: a mark is the first place at its offset, where a part ends too.
    let mut next = every_bytes.max(1).saturating_add(HEADER_BYTES as u64);
    let cursor = match form {
        Form::Empty | Form::Unreadable(_) => cursor,
        Form::Yaml => walk_yaml(cursor, &limits, &mut passing)?.1,
        Form::Binary(header, layout) if header.type_code == TYPE_FDR => {
            passing.begin(&header);
            let mut walk = FdrWalk::new(cursor, header, layout, &limits);
            walk.run_bytes = every.clamp(FUNCTION_BYTES, RUN_BYTES);
            while walk.step(&mut passing)? {
                // An argument is read with its function record.
                if walk.cursor.offset() >= next && !walk.is_at_argument()? {
                    let mark = walk.mark(&passing.known);
                    next = mark.offset.saturating_add(every_bytes);
                    passing.mark(mark)?;
                }
            }
            walk.cursor
        }
        Form::Binary(header, layout) => {
            passing.begin(&header);
            let mut walk = BasicWalk::new(cursor, layout);
            while walk.step(every.clamp(BASIC_BYTES, RUN_BYTES), &mut passing)? {
                if walk.cursor.offset() >= next && !walk.is_at_argument()? {
                    let mark = walk.mark();
                    next = mark.offset.saturating_add(every_bytes);
                    passing.mark(mark)?;
                }
            }
            walk.cursor
        }
    };
    passing.pass_rows();
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

/// Follows thread and time, and passes rows and diagnostics on.
struct Passing<'a> {
    known: Known,
    unit: TimeUnit,
    /// Rows of the thread since the last mark, with a time and without one.
    timed: Group,
    untimed: Group,
    thread: Option<u32>,
    out: &'a mut dyn MarkSink,
    sink: &'a mut dyn Sink,
}

/// Rows of one thread.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    rows: u64,
    /// A bit for each of [`KIND_NAMES`].
    kinds: u16,
    /// Earliest and latest tick.
    ticks: (u64, u64),
}

impl Group {
    fn add(&mut self, rows: u64, kinds: u16, (low, high): (u64, u64)) {
        self.ticks = if self.rows == 0 { (low, high) } else { (self.ticks.0.min(low), self.ticks.1.max(high)) };
        self.kinds |= kinds;
        self.rows += rows;
    }
}

impl<'a> Passing<'a> {
    fn new(out: &'a mut dyn MarkSink, sink: &'a mut dyn Sink) -> Self {
        let (timed, untimed) = (Group::default(), Group::default());
        let unit = TimeUnit::Ticks { per_second: None };
        Self { known: Known::default(), unit, timed, untimed, thread: None, out, sink }
    }

    fn begin(&mut self, header: &Header) {
        self.known = Known::new(header.version);
        self.unit = TimeUnit::Ticks { per_second: (header.cycle_frequency > 0).then_some(header.cycle_frequency) };
    }

    fn mark(&mut self, mark: Mark) -> Result<(), Error> {
        self.pass_rows();
        self.out.mark(mark)
    }

    /// Adds rows of a thread.
    #[inline]
    fn add(&mut self, thread: Option<u32>, rows: u64, kinds: u16, ticks: Option<(u64, u64)>) {
        if self.thread != thread {
            self.pass_rows();
            self.thread = thread;
        }
        match ticks {
            Some(ticks) => self.timed.add(rows, kinds, ticks),
            None => self.untimed.add(rows, kinds, (0, 0)),
        }
    }

    fn pass_rows(&mut self) {
        let Self { unit, thread, .. } = *self;
        // Rounding keeps the order of times.
        let ns = |tick: u64| Some(i64::try_from(unit.to_ns(tick)?).unwrap_or(i64::MAX));
        for (group, is_timed) in [(std::mem::take(&mut self.timed), true), (std::mem::take(&mut self.untimed), false)] {
            if group.rows == 0 {
                continue;
            }
            let known = KIND_NAMES.into_iter().zip(0_u32..).filter(|(_, bit)| group.kinds >> bit & 1 == 1);
            let mut kinds = KIND_NAMES;
            let count = kinds.iter_mut().zip(known).map(|(place, (name, _))| *place = name).count();
            let range = ns(group.ticks.0).zip(ns(group.ticks.1)).map(|(low, high)| low..=high);
            let (thread, time) = (thread.map(i64::from), range.filter(|_| is_timed));
            let kinds = kinds.get(..count).unwrap_or_default();
            self.out.rows(&RowGroup { rows: group.rows, thread, time, kinds, has_durations: false });
        }
    }
}

impl Visitor for Passing<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let Known { clock, thread, has_base } = &mut self.known;
        let (first, sum) = run.deltas();
        let (low, high) = (clock.tsc.checked_add(first), clock.tsc.checked_add(sum));
        let ticks = low.zip(high).unwrap_or_else(|| wrapped(clock.tsc, &run));
        clock.tsc = clock.tsc.wrapping_add(sum);
        let (thread, ticks) = (*thread, has_base.then_some(ticks));
        self.add(thread, run.len(), run.kinds(), ticks);
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        let tick = self.known.metadata(&metadata.body);
        self.add(self.known.thread, 1, kind_bit(metadata.body.name()), tick.map(|tick| (tick, tick)));
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

/// Earliest and latest tick of a run whose ticks pass the largest number.
#[cold]
fn wrapped(base: u64, run: &Run<'_>) -> (u64, u64) {
    let deltas = run.records().map(|(_, function)| u64::from(function.delta));
    let ticks = deltas.scan(base, |tick, delta| {
        *tick = tick.wrapping_add(delta);
        Some(*tick)
    });
    ticks.fold((u64::MAX, 0), |(low, high), tick| (low.min(tick), high.max(tick)))
}

fn kind_bit(name: &str) -> u16 {
    KIND_NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at)
}

impl BasicVisitor for Passing<'_> {
    fn record(&mut self, record: &BasicRecord, _raw: &[u8], _at: Place) -> Result<(), Error> {
        match record.body {
            BasicBody::Function { kind, tsc, .. } => {
                self.add(Some(record.thread), 1, 1 << kind as u16, Some((tsc, tsc)));
            }
            BasicBody::Argument { .. } => self.add(Some(record.thread), 1, kind_bit(record.name()), None),
        }
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

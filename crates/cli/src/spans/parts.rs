//! The spans of an indexed trace, read in parts on all processors, and only those parts that a range of time needs.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_analysis::filter::{Resolved, SpanFilter};
use anytrace_analysis::pass::{Additive, Done, Pass};
use anytrace_core::index::{Index, Part};
use anytrace_core::span::{Location, Symbols};
use anytrace_core::table::SPANS;
use anytrace_core::{Collect, Diagnostic, Error, Format, Input, InputOptions, OpenOptions, SpanOptions};

use super::peek::source_of;
use super::{SpansRead, complain};
use crate::arguments::{IndexUseArguments, InputArguments, SpanArguments};
use crate::failure::Failure;
use crate::report::{Reporter, Way};
use crate::{indexed, open, symbols};

/// Parts for each thread: those that are done early take more.
const PARTS: usize = 4;

/// What is read, and how.
pub(crate) struct Request<'a, E> {
    pub(crate) path: &'a Path,
    pub(crate) spans: &'a SpanArguments,
    pub(crate) input: &'a InputArguments,
    pub(crate) index: &'a IndexUseArguments,
    /// The selection, once for each part.
    pub(crate) filter: &'a (dyn Fn() -> SpanFilter + Sync),
    pub(crate) with_stacks: bool,
    /// The engine, once for each part.
    pub(crate) engine: &'a (dyn Fn() -> E + Sync),
}

/// What a part gave.
type PartRead<E> = (E, Done, Vec<Diagnostic>);

impl<E: Additive> Request<'_, E> {
    /// Reads a trace with an index; `None` where it must be read at once: without an index that has its spans, with one
    /// thread and no range of time, with damage, which is reported in the order of the file, with names that belong to
    /// two functions, or where something goes wrong, which is then reported by reading at once.
    pub(crate) fn read(&self) -> Result<Option<(SpansRead, E)>, Failure> {
        let how = open::open_options(self.input);
        let has_time = self.spans.time.is_some();
        if self.spans.tail_chains || how.threads < 2 && !has_time || open::is_read_once(self.path) {
            return Ok(None);
        }
        let Ok(Ok((format, _))) = open::open_trace(self.path, self.input) else { return Ok(None) };
        if !format.part_tables().contains(&SPANS.name) {
            return Ok(None);
        }
        let Some(index) = indexed::find(self.path, format, self.input, self.index)? else { return Ok(None) };
        if !index.has_spans() || index.chunks.len() < 2 || index.chunks.iter().any(|chunk| chunk.is_damaged) {
            return Ok(None);
        }
        let Some(time) = self.time(format, &how, &index) else { return Ok(None) };
        let count = if how.threads < 2 { 1 } else { how.threads * PARTS };
        let parts = index.begun_in(&time, count).unwrap_or_default();
        if parts.is_empty() || parts.iter().any(|part| part.from.is_none() && part.until.is_none()) {
            return Ok(None);
        }
        // Reading at once loads them again, and says what is wrong with them.
        let (symbols, named) = self.spans.symbols.load_counted_quietly(format, self.path)?.unzip();
        let job = Job { request: self, format, how, symbols: symbols.map(Arc::from) };
        let Some((engine, done, reports)) = job.run(&parts) else { return Ok(None) };
        job.symbols.iter().for_each(|symbols| symbols::complain(symbols.as_ref()));
        let name = self.path.display().to_string();
        let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, self.input.limit);
        reporter.take(reports)?;
        reporter.print_rest()?;
        complain(&name, self.spans, &done, true);
        if let Some(named) = named {
            named.complain(&name);
        }
        Ok(Some((SpansRead { done, format: format.name(), verdict: reporter.verdict() }, engine)))
    }

    /// The range of time that is asked for, in the trace's own unit.
    fn time(&self, format: &dyn Format, how: &OpenOptions, index: &Index) -> Option<RangeInclusive<u64>> {
        if self.spans.time.is_none() {
            return Some(0..=u64::MAX);
        }
        // The unit and the first time are known before the first edge.
        let part = index.begun_in(&(0..=u64::MAX), index.chunks.len())?.into_iter().next();
        let trace = format.open(input(self.path).ok()?, &OpenOptions { part, threads: 1, ..how.clone() }).ok()?;
        let mut filter = Resolved::new((self.filter)());
        filter.set_source(&source_of(trace)?).ok()?;
        let time = filter.time();
        Some(time.start..=time.end)
    }
}

fn input(path: &Path) -> Result<Input, Error> {
    Input::open(path, InputOptions::default())
}

/// Names that all parts share.
struct SharedSymbols(Arc<dyn Symbols>);

impl Symbols for SharedSymbols {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)> {
        self.0.symbol(id)
    }

    fn function(&self, path: &[u8], build_id: &[u8], offset: u64) -> Option<std::borrow::Cow<'_, str>> {
        self.0.function(path, build_id, offset)
    }

    fn notes(&self) -> &[String] {
        self.0.notes()
    }
}

/// The reading of all parts.
struct Job<'a, E> {
    request: &'a Request<'a, E>,
    format: &'static dyn Format,
    how: OpenOptions,
    symbols: Option<Arc<dyn Symbols>>,
}

impl<E: Additive> Job<'_, E> {
    /// Reads the parts side by side and adds up what they gave, in their order.
    fn run(&self, parts: &[Part]) -> Option<PartRead<E>> {
        let next = AtomicUsize::new(0);
        let read: Mutex<Vec<Option<PartRead<E>>>> = Mutex::new(parts.iter().map(|_| None).collect());
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(at) else { return };
                let one = self.part(part).ok().filter(|(_, done, _)| done.can_be_joined());
                if one.is_none() {
                    // The others need not begin.
                    next.store(parts.len(), Ordering::Relaxed);
                }
                let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(place) = read.get_mut(at) {
                    *place = one;
                }
            }
        };
        std::thread::scope(|scope| {
            (1..self.how.threads.min(parts.len())).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        let mut read = read.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
        let (mut engine, mut done, mut reports) = read.next()??;
        for one in read {
            let (own, own_done, own_reports) = one?;
            let numbers = done.join(&own_done)?;
            engine.join(own, &numbers);
            reports.extend(own_reports);
        }
        Some((engine, done, reports))
    }

    fn part(&self, part: &Part) -> Result<PartRead<E>, Error> {
        let mut engine = (self.request.engine)();
        let mut pass = Pass::new((self.request.filter)(), self.request.with_stacks, vec![&mut engine]);
        let mut reports = Collect::default();
        let how = OpenOptions { part: Some(part.clone()), threads: 1, ..self.how.clone() };
        let symbols = self.symbols.clone().map(|symbols| Box::new(SharedSymbols(symbols)) as Box<dyn Symbols>);
        let trace = self.format.open(input(self.request.path)?, &how)?;
        trace.spans(&SpanOptions { symbols, ..SpanOptions::default() }, &mut pass, &mut reports)?;
        let done = pass.finish();
        Ok((engine, done, reports.0))
    }
}

//! Several traces read as one.

use std::path::{Path, PathBuf};

use anytrace_analysis::merge::{By, Facts, Merger, Placed, Placement, place};
use anytrace_analysis::pass::Pass;
use anytrace_core::span::{SpanSource, TimeUnit, emit_beside};
use anytrace_core::{Collect, Diagnostic, Format, Input, SpanOptions, SpanSink};

use super::peek::{Range, source_of};
use super::{SpansRead, complain, no_spans};
use crate::arguments::{InputArguments, PlaceArguments, SpanArguments};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::units::Times;
use crate::{Verdict, open, paint};

/// Several traces with their places on the axis.
pub(crate) struct Merged<'a> {
    spans: &'a SpanArguments,
    input: &'a InputArguments,
    files: &'a [PathBuf],
    traces: Vec<One<'a>>,
    /// What is wrong with files that are empty.
    empty: Vec<(&'a Path, Vec<Diagnostic>)>,
    placed: Placed,
}

/// One of them.
struct One<'a> {
    path: &'a Path,
    label: String,
    facts: Facts,
}

/// What reading them gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emitted {
    pub(crate) records: u64,
    pub(crate) verdict: Verdict,
}

impl<'a> Merged<'a> {
    /// Places the traces; says where each is and why.
    pub(crate) fn open(
        files: &'a [PathBuf],
        spans: &'a SpanArguments,
        places: &PlaceArguments,
        input: &'a InputArguments,
    ) -> Result<Self, Failure> {
        places.check(files)?;
        let (mut traces, mut empty) = (Vec::new(), Vec::new());
        for path in files {
            if open::is_read_once(path) {
                let name = path.display();
                return Err(Failure::usage(format!(
                    "{name}: can be read once only; several traces are first compared, then read"
                )));
            }
            match open::open_trace(path, input)? {
                Err(damage) => empty.push((path.as_path(), damage)),
                Ok((format, bytes)) => {
                    let facts = Facts {
                        source: source(path, format, bytes, input)?,
                        range: None,
                        offset: places.offset_of(path),
                    };
                    traces.push(One { path, label: label(path, files), facts });
                }
            }
        }
        let placed = Placed { traces: Vec::new(), source: SpanSource { format: "unknown", ..NOTHING } };
        let mut merged = Self { spans, input, files, traces, empty, placed };
        merged.measure()?;
        let facts: Vec<_> = merged.traces.iter().map(|one| one.facts).collect();
        if !facts.is_empty() {
            merged.placed = place(&facts, places.align());
        }
        merged.explain();
        Ok(merged)
    }

    /// Reads the traces for their first and last times, where one has no clock and another has.
    fn measure(&mut self) -> Result<(), Failure> {
        let clocks = self.traces.iter().filter(|one| one.facts.source.unit.sum_to_ns(1).is_some()).count();
        if clocks == 0 || clocks == self.traces.len() {
            return Ok(());
        }
        for one in &mut self.traces {
            let name = one.path.display().to_string();
            let Ok((format, bytes)) = open::open_trace(one.path, self.input)? else { continue };
            let _progress = Progress::watch(&bytes);
            let (mut range, mut reports) = (Range::default(), Collect::default());
            let trace = open::enter(format, bytes, self.input)?;
            let read = trace.spans(&SpanOptions::default(), &mut range, &mut reports);
            read.map_err(|error| Failure::of(&name, &error))?;
            one.facts.range = range.0;
        }
        Ok(())
    }

    /// Says where each trace is, and how sure that is.
    fn explain(&self) {
        if self.traces.len() < 2 {
            return;
        }
        let unit = self.placed.source.unit;
        for (one, placement) in self.traces.iter().zip(&self.placed.traces) {
            let name = anytrace_core::text::printable(&one.path.display().to_string());
            let at = placement.time(one.facts.source.origin);
            paint::complain("note", format!("{name}: {}", reason(placement, at, unit)));
        }
    }

    /// Emits the traces, one after the other. Damage is reported on standard error.
    pub(crate) fn emit(&self, out: &mut (dyn SpanSink + Send)) -> Result<Emitted, Failure> {
        let mut emitted = self.emit_to(out, Way::Stderr)?;
        for (path, damage) in &self.empty {
            let mut reporter = Reporter::new(&path.display().to_string(), None, Way::Stderr, self.input.limit);
            reporter.take(damage.clone())?;
            reporter.print_rest()?;
            emitted.verdict = emitted.verdict.max(reporter.verdict());
        }
        Ok(emitted)
    }

    /// The same for a first reading: what is wrong is reported by the second, and names do not matter.
    pub(crate) fn emit_quietly(&self, out: &mut (dyn SpanSink + Send)) -> Result<(), Failure> {
        self.emit_to(out, Way::Keep).map(drop)
    }

    fn emit_to(&self, out: &mut (dyn SpanSink + Send), way: Way) -> Result<Emitted, Failure> {
        let mut emitted = Emitted { records: 0, verdict: Verdict::Fine };
        let mut merger = Merger::new(out, &self.placed).map_err(|error| Failure::bare(&error))?;
        for (number, one) in self.traces.iter().enumerate() {
            let name = one.path.display().to_string();
            let Ok((format, bytes)) = open::open_trace(one.path, self.input)? else { continue };
            let mut reporter = Reporter::new(&name, Some(format), way, self.input.limit);
            let symbols = match way {
                Way::Keep => None,
                _ => self.spans.symbols.of_trace(one.path, self.files.iter()).load_counted(format, one.path)?,
            };
            let (symbols, named) = symbols.unzip();
            let options = SpanOptions { tail_chains: self.spans.tail_chains, symbols, causes: None };
            let _progress = Progress::watch(&bytes);
            let trace = open::enter(format, bytes, self.input)?;
            let emit = |out: &mut dyn SpanSink| trace.spans(&options, out, &mut reporter);
            let read = emit_beside(open::threads(self.input), &mut merger.trace(number, &one.label), emit);
            emitted.records += read.map_err(|error| Failure::of(&name, &error))?.records;
            reporter.print_rest()?;
            emitted.verdict = emitted.verdict.max(reporter.verdict());
            if let Some(named) = named {
                named.complain(&name);
            }
        }
        Ok(emitted)
    }

    /// Passes all spans to a pass.
    pub(crate) fn read(&self, mut pass: Pass<'_>) -> Result<SpansRead, Failure> {
        let emitted = self.emit(&mut pass)?;
        let done = pass.finish();
        complain(&self.name(), self.spans, &done, !self.traces.is_empty());
        Ok(SpansRead { done, format: self.placed.source.format, verdict: emitted.verdict })
    }

    /// All files, for people.
    pub(crate) fn name(&self) -> String {
        self.files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" + ")
    }
}

const NOTHING: SpanSource =
    SpanSource { format: "unknown", unit: TimeUnit::Order, origin: 0, epoch_ns: None, uptime: None };

/// What a trace says of its clock.
fn source(
    path: &Path,
    format: &'static dyn Format,
    bytes: Input,
    input: &InputArguments,
) -> Result<SpanSource, Failure> {
    if !format.has_spans() {
        return Err(no_spans(&path.display().to_string(), format));
    }
    let source = source_of(open::enter(format, bytes, input)?);
    // What keeps it from being read is reported when it is.
    Ok(source.unwrap_or(NOTHING))
}

/// The file's name; its path where another file has that name.
fn label(path: &Path, files: &[PathBuf]) -> String {
    let is_alone = files.iter().filter(|other| other.file_name() == path.file_name()).count() < 2;
    let name = path.file_name().filter(|_| is_alone).unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Where a trace is, and why, for people.
fn reason(placement: &Placement, at: u64, unit: TimeUnit) -> String {
    let at = Times(unit).length(u128::from(at));
    match placement.by {
        By::Date => format!("begins at {at}, by its dates"),
        By::Uptime(spread) => {
            let spread = Times(TimeUnit::Nanoseconds).length(u128::from(spread));
            format!("begins at {at}, by the machine's uptime; its clock is known within {spread}")
        }
        By::Apart(apart) => {
            let apart = Times(TimeUnit::Nanoseconds).length(u128::from(apart));
            format!("begins at {at}, with the others: its clock says {apart} apart; --align clocks places it there")
        }
        By::Counter => format!("begins at {at}: its times and those of others are taken to be of one clock"),
        By::Begin => {
            format!("begins at {at}: nothing in it says when that is on another trace's clock; --offset moves it")
        }
        By::Spread => {
            format!("begins at {at}; it has no clock: its records are spread evenly over the others' time")
        }
    }
}

//! `llvm-xray convert`: a trace in order of time as Basic records, YAML, or the JSON of Chrome's trace viewer.

mod batch;
mod micros;
mod part;
mod pool;
mod raw;
mod stacks;
mod stage;
mod taken;
mod trace_event;
mod yaml;

use std::io::Write;

use anytrace_core::span::Symbols;
use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink, Summary};

use crate::lanes::ordered::{Ordered, SourceForm};
use crate::wire::moment::{Moment, Moments};
use crate::wire::yaml::YamlHeader;
use batch::{Interner, Naming, Shared};
use stage::Bench;

/// Forms that `convert` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConvertForm {
    /// A Basic trace of version 3. Arguments are kept; events are not, because the form has none.
    #[default]
    Raw,
    /// YAML.
    Yaml,
    /// Trace event JSON.
    TraceEvent,
}

/// How to convert.
#[derive(Debug, Clone, Copy)]
pub struct ConvertOptions {
    /// The form to write.
    pub form: ConvertForm,
    /// All threads' records in order of time; otherwise only those of each thread.
    pub sort: bool,
    /// The peer's output byte for byte, its faults included: stale fields of events, times in doubles, JSON that is not
    /// valid.
    pub compat: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self { form: ConvertForm::Raw, sort: true, compat: false }
    }
}

/// The result of a conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Converted {
    /// Records and bytes read.
    pub summary: Summary,
    /// What the output lacks, or has in another form than the trace, one sentence each.
    pub notes: Vec<String>,
}

/// Writes a trace in another form. `symbols` name its functions; [`OpenOptions::threads`] is the number of threads to
/// use.
///
/// An input without a readable header gives no output, except in [`ConvertForm::TraceEvent`], where the output is a
/// document without events: a program that parses it must not fail at the first byte.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn convert(
    input: Input,
    open: &OpenOptions,
    options: &ConvertOptions,
    symbols: Option<&dyn Symbols>,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Converted, Error> {
    let ordered = Ordered::open(input, open, sink)?;
    let facts = *ordered.header();
    if facts.form == SourceForm::Nothing {
        let mut nothing = Feeder { feed: Nothing };
        let summary = ordered.by_thread(&mut nothing, sink)?;
        write_nothing(options, out)?;
        return Ok(Converted { summary, notes: Vec::new() });
    }
    let ConvertOptions { form, sort, compat } = *options;
    let shared = Shared::default();
    let naming = Naming { symbols, ids_only: compat };
    let interner = Interner::new(naming, &shared);
    let yaml_header = YamlHeader {
        version: facts.version,
        type_code: facts.type_code,
        constant_tsc: facts.constant_tsc,
        nonstop_tsc: facts.nonstop_tsc,
        cycle_frequency: facts.cycle_frequency,
    };
    let clock = trace_event::Clock { version: facts.version, hz: facts.cycle_frequency };
    if sort
        && open.threads > 1
        && let Some(windows) = ordered.windows()
    {
        let counts = match form {
            ConvertForm::Yaml if !compat => {
                Some(yaml::write_windows(&windows, naming, &yaml_header, open.threads, out)?)
            }
            ConvertForm::TraceEvent => {
                let tables = (Interner::new(naming, &shared), &shared);
                Some(trace_event::write_windows(&windows, tables, (clock, compat), open.threads, out)?)
            }
            ConvertForm::Yaml | ConvertForm::Raw => None,
        };
        if let Some(counts) = counts {
            out.flush()?;
            return Ok(Converted { summary: ordered.summary().clone(), notes: counts.notes() });
        }
    }
    let mut entries = Bench::new(open.threads, ());
    let mut events = Bench::new(open.threads, trace_event::Frames::new(compat));
    let (summary, counts) = std::thread::scope(|scope| match form {
        ConvertForm::Raw => run(ordered, raw::Raw::new(out, facts, compat), sort, sink),
        ConvertForm::Yaml => {
            let stage = entries.stage(scope, yaml::Entries::new(compat), &shared, out);
            run(ordered, yaml::Yaml::new(stage, interner, yaml_header, compat), sort, sink)
        }
        ConvertForm::TraceEvent => {
            let stage = events.stage(scope, trace_event::Events::new(clock, compat), &shared, out);
            run(ordered, trace_event::TraceEvents::new(stage, interner, clock, compat), sort, sink)
        }
    })?;
    out.flush()?;
    Ok(Converted { summary, notes: counts.notes() })
}

/// Writes the form of a trace without anything in it. With [`ConvertOptions::compat`] too: the peer prints nothing, but
/// fails.
///
/// # Errors
/// I/O errors.
pub fn write_nothing(options: &ConvertOptions, out: &mut dyn Write) -> Result<(), Error> {
    if options.form == ConvertForm::TraceEvent {
        out.write_all(trace_event::NOTHING)?;
    }
    out.flush()?;
    Ok(())
}

fn run<F: Feed>(ordered: Ordered, mut feed: F, sort: bool, sink: &mut dyn Sink) -> Result<(Summary, Counts), Error> {
    feed.begin()?;
    let mut feeder = Feeder { feed };
    let summary = if sort { ordered.by_time(&mut feeder, sink)? } else { ordered.by_thread(&mut feeder, sink)? };
    Ok((summary, feeder.feed.end()?))
}

/// Receives moments and writes one form.
trait Feed {
    fn begin(&mut self) -> Result<(), Error>;
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error>;
    fn end(self) -> Result<Counts, Error>;
}

/// Counts of what a form could not represent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    events_left_out: u64,
    cut_processors: u64,
    orphans: u64,
    deduced: u64,
    unfinished: u64,
    stacks_left_out: bool,
}

impl Counts {
    fn notes(&self) -> Vec<String> {
        let rows = [
            (self.events_left_out, "events were left out: Basic records have no payload; use -f yaml to keep them"),
            (self.cut_processors, "records have a processor number above 255, which Basic records truncate to 8 bits"),
            (self.orphans, "exits do not match an open call; they are shown as instants"),
            (self.deduced, "calls without an exit ended with an enclosing call"),
            (self.unfinished, "calls are still open at the end of the trace; viewers show them as unfinished"),
        ];
        let mut notes: Vec<String> =
            rows.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}.")).collect();
        if self.stacks_left_out {
            notes.push("There are too many distinct stacks to number: some calls have no stack frame.".to_owned());
        }
        notes
    }
}

struct Feeder<F> {
    feed: F,
}

impl<F: Feed> Moments for Feeder<F> {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.feed.moment(moment)
    }

    // Readers in order of time report diagnostics to their own sink.
    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// For inputs that have no moments.
struct Nothing;

impl Feed for Nothing {
    fn begin(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn moment(&mut self, _moment: &Moment<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn end(self) -> Result<Counts, Error> {
        Ok(Counts::default())
    }
}

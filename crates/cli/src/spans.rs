//! From a path to a trace read as spans: what `stats`, `flame` and `timeline` begin with.

mod job;
mod merged;
mod parts;
mod peek;

use std::path::Path;

use anytrace_analysis::pass::{Done, Pass};
use anytrace_core::span::{Causes, emit_beside};
use anytrace_core::{Format, SpanOptions, SpanSink};

use crate::arguments::{InputArguments, SpanArguments};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, paint};

pub(crate) use job::{Job, Reading};
pub(crate) use merged::Merged;
pub(crate) use parts::Request;

/// What reading a trace gave.
pub(crate) struct SpansRead {
    /// Tracks, names and counts.
    pub(crate) done: Done,
    /// The format's name; "unknown" for an empty file.
    pub(crate) format: &'static str,
    /// Whether the trace is damaged.
    pub(crate) verdict: Verdict,
}

/// Passes the spans of one trace to a pass. Damage is reported on standard error; the rest is read.
pub(crate) fn read_spans(
    path: &Path,
    spans: &SpanArguments,
    input: &InputArguments,
    pass: Pass<'_>,
) -> Result<SpansRead, Failure> {
    read_caused(path, spans, None, input, pass)
}

/// The same, with spans within those that caused them.
pub(crate) fn read_caused(
    path: &Path,
    spans: &SpanArguments,
    causes: Option<Causes>,
    input: &InputArguments,
    mut pass: Pass<'_>,
) -> Result<SpansRead, Failure> {
    let name = path.display().to_string();
    let opened = open::open_trace(path, input)?;
    let format = opened.as_ref().ok().map(|(format, _)| *format);
    let mut reporter = Reporter::new(&name, format, Way::Stderr, input.limit);
    let mut named = None;
    match opened {
        Err(damage) => reporter.take(damage)?,
        Ok((format, input_bytes)) => {
            if !format.has_spans() {
                return Err(no_spans(&name, format));
            }
            let (symbols, counted) = spans.symbols.load_counted(format, path)?.unzip();
            named = counted;
            if causes.is_some() && !format.has_causes() {
                return Err(no_causes(&name, format));
            }
            let options = SpanOptions { tail_chains: spans.tail_chains, symbols, causes };
            let _progress = Progress::watch(&input_bytes);
            let trace = open::enter(format, input_bytes, input)?;
            let emit = |out: &mut dyn SpanSink| trace.spans(&options, out, &mut reporter);
            emit_beside(open::threads(input), &mut pass, emit).map_err(|error| Failure::of(&name, &error))?;
        }
    }
    reporter.print_rest()?;
    let done = pass.finish();
    complain(&name, spans, &done, format.is_some());
    if let Some(named) = named {
        named.complain(&name);
    }
    Ok(SpansRead { done, format: format.map_or("unknown", Format::name), verdict: reporter.verdict() })
}

fn no_causes(name: &str, format: &dyn Format) -> Failure {
    let with: Vec<_> = anytrace_formats::all().iter().filter(|f| f.has_causes()).map(|f| f.name()).collect();
    let have = with.join(", ");
    Failure::usage(format!("{name}: {} traces do not say what caused a span; formats that do: {have}", format.name()))
}

fn no_spans(name: &str, format: &dyn Format) -> Failure {
    let with: Vec<_> = anytrace_formats::all().iter().filter(|f| f.has_spans()).map(|f| f.name()).collect();
    let have = if with.is_empty() { String::new() } else { format!("; formats with spans: {}", with.join(", ")) };
    Failure::usage(format!("{name}: {} traces have no spans to show{have}", format.name()))
}

/// Reports what the engines had to leave out, and a time range without spans of a trace.
pub(crate) fn complain(name: &str, spans: &SpanArguments, done: &Done, is_trace: bool) {
    let name = anytrace_core::text::printable(name);
    complain_of_limits(&name, done);
    if spans.has_plain_time() && done.counts.spans == 0 && is_trace {
        let origin = done.directory.source().origin;
        paint::complain("note", format!("{name}: no span is in --time; the trace's times begin at {origin}"));
    }
}

fn complain_of_limits(name: &str, done: &Done) {
    let counts = done.counts;
    if counts.too_deep > 0 {
        let most = anytrace_analysis::nest::OPEN_MAX;
        let note = format!(
            "{name}: {} spans above the limit of {most} open ones count as self time of their callers",
            counts.too_deep
        );
        paint::complain("note", note);
    }
    let folded = done.stacks.as_ref().map_or(0, |stacks| stacks.folded());
    if folded > 0 {
        paint::complain(
            "note",
            format!("{name}: {folded} calls count toward their callers because there are too many different stacks"),
        );
    }
}

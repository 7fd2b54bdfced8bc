//! `anytrace convert --to chrome|perfetto|…`: a trace's spans for other programs' timelines.

use anytrace_core::span::{Symbols, emit_beside};
use anytrace_core::{Format, Input, SpanOptions, SpanSink, TargetOptions};
use anytrace_export::timeline::{TimelineOutput, by_name};

use super::forms::{may_mean, refuse_others};
use super::{put_in_place, reporter};
use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::spans::{Job, Reading};

/// A timeline output that was asked for.
pub(super) struct Chosen(&'static TimelineOutput);

/// The timeline output that `--to` names, where the format has no form of that name and has spans; `None` leaves the
/// answer to the format.
pub(super) fn chosen(
    opened: &Opened,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<Option<Chosen>, Failure> {
    let asked = target.to.as_deref().and_then(by_name);
    // A format that is also an output is copied, unless spans of it are selected.
    let is_selected = !options.timeline_output.conditions().is_empty();
    let is_meant = |output: &TimelineOutput| match opened {
        Opened::Trace(format, _) if is_selected && format.name() == output.name => format.has_spans(),
        _ => may_mean(opened, output.name, |format| format.has_spans()),
    };
    let output = asked.filter(|output| is_meant(output));
    let Some(output) = output else {
        let is_meant = options.timeline_output.is_asked_for();
        return if is_meant {
            Err(Failure::usage(
                "--thread, --time, --name, --depth, --duration, --offset, --align, --tail-chains, --csv-raw and \
                 --program apply only to timelines: --to chrome, perfetto and the like; --tail-chains and --program also to tables",
            ))
        } else {
            Ok(None)
        };
    };
    refuse_others(opened, output.name, target, options)?;
    Ok(Some(Chosen(output)))
}

impl Chosen {
    /// Writes it.
    pub(super) fn write(
        self,
        opened: Opened,
        options: &ConvertArguments,
        mut output: Output,
    ) -> Result<Verdict, Failure> {
        let given = &options.timeline_output;
        if given.place.is_given() {
            return Err(Failure::usage("--offset and --align are for several traces"));
        }
        let name = options.file.display().to_string();
        let title = options.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut reporter = reporter(&opened, options)?;
        let format = match &opened {
            Opened::Trace(format, _) => Some(*format),
            Opened::Empty(_) | Opened::Jsonl(..) => None,
        };
        let mut opened = Some(opened);
        let (path, threads) = (&options.output.output, open::threads(&options.input));
        let beside = if self.0.is_parallel { 1 } else { threads };
        let job = Job { output: self.0, path, name: &name, title: &title, given, threads };
        let written = job.write(&mut output, &mut |out, reading| match (reading, format) {
            (Reading::Lengths, Some(format)) => lengths(format, options, out).map(|()| 0),
            (Reading::Spans, Some(format)) => match opened.take() {
                Some(Opened::Trace(_, input)) => named_spans(format, input, options, (out, beside), &mut reporter),
                _ => Ok(0),
            },
            // JSON lines were refused by `chosen`.
            (_, None) => Ok(0),
        })?;
        let is_nothing = written.records == 0 && reporter.verdict() == Verdict::Breach;
        let verdict = put_in_place(output, is_nothing, &reporter, options)?;
        written.complain(&name);
        Ok(verdict)
    }
}

/// Reads the trace for the lengths of its spans. What is wrong with it is reported when it is read again.
fn lengths(
    format: &'static dyn Format,
    options: &ConvertArguments,
    out: &mut (dyn SpanSink + Send),
) -> Result<(), Failure> {
    if open::is_read_once(&options.file) {
        return Err(Failure::usage("--duration reads the trace twice: standard input and pipes can be read once only"));
    }
    let Opened::Trace(_, input) = open::open(&options.file, &options.input)? else { return Ok(()) };
    let mut nowhere = Reporter::new("", Some(format), Way::Keep, options.input.limit);
    // Names do not matter here.
    spans(format, input, options, None, (out, open::threads(&options.input)), &mut nowhere).map(drop)
}

/// Emits the spans of a trace with their names; returns the number of records read.
fn named_spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    out: (&mut (dyn SpanSink + Send), usize),
    reporter: &mut Reporter,
) -> Result<u64, Failure> {
    let name = input.name().to_owned();
    let (symbols, named) = options.timeline_output.spans.symbols.load_counted(format, &options.file)?.unzip();
    let records = spans(format, input, options, symbols, out, reporter)?;
    if let Some(named) = named {
        named.complain(&name);
    }
    Ok(records)
}

/// Emits the spans of a trace to an output that works on up to so many threads beside this one; returns the number of
/// records read.
fn spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    symbols: Option<Box<dyn Symbols>>,
    (out, threads): (&mut (dyn SpanSink + Send), usize),
    reporter: &mut Reporter,
) -> Result<u64, Failure> {
    let name = input.name().to_owned();
    let tail_chains = options.timeline_output.spans.tail_chains;
    let span_options = SpanOptions { tail_chains, symbols, ..SpanOptions::default() };
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    let emit = |out: &mut dyn SpanSink| trace.spans(&span_options, out, reporter);
    let emitted = emit_beside(threads, out, emit);
    let summary = emitted.map_err(|error| Failure::of(&name, &error))?;
    Ok(summary.records)
}

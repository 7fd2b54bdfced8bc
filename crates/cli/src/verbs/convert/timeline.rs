//! `anytrace convert --to chrome|perfetto|…`: a trace's spans for other programs' timelines.

use anytrace_analysis::select::{Lengths, Selected};
use anytrace_core::span::Symbols;
use anytrace_core::{Format, Input, SpanOptions, SpanSink, TargetOptions};
use anytrace_export::limits::{self, Measured};
use anytrace_export::timeline::{Outlet, Timeline, TimelineOutput, by_name};

use super::forms::{may_mean, refuse_others};
use super::{put_in_place, reporter};
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::{LateSpool, Output, Packed};
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, paint};

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
                "--thread, --time, --name, --depth, --duration, --tail-chains, --csv-raw and --program apply only to \
                 timelines: --to chrome, perfetto and the like; --tail-chains and --program also to tables",
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
        let name = options.file.display().to_string();
        let title = options.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let cells = options.timeline_output.csv.cells();
        let mut spool = LateSpool::default();
        let mut packed = Packed::new(&mut output, &options.output.output, self.0.extension);
        let outlet = Outlet { out: &mut packed, spool: &mut spool, title: &title, cells };
        let mut timeline = Measured::new((self.0.open)(outlet), self.0.limits);
        let mut reporter = reporter(&opened, options)?;
        let (records, left_out) = match opened {
            Opened::Trace(format, input) => chosen_spans(format, input, options, &mut timeline, &mut reporter)?,
            // JSON lines were refused by `chosen`.
            Opened::Empty(_) | Opened::Jsonl(..) => (0, 0),
        };
        timeline.finish().map_err(|error| Failure::of(&name, &error))?;
        let found = timeline.found();
        drop(timeline);
        let mut notes = limits::notes(self.0.limits, &found, packed.finish()?);
        if left_out > 0 {
            let conditions = options.timeline_output.conditions().join(", ");
            notes.insert(0, format!("{left_out} spans outside {conditions} were left out"));
        }
        let is_nothing = records == 0 && reporter.verdict() == Verdict::Breach;
        let verdict = put_in_place(output, is_nothing, &reporter, options)?;
        let shown = anytrace_core::text::printable(&name);
        notes.iter().for_each(|note| paint::complain("note", format!("{shown}: {note}")));
        Ok(verdict)
    }
}

/// Emits the spans that are asked for; returns the number of records read, and how many spans were left out.
fn chosen_spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    timeline: &mut Measured<'_>,
    reporter: &mut Reporter,
) -> Result<(u64, u64), Failure> {
    let given = &options.timeline_output;
    if given.conditions().is_empty() {
        return Ok((named_spans(format, input, options, timeline, reporter)?, 0));
    }
    let filter = || given.spans.filter(given.duration);
    let lengths = given.duration.map(|_| lengths(format, options, Lengths::new(timeline, filter()))).transpose()?;
    let mut selected = Selected::new(timeline, filter(), lengths);
    let records = named_spans(format, input, options, &mut selected, reporter)?;
    Ok((records, selected.left_out()))
}

/// Reads the trace for the lengths of its spans. What is wrong with it is reported when it is read again.
fn lengths(format: &'static dyn Format, options: &ConvertArguments, mut lengths: Lengths) -> Result<Lengths, Failure> {
    if open::is_read_once(&options.file) {
        return Err(Failure::usage("--duration reads the trace twice: standard input and pipes can be read once only"));
    }
    let Opened::Trace(_, input) = open::open(&options.file, &options.input)? else { return Ok(lengths) };
    let mut nowhere = Reporter::new("", Some(format), Way::Keep, options.input.limit);
    // Names do not matter here.
    spans(format, input, options, None, &mut lengths, &mut nowhere)?;
    Ok(lengths)
}

/// Emits the spans of a trace with their names; returns the number of records read.
fn named_spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    out: &mut dyn SpanSink,
    reporter: &mut Reporter,
) -> Result<u64, Failure> {
    let name = input.name().to_owned();
    let (symbols, named) = options.timeline_output.spans.symbols.load_counted(format)?.unzip();
    let records = spans(format, input, options, symbols, out, reporter)?;
    if let Some(named) = named {
        named.complain(&name);
    }
    Ok(records)
}

/// Emits the spans of a trace; returns the number of records read.
fn spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    symbols: Option<Box<dyn Symbols>>,
    out: &mut dyn SpanSink,
    reporter: &mut Reporter,
) -> Result<u64, Failure> {
    let name = input.name().to_owned();
    let tail_chains = options.timeline_output.spans.tail_chains;
    let span_options = SpanOptions { tail_chains, symbols, ..SpanOptions::default() };
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    let summary = trace.spans(&span_options, out, reporter).map_err(|error| Failure::of(&name, &error))?;
    Ok(summary.records)
}

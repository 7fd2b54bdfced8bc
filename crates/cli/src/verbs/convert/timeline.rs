//! `anytrace convert --to chrome|perfetto|…`: a trace's spans for other programs' timelines.

use anytrace_core::{Format, Input, SpanOptions, Target, TargetOptions};
use anytrace_export::limits::{self, Measured};
use anytrace_export::timeline::{Outlet, Timeline, TimelineOutput, by_name};

use super::forms::{may_mean, refuse_others};
use super::{put_in_place, reporter};
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::{LateSpool, Output};
use crate::progress::Progress;
use crate::report::Reporter;
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
    let output = asked.filter(|output| may_mean(opened, output.name, |format| format.has_spans()));
    let Some(output) = output else {
        let is_meant = options.timeline_output.is_asked_for();
        return if is_meant {
            Err(Failure::usage(
                "--tail-chains, --depth, --csv-raw and --program apply only to timelines: --to chrome, perfetto and \
                 the like; --tail-chains and --program also to tables",
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
        let outlet = Outlet { out: &mut output, spool: &mut spool, title: &title, cells };
        let mut timeline = Measured::new((self.0.open)(outlet), self.0.limits, options.timeline_output.depth.clone());
        let mut reporter = reporter(&opened, options)?;
        let records = match opened {
            Opened::Trace(format, input) => spans(format, input, options, &mut timeline, &mut reporter)?,
            // JSON lines were refused by `chosen`.
            Opened::Empty(_) | Opened::Jsonl(..) => 0,
        };
        timeline.finish().map_err(|error| Failure::of(&name, &error))?;
        let found = timeline.found();
        drop(timeline);
        let notes = limits::notes(self.0.limits, &found, output.position());
        let is_nothing = records == 0 && reporter.verdict() == Verdict::Breach;
        let verdict = put_in_place(output, is_nothing, &reporter, options)?;
        let shown = anytrace_core::text::printable(&name);
        notes.iter().for_each(|note| paint::complain("note", format!("{shown}: {note}")));
        Ok(verdict)
    }
}

/// Emits the spans of a trace; returns the number of records read.
fn spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    timeline: &mut dyn Timeline,
    reporter: &mut Reporter,
) -> Result<u64, Failure> {
    let name = input.name().to_owned();
    let (symbols, named) = options.timeline_output.symbols.load_counted(format)?.unzip();
    let span_options =
        SpanOptions { tail_chains: options.timeline_output.tail_chains, symbols, ..SpanOptions::default() };
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    let summary = trace.spans(&span_options, timeline, reporter).map_err(|error| Failure::of(&name, &error))?;
    if let Some(named) = named {
        named.complain(&name);
    }
    Ok(summary.records)
}

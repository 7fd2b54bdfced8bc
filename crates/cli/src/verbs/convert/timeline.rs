//! `anytrace convert --to chrome|perfetto|…`: a trace's spans for other programs' timelines.

use anytrace_core::{Format, Input, SpanOptions, TargetOptions};
use anytrace_export::timeline::{Outlet, Timeline, TimelineOutput, by_name};

use super::{is_own, refuse_jsonl};
use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};

/// A timeline output that was asked for.
pub(super) struct Chosen(&'static TimelineOutput);

/// The timeline output that `--to` names, where the format has no form of that name and has spans; `None` leaves the
/// answer to the format.
pub(super) fn chosen(
    opened: &Opened,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<Option<Chosen>, Failure> {
    let output = target.to.as_deref().and_then(by_name).filter(|output| match opened {
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => format.has_spans() && !is_own(*format, output.name),
        Opened::Empty(_) => true,
    });
    let Some(output) = output else {
        let is_meant = options.telling.tail_chains || !options.telling.symbols.sources().is_empty();
        return if is_meant {
            Err(Failure::usage("--tail-chains and --instr-map are for timelines: --to chrome, perfetto and their like"))
        } else {
            Ok(None)
        };
    };
    refuse_jsonl(opened, options)?;
    target.only(output.name, &[]).map_err(|error| Failure::bare(&error))?;
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
        let mut spool = tempfile::tempfile()?;
        let mut timeline = (self.0.open)(Outlet { out: &mut output, spool: &mut spool, title: &title });
        let (records, reporter) = match opened {
            Opened::Trace(format, input) => spans(format, input, options, &mut *timeline)?,
            Opened::Empty(damage) => {
                let mut reporter = Reporter::new(&name, None, Way::Stderr, options.input.limit);
                reporter.take(damage)?;
                (0, reporter)
            }
            // Refused by `chosen`.
            Opened::Jsonl(..) => (0, Reporter::new(&name, None, Way::Stderr, options.input.limit)),
        };
        timeline.finish().map_err(|error| Failure::of(&name, &error))?;
        drop(timeline);
        reporter.print_rest()?;
        if records == 0 && reporter.verdict() == Verdict::Breach {
            return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
        }
        output.commit()?;
        Ok(reporter.verdict())
    }
}

/// Tells the spans of a trace; gives the number of records read.
fn spans(
    format: &'static dyn Format,
    input: Input,
    options: &ConvertArguments,
    timeline: &mut dyn Timeline,
) -> Result<(u64, Reporter), Failure> {
    let name = input.name().to_owned();
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
    let (symbols, named) = options.telling.symbols.load_counted(format)?.unzip();
    let span_options = SpanOptions { tail_chains: options.telling.tail_chains, symbols };
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    let summary = trace.spans(&span_options, timeline, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    if let Some(named) = named {
        named.complain(&name);
    }
    Ok((summary.records, reporter))
}

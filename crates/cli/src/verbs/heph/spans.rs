//! `anytrace heph spans`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anytrace_core::TimeBound;
use anytrace_heph::tools::spans::{Lanes, Streaming, TreeForm, TreeOptions, TreeSummary, tree};
use clap::{Args, ValueEnum};

use super::opening;
use crate::arguments::{InputArguments, ResultForm, SelectionArguments, time_bound};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::results::LostLast;
use crate::{Verdict, open, paint, terminal};

/// Nest events by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LaneArgument {
    /// Substream of a stream
    Substream,
    /// Stream, with all its substreams
    Stream,
}

/// `heph spans`.
#[derive(Debug, Args)]
pub(crate) struct SpansArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Nest events by
    #[arg(long, value_enum, default_value_t = LaneArgument::Substream)]
    by: LaneArgument,
    /// Print only totals: events, lanes, roots, depth, partial overlaps
    #[arg(long)]
    summary: bool,
    /// Show attributes (text only)
    #[arg(long)]
    attributes: bool,
    /// Emit spans as events arrive, in bounded memory and without temporary files; spans may miss parents that arrive
    /// late
    #[arg(long)]
    streaming: bool,
    /// With --streaming, events to buffer per lane
    #[arg(long, value_name = "N", default_value_t = Streaming::default().lane_spans_max, requires = "streaming")]
    window: usize,
    /// With --streaming, emit spans that ended this long before the latest end, such as 100ms
    #[arg(long, value_name = "TIME", requires = "streaming", value_parser = time_bound)]
    horizon: Option<TimeBound>,
    #[command(flatten)]
    selection: SelectionArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &SpansArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let opening::Opening { input, mut reporter } = opening::open(&options.file, &options.input)?;
    let _progress = Progress::watch(&input);
    let form = match (options.format, options.summary) {
        (ResultForm::Text, false) => TreeForm::Text,
        (ResultForm::Text, true) => TreeForm::SummaryText,
        (ResultForm::Json, false) => TreeForm::Json,
        (ResultForm::Json, true) => TreeForm::SummaryJson,
    };
    let horizon_ns = match options.horizon {
        Some(TimeBound::Native(ns) | TimeBound::Nanoseconds(ns)) => Some(ns),
        Some(TimeBound::Open) | None => None,
    };
    let streaming = Streaming { lane_spans_max: options.window, horizon_ns };
    let tree_options = TreeOptions {
        form,
        lanes: if options.by == LaneArgument::Stream { Lanes::Stream } else { Lanes::Substream },
        selection: options.selection.selection(),
        with_attributes: options.attributes,
        streaming: options.streaming.then_some(streaming),
    };
    let is_json = options.format == ResultForm::Json;
    let mut out = BufWriter::new(terminal::stdout().json(is_json));
    let open_options = open::open_options(&options.input);
    let summary = if is_json {
        let mut out = LostLast::new(&mut out);
        let summary = tree(input, &open_options, &tree_options, &mut out, &mut reporter);
        let summary = summary.map_err(|error| Failure::of(&name, &error))?;
        out.finish()?;
        summary
    } else {
        tree(input, &open_options, &tree_options, &mut out, &mut reporter)
            .map_err(|error| Failure::of(&name, &error))?
    };
    out.flush()?;
    drop(out);
    reporter.print_rest()?;
    complain(&name, &summary);
    Ok(reporter.verdict())
}

/// Reports what streaming could not know.
fn complain(name: &str, summary: &TreeSummary) {
    let name = anytrace_core::text::printable(name);
    if summary.parents_unknown > 0 {
        let count = summary.parents_unknown;
        paint::complain("note", format!("{name}: {count} spans were emitted before a parent could arrive"));
    }
    if summary.late > 0 {
        paint::complain(
            "note",
            format!("{name}: {} events arrived after their neighbors had been emitted", summary.late),
        );
    }
}

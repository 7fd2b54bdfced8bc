//! Options of `convert` for tables and timelines.

use anytrace_core::TimeBound;
use clap::Args;

use super::{CsvArguments, PlaceArguments, RANGE, SpanArguments, time_range};

/// Options of the forms of tables.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Tables (arrow, parquet)")]
pub(crate) struct TableOutputArguments {
    /// Table to write; `anytrace formats` lists those of each format
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// Write every table, each to a file of its name in the folder OUT; the same where OUT is a folder or ends in /
    #[arg(long, conflicts_with = "table")]
    pub(crate) all_tables: bool,
}

/// Options of the timeline forms.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Timelines (callgrind, chrome, csv, firefox, folded, otlp, perf-script, perfetto, pprof, speedscope, svg)"
)]
pub(crate) struct TimelineOutputArguments {
    #[command(flatten)]
    pub(crate) csv: CsvArguments,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    /// Lengths of spans
    #[arg(long, value_name = "A..B", value_parser = time_range, help = format!("Lengths of spans {RANGE}: plain numbers in \
          the trace's unit, or with ns, us, ms, s; the trace is read twice"))]
    pub(crate) duration: Option<(TimeBound, TimeBound)>,
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}

impl TimelineOutputArguments {
    /// True when one of the options is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        let spans = &self.spans;
        spans.tail_chains
            || !spans.symbols.sources().is_empty()
            || self.csv.is_given()
            || !self.conditions().is_empty()
            || self.place.is_given()
    }

    /// The conditions that are given.
    pub(crate) fn conditions(&self) -> Vec<&'static str> {
        let mut all = self.spans.conditions();
        all.extend(self.duration.map(|_| "--duration"));
        all
    }
}

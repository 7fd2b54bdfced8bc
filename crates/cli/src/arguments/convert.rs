//! Options of `convert` for tables and timelines, one of them of every verb that writes CSV.

use anytrace_core::TimeBound;
use anytrace_export::cells::Cells;
use clap::Args;

use super::{RANGE, SpanArguments, time_range};

/// How text is written in CSV.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct CsvArguments {
    /// In CSV, write names that begin with =, +, - or @ unchanged, without the leading ' that keeps spreadsheets from
    /// running them as formulas
    #[arg(long)]
    csv_raw: bool,
}

impl CsvArguments {
    /// True when it is given.
    pub(crate) fn is_given(self) -> bool {
        self.csv_raw
    }

    /// The library's option.
    pub(crate) fn cells(self) -> Cells {
        if self.csv_raw { Cells::Raw } else { Cells::Guarded }
    }
}

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
#[command(next_help_heading = "Timelines (chrome, csv, firefox, folded, perfetto, speedscope, svg)")]
pub(crate) struct TimelineOutputArguments {
    #[command(flatten)]
    pub(crate) csv: CsvArguments,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    /// Lengths of spans
    #[arg(long, value_name = "A..B", value_parser = time_range, help = format!("Lengths of spans {RANGE}: plain numbers in \
          the trace's unit, or with ns, us, ms, s; the trace is read twice"))]
    pub(crate) duration: Option<(TimeBound, TimeBound)>,
}

impl TimelineOutputArguments {
    /// True when one of the options is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        let spans = &self.spans;
        spans.tail_chains || !spans.symbols.sources().is_empty() || self.csv.is_given() || !self.conditions().is_empty()
    }

    /// The conditions that are given.
    pub(crate) fn conditions(&self) -> Vec<&'static str> {
        let mut all = self.spans.conditions();
        all.extend(self.duration.map(|_| "--duration"));
        all
    }
}

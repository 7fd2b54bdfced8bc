//! Options of `convert` for tables and timelines, one of them of every verb that writes CSV.

use anytrace_export::cells::Cells;
use clap::Args;

use super::{RANGE, number_range};
use crate::symbols::SymbolArguments;

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
#[command(
    next_help_heading = "Timelines (callgrind, chrome, csv, firefox, folded, otlp, perf-script, perfetto, pprof, speedscope, svg)"
)]
pub(crate) struct TimelineOutputArguments {
    /// Nest the target of a tail call inside its caller
    #[arg(long)]
    pub(crate) tail_chains: bool,
    /// Nesting depths
    #[arg(long, value_name = "A..B", value_parser = number_range, help = format!("Only spans at these nesting depths \
          (0 is outermost): {RANGE}; the others are counted in a note"))]
    pub(crate) depth: Option<std::ops::Range<u64>>,
    #[command(flatten)]
    pub(crate) csv: CsvArguments,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
}

impl TimelineOutputArguments {
    /// True when one of the options is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.tail_chains || self.depth.is_some() || self.csv.is_given() || !self.symbols.sources().is_empty()
    }
}

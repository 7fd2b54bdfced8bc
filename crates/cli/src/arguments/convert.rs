//! Options of `convert` for timelines, one of them of every verb that writes CSV.

use anytrace_export::cells::Cells;
use clap::Args;

use super::number_range;
use crate::symbols::SymbolArguments;

/// How text is written in CSV.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct CsvArguments {
    /// In CSV, write names that begin with =, +, - or @ as they are: without the ' in front that keeps spreadsheets from
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

/// How a trace is told as spans.
#[derive(Debug, Args)]
#[command(next_help_heading = "Timelines (chrome, csv, firefox, folded, perfetto, speedscope, svg)")]
pub(crate) struct TellingArguments {
    /// Functions that were left by a jump enclose what was jumped to
    #[arg(long)]
    pub(crate) tail_chains: bool,
    /// Only spans with so many around them: A..B (without B), A..=B, A.., ..B or N; the others are counted in a note
    #[arg(long, value_name = "A..B", value_parser = number_range)]
    pub(crate) depth: Option<std::ops::Range<u64>>,
    #[command(flatten)]
    pub(crate) csv: CsvArguments,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
}

impl TellingArguments {
    /// True when one of the options is given.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.tail_chains || self.depth.is_some() || self.csv.is_given() || !self.symbols.sources().is_empty()
    }
}

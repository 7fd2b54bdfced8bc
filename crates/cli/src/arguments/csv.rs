//! Options of every verb that writes CSV.

use anytrace_export::cells::Cells;
use clap::Args;

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

//! The options of `xray account`.

use std::path::PathBuf;

use anytrace_xray::tools::account::{AccountForm, SortKey};
use clap::{Args, ValueEnum};

use crate::arguments::{CsvArguments, InputArguments, TOP};
use crate::symbols::SymbolArguments;

/// `xray account`.
#[derive(Debug, Args)]
pub(crate) struct AccountArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Skip exits that do not match the innermost open call, as llvm-xray does, instead of ending the calls inside;
    /// this verb never fails because of a trace, with or without it
    #[arg(short, long)]
    pub(super) keep_going: bool,
    /// End calls without an exit when the enclosing call ends; this is the default
    #[arg(short, long)]
    pub(super) deduce_sibling_calls: bool,
    /// Count recursive calls only
    #[arg(long)]
    pub(super) recursive_calls_only: bool,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub(super) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(super) force: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    pub(super) format: Form,
    /// Column to sort by
    #[arg(short, long, value_enum, default_value_t = Sort::Funcid)]
    pub(super) sort: Sort,
    /// Ascending or descending
    #[arg(short = 'r', long, value_enum, default_value_t = Order::Asc)]
    pub(super) sortorder: Order,
    /// Functions; as for llvm-xray, less than 0 is all, too
    #[arg(short = 'p', visible_short_alias = 'n', long, value_name = "N", default_value_t = -1,
          allow_negative_numbers = true, hide_default_value = true, help = format!("{TOP} [default: all]"))]
    pub(super) top: i64,
    #[command(flatten)]
    pub(super) symbols: SymbolArguments,
    #[command(flatten)]
    pub(super) csv: CsvArguments,
    #[command(flatten)]
    pub(super) input: InputArguments,
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Form {
    /// A table
    Text,
    /// One line per function
    Csv,
    /// With ticks and seconds, and what was missing
    Json,
}

/// Columns.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Sort {
    Funcid,
    Count,
    Min,
    Med,
    #[value(name = "90p")]
    P90,
    #[value(name = "99p")]
    P99,
    Max,
    Sum,
    /// Name
    Func,
}

/// Orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    Asc,
    Dsc,
}

impl Form {
    /// The library's word for it.
    pub(super) fn form(self) -> AccountForm {
        match self {
            Self::Text => AccountForm::Text,
            Self::Csv => AccountForm::Csv,
            Self::Json => AccountForm::Json,
        }
    }
}

impl Sort {
    /// The library's word for it.
    pub(super) fn key(self) -> SortKey {
        match self {
            Self::Funcid => SortKey::Id,
            Self::Count => SortKey::Count,
            Self::Min => SortKey::Min,
            Self::Med => SortKey::Median,
            Self::P90 => SortKey::P90,
            Self::P99 => SortKey::P99,
            Self::Max => SortKey::Max,
            Self::Sum => SortKey::Sum,
            Self::Func => SortKey::Function,
        }
    }
}

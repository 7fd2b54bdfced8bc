//! The options of `query`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::byte_count;
use super::{IndexUseArguments, format_names};
use crate::symbols::SymbolArguments;

/// `query`.
#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// Traces, then the SQL or the name of a .sql file; - is standard input. Without SQL there is a prompt on a terminal,
    /// otherwise standard input is the SQL
    #[arg(value_name = "FILE… [SQL]")]
    pub(crate) words: Vec<OsString>,
    /// A trace whose tables are X.TABLE; may be repeated
    #[arg(long, value_name = "X=FILE")]
    pub(crate) name: Vec<OsString>,
    /// Form of results [default: what OUT's extension says, a table on a terminal, csv elsewhere]
    #[arg(long, value_enum)]
    pub(crate) format: Option<QueryForm>,
    /// File to write, or with --cluster s3://BUCKET/KEY; - is standard output, and so is none. It is written completely
    /// or not at all
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not guard text cells of csv that begin with =, +, - or @ from spreadsheets
    #[arg(long)]
    pub(crate) csv_raw: bool,
    /// List the tables of the traces
    #[arg(long, group = "what")]
    pub(crate) tables: bool,
    /// List the columns of a table
    #[arg(long, value_name = "TABLE", group = "what")]
    pub(crate) describe: Option<String>,
    /// List the named queries
    #[arg(long, group = "what")]
    pub(crate) list: bool,
    /// Run a named query
    #[arg(long, value_name = "QUERY", group = "what")]
    pub(crate) run: Option<String>,
    /// Show how the SQL is carried out instead
    #[arg(long)]
    pub(crate) explain: bool,
    /// Value of $1, of $2 the next time; or of $NAME, as NAME=VALUE
    #[arg(long = "param", value_name = "VALUE")]
    pub(crate) parameters: Vec<String>,
    /// Partitions of a plan and threads that work on them, 1 to 64 [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) threads: Option<usize>,
    /// Run by anytrace-cluster: df://HOST:PORT is a scheduler, local a cluster in one process
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: Option<String>,
    /// Memory for sorting and grouping before they use the disk; suffixes k, M, G [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    /// Read the inputs as this format instead of detecting it
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(format_names()))]
    pub(crate) input_format: Option<String>,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
}

/// Forms of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueryForm {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header
    Csv,
    /// One array of objects
    Json,
    /// One object per line
    Jsonl,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file
    Arrow,
}

impl QueryForm {
    /// Its name.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

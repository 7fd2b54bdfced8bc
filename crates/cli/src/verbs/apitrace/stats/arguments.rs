//! The options of `apitrace stats`.

use std::path::PathBuf;

use anytrace_apitrace::tools::stats::{By, Column};
use clap::{Args, ValueEnum};

use crate::arguments::{CsvArguments, InputArguments, TOP, rows};

/// `apitrace stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(super) files: Vec<PathBuf>,
    /// Group rows by
    #[arg(long, value_enum, default_value_t = ByArgument::Function)]
    pub(super) by: ByArgument,
    /// Sort rows by: numbers in descending order, calls and names in ascending order [default: calls; with --by
    /// state, redundant; frames and threads in order of appearance]
    #[arg(long, value_enum)]
    pub(super) sort: Option<SortArgument>,
    /// Rows
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, help = format!("{TOP} [default: all]"))]
    pub(super) top: Option<usize>,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    pub(super) calls: Vec<String>,
    /// Only calls of these frames; with --calls, calls selected by either. May be repeated
    #[arg(long, value_name = "FRAMESET", allow_hyphen_values = true)]
    pub(super) frames: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = FormArgument::Text)]
    pub(super) format: FormArgument,
    /// Draw the calls, draws, state changes and uploads of each frame to this SVG file; - is standard output, which
    /// then gets nothing else
    #[arg(long, value_name = "OUT.svg")]
    pub(super) plot: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(super) force: bool,
    /// Give each thread without a known context a separate one, for traces that begin midway
    #[arg(long)]
    pub(super) assume_context: bool,
    #[command(flatten)]
    pub(super) csv: CsvArguments,
    #[command(flatten)]
    pub(super) input: InputArguments,
}

/// What rows are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ByArgument {
    /// Functions
    Function,
    /// Frames
    Frame,
    /// Threads
    Thread,
    /// Functions that set state, with the name of what they set: how often it was set, and how often redundantly
    State,
}

impl ByArgument {
    /// The library's word for it.
    pub(super) fn by(self) -> By {
        match self {
            Self::Function => By::Function,
            Self::Frame => By::Frame,
            Self::Thread => By::Thread,
            Self::State => By::State,
        }
    }
}

/// Forms of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormArgument {
    /// A table for people
    Text,
    /// One line per row, for spreadsheets
    Csv,
    /// For programs; has a version field
    Json,
}

/// Columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SortArgument {
    /// Calls
    Calls,
    /// Bytes of the raw stream
    Bytes,
    /// Calls that draw
    Draws,
    /// Calls that set state
    State,
    /// Calls that set state to its current value
    Redundant,
    /// Bytes of data for the driver
    Uploads,
    /// Bytes of blobs
    Blobs,
    /// Bytes of strings
    Strings,
    /// Values in arrays
    Arrays,
    /// Number of threads
    Threads,
    /// Number of frames
    Frames,
    /// First call
    First,
    /// Last call
    Last,
    /// Name or number
    Name,
}

impl SortArgument {
    /// The library's word for it.
    pub(super) fn column(self) -> Column {
        match self {
            Self::Calls => Column::Calls,
            Self::Bytes => Column::Bytes,
            Self::Draws => Column::Draws,
            Self::State => Column::State,
            Self::Redundant => Column::Redundant,
            Self::Uploads => Column::Uploads,
            Self::Blobs => Column::Blobs,
            Self::Strings => Column::Strings,
            Self::Arrays => Column::Arrays,
            Self::Threads => Column::Threads,
            Self::Frames => Column::Frames,
            Self::First => Column::First,
            Self::Last => Column::Last,
            Self::Name => Column::Name,
        }
    }
}

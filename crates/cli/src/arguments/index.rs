//! The options of `index`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::own::OwnArguments;
use super::values::byte_count;
use super::{InputArguments, ResultForm, format_names};

/// Which index a verb uses.
#[derive(Debug, Default, Args)]
pub(crate) struct IndexUseArguments {
    /// Use this index of the trace [default: FILE.atx, in the folder ANYTRACE_INDEX_DIR if that is set, where it exists]
    #[arg(long, value_name = "PATH")]
    pub(crate) index: Option<PathBuf>,
    /// Use no index
    #[arg(long, conflicts_with = "index")]
    pub(crate) no_index: bool,
}

/// `index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// Traces
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Index file, of a single trace [default: FILE.atx, in the folder ANYTRACE_INDEX_DIR if that is set]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Bytes of the trace from one place where reading can begin to the next; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "1M")]
    pub(crate) every: u64,
    /// Add the pyramid with which `anytrace view` draws the trace before it is read; it takes another pass
    #[arg(long)]
    pub(crate) pyramid: bool,
    /// Show what the existing index contains, and whether it fits the trace
    #[arg(long, conflicts_with_all = ["every", "force", "pyramid"])]
    pub(crate) show: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    pub(crate) format: ResultForm,
    /// Read the input as this format instead of detecting it
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(format_names()))]
    pub(crate) input_format: Option<String>,
    /// Threads to use, 1 to 64 [default: one per processor, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) threads: Option<usize>,
    /// Show at most N diagnostics per file; 0 shows all. Counts are always exact
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u64,
}

impl IndexArguments {
    /// How the traces are read: as `query` reads them, without options that change what a record is.
    pub(crate) fn input(&self) -> InputArguments {
        InputArguments {
            input_format: self.input_format.clone(),
            endian: None,
            own: OwnArguments::default(),
            record_limit: None,
            no_mmap: false,
            threads: self.threads,
            limit: self.limit,
        }
    }
}

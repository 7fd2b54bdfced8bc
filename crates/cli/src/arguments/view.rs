//! The options of `view` and `report`.

use std::path::PathBuf;

use clap::Args;

use super::{IndexUseArguments, InputArguments, OutputArguments};
use crate::symbols::SymbolArguments;

/// `view`.
#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// Traces, shown together; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print the address and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Port on this machine [default: any that is free]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Read a trace again whenever its file changes
    #[arg(long)]
    pub(crate) follow: bool,
    /// Serve the page from this folder instead of the one that is built in, for work on the page
    #[arg(long, value_name = "FOLDER")]
    pub(crate) viewer_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

//! The options of `view` and `report`.

use std::path::PathBuf;

use anytrace_core::TimeBound;
use clap::Args;

use super::values::time_bound;
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
    /// Listen on a Unix socket, which only you can open, instead of a port
    #[arg(long, value_name = "PATH", conflicts_with = "port")]
    pub(crate) socket: Option<PathBuf>,
    /// Open a window in Perfetto's own page: the browser loads that from the network and hands it the window
    #[arg(long)]
    pub(crate) perfetto: bool,
    /// Start of the window [default: the trace's]
    #[arg(long, value_name = "TIME", requires = "perfetto", value_parser = time_bound)]
    pub(crate) from: Option<TimeBound>,
    /// End of the window [default: the trace's]
    #[arg(long, value_name = "TIME", requires = "perfetto", value_parser = time_bound)]
    pub(crate) to: Option<TimeBound>,
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

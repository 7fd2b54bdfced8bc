//! Options of `merge`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::{InputArguments, OutputArguments, TimelineOutputArguments};

/// `merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeVerbArguments {
    /// Traces; each is read twice
    #[arg(required = true, num_args = 1.., value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Form to write [default: by OUT's extension]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(timeline_names()))]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) timeline_output: TimelineOutputArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

fn timeline_names() -> Vec<&'static str> {
    anytrace_export::timeline::OUTPUTS.iter().map(|output| output.name).collect()
}

//! `anytrace heph …`: spans, loss, live collection, replay; one file a verb.

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct HephArguments {
    /// What to do.
    #[command(subcommand)]
    verb: HephVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum HephVerb {}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &HephArguments) -> Result<Verdict, Failure> {
    match options.verb {}
}

//! `anytrace cacheray …`: which types and fields miss, why, and what to change; one file a verb.
//!
//! The verbs work on any format whose traces can be told as memory accesses.

mod caches;
mod opening;
mod type_data;
mod types;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct CacherayArguments {
    /// What to do.
    #[command(subcommand)]
    verb: CacherayVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum CacherayVerb {
    /// What each type and field of a trace is read, written and missed, and how much of it lives
    Types(Box<types::TypesArguments>),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &CacherayArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        CacherayVerb::Types(options) => types::run(options),
    }
}

//! `anytrace cacheray …`: which types and fields miss, why, and what to change; one file a verb.
//!
//! The verbs work on any format whose traces can be told as memory accesses.

mod compare;
mod configs;
mod opening;
mod sim;

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
    /// Compare two traces in the same caches, level by level and type by type, with thresholds
    #[command(
        after_help = "Example:\n  anytrace cacheray compare --config zen3 --fail-above misses=5% before.trace after.trace"
    )]
    Compare(Box<compare::CompareArguments>),
    /// Simulate caches: which types and fields miss, in which levels and sets
    #[command(
        after_help = "Examples:\n  anytrace cacheray sim --config zen3 --types app.trace\n  anytrace cacheray sim --config caches.json --classes --format json app.trace"
    )]
    Sim(Box<sim::SimArguments>),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &CacherayArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        CacherayVerb::Compare(options) => compare::run(options),
        CacherayVerb::Sim(options) => sim::run(options),
    }
}

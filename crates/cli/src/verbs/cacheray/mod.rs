//! `anytrace cacheray …`: which types and fields miss, why, and what to change; one file a verb.
//!
//! The verbs work on any format whose traces can be told as memory accesses.

mod advise;
mod caches;
mod compare;
mod configs;
mod heatmap;
mod lifetime;
mod opening;
mod remapping;
mod sim;
mod type_data;
mod types;
mod what_if;

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
    /// Propose layouts of types that miss less, each with its re-simulated gain
    #[command(after_help = "Example:\n  anytrace cacheray advise run.trace --binary ./prog --config zen3")]
    Advise(Box<advise::AdviseArguments>),
    /// Draw where a trace is hot: addresses over time, or lines over the bytes in them
    #[command(
        after_help = "Examples:\n  anytrace cacheray heatmap run.trace -o run.svg\n  anytrace cacheray heatmap run.trace --by line --type Node -o node.svg"
    )]
    Heatmap(Box<heatmap::HeatmapArguments>),
    /// How long typed memory lives; accesses after its remove, reads before a write, leaks, what nothing touches
    #[command(after_help = "Example:\n  anytrace cacheray lifetime run.trace --binary ./prog --fail")]
    Lifetime(Box<lifetime::LifetimeArguments>),
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
    /// What each type and field of a trace is read, written and missed, and how much of it lives
    #[command(after_help = "Example:\n  anytrace cacheray types run.trace --binary ./prog --type Node")]
    Types(Box<types::TypesArguments>),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &CacherayArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        CacherayVerb::Advise(options) => advise::run(options),
        CacherayVerb::Heatmap(options) => heatmap::run(options),
        CacherayVerb::Lifetime(options) => lifetime::run(options),
        CacherayVerb::Compare(options) => compare::run(options),
        CacherayVerb::Sim(options) => sim::run(options),
        CacherayVerb::Types(options) => types::run(options),
    }
}

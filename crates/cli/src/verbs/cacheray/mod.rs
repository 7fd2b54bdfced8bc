//! `anytrace cacheray …`: which types and fields miss, why, and what to change; one file a verb.
//!
//! The verbs work on any format whose traces can be told as memory accesses.

mod advise;
mod caches;
mod cc;
mod compare;
mod configs;
mod heatmap;
mod lifetime;
mod mrc;
mod opening;
mod record;
mod recorder_library;
mod remapping;
mod schedules;
mod sharing;
mod sim;
mod type_data;
mod type_label;
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
    /// Compile and link a C or C++ program so that it can be recorded
    #[command(
        after_help = "Exit codes: those of the compiler; 2 where it cannot be run, or the recorder is not to be had.\n\n\
                            Example:\n  anytrace cacheray cc -- gcc -O1 -o app app.c\n  \
                            CC='anytrace cacheray cc -- clang' make"
    )]
    Cc(cc::CcArguments),
    /// Compare two traces, or two layouts of one, in the same caches, level by level and type by type, with thresholds
    #[command(
        after_help = "Examples:\n  anytrace cacheray compare --config zen3 --fail-above misses=5% before.trace after.trace\n  \
                      anytrace cacheray compare --config zen3 --remap split.json run.trace"
    )]
    Compare(Box<compare::CompareArguments>),
    /// Draw where a trace is hot: addresses over time, or lines over the bytes in them
    #[command(
        after_help = "Examples:\n  anytrace cacheray heatmap run.trace -o run.svg\n  anytrace cacheray heatmap run.trace --by line --type Node -o node.svg"
    )]
    Heatmap(Box<heatmap::HeatmapArguments>),
    /// How long typed memory lives; accesses after its remove, reads before a write, leaks, what nothing touches
    #[command(after_help = "Example:\n  anytrace cacheray lifetime run.trace --binary ./prog --fail")]
    Lifetime(Box<lifetime::LifetimeArguments>),
    /// Say how often caches of any size would miss: exact curves in one pass, by type or thread, or from a sample
    #[command(
        after_help = "The caches are fully associative and evict the least recently used line. Sizes are in bytes, with k, M\n\
                      or G behind them or not.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace cacheray mrc --by type --plot app.svg app.trace\n  \
                      anytrace cacheray mrc --sample 0.01 --working-set huge.trace"
    )]
    Mrc(Box<mrc::MrcArguments>),
    /// Run a program and record what it reads, writes and allocates
    #[command(
        after_help = "Exit codes: those of the program, 128 and the number for a signal; 1 where it succeeded and records\n\
            were lost; 2 where it cannot be run.\n\n\
                            Example:\n  anytrace cacheray record -o app.trace -- ./app input.txt"
    )]
    Record(record::RecordArguments),
    /// Find cache lines that threads take from each other: which fields, which threads, how often, what to pad
    #[command(
        after_help = "Each core has a private write-back cache with LRU; copies follow the MESI protocol, in the order of\n\
                      records or as --interleave says. A miss is true sharing where any access until the core loses the\n\
                      line again touches bytes that others wrote since it lost it before, else false sharing. Advice was\n\
                      simulated, and gains.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace cacheray sharing app.trace --binary ./app\n  \
                      anytrace cacheray sharing --cores 2 --format json app.trace | jq '.pairs[0]'"
    )]
    Sharing(sharing::SharingArguments),
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
        CacherayVerb::Cc(options) => cc::run(options),
        CacherayVerb::Compare(options) => compare::run(options),
        CacherayVerb::Heatmap(options) => heatmap::run(options),
        CacherayVerb::Lifetime(options) => lifetime::run(options),
        CacherayVerb::Mrc(options) => mrc::run(options),
        CacherayVerb::Record(options) => record::run(options),
        CacherayVerb::Sharing(options) => sharing::run(options),
        CacherayVerb::Sim(options) => sim::run(options),
        CacherayVerb::Types(options) => types::run(options),
    }
}

//! `anytrace memory …`: which types and fields miss, why, and what to change; one file per verb.
//!
//! The verbs work on every format whose traces have memory accesses. `anytrace cacheray …` runs them too.

mod advise;
mod annotate;
mod caches;
mod compare;
mod configs;
mod default_caches;
mod heatmap;
mod highlights;
mod lifetime;
mod live;
mod mrc;
mod numa;
mod opening;
mod places;
mod remapping;
mod report;
mod schedules;
mod sharing;
mod sim;
mod site_types;
mod type_data;
mod type_label;
mod types;
mod what_if;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;
pub(crate) use highlights::highlights;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct MemoryArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: MemoryVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryVerb {
    /// Propose type layouts with fewer misses, each with its simulated gain
    #[command(after_help = "Example:\n  anytrace memory advise run.trace -m ./prog --config zen3")]
    Advise(Box<advise::AdviseArguments>),
    /// Show the source of the program with reads, writes and cache misses of each line, function or instruction
    #[command(
        after_help = "The accesses' code addresses are in TRACE.pc, which `anytrace cacheray record` writes beside the trace, or in\n\
                      the trace itself (lackey's instructions).\n\n\
                      Exit codes: 0 fine, 1 the trace or the file of code addresses is damaged, 2 the command failed.\n\n\
                      Examples:\n  anytrace memory annotate run.trace\n  \
                      anytrace memory annotate --by function --type Node --format json run.trace"
    )]
    Annotate(Box<annotate::AnnotateArguments>),
    /// Compare two traces, or two layouts of one trace, in the same caches, by level and type, with thresholds
    #[command(
        after_help = "Examples:\n  anytrace memory compare --config zen3 --fail-above misses=5% \\\n    before.trace after.trace\n  \
                      anytrace memory compare --config zen3 --remap split.json run.trace"
    )]
    Compare(Box<compare::CompareArguments>),
    /// Draw a heat map of memory accesses: addresses over time, or cache lines by byte
    #[command(
        after_help = "Examples:\n  anytrace memory heatmap run.trace -o run.svg\n  anytrace memory heatmap run.trace --by line --type Node -o node.svg"
    )]
    Heatmap(Box<heatmap::HeatmapArguments>),
    /// Report lifetimes of typed memory, and find leaks, accesses after removal, reads before the first write and
    /// memory that is never accessed
    #[command(after_help = "Example:\n  anytrace memory lifetime run.trace -m ./prog --fail")]
    Lifetime(Box<lifetime::LifetimeArguments>),
    /// Compute miss ratios for caches of all sizes: exact curves in one pass, by type or thread, or from a sample
    #[command(
        after_help = "The caches are fully associative and evict the least recently used line. Sizes are in bytes, with\n\
                      an optional suffix k, M or G.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace memory mrc --by type --plot app.svg app.trace\n  \
                      anytrace memory mrc --sample 0.01 --working-set huge.trace\n  anytrace memory mrc -- ./app input.txt"
    )]
    Mrc(Box<mrc::MrcArguments>),
    /// Find accesses to memory of other NUMA nodes, by thread, type and region
    #[command(
        after_help = "A page lies on the node of the thread that touches it first. Each thread has a private cache with LRU; what it\n\
                      misses goes to memory.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace memory numa --map 0-3=0,4-7=1 app.trace\n  anytrace memory numa --nodes 4 -- ./app input.txt"
    )]
    Numa(Box<numa::NumaArguments>),
    /// Write one page about a trace for a browser: memory over time, misses by cache size, hottest types, fields, lines
    /// and functions, sharing with advice, heat maps, lifetimes and leaks
    #[command(
        after_help = "The page needs nothing else: no server, no script, no network. Functions and lines are in it where\n\
                      TRACE.pc is beside the trace (`anytrace cacheray record` writes it) or in the trace (lackey).\n\n\
                      Exit codes: 0 fine, 1 the trace or the file of code addresses is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace memory report run.trace -m ./prog -o report.html"
    )]
    Report(Box<report::ReportArguments>),
    /// Find cache lines that threads contend for: which fields, which threads, how often, what to pad
    #[command(
        after_help = "Each core has a private write-back cache with LRU; copies follow the MESI protocol, in the order of\n\
                      records or as --interleave says. A miss is true sharing if any access before the core loses the\n\
                      line again touches bytes that others have written since the core last lost it, else false sharing.\n\
                      All advice was simulated and reduces misses.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace memory sharing app.trace -m ./app\n  \
                      anytrace memory sharing --cores 2 --format json app.trace | jq '.pairs[0]'"
    )]
    Sharing(Box<sharing::SharingArguments>),
    /// Simulate caches: misses by type, field, level and set
    #[command(
        after_help = "Examples:\n  anytrace memory sim --config zen3 --types app.trace\n  anytrace memory sim --config caches.json --classes --format json app.trace\n  anytrace memory sim -- ./app input.txt"
    )]
    Sim(Box<sim::SimArguments>),
    /// Count reads, writes and cache misses of each type and field, and show live memory per type over time
    #[command(after_help = "Example:\n  anytrace memory types run.trace -m ./prog --type Node")]
    Types(Box<types::TypesArguments>),
}

/// Runs one of the group's verbs.
pub(crate) fn run(verb: &mut MemoryVerb) -> Result<Verdict, Failure> {
    match verb {
        MemoryVerb::Advise(options) => advise::run(options),
        MemoryVerb::Annotate(options) => annotate::run(options),
        MemoryVerb::Compare(options) => compare::run(options),
        MemoryVerb::Heatmap(options) => heatmap::run(options),
        MemoryVerb::Lifetime(options) => live::run(&mut **options, lifetime::run),
        MemoryVerb::Mrc(options) => live::run(&mut **options, mrc::run),
        MemoryVerb::Numa(options) => live::run(&mut **options, numa::run),
        MemoryVerb::Report(options) => report::run(options),
        MemoryVerb::Sharing(options) => live::run(&mut **options, sharing::run),
        MemoryVerb::Sim(options) => live::run(&mut **options, sim::run),
        MemoryVerb::Types(options) => live::run(&mut **options, types::run),
    }
}

/// The names of the group's verbs.
pub(crate) fn names() -> Vec<String> {
    let group = MemoryVerb::augment_subcommands(clap::Command::new("memory"));
    group.get_subcommands().map(|verb| verb.get_name().to_owned()).collect()
}

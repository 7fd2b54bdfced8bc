//! `anytrace cacheray …`: which types and fields miss, why, and what to change; one file a verb.
//!
//! The verbs work on any format whose traces can be told as memory accesses.

mod cc;
mod opening;
mod record;
mod recorder_library;

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
    /// Compile and link a C or C++ program so that it can be recorded
    #[command(
        after_help = "Exit codes: those of the compiler; 2 where it cannot be run, or the recorder is not to be had.\n\n\
                            Example:\n  anytrace cacheray cc -- gcc -O1 -o app app.c\n  \
                            CC='anytrace cacheray cc -- clang' make"
    )]
    Cc(cc::CcArguments),
    /// Run a program and record what it reads, writes and allocates
    #[command(
        after_help = "Exit codes: those of the program, 128 and the number for a signal; 2 where it cannot be run.\n\n\
                            Example:\n  anytrace cacheray record -o app.trace -- ./app input.txt"
    )]
    Record(record::RecordArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &CacherayArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        CacherayVerb::Cc(options) => cc::run(options),
        CacherayVerb::Record(options) => record::run(options),
    }
}

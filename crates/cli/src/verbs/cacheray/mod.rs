//! `anytrace cacheray …`: recording programs with Cacheray; one file per verb.

mod cc;
mod record;
mod recorder_library;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;
use crate::verbs::memory::{self, MemoryVerb};

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
    /// Compile and link a C or C++ program for recording
    #[command(
        after_help = "Exit codes: those of the compiler; 2 if it cannot be run or the recorder is not available.\n\n\
                            Example:\n  anytrace cacheray cc -- gcc -O1 -o app app.c\n  \
                            CC='anytrace cacheray cc -- clang' make"
    )]
    Cc(cc::CcArguments),
    /// Run a program and record what it reads, writes and allocates
    #[command(
        after_help = "Exit codes: the program's, or 128 plus the number of a signal; 1 if it succeeded but records\n\
            were lost; 2 if it cannot be run.\n\n\
                            Example:\n  anytrace cacheray record -o app.trace -- ./app input.txt"
    )]
    Record(record::RecordArguments),
    /// The verbs of `anytrace memory`, which were here first.
    #[command(flatten)]
    Memory(MemoryVerb),
}

/// Records a program that was compiled for that.
pub(crate) fn record(output: PathBuf, force: bool, quiet: bool, command: Vec<OsString>) -> Result<Verdict, Failure> {
    record::run(&record::RecordArguments::of(output, force, quiet, command))
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &mut CacherayArguments) -> Result<Verdict, Failure> {
    match &mut options.verb {
        CacherayVerb::Cc(options) => cc::run(options),
        CacherayVerb::Record(options) => record::run(options),
        CacherayVerb::Memory(verb) => memory::run(verb),
    }
}

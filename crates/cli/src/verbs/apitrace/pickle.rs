//! `anytrace apitrace pickle`.

use std::path::PathBuf;

use anytrace_apitrace::tools::pickle::{PickleOptions, pickle};
use clap::Args;

use super::printed::print_calls;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, open, terminal};

/// `apitrace pickle`.
#[derive(Debug, Args)]
pub(crate) struct PickleArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Write names of enumerations and flags instead of values
    #[arg(short, long)]
    symbolic: bool,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Write the thread after each call's number, as apitrace after 11.1 does
    #[arg(long)]
    thread_ids: bool,
    /// Write pointers as plain numbers instead of apitrace's class unpickle.Pointer
    #[arg(long)]
    plain_pointers: bool,
    /// Reproduce the errors of apitrace 11.1, byte for byte
    #[arg(long)]
    compat: bool,
    #[command(flatten)]
    index: super::opening::IndexChoice,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &PickleArguments) -> Result<Verdict, Failure> {
    let threads = open::open_options(&options.input).threads;
    let how = PickleOptions {
        is_symbolic: options.symbolic,
        calls: super::call_sets::call_set(&options.calls)?,
        has_threads: options.thread_ids,
        has_plain_pointers: options.plain_pointers,
        is_compatible: options.compat,
        workers: threads.saturating_sub(1),
    };
    let (reading, wanted) = ((&options.input, &options.index), how.wanted());
    print_calls(&options.files, reading, &wanted, terminal::stdout, |reader, out, sink| pickle(reader, &how, out, sink))
}

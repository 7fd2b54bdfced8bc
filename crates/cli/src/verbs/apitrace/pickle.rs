//! `anytrace apitrace pickle`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_apitrace::tools::pickle::{PickleOptions, pickle};
use clap::Args;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, for_each_file, open, terminal};

/// `apitrace pickle`.
#[derive(Debug, Args)]
pub(crate) struct PickleArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Names of enumerations and flags for their values
    #[arg(short, long)]
    symbolic: bool,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// The thread after each call's number, as versions of apitrace after 11.1 write it
    #[arg(long)]
    thread_ids: bool,
    /// Pointers as plain numbers, not of the class unpickle.Pointer that comes with apitrace
    #[arg(long)]
    plain_pointers: bool,
    /// Copy what apitrace 11.1 gets wrong, byte for byte
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
        calls: super::opening::call_set(&options.calls)?,
        has_threads: options.thread_ids,
        has_plain_pointers: options.plain_pointers,
        is_compatible: options.compat,
        workers: threads.saturating_sub(1),
    };
    for_each_file(&options.files, |file| {
        let (choice, wanted) = (&options.index.index, how.wanted());
        let mut opened = match super::opening::open_reader_late(file, &options.input, choice, &wanted)? {
            Ok(opened) => opened,
            Err(nothing) => return Ok(nothing.verdict),
        };
        let mut out = terminal::stdout();
        pickle(&mut opened.reader, &how, &mut out, &mut opened.reporter)
            .map_err(|error| Failure::of(&opened.name, &error))?;
        out.flush()?;
        opened.verdict()
    })
}

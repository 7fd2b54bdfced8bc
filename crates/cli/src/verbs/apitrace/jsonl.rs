//! `anytrace apitrace jsonl`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_apitrace::tools::jsonl::{BlobForm, JsonlOptions, jsonl};
use clap::{Args, ValueEnum};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, for_each_file, open, terminal};

/// Calls as JSON lines.
#[derive(Debug, Args)]
pub(crate) struct JsonlArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// What is written of blobs
    #[arg(long, value_enum, value_name = "FORM", default_value_t = BlobArgument::Base64)]
    blobs: BlobArgument,
    #[command(flatten)]
    index: super::opening::IndexChoice,
    #[command(flatten)]
    input: InputArguments,
}

/// What is written of blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BlobArgument {
    /// Length and content in base 64
    Base64,
    /// Length and SHA-256
    Sha256,
    /// Length
    Length,
}

pub(crate) fn run(options: &JsonlArguments) -> Result<Verdict, Failure> {
    let threads = open::open_options(&options.input).threads;
    let how = JsonlOptions {
        calls: super::opening::call_set(&options.calls)?,
        blobs: match options.blobs {
            BlobArgument::Base64 => BlobForm::Base64,
            BlobArgument::Sha256 => BlobForm::Sha256,
            BlobArgument::Length => BlobForm::Length,
        },
        workers: threads.saturating_sub(1),
    };
    for_each_file(&options.files, |file| {
        let (choice, wanted) = (&options.index.index, how.wanted());
        let mut opened = match super::opening::open_reader_late(file, &options.input, choice, &wanted)? {
            Ok(opened) => opened,
            Err(nothing) => return Ok(nothing.verdict),
        };
        let mut out = terminal::stdout().json(true);
        jsonl(&mut opened.reader, &how, &mut out, &mut opened.reporter)
            .map_err(|error| Failure::of(&opened.name, &error))?;
        out.flush()?;
        opened.verdict()
    })
}

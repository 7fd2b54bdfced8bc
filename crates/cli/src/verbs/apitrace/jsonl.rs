//! `anytrace apitrace jsonl`.

use std::path::PathBuf;

use anytrace_apitrace::tools::jsonl::{BlobForm, JsonlOptions, jsonl};
use clap::{Args, ValueEnum};

use super::printed::print_calls;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, open, terminal};

/// Calls as JSON lines.
#[derive(Debug, Args)]
pub(crate) struct JsonlArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// How to write blobs
    #[arg(long, value_enum, value_name = "FORM", default_value_t = BlobArgument::Base64)]
    blobs: BlobArgument,
    #[command(flatten)]
    index: super::opening::IndexChoice,
    #[command(flatten)]
    input: InputArguments,
}

/// How to write blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BlobArgument {
    /// Length, and content in base64
    Base64,
    /// Length and SHA-256
    Sha256,
    /// Length
    Length,
}

pub(crate) fn run(options: &JsonlArguments) -> Result<Verdict, Failure> {
    let threads = open::open_options(&options.input).threads;
    let how = JsonlOptions {
        calls: super::call_sets::call_set(&options.calls)?,
        blobs: match options.blobs {
            BlobArgument::Base64 => BlobForm::Base64,
            BlobArgument::Sha256 => BlobForm::Sha256,
            BlobArgument::Length => BlobForm::Length,
        },
        workers: threads.saturating_sub(1),
    };
    let (reading, wanted) = ((&options.input, &options.index), how.wanted());
    let stdout = || terminal::stdout().json(true);
    print_calls(&options.files, reading, &wanted, stdout, |reader, out, sink| jsonl(reader, &how, out, sink))
}

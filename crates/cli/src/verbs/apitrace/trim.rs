//! `anytrace apitrace trim`.

use std::path::PathBuf;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::trim::{TrimOptions, trim};
use clap::Args;

use super::edited::EditedArguments;
use crate::Verdict;
use crate::arguments::InputArguments;
use crate::failure::Failure;

/// `apitrace trim`.
#[derive(Debug, Args)]
pub(crate) struct TrimArguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Keep these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Keep the calls of these frames, counted from 0; see below. May be repeated
    #[arg(long, value_name = "FRAMESET", allow_hyphen_values = true)]
    frames: Vec<String>,
    /// Keep only calls of this thread; may be repeated
    #[arg(long, value_name = "THREAD", value_parser = thread_number)]
    thread: Vec<u64>,
    #[command(flatten)]
    edited: EditedArguments,
    #[command(flatten)]
    index: super::opening::IndexChoice,
    #[command(flatten)]
    input: InputArguments,
}

/// Thread numbers are decimal, or hexadecimal with `0x` or with the `@` of the dump.
fn thread_number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix('@')) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "expected a number, or a hexadecimal number after 0x or @".to_owned())
}

pub(crate) fn run(options: &TrimArguments) -> Result<Verdict, Failure> {
    let set = |texts: &[String], option: &str| -> Result<Option<CallSet>, Failure> {
        if texts.is_empty() { Ok(None) } else { super::call_sets::parse_call_set(option, texts).map(Some) }
    };
    let how = TrimOptions {
        calls: set(&options.calls, "--calls")?,
        frames: set(&options.frames, "--frames")?,
        threads: options.thread.clone(),
        container: options.edited.container(),
        level: options.edited.level(),
    };
    let wanted = how.wanted();
    let late = (&options.index.index, &wanted);
    options.edited.write_late(&options.file, &options.input, late, ("Trimmed", "-trim.trace"), |reader, out, sink| {
        trim(reader, &how, out, sink)
    })
}

//! `anytrace apitrace from-jsonl`.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::from_jsonl::from_jsonl;
use anytrace_core::{Input, InputOptions, Limits, TargetOptions};
use clap::Args;
use tempfile::NamedTempFile;

use crate::Verdict;
use crate::arguments::OutputArguments;
use crate::arguments::own::{self, OwnArguments};
use crate::failure::Failure;
use crate::output::{Output, remove_on_signal};

/// A trace of JSON lines of calls.
#[derive(Debug, Args)]
pub(crate) struct FromJsonlArguments {
    /// JSON lines of calls; - is standard input
    #[arg(value_name = "LINES")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    own: OwnArguments<own::Write>,
}

pub(crate) fn run(options: &FromJsonlArguments) -> Result<Verdict, Failure> {
    let mut output = Output::create(&options.output.output, options.output.force)?;
    let target = TargetOptions { own: options.own.0.clone(), ..TargetOptions::default() };
    let name = options.file.display().to_string();
    let spooled = spool(&options.file)?;
    let path = spooled.as_ref().map_or(options.file.as_path(), NamedTempFile::path);
    from_jsonl(path, Limits::default(), &target, &mut output).map_err(|error| Failure::of(&name, &error))?;
    output.commit(Verdict::Fine)
}

/// Lines are read twice: those of a pipe, and compressed ones, go to a temporary file first.
fn spool(path: &Path) -> Result<Option<NamedTempFile>, Failure> {
    let input = Input::open(path, InputOptions::default()).map_err(|error| Failure::bare(&error))?;
    let is_regular = path.as_os_str() != "-" && path.metadata().is_ok_and(|meta| meta.is_file());
    if is_regular && input.layers().is_empty() {
        return Ok(None);
    }
    let failed = |error: std::io::Error| Failure::usage(format!("{}: cannot be read: {error}", path.display()));
    let layers = input.layers().to_vec();
    let mut file = NamedTempFile::new().map_err(failed)?;
    remove_on_signal(file.path());
    std::io::copy(&mut input.into_read(), &mut file).map_err(failed)?;
    file.flush().map_err(failed)?;
    file.rewind().map_err(failed)?;
    // Lines that are cut off would make another trace without a word.
    match layers.iter().find_map(anytrace_core::Layer::damage) {
        Some(_) => Err(Failure::breach(format!("{}: the compressed data are damaged", path.display()))),
        None => Ok(Some(file)),
    }
}

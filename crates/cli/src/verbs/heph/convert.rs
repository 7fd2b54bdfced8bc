//! `anytrace heph convert`.

use std::path::PathBuf;

use anytrace_core::Input;
use anytrace_heph::tools::compat;
use clap::Args;

use super::opening;
use crate::arguments::{InputArguments, OutputArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::{Verdict, open};

/// `heph convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Use the layout of Heph's converter; required, as `anytrace convert` writes all other forms
    #[arg(long, required = true)]
    compat: bool,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &ConvertArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let failed = |error: anytrace_core::Error| Failure::of(&name, &error);
    let mut output = Output::create(&options.output.output, options.output.force)?;
    let opening::Opening { input, mut reporter } = opening::open(&options.file, &options.input)?;
    let open_options = open::open_options(&options.input);
    // What precedes a late epoch is of that epoch too; a stream cannot be looked at twice.
    let epoch_ns = if open::is_read_once(&options.file) {
        None
    } else {
        let again: Input = opening::open(&options.file, &options.input)?.input;
        compat::first_epoch(again, &open_options).map_err(failed)?
    };
    let _progress = Progress::watch(&input);
    let summary = compat::convert(input, &open_options, epoch_ns, &mut output, &mut reporter).map_err(failed)?;
    reporter.print_rest()?;
    if summary.records == 0 && reporter.verdict() == Verdict::Breach {
        return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
    }
    output.commit(reporter.verdict())
}

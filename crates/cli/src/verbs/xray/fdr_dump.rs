//! `anytrace xray fdr-dump`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_xray::tools::fdr_dump::{FdrDumpOptions, fdr_dump};
use clap::{Args, ValueEnum};

use super::reading::{self, Opened};
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{Verdict, open, terminal};

/// When payloads are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Escape {
    /// On a terminal only; elsewhere print raw bytes, as llvm-xray does
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// `xray fdr-dump`.
#[derive(Debug, Args)]
pub(crate) struct FdrDumpArguments {
    /// FDR trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Group the records by thread and block, and report records that may not follow their predecessor
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true)]
    verify: bool,
    /// Whether to escape control characters and other bytes in event payloads
    #[arg(long, value_enum, default_value_t = Escape::Auto)]
    escape: Escape,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &FdrDumpArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let opened = if options.verify {
        reading::open_at_hand(&options.file, &options.input)?
    } else {
        reading::open(&options.file, &options.input)?
    };
    let Opened { input, mut reporter, is_empty, spooled: _spooled, .. } = opened;
    if is_empty {
        return Ok(reporter.verdict());
    }
    let _progress = Progress::watch(&input);
    let escapes = match options.escape {
        Escape::Auto => terminal::stdout_is_terminal(),
        Escape::Always => true,
        Escape::Never => false,
    };
    let dump = FdrDumpOptions { verify: options.verify, escapes };
    let mut out = std::io::BufWriter::with_capacity(1 << 16, terminal::stdout());
    fdr_dump(input, &open::open_options(&options.input), dump, &mut out, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    out.flush()?;
    reporter.print_rest()?;
    Ok(reporter.verdict())
}

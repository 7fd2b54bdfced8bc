//! `anytrace xray extract`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_core::{Input, InputOptions};
use anytrace_xray::tools::map::{self, ExtractOptions};
use clap::Args;

use crate::failure::Failure;
use crate::output::Output;
use crate::symbols::ManglingArguments;
use crate::{Verdict, paint};

/// `xray extract`.
#[derive(Debug, Args)]
pub(crate) struct ExtractArguments {
    /// Program, library or YAML map; - is standard input
    #[arg(value_name = "BINARY")]
    file: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Name the functions
    #[arg(short, long)]
    symbolize: bool,
    #[command(flatten)]
    mangling: ManglingArguments,
    /// Architecture to read from a fat Mach-O file: x86_64, arm64 [default: this machine's, or else the first]
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
}

pub(crate) fn run(options: &ExtractArguments) -> Result<Verdict, Failure> {
    let input = Input::open(&options.file, InputOptions::default()).map_err(|error| Failure::bare(&error))?;
    let mut out = Output::create(&options.output, options.force)?;
    let wanted = ExtractOptions {
        names: options.symbolize.then(|| options.mangling.mangling()),
        architecture: options.arch.as_deref(),
    };
    let notes = map::extract(input, wanted, &mut out)
        .map_err(|error| Failure::of_names(&options.file.display().to_string(), &error))?;
    out.flush()?;
    let verdict = out.commit(Verdict::Fine)?;
    for note in notes {
        paint::complain("note", anytrace_core::text::printable(&note));
    }
    Ok(verdict)
}

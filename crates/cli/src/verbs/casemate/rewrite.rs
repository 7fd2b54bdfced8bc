//! `anytrace casemate rewrite`.

use std::path::PathBuf;

use anytrace_casemate::tools::rewrite::{RewriteOptions, rewrite};
use clap::{Args, ValueEnum};

use crate::arguments::{InputArguments, OutputArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, open};
use anytrace_casemate::Style;

/// Layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// The document's form, one record per line
    Canonical,
    /// Values without keys, as the reference's -c prints
    Positional,
    /// One field per line
    Pretty,
}

/// `casemate rewrite`.
#[derive(Debug, Args)]
pub(crate) struct RewriteArguments {
    /// Trace; - is standard input
    #[arg(value_name = "IN")]
    file: PathBuf,
    /// Layout
    #[arg(long, value_enum, default_value_t = Layout::Canonical)]
    style: Layout,
    /// Write numbers without 0x, as the current tracer does
    #[arg(long)]
    bare: bool,
    /// Renumber the records from this number [default if no number is given: 0]
    #[arg(long, value_name = "FIRST", num_args = 0..=1, default_missing_value = "0", require_equals = true)]
    renumber: Option<u64>,
    /// Omit source locations
    #[arg(long)]
    no_src: bool,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &RewriteArguments) -> Result<Verdict, Failure> {
    let style = match options.style {
        Layout::Canonical => Style::Canonical,
        Layout::Positional => Style::Positional,
        Layout::Pretty => Style::Pretty,
    };
    let rewriting =
        RewriteOptions { style, is_bare: options.bare, renumber: options.renumber, drops_sources: options.no_src };
    let input = super::open_input(&options.file, &options.input)?;
    let mut out = Output::create(&options.output.output, options.output.force)?;
    let mut damage = super::damage(&options.file, &options.input);
    rewrite(input, &open::open_options(&options.input), rewriting, &mut out, &mut damage)
        .map_err(|error| Failure::of(&options.file.display().to_string(), &error))?;
    damage.print_rest()?;
    let is_file = options.output.output.as_os_str() != "-";
    if is_file && damage.nothing_could_be_read(&out) {
        let name = options.file.display();
        return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
    }
    out.commit(damage.verdict())
}

//! The options of `mrc`, and how their values are read.

use std::path::PathBuf;

use anytrace_analysis::reuse::ReuseResults;
use clap::{Args, ValueEnum};

use super::super::live::{OfProgram, ProgramArguments};
use crate::arguments::{CsvArguments, InputArguments, TOP, byte_count, rows};

/// `memory mrc`.
#[derive(Debug, Args)]
pub(crate) struct MrcArguments {
    /// Traces; - is standard input
    #[arg(required_unless_present = "program", value_name = "TRACE")]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) program: ProgramArguments,
    /// Bytes per cache line, a power of two; 4k and 2M give TLB curves
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_bytes)]
    pub(super) line: u64,
    /// Also draw curves by
    #[arg(long, value_enum)]
    pub(super) by: Option<ByArgument>,
    /// Give each thread a private cache instead of sharing one
    #[arg(long, conflicts_with = "working_set")]
    pub(super) private: bool,
    /// Count instruction fetches as accesses instead of ignoring them
    #[arg(long)]
    pub(super) fetches: bool,
    /// Sample this fraction of the lines, above 0 and up to 1: SHARDS with a fixed rate
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(super) sample: Option<f64>,
    /// Sample N lines: SHARDS with a fixed size; memory use is independent of the trace's length
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "sample")]
    pub(super) sample_lines: Option<u64>,
    /// Also report the working-set size over time, and the phases
    #[arg(long)]
    pub(super) working_set: bool,
    /// Records per working-set window [default: chosen to give at most 512 windows]
    #[arg(long, value_name = "RECORDS", value_parser = count, requires = "working_set")]
    pub(super) window: Option<u64>,
    /// Parts
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, help = format!("{TOP} [default: 20 in text, all else]"))]
    pub(super) top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormArgument::Text)]
    pub(super) format: FormArgument,
    /// Draw the curves to this SVG file, with the working set below them if requested; - is standard output, which
    /// then gets nothing else
    #[arg(long, value_name = "OUT.svg")]
    pub(super) plot: Option<PathBuf>,
    /// Mark this cache in the picture and the table; may be repeated
    #[arg(long, value_name = "NAME=BYTES", value_parser = mark, default_values = ["L1=32k", "L2=512k", "L3=32M"])]
    pub(super) mark: Vec<(String, u64)>,
    /// Replace an existing file
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) csv: CsvArguments,
    #[command(flatten)]
    pub(super) input: InputArguments,
}

impl OfProgram for MrcArguments {
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments) {
        (&mut self.files, &self.program)
    }
}

/// What parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ByArgument {
    /// Types of memory, and untyped memory
    Type,
    /// Threads
    Thread,
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormArgument {
    /// For people
    Text,
    /// One line per size; with --working-set, one line per window
    Csv,
    /// For programs; has a version field
    Json,
}

fn line_bytes(text: &str) -> Result<u64, String> {
    let bytes = byte_count(text)?;
    let is_good = bytes.is_power_of_two() && (2..=1 << 40).contains(&bytes);
    if is_good { Ok(bytes) } else { Err("expected a power of two from 2 to 1024G".to_owned()) }
}

fn rate(text: &str) -> Result<f64, String> {
    let (digits, divisor) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let rate = digits.parse::<f64>().map_err(|_| "expected a number".to_owned())? / divisor;
    if rate > 0.0 && rate <= 1.0 { Ok(rate) } else { Err("expected a share above 0 and up to 1".to_owned()) }
}

fn count(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a number from 1".to_owned())
}

fn mark(text: &str) -> Result<(String, u64), String> {
    let (name, size) = text.split_once('=').ok_or("expected NAME=BYTES")?;
    Ok((name.to_owned(), byte_count(size)?))
}

impl MrcArguments {
    /// The parts to report, where no number is given.
    pub(super) fn parts<'a>(&self, found: &'a ReuseResults, usual: usize) -> &'a [anytrace_analysis::reuse::Part] {
        found.parts.get(..self.top.unwrap_or(usual)).unwrap_or(&found.parts)
    }
}

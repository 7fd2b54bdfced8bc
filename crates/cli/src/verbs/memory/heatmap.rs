//! `anytrace memory heatmap`.

mod picture;

use std::io::Write;
use std::path::PathBuf;

use anytrace_analysis::heat::HeatCounter;
use anytrace_export::heatmap::svg;
use clap::{Args, ValueEnum};

use super::opening;
use super::types::is_called;
use crate::Verdict;
use crate::arguments::{InputArguments, TOP, byte_count, rows};
use crate::extension::must_be_svg;
use crate::failure::Failure;
use crate::output::Output;
pub(super) use picture::{by_line, by_time};

/// Most rows and columns of a picture by time.
const ROWS_MAX: usize = 280;
const COLUMNS_MAX: u64 = 500;

/// Most rows of a picture by line.
const LINES_MAX: usize = 1000;

/// `memory heatmap`.
#[derive(Debug, Args)]
pub(crate) struct HeatmapArguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// SVG to write; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// What to draw
    #[arg(long, value_enum, default_value_t = By::Time)]
    by: By,
    /// Only accesses to regions of this type; may be repeated
    #[arg(long = "type", value_name = "NAME")]
    types: Vec<String>,
    /// Lines
    #[arg(short = 'n', long, alias = "lines", value_name = "N", value_parser = rows, default_value = "64",
          help = format!("{TOP} (with --by line: the lines with most accesses, at most {LINES_MAX})"))]
    top: usize,
    /// With --by line, bytes per cache line, a power of two from 8 to 4096
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_bytes)]
    line_bytes: u64,
    #[command(flatten)]
    input: InputArguments,
}

/// Pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Addresses over time, in records
    Time,
    /// Cache lines by byte
    Line,
}

fn line_bytes(text: &str) -> Result<u64, String> {
    let is_good = |bytes: &u64| bytes.is_power_of_two() && (8..=4096).contains(bytes);
    byte_count(text).ok().filter(is_good).ok_or_else(|| "expected a power of two from 8 to 4096".to_owned())
}

pub(crate) fn run(options: &HeatmapArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    // Check that the output can be written before the trace is read, which may take long.
    must_be_svg(&options.output)?;
    let mut out = Output::create(&options.output, options.force)?;
    let opened = opening::open(&options.file, &options.input)?;
    let wanted = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        options.types.iter().any(|wanted| is_called(&name, wanted))
    };
    let mut counter = HeatCounter::new((!options.types.is_empty()).then_some(&wanted), options.line_bytes);
    let read = opened.read(&mut counter)?;
    let heat = counter.finish(ROWS_MAX, COLUMNS_MAX, options.top.min(LINES_MAX));
    if heat.accesses == 0 && !options.types.is_empty() {
        return Err(Failure::usage(format!("{name}: no accesses to {}", options.types.join(" or "))));
    }
    let mut grid = match options.by {
        By::Time => by_time(&heat),
        By::Line => by_line(&heat),
    };
    grid.title = options.file.file_name().unwrap_or(options.file.as_os_str()).to_string_lossy().into_owned();
    if !options.types.is_empty() {
        grid.title.push_str(&format!(": {}", options.types.join(", ")));
    }
    svg(&grid, &mut out)?;
    out.flush()?;
    out.commit(read.verdict)
}

//! `anytrace cacheray heatmap`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_analysis::heat::{ByLine, ByTime, Heat, HeatCounter};
use anytrace_export::heatmap::{Grid, Row, svg};
use clap::{Args, ValueEnum};

use super::opening;
use super::types::is_called;
use crate::Verdict;
use crate::arguments::{InputArguments, byte_count};
use crate::failure::Failure;
use crate::output::Output;
use crate::units::{counted, grouped};

/// Most rows and columns of a picture by time.
const ROWS_MAX: usize = 280;
const COLUMNS_MAX: u64 = 500;

/// About so many labels below a picture.
const TICKS: u64 = 10;

/// `cacheray heatmap`.
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
    /// What is drawn over what
    #[arg(long, value_enum, default_value_t = By::Time)]
    by: By,
    /// Only accesses to regions of this type; may be repeated
    #[arg(long = "type", value_name = "NAME")]
    types: Vec<String>,
    /// With --by line: so many lines, those with most accesses
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    lines: usize,
    /// With --by line: bytes of a line, a power of two from 8 to 4096
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
    /// Lines over the bytes in them
    Line,
}

fn line_bytes(text: &str) -> Result<u64, String> {
    let is_good = |bytes: &u64| bytes.is_power_of_two() && (8..=4096).contains(bytes);
    byte_count(text).ok().filter(is_good).ok_or_else(|| "expected a power of two from 8 to 4096".to_owned())
}

pub(crate) fn run(options: &HeatmapArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let opened = opening::open(&options.file, &options.input)?;
    let wanted = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        options.types.iter().any(|wanted| is_called(&name, wanted))
    };
    let mut counter = HeatCounter::new((!options.types.is_empty()).then_some(&wanted), options.line_bytes);
    let told = opened.tell(&mut counter)?;
    let heat = counter.finish(ROWS_MAX, COLUMNS_MAX, options.lines);
    if heat.accesses == 0 && !options.types.is_empty() {
        return Err(Failure::usage(format!("{name}: no access is to {}", options.types.join(" or "))));
    }
    let mut grid = match options.by {
        By::Time => by_time(&heat, &heat.by_time),
        By::Line => by_line(&heat.by_line),
    };
    grid.title = options.file.file_name().unwrap_or(options.file.as_os_str()).to_string_lossy().into_owned();
    if !options.types.is_empty() {
        grid.title.push_str(&format!(": {}", options.types.join(", ")));
    }
    let mut out = Output::create(&options.output, options.force)?;
    svg(&grid, &mut out)?;
    out.flush()?;
    out.commit(told.verdict)
}

/// Rows from the numbers of what they show, ascending; what is left out between them is marked.
fn rows(numbers: &[u64], bytes: u64) -> Vec<Row> {
    let mut before = None;
    let row = |&number: &u64| {
        let is_apart = before.is_some_and(|before: u64| before.checked_add(1) != Some(number));
        before = Some(number);
        Row { label: format!("0x{:x}", number.saturating_mul(bytes)), is_apart }
    };
    numbers.iter().map(row).collect()
}

fn by_time(heat: &Heat, by: &ByTime) -> Grid {
    let mut numbers: Vec<u64> = by.cells.iter().map(|cell| cell.0).collect();
    numbers.dedup();
    let columns = (heat.records.max(1) - 1) / by.column_records + 1;
    let small = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let cells = by.cells.iter().filter_map(|(row, column, count)| {
        let row = numbers.binary_search(row).ok()?;
        Some((row, small(*column), *count))
    });
    let step = (columns / TICKS).max(1).next_power_of_two();
    let ticks = (0..columns).step_by(small(step)).map(|at| (small(at), grouped(u128::from(at * by.column_records))));
    Grid {
        title: String::new(),
        subtitle: format!(
            "{} of {}; a row is {}, a column {}; white lines: addresses left out",
            plural(heat.accesses, "access", "accesses"),
            counted(heat.records, "record"),
            counted(by.row_bytes, "byte"),
            counted(by.column_records, "record"),
        ),
        x_title: "time (record)".to_owned(),
        y_title: "address".to_owned(),
        unit: "accesses".to_owned(),
        rows: rows(&numbers, by.row_bytes),
        columns: small(columns),
        ticks: ticks.collect(),
        cells: cells.collect(),
    }
}

fn by_line(by: &ByLine) -> Grid {
    let numbers: Vec<u64> = by.lines.iter().map(|line| line.0).collect();
    let columns = usize::try_from(by.line_bytes).unwrap_or(64);
    let cells = by.lines.iter().enumerate().flat_map(|(row, (_, counts))| {
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(at, count)| (row, at, *count))
    });
    let others = match by.others {
        0 => String::new(),
        others => format!("; {} on other lines", plural(others, "access to a byte", "accesses to bytes")),
    };
    Grid {
        title: String::new(),
        subtitle: format!(
            "{} of {} with most accesses, in order of address{others}",
            counted(numbers.len() as u64, "line"),
            counted(by.line_bytes, "byte"),
        ),
        x_title: "offset in the line".to_owned(),
        y_title: "line".to_owned(),
        unit: "accesses to a byte".to_owned(),
        rows: rows(&numbers, by.line_bytes),
        columns,
        ticks: (0..=columns).step_by((columns / 8).max(1)).map(|at| (at, at.to_string())).collect(),
        cells: cells.collect(),
    }
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(u128::from(count)), if count == 1 { one } else { many })
}

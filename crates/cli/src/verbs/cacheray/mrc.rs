//! `anytrace cacheray mrc`.

mod csv;
mod json;
mod picture;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_analysis::reuse::{Parts, Reuse, ReuseOptions, ReuseResults, Sample};
use clap::{Args, ValueEnum};

use super::opening;
use crate::arguments::{CsvArguments, InputArguments, byte_count};
use crate::failure::Failure;
use crate::output::{Output, one_on_stdout};
use crate::{Verdict, for_each_file, terminal};

/// `cacheray mrc`.
#[derive(Debug, Args)]
pub(crate) struct MrcArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Bytes of a cache line, a power of two; 4k and 2M make curves of TLBs
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_bytes)]
    line: u64,
    /// Curves of parts besides that of all
    #[arg(long, value_enum)]
    by: Option<ByArgument>,
    /// Each thread has a cache of its own, instead of a share of one
    #[arg(long, conflicts_with = "working_set")]
    private: bool,
    /// Instruction fetches count as accesses, instead of being left out
    #[arg(long)]
    fetches: bool,
    /// Look at this share of the lines only, above 0 and up to 1: SHARDS with a fixed rate
    #[arg(long, value_name = "RATE", value_parser = rate)]
    sample: Option<f64>,
    /// Look at so many lines only: SHARDS with a fixed size; memory does not follow the trace
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "sample")]
    sample_lines: Option<u64>,
    /// Say besides how many distinct lines are used over time, and which phases there are
    #[arg(long)]
    working_set: bool,
    /// Records a window of the working set [default: such that there are up to 512 windows]
    #[arg(long, value_name = "RECORDS", value_parser = count, requires = "working_set")]
    window: Option<u64>,
    /// Only so many parts; 0 is all [default: 20 in text, all else]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = FormArgument::Text)]
    format: FormArgument,
    /// Draw the curves into this file, as SVG, with the working set below them if that is asked for; - is standard
    /// output, where nothing else is written then
    #[arg(long, value_name = "OUT.svg")]
    plot: Option<PathBuf>,
    /// A cache that the picture and the table show; may be repeated
    #[arg(long, value_name = "NAME=BYTES", value_parser = mark, default_values = ["L1=32k", "L2=512k", "L3=32M"])]
    mark: Vec<(String, u64)>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What parts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByArgument {
    /// Types of memory, and what has none
    Type,
    /// Threads
    Thread,
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormArgument {
    /// For people
    Text,
    /// A line a size; with --working-set a line a window
    Csv,
    /// For programs, with a version field
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

pub(crate) fn run(options: &MrcArguments) -> Result<Verdict, Failure> {
    if options.plot.is_some() && options.files.len() > 1 {
        return Err(Failure::usage("--plot draws one trace; several are given"));
    }
    if options.private && options.by == Some(ByArgument::Type) {
        return Err(Failure::usage("--private is for threads; types have no caches of their own"));
    }
    let is_plot_only = options.plot.as_deref() == Some(Path::new("-"));
    one_on_stdout(&[
        is_plot_only.then_some("the picture of --plot"),
        (options.format != FormArgument::Text).then_some("the result of --format"),
    ])?;
    let mut plot = options.plot.as_ref().map(|path| Output::create(path, options.force)).transpose()?;
    let mut told = Vec::new();
    let verdict = for_each_file(&options.files, |file| {
        let (found, verdict) = curves(file, options)?;
        if let Some(output) = &mut plot {
            picture::draw(file, &found, options, output)?;
        }
        if options.format == FormArgument::Json {
            told.push(json::object(file, &found, options));
        } else if !is_plot_only {
            print(file, &found, options)?;
        }
        Ok(verdict)
    })?;
    if options.format == FormArgument::Json {
        crate::results::print_json_of_model(told, options.files.len() > 1)?;
    }
    match plot {
        Some(output) => output.commit(verdict),
        None => Ok(verdict),
    }
}

fn curves(file: &Path, options: &MrcArguments) -> Result<(ReuseResults, Verdict), Failure> {
    let is_sampled = options.sample.is_some() || options.sample_lines.is_some();
    // Where little is done with each byte, mapping pages and unmapping them costs more than copying them.
    let input = InputArguments { no_mmap: options.input.no_mmap || is_sampled, ..options.input.clone() };
    let opened = opening::open(file, &input)?;
    let mut reuse = Reuse::new(ReuseOptions {
        line_bytes: options.line,
        parts: match (options.by, options.private) {
            (_, true) => Parts::PrivateThread,
            (None, false) => Parts::None,
            (Some(ByArgument::Thread), false) => Parts::Thread,
            (Some(ByArgument::Type), false) => Parts::Type,
        },
        sample: match (options.sample, options.sample_lines) {
            (Some(rate), _) => Some(Sample::Rate(rate)),
            (None, Some(lines)) => Some(Sample::Lines(usize::try_from(lines).unwrap_or(usize::MAX))),
            (None, None) => None,
        },
        has_windows: options.working_set,
        window_records: options.window,
    });
    let told = if options.fetches { opened.tell(&mut reuse)? } else { opened.tell_data(&mut reuse)? };
    Ok((reuse.finish(told.records), told.verdict))
}

fn print(file: &Path, found: &ReuseResults, options: &MrcArguments) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(terminal::stdout());
    let is_first = options.files.first().is_some_and(|first| first == file);
    match options.format {
        FormArgument::Csv => csv::write(file, found, options, is_first, &mut out)?,
        _ => {
            if !is_first {
                writeln!(out)?;
            }
            text::write(file, found, options, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

impl MrcArguments {
    /// The parts to tell, where it is not said how many.
    fn parts<'a>(&self, found: &'a ReuseResults, usual: usize) -> &'a [anytrace_analysis::reuse::Part] {
        let most = match self.top {
            None => usual,
            Some(0) => usize::MAX,
            Some(top) => top,
        };
        found.parts.get(..most).unwrap_or(&found.parts)
    }
}

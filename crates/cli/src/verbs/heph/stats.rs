//! `anytrace heph stats`.

mod compare;
mod text;

use std::path::{Path, PathBuf};

use anytrace_heph::tools::spans::Lanes;
use anytrace_heph::tools::stats::{HephStats, StatsOptions, StatsThreshold, statistics, stats, threshold};
use clap::Args;

use super::opening;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::results::print_json;
use crate::{Verdict, arguments, for_each_file, open, terminal};

/// `heph stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Rows of each table
    #[arg(short = 'n', long, value_name = "N", value_parser = arguments::rows, default_value = "20",
          help = format!("{} (text only)", arguments::TOP))]
    top: usize,
    /// How many of the longest runs are shown
    #[arg(long, value_name = "N", default_value_t = StatsOptions::default().longest)]
    longest: usize,
    /// Compare with another trace, by description and actor name
    #[arg(long = "against", alias = "compare", value_name = "BASE")]
    compare: Option<PathBuf>,
    /// Exit with 1 if a statistic grew by more than this since BASE, such as p99=10%; may be repeated
    #[arg(long, value_name = "STATISTIC=PERCENT", requires = "compare", value_parser = heph_threshold)]
    fail_above: Vec<StatsThreshold>,
    #[command(flatten)]
    input: InputArguments,
}

fn heph_threshold(text: &str) -> Result<StatsThreshold, String> {
    arguments::threshold(threshold(text), text, statistics(), "p99=10%")
}

pub(crate) fn run(options: &StatsArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin(options.files.iter().chain(&options.compare).map(PathBuf::as_path))?;
    let base = options.compare.as_deref().map(|path| one(path, options).map(|found| (path, found))).transpose()?;
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let (found, mut verdict) = one(path, options)?;
        let name = path.display().to_string();
        match &base {
            Some((base_path, (base, base_verdict))) => {
                let comparison = compare::Comparison::new(base_path, base, path, &found, &options.fail_above);
                verdict = verdict.max(*base_verdict);
                if comparison.is_over() {
                    verdict = verdict.max(Verdict::Breach);
                }
                match options.format {
                    ResultForm::Json => objects.push(comparison.object()),
                    ResultForm::Text => terminal::put(&comparison.page(options.top))?,
                }
            }
            None => match options.format {
                ResultForm::Json => objects.push(found.to_json(&name)),
                ResultForm::Text => {
                    terminal::put(if is_first { "" } else { "\n" })?;
                    terminal::put(&text::page(&name, &found, options.top))?;
                }
            },
        }
        is_first = false;
        Ok(verdict)
    })?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn one(path: &Path, options: &StatsArguments) -> Result<(HephStats, Verdict), Failure> {
    let name = path.display().to_string();
    let opening::Opening { input, mut reporter } = opening::open(path, &options.input)?;
    let _progress = Progress::watch(&input);
    let stats_options = StatsOptions { longest: options.longest, lanes: Lanes::Substream };
    let found = stats(input, &open::open_options(&options.input), &stats_options, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    Ok((found, reporter.verdict()))
}

//! `anytrace heph loss`.

mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_core::{Error, Input, InputOptions};
use anytrace_heph::tools::loss::{LossOptions, LossReport, Sessions, SourceLoss, read_datagrams, read_file};
use clap::Args;

use super::opening;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::ledger::lost;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::results::print_json;
use crate::{Verdict, for_each_file, open, terminal};

/// `heph loss`.
#[derive(Debug, Args)]
pub(crate) struct LossArguments {
    /// Traces, each a separate source, and folders of a collector; - is standard input
    ///
    /// All parts of a recording that names its session are one account, from whatever files they come.
    #[arg(value_name = "FILE", required_unless_present = "datagrams")]
    files: Vec<PathBuf>,
    /// A capture of datagrams: sender's port (2 bytes), length (4), bytes, big-endian, repeated
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    datagrams: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Exit with 1 if more than this percentage of events is lost, such as 0.1%
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    fail_above: Option<f64>,
    /// Packets to wait before a missing counter counts as lost
    #[arg(long, value_name = "PACKETS", default_value_t = LossOptions::default().window_packets)]
    window: u32,
    #[command(flatten)]
    input: InputArguments,
}

/// Per cent as a share.
fn share(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("{text:?} is no share, as 0.1%"))?;
    if (0.0..=100.0).contains(&number) {
        Ok(number / 100.0)
    } else {
        Err(format!("{text:?} is not between 0 and 100%"))
    }
}

pub(crate) fn run(options: &LossArguments) -> Result<Verdict, Failure> {
    let counting = LossOptions { window_packets: options.window, ..LossOptions::default() };
    let mut report = LossReport::default();
    let verdict = match &options.datagrams {
        Some(path) => {
            let (found, verdict) = capture(path, &counting, options)?;
            report = found;
            verdict
        }
        None => {
            let mut sessions = Sessions::new(counting);
            let verdict = for_each_file(&files(&options.files)?, |path| {
                let (source, verdict) = file(path, &mut sessions, options)?;
                report.sources.push(source);
                Ok(verdict)
            })?;
            report.sessions = sessions.report();
            verdict
        }
    };
    match options.format {
        ResultForm::Json => {
            let mut value = report.to_json();
            // `lost` says which counters are missing; this is what the file itself has lost since.
            value["lost_to_damage"] = lost(None).into();
            print_json(vec![value], false)?;
        }
        // Of files none of which could be opened there is nothing to say.
        ResultForm::Text if report.sources.is_empty() && options.datagrams.is_none() => {}
        ResultForm::Text => terminal::stdout().write_all(text::page(&report).as_bytes())?,
    }
    let is_over = options.fail_above.is_some_and(|most| report.lost_share() > most);
    Ok(if is_over { verdict.max(Verdict::Breach) } else { verdict })
}

/// The files named, and those in folders: what a collector closed, and what it was writing.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let is_trace = |name: &str| name.ends_with(".heph") || name.ends_with(".heph.part");
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| Failure::bare(&Error::io(path.display(), error)))? {
            let found = entry.map_err(|error| Failure::bare(&Error::io(path.display(), error)))?.path();
            if found.file_name().is_some_and(|name| is_trace(&name.to_string_lossy())) {
                inside.push(found);
            }
        }
        if inside.is_empty() {
            return Err(Failure::usage(format!("{}: no file .heph or .heph.part in this folder", path.display())));
        }
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

fn file(path: &Path, sessions: &mut Sessions, options: &LossArguments) -> Result<(SourceLoss, Verdict), Failure> {
    let name = path.display().to_string();
    let opening::Opening { input, mut reporter } = opening::open(path, &options.input)?;
    let _progress = Progress::watch(&input);
    let source = read_file(&name, input, &open::open_options(&options.input), sessions, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    Ok((source, reporter.verdict()))
}

fn capture(path: &Path, counting: &LossOptions, options: &LossArguments) -> Result<(LossReport, Verdict), Failure> {
    let name = path.display().to_string();
    let input = Input::open(path, InputOptions { no_map: options.input.no_mmap });
    let input = input.map_err(|error| Failure::bare(&error))?;
    let mut reporter = Reporter::new(&name, None, Way::Stderr, options.input.limit);
    let _progress = Progress::watch(&input);
    let report = read_datagrams(input, &open::limits(&options.input), counting, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    Ok((report, reporter.verdict()))
}

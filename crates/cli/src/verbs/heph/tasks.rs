//! `anytrace heph tasks`.

mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anytrace_heph::tools::tasks::{HephTasks, SortBy, TasksOptions, Which, tasks};
use clap::{Args, ValueEnum};

use super::opening;
use crate::arguments::{InputArguments, ResultForm};
use crate::durations::{duration, some_duration};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::results::print_json;
use crate::{Verdict, arguments, for_each_file, open, terminal};

/// Clears the screen and goes to its top.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// `heph tasks`.
#[derive(Debug, Args)]
pub(crate) struct TasksArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which spans are tasks
    #[arg(long, value_enum, default_value_t = WhichArgument::Tasks)]
    which: WhichArgument,
    /// What the list is sorted by
    #[arg(long, value_enum, default_value_t = SortArgument::Busy)]
    sort: SortArgument,
    /// How many tasks and names are shown
    #[arg(short = 'n', long, value_name = "N", value_parser = arguments::rows, default_value = "20",
          help = arguments::TOP)]
    top: usize,
    /// Only tasks whose names contain this
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Warn of polls that take at least this long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10ms")]
    long_poll: Duration,
    /// Read and print again after each TIME, for a trace that is being written
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    every: Option<Duration>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    input: InputArguments,
}

/// `--which`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichArgument {
    /// Tasks of tokio if the trace has any, else spans without a parent
    Tasks,
    /// Spans without a parent
    Roots,
    /// All spans
    Spans,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArgument {
    /// Time in polls
    Busy,
    /// Time in none
    Idle,
    /// Time from wake-ups to polls
    Scheduled,
    /// Number of polls
    Polls,
    /// The longest poll
    Longest,
    /// From beginning to end
    Life,
    /// Number of wake-ups
    Wakes,
    /// The beginning
    Start,
}

impl TasksArguments {
    fn options(&self) -> TasksOptions {
        TasksOptions {
            which: match self.which {
                WhichArgument::Tasks => Which::Tasks,
                WhichArgument::Roots => Which::Roots,
                WhichArgument::Spans => Which::Spans,
            },
            sort: match self.sort {
                SortArgument::Busy => SortBy::Busy,
                SortArgument::Idle => SortBy::Idle,
                SortArgument::Scheduled => SortBy::Scheduled,
                SortArgument::Polls => SortBy::Polls,
                SortArgument::Longest => SortBy::Longest,
                SortArgument::Life => SortBy::Life,
                SortArgument::Wakes => SortBy::Wakes,
                SortArgument::Start => SortBy::Start,
            },
            top: self.top,
            name: self.name.clone(),
            long_poll_ns: u64::try_from(self.long_poll.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

pub(crate) fn run(options: &TasksArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin(options.files.iter().map(PathBuf::as_path))?;
    let Some(every) = options.every else { return print(options) };
    loop {
        // What is not complete yet is damage for now; the next page may be without.
        print(options)?;
        std::thread::sleep(every);
        terminal::put(if terminal::stdout_is_terminal() { CLEAR } else { "\n" })?;
    }
}

fn print(options: &TasksArguments) -> Result<Verdict, Failure> {
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let (found, verdict) = one(path, options)?;
        let name = path.display().to_string();
        match options.format {
            ResultForm::Json => objects.push(found.to_json(&name)),
            ResultForm::Text => {
                terminal::put(if is_first { "" } else { "\n" })?;
                terminal::put(&text::page(&name, &found, options.top))?;
            }
        }
        is_first = false;
        Ok(verdict)
    })?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn one(path: &Path, options: &TasksArguments) -> Result<(HephTasks, Verdict), Failure> {
    let name = path.display().to_string();
    let opening::Opening { input, mut reporter } = opening::open(path, &options.input)?;
    let _progress = Progress::watch(&input);
    let found = tasks(input, &open::open_options(&options.input), &options.options(), &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    Ok((found, reporter.verdict()))
}

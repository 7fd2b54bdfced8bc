//! `anytrace casemate check`: the verdict on each trace.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anytrace_casemate::tools::{self, CheckOptions, Report, render};
use anytrace_core::OpenOptions;
use clap::Args;

use super::follow::{self, FollowArguments};
use super::options::RuleArguments;
use super::reference::ReferenceArguments;
use crate::arguments::{CheckForm, InputArguments};
use crate::failure::Failure;
use crate::output::one_on_stdout;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::results::{print_document, print_json};
use crate::{Verdict, for_each_file, open, terminal};

/// `casemate check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Continue after a violation, recovering as the book describes, and list all violations
    #[arg(long)]
    all: bool,
    /// Severity of a read whose value differs from memory
    #[arg(long, value_name = "warn|error", value_parser = ["warn", "error"], default_value = "warn")]
    reads: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = CheckForm::Text)]
    format: CheckForm,
    #[command(flatten)]
    follow: FollowArguments,
    #[command(flatten)]
    reference: ReferenceArguments,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What became of one file: its report and what its grammar's complaints printed, or why there is none.
type Outcome = Result<Report, Failure>;

pub(crate) fn run(options: &CheckArguments) -> Result<Verdict, Failure> {
    let mut model = options.rules.model()?;
    if options.reference.is_asked_for() {
        if options.follow.follow {
            return Err(Failure::usage("--follow prints no output of the reference"));
        }
        one_on_stdout(&[
            Some("the reference's output"),
            (options.format != CheckForm::Text).then_some("the result of --format"),
        ])?;
        return for_each_file(&options.files, |path| options.reference.run(path, model, &options.input));
    }
    model.goes_on = options.all;
    let check = CheckOptions { model, reads_are_errors: options.reads == "error", limit: options.input.limit };
    if options.follow.follow {
        let CheckArguments { files, format, follow, input, .. } = options;
        return follow::run(follow::Asked { files, format: *format, follow, input }, &check);
    }
    let outcomes: Vec<Mutex<Option<Outcome>>> = options.files.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let all = open::open_options(&options.input).threads.max(1);
    let threads = all.min(options.files.len().max(1));
    let share = all / threads;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((path, outcome)) = pick(&next, &options.files, &outcomes) {
                    let done = one(path, options, &check, share);
                    if let Ok(mut outcome) = outcome.lock() {
                        *outcome = Some(done);
                    }
                }
            });
        }
    });
    print(options, outcomes.into_iter().filter_map(|outcome| outcome.into_inner().ok().flatten()))
}

fn pick<'a, T>(next: &AtomicUsize, files: &'a [PathBuf], outcomes: &'a [T]) -> Option<(&'a Path, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((files.get(at)?, outcomes.get(at)?))
}

/// Checks a file on so many threads.
fn one(path: &Path, options: &CheckArguments, check: &CheckOptions, threads: usize) -> Outcome {
    let name = path.display().to_string();
    let input = super::open_input(path, &options.input)?;
    let _progress = (options.files.len() == 1).then(|| Progress::watch(&input));
    let format = anytrace_formats::by_name("casemate");
    let mut damage = Reporter::new(&name, format, Way::Stderr, options.input.limit);
    let open = OpenOptions { threads, ..open::open_options(&options.input) };
    let report = tools::check(input, &open, check, &mut damage).map_err(|error| Failure::of(&name, &error))?;
    damage.print_rest()?;
    Ok(report)
}

fn print(options: &CheckArguments, outcomes: impl Iterator<Item = Outcome>) -> Result<Verdict, Failure> {
    let mut worst = Verdict::Fine;
    let mut reports = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(report) => {
                worst = worst.max(if report.is_fine() { Verdict::Fine } else { Verdict::Breach });
                reports.push(report);
            }
            Err(failure) if failure.is_closed_pipe() => return Err(failure),
            Err(failure) => {
                failure.print();
                worst = worst.max(if failure.code() == 1 { Verdict::Breach } else { Verdict::Failed });
            }
        }
    }
    let mut out = terminal::stdout();
    match options.format {
        CheckForm::Text => {
            let mut text = String::new();
            for report in &reports {
                // Writing to a String cannot fail.
                let _ = render::report_text(report, &mut text);
            }
            out.write_all(text.as_bytes())?;
        }
        CheckForm::Json => {
            drop(out);
            print_json(reports.iter().map(render::report_json).collect(), options.files.len() > 1)?;
        }
        CheckForm::Sarif => {
            drop(out);
            print_document(&render::sarif(&reports))?;
        }
        CheckForm::Junit => out.write_all(render::junit(&reports).as_bytes())?,
    }
    Ok(worst)
}

//! `anytrace`: one tool for program traces of any kind.
//!
//! Verbs parse options, make one library call and print. Only this crate prints, exits or parses options.

mod arguments;
mod failure;
mod open;
mod output;
mod paint;
mod progress;
mod report;
mod spans;
mod symbols;
mod table;
mod terminal;
mod units;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};
use failure::Failure;

fn main() -> ExitCode {
    let given = verbs::xray::normalise(std::env::args_os());
    let arguments = match Arguments::try_parse_from(&given) {
        Ok(arguments) => arguments,
        Err(error) => return ExitCode::from(terminal::print_clap(&error, &given)),
    };
    let result = match &arguments.verb {
        Verb::Info(options) => verbs::info::run(options),
        Verb::Dump(options) => verbs::dump::run(options),
        Verb::Check(options) => verbs::check::run(options),
        Verb::Repair(options) => verbs::repair::run(options),
        Verb::Convert(options) => verbs::convert::run(options),
        Verb::Trim(options) => verbs::trim::run(options),
        Verb::Diff(options) => verbs::diff::run(options),
        Verb::Stats(options) => verbs::stats::run(options),
        Verb::Flame(options) => verbs::flame::run(options),
        Verb::Timeline(options) => verbs::timeline::run(options),
        Verb::Apitrace(options) => verbs::apitrace::run(options),
        Verb::Cacheray(options) => verbs::cacheray::run(options),
        Verb::Casemate(options) => verbs::casemate::run(options),
        Verb::Heph(options) => verbs::heph::run(options),
        Verb::Xray(options) => verbs::xray::run(options),
        Verb::Formats => verbs::formats::run(),
        Verb::Rules(options) => verbs::rules::run(options),
        Verb::Completions(options) => verbs::completions::run(options),
        Verb::Man(options) => verbs::man::run(options),
    };
    match result {
        Ok(verdict) => ExitCode::from(verdict.code()),
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.code())
        }
    }
}

/// How a verb ended, short of failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Nothing wrong.
    Fine,
    /// The trace breaks a rule, or the files differ.
    Breach,
    /// Some file could not be worked on; the failure is printed already.
    Failed,
    /// A program that the verb ran ended with this code, which is passed on.
    Program(u8),
}

impl Verdict {
    /// The exit code, as the book's chapter on all verbs promises.
    fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Breach => 1,
            Self::Failed => 2,
            Self::Program(code) => code,
        }
    }
}

/// Standard input can be read only once.
fn only_one_stdin<'a>(files: impl Iterator<Item = &'a std::path::Path>) -> Result<(), Failure> {
    if files.filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err(Failure::usage("standard input (-) can be named only once"));
    }
    Ok(())
}

/// Runs a verb on each file, prints failures as they happen and returns the worst verdict. A closed
/// pipe ends it all.
fn for_each_file(
    files: &[std::path::PathBuf],
    mut run: impl FnMut(&std::path::Path) -> Result<Verdict, Failure>,
) -> Result<Verdict, Failure> {
    only_one_stdin(files.iter().map(std::path::PathBuf::as_path))?;
    let mut worst = Verdict::Fine;
    for file in files {
        match run(file) {
            Ok(verdict) => worst = worst.max(verdict),
            Err(failure) if failure.is_closed_pipe() => return Err(failure),
            Err(failure) => {
                failure.print();
                worst = worst.max(if failure.code() == 1 { Verdict::Breach } else { Verdict::Failed });
            }
        }
    }
    Ok(worst)
}

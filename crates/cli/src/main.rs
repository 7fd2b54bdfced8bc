//! `anytrace`: one tool for program traces of any kind.
//!
//! Verbs parse options, make one library call and print. Only this crate prints, exits or parses options.

mod arguments;
mod command;
mod durations;
mod extension;
mod failure;
mod highlight;
mod indexed;
mod interrupt;
mod ledger;
mod names;
mod open;
mod output;
mod page_style;
mod paint;
#[cfg(test)]
mod paths;
mod programs;
mod progress;
mod report;
mod results;
mod shell;
mod spans;
mod symbols;
mod table;
mod terminal;
mod units;
mod unwritable;
mod verbs;
mod written;

use std::io::Write;
use std::process::ExitCode;

use clap::FromArgMatches;

use command::{Arguments, Verb};
use failure::Failure;

fn main() -> ExitCode {
    let given = verbs::xray::normalize(names::spelled_out(std::env::args_os().collect()).into_iter());
    let mut is_json = false;
    let result = match parse(&given, &mut is_json) {
        Ok(mut arguments) => {
            terminal::use_colors(arguments.color.choice());
            run(&mut arguments)
        }
        Err(error) => print_clap(&error, &given),
    };
    // Bytes still buffered would be lost silently when the program ends.
    let result = result.and_then(|verdict| Ok(terminal::stdout().flush().map(|()| verdict)?));
    // A file that was cut short while it was mapped or decompressed: what was made of it counts for nothing.
    let cut = anytrace_core::cut_short().map(|(name, error)| Failure::of(&name, &error));
    match (result, cut) {
        (Ok(verdict), None) => {
            if is_json {
                results::print_failure();
            }
            ExitCode::from(verdict.code())
        }
        (Err(failure), _) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        (Err(failure), None) => fail(&failure, is_json),
        (result, Some(cut)) => {
            result.err().filter(|failure| !failure.says_the_same(&cut)).iter().for_each(Failure::print);
            fail(&cut, is_json)
        }
    }
}

/// Prints why the verb failed, as JSON too where a program reads standard output.
fn fail(failure: &Failure, is_json: bool) -> ExitCode {
    failure.print();
    if is_json {
        results::print_failure();
    }
    ExitCode::from(failure.code())
}

/// Parses the command line and finds out whether standard output is to carry one JSON object.
fn parse(given: &[std::ffi::OsString], is_json: &mut bool) -> Result<Arguments, clap::Error> {
    let command = command::command_for(given.get(1).and_then(|word| word.to_str()));
    // The process ends soon after its only command line: freeing thousands of small parts would be wasted time.
    let command = Box::leak(Box::new(command));
    let matches = command.try_get_matches_from_mut(given).map_err(|mut error| {
        command::propose(&mut error);
        error
    })?;
    *is_json = wants_json(&matches);
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(command))
}

/// True where a verb was asked for JSON on standard output.
fn wants_json(matches: &clap::ArgMatches) -> bool {
    let (mut leaf, mut path) = (matches, Vec::new());
    while let Some((name, inner)) = leaf.subcommand() {
        path.push(name);
        leaf = inner;
    }
    let has = |option: &str, wanted: &str| {
        let values = leaf.try_get_raw(option).ok().flatten();
        values.into_iter().flatten().any(|value| value == wanted)
    };
    // A trace or a picture has standard output then.
    let is_elsewhere = has("plot", "-")
        || leaf.try_contains_id("output").unwrap_or(false)
            && leaf.value_source("output") == Some(clap::parser::ValueSource::CommandLine)
            && has("output", "-");
    // Results of a query are an array of rows; why there are none is said by its engine.
    if path == ["query"] {
        return false;
    }
    // One verb has no other form, another reports its reasons in JSON.
    let is_json = has("format", "json") || has("explain", "json") || path == ["apitrace", "info"];
    is_json && !is_elsewhere
}

/// Prints help and versions, which are results, or a complaint about the command line.
fn print_clap(error: &clap::Error, given: &[std::ffi::OsString]) -> Result<Verdict, Failure> {
    let written = terminal::print_clap(error, given);
    if error.use_stderr() {
        // A complaint that nobody can read is still one.
        return Ok(Verdict::Failed);
    }
    written?;
    Ok(Verdict::Fine)
}

fn run(arguments: &mut Arguments) -> Result<Verdict, Failure> {
    match &mut arguments.verb {
        Verb::Demo(options) => verbs::demo::run(options),
        Verb::Record(options) => verbs::record::run(options),
        Verb::Highlights(options) => verbs::highlights::run(options),
        Verb::Info(options) => verbs::info::run(options),
        Verb::Dump(options) => verbs::dump::run(options),
        Verb::Check(options) => verbs::check::run(options),
        Verb::Repair(options) => verbs::repair::run(options),
        Verb::Convert(options) => verbs::convert::run(options),
        Verb::Merge(options) => verbs::merge::run(options),
        Verb::Trim(options) => verbs::trim::run(options),
        Verb::Diff(options) => verbs::diff::run(options),
        Verb::Stats(options) => verbs::stats::run(options),
        Verb::Flame(options) => verbs::flame::run(options),
        Verb::Timeline(options) => verbs::timeline::run(options),
        Verb::Report(options) => verbs::report::run(options),
        Verb::View(options) => verbs::view::run(options),
        Verb::Query(options) => verbs::query::run(options),
        Verb::Index(options) => verbs::index::run(options),
        Verb::Apitrace(options) => verbs::apitrace::run(options),
        Verb::Cacheray(options) => verbs::cacheray::run(options),
        Verb::Casemate(options) => verbs::casemate::run(options),
        Verb::Heph(options) => verbs::heph::run(options),
        Verb::Memory(options) => verbs::memory::run(&mut options.verb),
        Verb::Xray(options) => verbs::xray::run(options),
        Verb::Formats => verbs::formats::run(),
        Verb::Rules(options) => verbs::rules::run(options),
        Verb::Completions(options) => verbs::completions::run(options),
        Verb::Man(options) => verbs::man::run(options),
    }
}

/// How a verb ended, short of failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Nothing wrong.
    Fine,
    /// The trace breaks a rule, or the files differ.
    Breach,
    /// The trace is so broken that nothing came of it; the failure is printed already.
    NoResult,
    /// Some file could not be worked on; the failure is printed already.
    Failed,
    /// A program that the verb ran ended with this code, which is passed on.
    Program(u8),
}

impl Verdict {
    /// True where the verb came to a result, which may be written where it was asked for.
    fn has_result(self) -> bool {
        !matches!(self, Self::NoResult | Self::Failed)
    }

    /// The exit code, as the book's chapter on all verbs promises.
    fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Breach | Self::NoResult => 1,
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
                worst = worst.max(if failure.code() == 1 { Verdict::NoResult } else { Verdict::Failed });
            }
        }
    }
    Ok(worst)
}

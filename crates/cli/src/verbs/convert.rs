//! `anytrace convert`: another form, or the same again without loss.

mod accesses;
mod extension;
mod forms;
mod tables;
mod timeline;

use anytrace_core::{Format, ImportOptions, Input, Outcome, Plan, TargetOptions};

use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::verbs::repair::print_outcome;
use crate::verbs::{merge, report};
use crate::written::{Beside, must_open};
use forms::{is_own, known_target};

pub(crate) fn run(options: &ConvertArguments) -> Result<Verdict, Failure> {
    if let Some(verdict) = merge::of_convert(options)? {
        return Ok(verdict);
    }
    if let Some(verdict) = report::of_convert(options)? {
        return Ok(verdict);
    }
    let (path, force) = (&options.output.output, options.output.force);
    if let Some(chosen) = tables::IntoFolder::chosen(options)? {
        return chosen.write(options);
    }
    // Check that the output can be written before the input is read, which may take long.
    let folder = extension::folder(options);
    let file = match path.as_os_str() == "-" && folder.is_none() {
        true => None,
        false if folder.is_some() => Some(Output::create_form(path, folder, force)?),
        false => Some(Output::create_like(&options.file, path, force)?),
    };
    let opened = open::open(&options.file, &options.input)?;
    let target = options.target.target(extension::form(options, &opened)?.as_deref());
    let mut output = match file {
        Some(file) => file,
        None if streams(&opened, &target) => Output::streaming(),
        None => Output::create(path, force)?,
    };
    if let Some(chosen) = tables::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    if let Some(chosen) = timeline::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    if let Some(chosen) = accesses::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    // A trace that is a folder again has other files than what is made of spans.
    output.unpack();
    let mut reporter = reporter(&opened, options)?;
    let written = written_format(&opened, &target);
    let files = (options.file.as_path(), path.as_path());
    let beside = written.map(|format| Beside::copy(format, files, force)).transpose()?;
    let outcome = match opened {
        Opened::Empty(_) => Outcome::default(),
        Opened::Trace(format, input) => {
            known_target(format, &target)?;
            rewrite(format, input, target, options, &mut output, &mut reporter)?
        }
        Opened::Jsonl(format, input) => {
            known_target(format, &target)?;
            import(format, input, &target, options, &mut output, &mut reporter)?
        }
    };
    let is_nothing = reporter.nothing_could_be_read(&output);
    if let Some(format) = written.filter(|_| !is_nothing) {
        must_open(&mut output, format, outcome.records_written, files, &options.input)?;
    }
    let verdict = put_in_place(output, is_nothing, &reporter, options)?;
    beside.map_or(Ok(()), Beside::commit)?;
    if !outcome.notes.is_empty() {
        print_outcome(&options.file.display().to_string(), &outcome);
    }
    Ok(verdict)
}

/// True for a form whose bytes are written once and for all: standard output gets them as they come.
fn streams(opened: &Opened, target: &TargetOptions) -> bool {
    let to = target.to.as_deref();
    match opened {
        Opened::Empty(_) => false,
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => {
            let is_for_others = to.is_some_and(|to| !is_own(*format, to));
            is_for_others || !format.patches(to)
        }
    }
}

/// The format of what is written, where that is a trace again.
fn written_format(opened: &Opened, target: &TargetOptions) -> Option<&'static dyn Format> {
    let (Opened::Trace(format, _) | Opened::Jsonl(format, _)) = opened else { return None };
    Some(*format).filter(|_| target.to.as_deref() != Some("jsonl"))
}

/// Where damage is reported; what is wrong with a file that gave no bytes is reported at once.
fn reporter(opened: &Opened, options: &ConvertArguments) -> Result<Reporter, Failure> {
    let (format, damage) = match opened {
        Opened::Empty(damage) => (None, damage.clone()),
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => (Some(*format), Vec::new()),
    };
    let name = options.file.display().to_string();
    let mut reporter = Reporter::new(&name, format, Way::Stderr, options.input.limit);
    reporter.take(damage)?;
    Ok(reporter)
}

/// Ends the report of damage, and puts the output in place unless it would be empty.
fn put_in_place(
    output: Output,
    is_nothing: bool,
    reporter: &Reporter,
    options: &ConvertArguments,
) -> Result<Verdict, Failure> {
    reporter.print_rest()?;
    if is_nothing {
        return Err(Failure::breach(format!("{}: nothing could be read; nothing was written", options.file.display())));
    }
    output.commit(reporter.verdict())
}

fn rewrite(
    format: &'static dyn Format,
    input: Input,
    target: TargetOptions,
    options: &ConvertArguments,
    output: &mut Output,
    reporter: &mut Reporter,
) -> Result<Outcome, Failure> {
    let name = input.name().to_owned();
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    trace.rewrite(&Plan::Convert(target), output, reporter).map_err(|error| Failure::of(&name, &error))
}

fn import(
    format: &'static dyn Format,
    input: Input,
    target: &TargetOptions,
    options: &ConvertArguments,
    output: &mut Output,
    reporter: &mut Reporter,
) -> Result<Outcome, Failure> {
    let name = input.name().to_owned();
    let _progress = Progress::watch(&input);
    let import = ImportOptions { target, limits: open::limits(&options.input) };
    format.import(input, &import, output, reporter).map_err(|error| Failure::of(&name, &error))
}

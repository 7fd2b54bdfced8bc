//! `anytrace convert`: another form, or the same again without loss.

mod accesses;
mod extension;
mod timeline;

use anytrace_core::{Format, ImportOptions, Input, Outcome, Plan, TargetOptions};
use anytrace_export::{accesses::OUTPUTS as ACCESS_OUTPUTS, timeline::OUTPUTS as TIMELINE_OUTPUTS};

use crate::Verdict;
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::verbs::repair::print_outcome;
use crate::written::must_open;

pub(crate) fn run(options: &ConvertArguments) -> Result<Verdict, Failure> {
    let (path, force) = (&options.output.output, options.output.force);
    // What is in the way of a file is found before the input is read, which may take long.
    let file = if path.as_os_str() == "-" { None } else { Some(Output::create(path, force)?) };
    let opened = open::open(&options.file, &options.input)?;
    let target = options.target.target(extension::form(options, &opened)?.as_deref());
    let mut output = match file {
        Some(file) => file,
        None if streams(&opened, &target) => Output::streaming(),
        None => Output::create(path, force)?,
    };
    if let Some(chosen) = timeline::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    if let Some(chosen) = accesses::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    let mut reporter = reporter(&opened, options)?;
    let written = written_format(&opened, &target);
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
        let files = (options.file.as_path(), path.as_path());
        must_open(&mut output, format, outcome.records_written, files, &options.input)?;
    }
    let verdict = put_in_place(output, is_nothing, &reporter, options)?;
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

/// Where damage is told; what is wrong with a file that gave no bytes is told at once.
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

/// Ends the telling of damage, and puts the output where it was asked for, unless it would be of nothing.
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

/// Refuses a `--to` the format does not have, saying which there are.
fn known_target(format: &dyn Format, target: &TargetOptions) -> Result<(), Failure> {
    let Some(to) = &target.to else { return Ok(()) };
    if is_own(format, to) {
        return Ok(());
    }
    let names = form_names(format).join(", ");
    Err(Failure::usage(format!("{} traces cannot be written as {to}; --to takes {names}", format.name())))
}

/// What `--to` takes for a format.
fn form_names(format: &dyn Format) -> Vec<&'static str> {
    let mut names: Vec<_> = format.targets().iter().map(|(name, _)| *name).collect();
    if format.has_spans() {
        names.extend(TIMELINE_OUTPUTS.iter().map(|output| output.name));
    }
    if format.has_accesses() {
        names.extend(ACCESS_OUTPUTS.iter().map(|output| output.name).filter(|name| !is_own(format, name)));
    }
    names
}

/// True for a form that the format itself writes.
fn is_own(format: &dyn Format, to: &str) -> bool {
    format.targets().iter().any(|(name, _)| *name == to)
}

/// True where an output for other programs may be meant: the format `has` what it tells and no form of that name.
fn may_mean(opened: &Opened, name: &str, has: impl Fn(&dyn Format) -> bool) -> bool {
    match opened {
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => has(*format) && !is_own(*format, name),
        Opened::Empty(_) => true,
    }
}

/// Refuses what goes with no output for other programs: JSON lines, options for forms of a format.
fn refuse_others(
    opened: &Opened,
    name: &str,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<(), Failure> {
    refuse_jsonl(opened, options)?;
    target.only(name, &[]).map_err(|error| Failure::bare(&error))
}

/// Refuses JSON lines where a trace is needed.
fn refuse_jsonl(opened: &Opened, options: &ConvertArguments) -> Result<(), Failure> {
    let Opened::Jsonl(format, _) = opened else { return Ok(()) };
    Err(Failure::usage(format!(
        "{0}: JSON lines of {1}; `anytrace convert {0} -o OUT --to {1}` makes a trace of them first",
        options.file.display(),
        format.name()
    )))
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

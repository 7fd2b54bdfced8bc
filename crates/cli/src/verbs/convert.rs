//! `anytrace convert`: another form, or the same again without loss.

mod accesses;
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

pub(crate) fn run(options: &ConvertArguments) -> Result<Verdict, Failure> {
    let mut output = Output::create(&options.output.output, options.output.force)?;
    let target = options.target.target(options.to.as_deref());
    let opened = open::open(&options.file, &options.input)?;
    if let Some(chosen) = timeline::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    if let Some(chosen) = accesses::chosen(&opened, &target, options)? {
        return chosen.write(opened, options, output);
    }
    let (outcome, reporter) = match opened {
        Opened::Empty(damage) => {
            let name = options.file.display().to_string();
            let mut reporter = Reporter::new(&name, None, Way::Stderr, options.input.limit);
            reporter.take(damage)?;
            (Outcome::default(), reporter)
        }
        Opened::Trace(format, input) => {
            known_target(format, &target)?;
            rewrite(format, input, target, options, &mut output)?
        }
        Opened::Jsonl(format, input) => {
            known_target(format, &target)?;
            import(format, input, &target, options, &mut output)?
        }
    };
    reporter.print_rest()?;
    if reporter.nothing_could_be_read(&output) {
        return Err(Failure::breach(format!("{}: nothing could be read; nothing was written", options.file.display())));
    }
    output.commit()?;
    if !outcome.notes.is_empty() {
        print_outcome(&options.file.display().to_string(), &outcome);
    }
    Ok(reporter.verdict())
}

/// Refuses a `--to` the format does not have, saying which there are.
fn known_target(format: &dyn Format, target: &TargetOptions) -> Result<(), Failure> {
    let Some(to) = &target.to else { return Ok(()) };
    if is_own(format, to) {
        return Ok(());
    }
    let mut names: Vec<_> = format.targets().iter().map(|(name, _)| *name).collect();
    if format.has_spans() {
        names.extend(TIMELINE_OUTPUTS.iter().map(|output| output.name));
    }
    if format.has_accesses() {
        names.extend(ACCESS_OUTPUTS.iter().map(|output| output.name).filter(|name| !is_own(format, name)));
    }
    Err(Failure::usage(format!("{} traces cannot be written as {to}; --to takes {}", format.name(), names.join(", "))))
}

/// True for a form that the format itself writes.
fn is_own(format: &dyn Format, to: &str) -> bool {
    format.targets().iter().any(|(name, _)| *name == to)
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
) -> Result<(Outcome, Reporter), Failure> {
    let name = input.name().to_owned();
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
    let _progress = Progress::watch(&input);
    let trace = open::enter(format, input, &options.input)?;
    let outcome =
        trace.rewrite(&Plan::Convert(target), output, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    Ok((outcome, reporter))
}

fn import(
    format: &'static dyn Format,
    input: Input,
    target: &TargetOptions,
    options: &ConvertArguments,
    output: &mut Output,
) -> Result<(Outcome, Reporter), Failure> {
    let name = input.name().to_owned();
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
    let _progress = Progress::watch(&input);
    let import = ImportOptions { target, limits: open::limits(&options.input) };
    let outcome = format.import(input, &import, output, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    Ok((outcome, reporter))
}

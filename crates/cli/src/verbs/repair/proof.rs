//! Reads what `repair` wrote, before it gets its name: it must be recognized as the same format, and pass its check.

use anytrace_core::{
    Diagnostic, Effect, Error, Format, Head, Input, InputOptions, Outcome, Plan, Severity, Sink, TargetOptions,
};
use anytrace_formats::{Recognized, recognize};

use crate::arguments::RepairArguments;
use crate::failure::Failure;
use crate::open;
use crate::output::Output;

/// What became of a repaired trace that was read again.
pub(super) enum Proof {
    /// It is a valid trace of this many bytes, without compression.
    Valid(u64),
    /// It breaks a rule; to be repaired again.
    Broken(Input),
    /// It is another format's, or nobody's.
    Other,
}

/// Counts errors about the trace. What the traced program did wrong stays in it: a repair does not make that up.
#[derive(Default)]
struct Errors(u64);

impl Sink for Errors {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let is_own = diagnostic.severity == Severity::Error && diagnostic.rule.effect != Effect::Program;
        self.0 += u64::from(is_own);
        Ok(())
    }
}

/// Reads what was written.
pub(super) fn prove(
    output: &mut Output,
    format: &'static dyn Format,
    options: &RepairArguments,
) -> Result<Proof, Failure> {
    let path = output.staged()?.to_owned();
    let open_again =
        || Input::open(&path, InputOptions { no_map: options.input.no_mmap }).map_err(|error| Failure::bare(&error));
    let input = open_again()?;
    // Who names the format has to name it again.
    if options.input.input_format.is_none() {
        let name = options.output.output.display().to_string();
        let head = Head { name: &name, ..input.head() };
        match recognize(&head) {
            Recognized::Trace(found) if found.name() == format.name() => {}
            _ => return Ok(Proof::Other),
        }
    }
    let mut errors = Errors::default();
    let checked = open::enter(format, input, &options.input).map(|trace| trace.check(&mut errors));
    match checked {
        Ok(Ok(summary)) if errors.0 == 0 => Ok(Proof::Valid(summary.bytes)),
        Ok(Ok(_)) => Ok(Proof::Broken(open_again()?)),
        Ok(Err(_)) | Err(_) => Ok(Proof::Other),
    }
}

/// What was complained of is known from the first time.
struct Silent;

impl Sink for Silent {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Repairs what a repair wrote.
pub(super) fn repair_again(
    format: &'static dyn Format,
    input: Input,
    options: &RepairArguments,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let name = options.file.display().to_string();
    let trace = open::enter(format, input, &options.input)?;
    let plan = Plan::Repair(TargetOptions::default());
    trace.rewrite(&plan, output, &mut Silent).map_err(|error| Failure::of(&name, &error))
}

//! `anytrace convert --to din|lackey|xdin`: a trace's memory accesses for other programs' cache simulators.

use anytrace_core::{Format, Input, TargetOptions};
use anytrace_export::accesses::{AccessOutput, by_name};

use super::{is_own, refuse_jsonl};
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, paint};

/// An output of accesses that was asked for.
pub(super) struct Chosen(&'static AccessOutput);

/// The output of accesses that `--to` names, where the format has no form of that name and has accesses; `None` leaves
/// the answer to the format.
pub(super) fn chosen(
    opened: &Opened,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<Option<Chosen>, Failure> {
    let output = target.to.as_deref().and_then(by_name).filter(|output| match opened {
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => format.has_accesses() && !is_own(*format, output.name),
        Opened::Empty(_) => true,
    });
    let Some(output) = output else { return Ok(None) };
    refuse_jsonl(opened, options)?;
    target.only(output.name, &[]).map_err(|error| Failure::bare(&error))?;
    Ok(Some(Chosen(output)))
}

impl Chosen {
    /// Writes it, and says what it has no room for.
    pub(super) fn write(
        self,
        opened: Opened,
        options: &ConvertArguments,
        mut output: Output,
    ) -> Result<Verdict, Failure> {
        let name = options.file.display().to_string();
        let (records, notes, reporter) = match opened {
            Opened::Trace(format, input) => self.tell(format, input, options, &mut output)?,
            Opened::Empty(damage) => {
                let mut reporter = Reporter::new(&name, None, Way::Stderr, options.input.limit);
                reporter.take(damage)?;
                (0, Vec::new(), reporter)
            }
            // Refused by `chosen`.
            Opened::Jsonl(..) => (0, Vec::new(), Reporter::new(&name, None, Way::Stderr, options.input.limit)),
        };
        reporter.print_rest()?;
        if records == 0 && reporter.verdict() == Verdict::Breach {
            return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
        }
        output.commit()?;
        let shown = anytrace_core::text::printable(&name);
        notes.iter().for_each(|note| paint::complain("note", format!("{shown}: {note}")));
        Ok(reporter.verdict())
    }

    /// Tells the accesses of a trace; gives the number of records read and what the output has no room for.
    fn tell(
        &self,
        format: &'static dyn Format,
        input: Input,
        options: &ConvertArguments,
        output: &mut Output,
    ) -> Result<(u64, Vec<String>, Reporter), Failure> {
        let name = input.name().to_owned();
        let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.input.limit);
        let _progress = Progress::watch(&input);
        let trace = open::enter(format, input, &options.input)?;
        let mut writer = (self.0.open)(output);
        let failed = |error| Failure::of(&name, &error);
        let summary = trace.accesses(&mut *writer, &mut reporter).map_err(failed)?;
        let notes = writer.finish().map_err(failed)?;
        Ok((summary.records, notes, reporter))
    }
}

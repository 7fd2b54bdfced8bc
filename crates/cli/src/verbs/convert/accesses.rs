//! `anytrace convert --to cacheray|din|lackey|xdin`: a trace's memory accesses for other programs' cache simulators, or as
//! the trace of another recorder.

mod codes;

use anytrace_core::{Format, Input, TargetOptions};
use anytrace_export::accesses::{AccessOutput, by_name};
use codes::{CodesFile, WithCodes};

use super::forms::{may_mean, refuse_others};
use super::{put_in_place, reporter};
use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::output::{Output, Packed, commit_all};
use crate::progress::Progress;
use crate::report::Reporter;
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
    let asked = target.to.as_deref().and_then(by_name);
    let output = asked.filter(|output| may_mean(opened, output.name, |format| format.has_accesses()));
    let Some(output) = output else { return Ok(None) };
    refuse_others(opened, output.name, target, options)?;
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
        let mut reporter = reporter(&opened, options)?;
        let mut codes = self.codes_file(options)?;
        let (records, notes) = match opened {
            Opened::Trace(format, input) => {
                self.emit(format, input, options, &mut output, codes.as_mut(), &mut reporter)?
            }
            // JSON lines were refused by `chosen`.
            Opened::Empty(_) | Opened::Jsonl(..) => (0, Vec::new()),
        };
        let is_nothing = records == 0 && reporter.verdict() == Verdict::Breach;
        let codes = codes.map_or(Ok(None), CodesFile::finish)?;
        let verdict = put_in_place(output, is_nothing, &reporter, options)?;
        if verdict.has_result() {
            commit_all(codes.into_iter().collect())?;
        }
        let shown = anytrace_core::text::printable(&options.file.display().to_string());
        notes.iter().for_each(|note| paint::complain("note", format!("{shown}: {note}")));
        Ok(verdict)
    }

    /// Where code addresses go: beside a trace of the form that has them there, where that is a file.
    fn codes_file(&self, options: &ConvertArguments) -> Result<Option<CodesFile>, Failure> {
        let path = &options.output.output;
        let is_file = path.as_os_str() != "-" && std::fs::metadata(path).map_or(true, |meta| meta.is_file());
        if self.0.name != "cacheray" || !is_file {
            return Ok(None);
        }
        CodesFile::create(path, options.output.force).map(Some)
    }

    /// Emits the accesses of a trace; returns the number of records read and what the output has no room for.
    fn emit(
        &self,
        format: &'static dyn Format,
        input: Input,
        options: &ConvertArguments,
        output: &mut Output,
        codes: Option<&mut CodesFile>,
        reporter: &mut Reporter,
    ) -> Result<(u64, Vec<String>), Failure> {
        let name = input.name().to_owned();
        let _progress = Progress::watch(&input);
        let trace = open::enter(format, input, &options.input)?;
        let mut packed = Packed::new(output, &options.output.output, self.0.extension);
        let mut writer = (self.0.open)(&mut packed);
        let failed = |error| Failure::of(&name, &error);
        let summary = match codes {
            Some(codes) => trace.accesses(&mut WithCodes { out: &mut *writer, codes }, reporter),
            None => trace.accesses(&mut *writer, reporter),
        };
        let summary = summary.map_err(failed)?;
        let notes = writer.finish().map_err(failed)?;
        drop(writer);
        packed.finish()?;
        Ok((summary.records, notes))
    }
}

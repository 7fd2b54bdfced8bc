//! `anytrace merge`, and `convert` of several traces: one timeline of them, on a common axis.

use std::path::PathBuf;

use anytrace_export::timeline::{OUTPUTS, TimelineOutput, by_name};

use crate::Verdict;
use crate::arguments::{
    ConvertArguments, InputArguments, MergeVerbArguments, OutputArguments, TimelineOutputArguments,
};
use crate::extension::timeline_of;
use crate::failure::Failure;
use crate::output::Output;
use crate::spans::{Job, Merged, Reading};

pub(crate) fn run(options: &MergeVerbArguments) -> Result<Verdict, Failure> {
    let output = match &options.to {
        Some(to) => by_name(to),
        None => timeline_of(&options.output.output),
    };
    let Some(output) = output else {
        let extensions: Vec<_> = OUTPUTS.iter().map(|output| format!(".{}", output.extension)).collect();
        return Err(Failure::usage(format!(
            "{}: no timeline has this extension; those are {}; or choose one with --to",
            options.output.output.display(),
            extensions.join(", ")
        )));
    };
    write(output, &options.files, &options.output, &options.timeline_output, &options.input)
}

/// `convert` of several traces to a timeline; `None` where it is something else that is asked for.
pub(crate) fn of_convert(options: &ConvertArguments) -> Result<Option<Verdict>, Failure> {
    let output = match &options.to {
        Some(to) => by_name(to),
        None => timeline_of(&options.output.output),
    };
    let Some(output) = output.filter(|_| !options.more.is_empty()) else { return Ok(None) };
    if options.table_output.all_tables || options.table_output.table.is_some() {
        return Err(Failure::usage(format!("--table and --all-tables are for tables; {} is a timeline", output.name)));
    }
    let target = options.target.target(Some(output.name));
    target.only(output.name, &[], &[]).map_err(|error| Failure::bare(&error))?;
    let files: Vec<_> = std::iter::once(&options.file).chain(&options.more).cloned().collect();
    write(output, &files, &options.output, &options.timeline_output, &options.input).map(Some)
}

fn write(
    output: &'static TimelineOutput,
    files: &[PathBuf],
    to: &OutputArguments,
    given: &TimelineOutputArguments,
    input: &InputArguments,
) -> Result<Verdict, Failure> {
    // Check that the output can be written before the input is read, which may take long.
    let mut out = match to.output.as_os_str() == "-" && output.folder.is_none() {
        true => Output::streaming(),
        false => Output::create_form(&to.output, Some(output), to.force)?,
    };
    let merged = Merged::open(files, &given.spans, &given.place, input)?;
    let name = merged.name();
    let mut verdict = Verdict::Fine;
    let threads = crate::open::threads(input);
    let job = Job { output, path: &to.output, name: &name, title: &name, given, threads };
    let written = job.write(&mut out, &mut |sink, reading| match reading {
        Reading::Lengths => merged.emit_quietly(sink).map(|()| 0),
        Reading::Spans => {
            let emitted = merged.emit(sink)?;
            verdict = emitted.verdict;
            Ok(emitted.records)
        }
    })?;
    if written.records == 0 && verdict == Verdict::Breach {
        return Err(Failure::breach(format!("{name}: nothing could be read; nothing was written")));
    }
    let verdict = out.commit(verdict)?;
    written.complain(&name);
    Ok(verdict)
}

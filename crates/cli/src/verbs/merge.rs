//! `anytrace merge`, and `convert` of several traces: one timeline of them, on a common axis.

use std::path::{Path, PathBuf};

use anytrace_export::forms::of_extension;
use anytrace_export::timeline::{OUTPUTS, TimelineOutput, by_name};

use crate::Verdict;
use crate::arguments::{
    ConvertArguments, InputArguments, MergeVerbArguments, OutputArguments, TimelineOutputArguments,
};
use crate::extension::name_with_extension;
use crate::failure::Failure;
use crate::output::{Output, is_packed};
use crate::spans::{Job, Merged, Reading};

pub(crate) fn run(options: &MergeVerbArguments) -> Result<Verdict, Failure> {
    let output = match &options.to {
        Some(to) => by_name(to),
        None => of_path(&options.output.output),
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
        None => of_path(&options.output.output),
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

/// The timeline whose extension a file has.
fn of_path(path: &Path) -> Option<&'static TimelineOutput> {
    let name = name_with_extension(path)?;
    let inner = name.strip_suffix(".gz").filter(|_| is_packed(path));
    let forms: Vec<_> = OUTPUTS.iter().map(|output| (output.extension, Some(output.name))).collect();
    let (_, form) = of_extension(&name, &forms).or_else(|| of_extension(inner?, &forms))?;
    by_name((*form)?)
}

fn write(
    output: &'static TimelineOutput,
    files: &[PathBuf],
    to: &OutputArguments,
    given: &TimelineOutputArguments,
    input: &InputArguments,
) -> Result<Verdict, Failure> {
    // Check that the output can be written before the input is read, which may take long.
    let mut out =
        if to.output.as_os_str() == "-" { Output::streaming() } else { Output::create(&to.output, to.force)? };
    let merged = Merged::open(files, &given.spans, &given.place, input)?;
    let name = merged.name();
    let mut verdict = Verdict::Fine;
    let job = Job { output, path: &to.output, name: &name, title: &name, given };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_extension_decides() {
        let name = |path: &str| of_path(Path::new(path)).map(|output| output.name);
        assert_eq!((name("a.json"), name("a.speedscope.json")), (Some("chrome"), Some("speedscope")));
        assert_eq!((name("a.pftrace.gz"), name("A.PFTRACE")), (Some("perfetto"), Some("perfetto")));
        assert_eq!((name("a.xray"), name("a"), name("-")), (None, None, None));
    }
}

//! `anytrace memory mrc`.

mod arguments;
mod csv;
mod json;
mod picture;
mod text;

use std::io::Write;
use std::path::Path;

use anytrace_analysis::reuse::{Parts, Reuse, ReuseOptions, ReuseResults, Sample};

use super::opening;
use crate::arguments::InputArguments;
use crate::extension::must_be_svg;
use crate::failure::Failure;
use crate::output::{Output, one_on_stdout};
use crate::{Verdict, for_each_file, terminal};
use arguments::{ByArgument, FormArgument};

pub(crate) use arguments::MrcArguments;
pub(super) use picture::{complete_windows, points};

pub(crate) fn run(options: &MrcArguments) -> Result<Verdict, Failure> {
    if options.plot.is_some() && options.files.len() > 1 {
        return Err(Failure::usage("--plot draws only one trace"));
    }
    if options.private && options.by == Some(ByArgument::Type) {
        return Err(Failure::usage("--private cannot be combined with --by type"));
    }
    let is_plot_only = options.plot.as_deref() == Some(Path::new("-"));
    one_on_stdout(&[
        is_plot_only.then_some("the picture of --plot"),
        (options.format != FormArgument::Text).then_some("the result of --format"),
    ])?;
    options.plot.as_deref().map_or(Ok(()), must_be_svg)?;
    let mut plot = options.plot.as_ref().map(|path| Output::create(path, options.force)).transpose()?;
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |file| {
        let (found, verdict) = curves(file, options)?;
        if let Some(output) = &mut plot {
            picture::draw(file, &found, options, output)?;
        }
        if options.format == FormArgument::Json {
            objects.push(json::object(file, &found, options));
        } else if !is_plot_only {
            print(file, &found, options)?;
        }
        Ok(verdict)
    })?;
    if options.format == FormArgument::Json {
        crate::results::print_json_of_model(objects, options.files.len() > 1)?;
    }
    match plot {
        Some(output) => output.commit(verdict),
        None => Ok(verdict),
    }
}

fn curves(file: &Path, options: &MrcArguments) -> Result<(ReuseResults, Verdict), Failure> {
    let is_sampled = options.sample.is_some() || options.sample_lines.is_some();
    // Where little is done with each byte, mapping pages and unmapping them costs more than copying them.
    let input = InputArguments { no_mmap: options.input.no_mmap || is_sampled, ..options.input.clone() };
    let opened = opening::open(file, &input)?;
    let mut reuse = Reuse::new(ReuseOptions {
        line_bytes: options.line,
        parts: match (options.by, options.private) {
            (_, true) => Parts::PrivateThread,
            (None, false) => Parts::None,
            (Some(ByArgument::Thread), false) => Parts::Thread,
            (Some(ByArgument::Type), false) => Parts::Type,
        },
        sample: match (options.sample, options.sample_lines) {
            (Some(rate), _) => Some(Sample::Rate(rate)),
            (None, Some(lines)) => Some(Sample::Lines(usize::try_from(lines).unwrap_or(usize::MAX))),
            (None, None) => None,
        },
        has_windows: options.working_set,
        window_records: options.window,
    });
    let read = if options.fetches { opened.read(&mut reuse)? } else { opened.read_data(&mut reuse)? };
    Ok((reuse.finish(read.records), read.verdict))
}

fn print(file: &Path, found: &ReuseResults, options: &MrcArguments) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(terminal::stdout());
    let is_first = options.files.first().is_some_and(|first| first == file);
    match options.format {
        FormArgument::Csv => csv::write(file, found, options, is_first, &mut out)?,
        _ => {
            if !is_first {
                writeln!(out)?;
            }
            text::write(file, found, options, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

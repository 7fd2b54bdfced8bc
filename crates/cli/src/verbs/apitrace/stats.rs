//! `anytrace apitrace stats`.

mod arguments;

use std::io::Write;
use std::path::Path;

use anytrace_apitrace::tools::stats::{Column, Printed, Statistics, StatsForm, StatsOptions, panels, stats, write};

use crate::extension::must_be_svg;
use crate::failure::Failure;
use crate::output::{Output, one_on_stdout};
use crate::{Verdict, for_each_file, terminal};
pub(crate) use arguments::StatsArguments;
use arguments::{ByArgument, FormArgument, SortArgument};

pub(crate) fn run(options: &StatsArguments) -> Result<Verdict, Failure> {
    if options.plot.is_some() && options.files.len() > 1 {
        return Err(Failure::usage("--plot draws only one trace"));
    }
    let is_plot_only = options.plot.as_deref() == Some(Path::new("-"));
    one_on_stdout(&[
        is_plot_only.then_some("the picture of --plot"),
        (options.format != FormArgument::Text).then_some("the result of --format"),
    ])?;
    options.plot.as_deref().map_or(Ok(()), must_be_svg)?;
    let mut plot = options.plot.as_ref().map(|path| Output::create(path, options.force)).transpose()?;
    let set = |name, texts: &[String]| match texts.is_empty() {
        true => Ok(None),
        false => super::call_sets::parse_call_set(name, texts).map(Some),
    };
    let mut how = StatsOptions::default();
    how.calls = set("--calls", &options.calls)?;
    how.frames = set("--frames", &options.frames)?;
    how.assumes_contexts = options.assume_context;
    let is_json = options.format == FormArgument::Json;
    let (mut is_first, is_list) = (true, is_json && options.files.len() > 1);
    if is_list {
        put(b"[")?;
    }
    let verdict = for_each_file(&options.files, |file| {
        let (found, verdict, lost) = match super::opening::open_reader(file, &options.input)? {
            Ok(mut opened) => {
                let found = stats(&mut opened.reader, &how, &mut opened.reporter)
                    .map_err(|error| Failure::of(&opened.name, &error))?;
                (found, opened.verdict()?, opened.lost())
            }
            Err(nothing) => (Statistics::default(), nothing.verdict, nothing.lost),
        };
        if !is_first && options.format != FormArgument::Csv {
            put(if is_list { b",\n" } else { b"\n" })?;
        }
        if !is_plot_only {
            print(&found, (file, lost), options, is_first)?;
        }
        is_first = false;
        if let Some(output) = &mut plot {
            let title = file.file_name().unwrap_or_default().to_string_lossy();
            anytrace_export::plot::svg(&title, "frame", &panels(&found), output)?;
        }
        Ok(verdict)
    })?;
    if is_list {
        put(b"]\n")?;
    } else if is_json && !is_first {
        put(b"\n")?;
    }
    match plot {
        Some(output) => output.commit(verdict),
        None => Ok(verdict),
    }
}

fn put(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = terminal::stdout();
    out.write_all(bytes)?;
    Ok(())
}

fn print(
    found: &Statistics,
    (file, lost): (&Path, u64),
    options: &StatsArguments,
    is_first: bool,
) -> Result<(), Failure> {
    let form = match options.format {
        FormArgument::Text => StatsForm::Text,
        FormArgument::Csv => StatsForm::Csv,
        FormArgument::Json => StatsForm::Json,
    };
    let usual = match options.by {
        ByArgument::Function => Some(Column::Calls),
        ByArgument::State => Some(Column::Redundant),
        ByArgument::Frame | ByArgument::Thread => None,
    };
    let name = file.display().to_string();
    let sort = options.sort.map(SortArgument::column).or(usual);
    let what = Printed { file: &name, by: options.by.by(), sort, top: options.top, lost, cells: options.csv.cells() };
    let mut out = std::io::BufWriter::new(terminal::stdout().json(options.format == FormArgument::Json));
    write(found, &what, form, is_first, &mut out)?;
    out.flush()?;
    Ok(())
}

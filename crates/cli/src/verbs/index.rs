//! `anytrace index`: where reading can begin inside a trace, for queries on all processors and on parts.

mod page;

use std::io::Write;
use std::path::Path;

use anytrace_core::index::{self, Choice, Index, Lookup, path_of};
use anytrace_core::{Diagnostic, Error, Format, Input, InputOptions, Sink};
use serde_json::Value;

use crate::arguments::{IndexArguments, ResultForm};
use crate::failure::Failure;
use crate::indexed::folder;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::results::print_json;
use crate::{Verdict, for_each_file, open, terminal};

pub(crate) fn run(options: &IndexArguments) -> Result<Verdict, Failure> {
    if options.output.is_some() && options.files.len() > 1 {
        return Err(Failure::usage("-o is for a single trace; without it each index is written beside its trace"));
    }
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |path| one(path, options, &mut objects))?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn one(trace: &Path, options: &IndexArguments, objects: &mut Vec<Value>) -> Result<Verdict, Failure> {
    if open::is_read_once(trace) {
        return Err(Failure::usage(format!("{}: only files can be indexed", trace.display())));
    }
    let place = options.output.clone().unwrap_or_else(|| path_of(trace, folder().as_deref()));
    let (index, bytes, state, verdict) =
        if options.show { show(trace, &place, options)? } else { make(trace, &place, options)? };
    let shown = page::Shown { trace, place: &place, index: &index, bytes, state: &state };
    match options.format {
        ResultForm::Json => objects.push(shown.object()),
        ResultForm::Text if place.as_os_str() == "-" => terminal::stderr().write_all(shown.text().as_bytes())?,
        ResultForm::Text => terminal::stdout().write_all(shown.text().as_bytes())?,
    }
    Ok(verdict)
}

/// An index, the bytes of its file, how it is, and how the verb ended.
type Made = (Index, u64, String, Verdict);

/// The format of a trace, or what is wrong with a file that is none.
fn format_of(trace: &Path, options: &IndexArguments) -> Result<&'static dyn Format, Failure> {
    let name = trace.display().to_string();
    match open::open_trace(trace, &options.input())? {
        Ok((format, _)) => Ok(format),
        Err(damage) => {
            let mut reporter = Reporter::new(&name, None, Way::Stderr, options.limit);
            reporter.take(damage)?;
            reporter.print_rest()?;
            Err(Failure::breach(format!("{name}: nothing to index")))
        }
    }
}

fn make(trace: &Path, place: &Path, options: &IndexArguments) -> Result<Made, Failure> {
    let name = trace.display().to_string();
    let format = format_of(trace, options)?;
    let mut output = Output::create(place, options.force)?;
    let mut reporter = Reporter::new(&name, Some(format), Way::Stderr, options.limit);
    let mut progress = None;
    let mut watch = |input: &Input| progress = Some(Progress::watch(input));
    let how = open::open_options(&options.input());
    let made = index::build(format, trace, &how, options.every, &mut watch, &mut reporter);
    let index = made.map_err(|error| Failure::of(&name, &error))?;
    drop(progress);
    reporter.print_rest()?;
    let mut bytes = index.encode();
    if options.pyramid {
        bytes = with_pyramid(trace, format, &bytes, options)?;
    }
    output.write_all(&bytes)?;
    let verdict = output.commit(reporter.verdict())?;
    Ok((index, bytes.len() as u64, "made".to_owned(), verdict))
}

/// The bytes of an index with the pyramid of its trace. What is wrong with the trace was reported before.
fn with_pyramid(
    trace: &Path,
    format: &'static dyn Format,
    index: &[u8],
    options: &IndexArguments,
) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::of(&trace.display().to_string(), &error);
    let input = Input::open(trace, InputOptions::default()).map_err(failed)?;
    let progress = Progress::watch(&input);
    let how = open::open_options(&options.input());
    let pyramid = anytrace_view::pyramid_of(format, input, &how, &mut Silent).map_err(failed)?;
    drop(progress);
    index::with_pyramid(index, &pyramid).map_err(|fault| Failure::usage(fault.to_string()))
}

/// Takes diagnostics that were reported before.
struct Silent;

impl Sink for Silent {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

fn show(trace: &Path, place: &Path, options: &IndexArguments) -> Result<Made, Failure> {
    let format = format_of(trace, options)?;
    let found = index::find(trace, format.name(), &Choice::File(place.to_owned()));
    match found.map_err(|error| Failure::bare(&error))? {
        Lookup::Found(index) => {
            let bytes = std::fs::metadata(place).map_or(0, |meta| meta.len());
            Ok((*index, bytes, "fits".to_owned(), Verdict::Fine))
        }
        Lookup::Nothing => Err(Failure::usage(format!("{}: there is no index", place.display()))),
        Lookup::Unused(path, why) => {
            let bytes = std::fs::read(&path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            let index = Index::decode(&bytes).map_err(|_| Failure::breach(format!("{}: {why}", path.display())))?;
            Ok((index, bytes.len() as u64, format!("does not fit: {why}"), Verdict::Breach))
        }
    }
}

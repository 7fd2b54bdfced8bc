//! `anytrace report`: a page of a trace that needs no server.

use std::io::Write;
use std::path::Path;

use anytrace_core::Input;
use anytrace_view::{Options, Source};

use crate::arguments::{ConvertArguments, InputArguments, OutputArguments, ReportArguments};
use crate::extension::name_with_extension;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{Reporter, Way};
use crate::symbols::SymbolArguments;
use crate::{Verdict, open};

/// What `convert --to` takes for the same page.
pub(crate) const HTML: &str = "html";

pub(crate) fn run(options: &ReportArguments) -> Result<Verdict, Failure> {
    write(&options.file, &options.output, &options.symbols, &options.input)
}

/// `convert` to a page; `None` where it is something else that is asked for.
pub(crate) fn of_convert(options: &ConvertArguments) -> Result<Option<Verdict>, Failure> {
    let name = name_with_extension(&options.output.output).unwrap_or_default();
    let is_page = || name.ends_with(".html") || name.ends_with(".htm");
    if !options.to.as_deref().map_or_else(is_page, |to| to == HTML) {
        return Ok(None);
    }
    let given = &options.timeline_output;
    let conditions = given.conditions();
    if !conditions.is_empty() || given.csv.is_given() || given.spans.tail_chains || given.place.is_given() {
        return Err(Failure::usage("a page has all of a trace: it takes -m, and no conditions"));
    }
    if options.table_output.table.is_some() || options.table_output.all_tables || !options.more.is_empty() {
        return Err(Failure::usage("a page is of one trace, with all it has; `anytrace view` shows several"));
    }
    options.target.target(Some(HTML)).only(HTML, &[], &[]).map_err(|error| Failure::bare(&error))?;
    write(&options.file, &options.output, &given.spans.symbols, &options.input).map(Some)
}

fn write(
    file: &Path,
    place: &OutputArguments,
    symbols: &SymbolArguments,
    input: &InputArguments,
) -> Result<Verdict, Failure> {
    let name = file.display().to_string();
    let mut output = Output::create(&place.output, place.force)?;
    // A pipe is opened once, by the library, which recognizes it too.
    let format = if open::is_read_once(file) {
        None
    } else {
        match open::open_trace(file, input)? {
            Ok((format, input)) => {
                drop::<Input>(input);
                Some(format)
            }
            Err(damage) => {
                Reporter::new(&name, None, Way::Stderr, input.limit).take(damage)?;
                return Err(Failure::breach(format!("{name}: no records; nothing was written")));
            }
        }
    };
    let mut reporter = Reporter::new(&name, format, Way::Stderr, input.limit);
    let source = Source {
        path: file.to_owned(),
        format: input.input_format.clone(),
        no_map: input.no_mmap,
        open: open::open_options(input),
    };
    let asked = Options {
        threads: source.open.threads,
        files: vec![source],
        symbols: symbols.sources().to_vec(),
        mangling: symbols.mangling(),
        ..Options::default()
    };
    let html = anytrace_view::report(asked, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    output.write_all(html.as_bytes())?;
    output.commit(reporter.verdict())
}

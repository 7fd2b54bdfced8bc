//! `anytrace report`: a page of a trace that needs no server.

use std::io::Write;

use anytrace_core::Input;
use anytrace_view::{Options, Source};

use crate::arguments::ReportArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::{Reporter, Way};
use crate::{Verdict, open};

pub(crate) fn run(options: &ReportArguments) -> Result<Verdict, Failure> {
    let (name, place) = (options.file.display().to_string(), &options.output);
    let mut output = Output::create(&place.output, place.force)?;
    // A pipe is opened once, by the library, which recognizes it too.
    let format = if open::is_read_once(&options.file) {
        None
    } else {
        match open::open_trace(&options.file, &options.input)? {
            Ok((format, input)) => {
                drop::<Input>(input);
                Some(format)
            }
            Err(damage) => {
                Reporter::new(&name, None, Way::Stderr, options.input.limit).take(damage)?;
                return Err(Failure::breach(format!("{name}: no records; nothing was written")));
            }
        }
    };
    let mut reporter = Reporter::new(&name, format, Way::Stderr, options.input.limit);
    let source = Source {
        path: options.file.clone(),
        format: options.input.input_format.clone(),
        no_map: options.input.no_mmap,
        open: open::open_options(&options.input),
    };
    let asked = Options {
        threads: source.open.threads,
        files: vec![source],
        symbols: options.symbols.sources().to_vec(),
        mangling: options.symbols.mangling(),
        ..Options::default()
    };
    let html = anytrace_view::report(asked, &mut reporter).map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    output.write_all(html.as_bytes())?;
    output.commit(reporter.verdict())
}

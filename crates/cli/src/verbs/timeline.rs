//! `anytrace timeline`: who was busy when, and with what, in the terminal.

mod draw;

use std::path::Path;

use anytrace_analysis::overview::Overview;
use anytrace_analysis::pass::Pass;

use crate::arguments::TimelineArguments;
use crate::failure::Failure;
use crate::spans::{Merged, Request, read_spans};
use crate::{Verdict, for_each_file, terminal};
use draw::Look;

/// Columns without a terminal.
const WIDTH: usize = 100;

pub(crate) fn run(options: &TimelineArguments) -> Result<Verdict, Failure> {
    let look = Look { width: width(options), rows: options.top, is_ascii: options.ascii };
    if options.merge.is_asked_for() {
        let merged = Merged::open(&options.files, &options.spans, &options.merge.place, &options.input)?;
        let mut overview = Overview::default();
        let read = merged.read(Pass::new(options.spans.filter(None), false, vec![&mut overview]))?;
        let name = anytrace_core::text::printable(&merged.name());
        terminal::put(&draw::page(&name, &overview, &read.done, &look))?;
        return Ok(read.verdict);
    }
    let mut is_first = true;
    for_each_file(&options.files, |path| {
        let (page, verdict) = one(path, options, &look)?;
        if !is_first {
            terminal::put("\n")?;
        }
        is_first = false;
        terminal::put(&page)?;
        Ok(verdict)
    })
}

fn one(path: &Path, options: &TimelineArguments, look: &Look) -> Result<(String, Verdict), Failure> {
    let spans = options.spans.of_trace(path, options.files.iter());
    let request = Request {
        path,
        spans: &spans,
        input: &options.input,
        index: &options.index,
        filter: &|| options.spans.filter(None),
        with_stacks: false,
        engine: &Overview::default,
    };
    let (read, overview) = match request.read()? {
        Some(read) => read,
        None => {
            let mut overview = Overview::default();
            let pass = Pass::new(options.spans.filter(None), false, vec![&mut overview]);
            (read_spans(path, &spans, &options.input, pass)?, overview)
        }
    };
    let name = anytrace_core::text::printable(&path.display().to_string());
    Ok((draw::page(&name, &overview, &read.done, look), read.verdict))
}

fn width(options: &TimelineArguments) -> usize {
    let terminal = || match terminal::stdout_is_terminal() {
        true => terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)),
        false => None,
    };
    // A terminal as narrow as a ribbon still gets a picture.
    options.width.or_else(terminal).unwrap_or(WIDTH).max(40)
}

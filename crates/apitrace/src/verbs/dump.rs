//! One event a line, for people and as JSON.

use std::io::Write;

use anytrace_core::{DumpForm, DumpOptions, Error, Sink, Summary};

use crate::options::OPTIONS;
use crate::verbs::events::{CONDITIONS, EventPrinter};
use crate::verbs::jsonl::JsonLines;
use crate::verbs::text::Text;
use crate::wire::container::Container;
use crate::wire::reader::Reader;

/// Prints a trace.
pub(crate) fn dump(
    mut reader: Reader,
    options: &DumpOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    options.selection.only("apitrace", &CONDITIONS, OPTIONS)?;
    let totals = match options.form {
        DumpForm::Text => {
            let mut printer = EventPrinter::new(Text::default(), options, out);
            let totals = reader.read(&mut printer, sink)?;
            printer.finish()?;
            totals
        }
        DumpForm::Jsonl => {
            // This early, it is known only for a file whose end was reached when its start was examined.
            let is_seekable = reader.stream.is_seekable() && reader.container() == Container::Zstd;
            let container = if is_seekable { Container::ZstdSeekable } else { reader.container() }.name();
            let lines = JsonLines::new(container);
            let lines = if reader.resumed.is_some() { lines.continued() } else { lines };
            let mut printer = EventPrinter::new(lines, options, out);
            let totals = reader.read(&mut printer, sink)?;
            printer.finish()?;
            totals
        }
    };
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

//! The call tree printed: as JSON with the keys of the corpus, as text with indentation, or only its figures.

use std::io::Write;

use anytrace_core::{Error, Input, OpenOptions, Sink};

use super::builder::Builder;
use super::line::About;
use super::printer::Printer;
use super::tree_options::{TreeOptions, TreeSummary};
use super::window;
use crate::lanes::collect::{Collected, Order, Stored, collect};
use crate::verbs::select::Filter;
use crate::wire::reader::Reader;

/// Prints the tree of a trace. Damage is reported to the sink.
///
/// # Errors
/// I/O errors, conditions that Heph traces do not support, and whatever the sink returns.
pub fn tree(
    input: Input,
    open: &OpenOptions,
    options: &TreeOptions,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<TreeSummary, Error> {
    Filter::check(&options.selection)?;
    let mut reader = Reader::new(input, open)?;
    if let Some(streaming) = &options.streaming {
        let filter = Filter::new(&options.selection, &mut reader, sink)?;
        let mut printer = Printer::new(options, filter, out);
        window::emit(reader, options.lanes, *streaming, &mut printer, sink)?;
        return printer.finish();
    }
    let collected =
        collect(reader, Order::Lanes(options.lanes), Stored::all_if(options.form.wants_attributes()), sink)?;
    let Collected { sorter, names, facts, .. } = collected;
    let filter = Filter::from_start(&options.selection, facts.range.map_or(0, |range| range.0));
    let mut printer = Printer::new(options, filter, out);
    let about = About { names: &names, facts: &facts };
    let mut builder = Builder::default();
    let mut last = None;
    sorter.each(&mut |event| {
        let lane = (event.stream, event.lane);
        printer.summary.lanes += u64::from(last.replace(lane) != Some(lane));
        builder.event(event, false, about, &mut printer)
    })?;
    printer.finish()
}

//! The call tree printed: as JSON with the keys of the corpus, as text with indentation, or only its figures.

use std::io::Write;

use anytrace_core::{Error, Input, OpenOptions, Selection, Sink};

use super::builder::{About, Builder};
use super::collect::{Collected, collect};
use super::printer::Printer;
use super::{Lanes, window};
use crate::reader::Reader;
use crate::select::Filter;

/// How a tree is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TreeForm {
    /// One indented line per span.
    #[default]
    Text,
    /// One JSON object with all spans.
    Json,
    /// One JSON object with only the figures.
    SummaryJson,
    /// The figures, for people.
    SummaryText,
}

/// Options of [`tree`].
#[derive(Debug, Default)]
pub struct TreeOptions {
    /// How it is printed.
    pub form: TreeForm,
    /// The unit within which events nest.
    pub lanes: Lanes,
    /// Which spans are printed; the tree is built from all.
    pub selection: Selection,
    /// Show attributes in text.
    pub with_attributes: bool,
    /// In order of arrival, in bounded memory, instead of exactly.
    pub streaming: Option<Streaming>,
}

/// How much is buffered before spans are emitted as they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streaming {
    /// Most finished spans buffered for a lane.
    pub lane_spans_max: usize,
    /// Spans that ended this long before the latest end of their lane, in nanoseconds, are emitted; `None` waits.
    pub horizon_ns: Option<u64>,
}

impl Default for Streaming {
    /// The default of the page: 65,536 spans per lane.
    fn default() -> Self {
        Self { lane_spans_max: 65_536, horizon_ns: None }
    }
}

/// The figures of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeSummary {
    /// Events.
    pub events: u64,
    /// Lanes.
    pub lanes: u64,
    /// Spans without an enclosing span.
    pub roots: u64,
    /// Greatest number of spans enclosing one.
    pub max_depth: u64,
    /// Spans that overlap another partly.
    pub partial_overlaps: u64,
    /// Spans emitted before an enclosing span could arrive; 0 in exact mode.
    pub parents_unknown: u64,
    /// Events that arrived after their neighbors had been emitted; 0 in exact mode.
    pub late: u64,
}

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
    let filter = Filter::new(&options.selection)?;
    let reader = Reader::new(input, open);
    let mut printer = Printer::new(options, filter, out);
    printer.begin()?;
    match &options.streaming {
        Some(streaming) => window::emit(reader, options.lanes, *streaming, &mut printer, sink)?,
        None => {
            let collected = collect(reader, options.lanes, printer.wants_attributes(), sink)?;
            let Collected { sorter, names, facts, .. } = collected;
            let about = About { names: &names, facts: &facts };
            let mut builder = Builder::default();
            let mut last = None;
            sorter.each(&mut |event| {
                let lane = (event.stream, event.lane);
                printer.summary.lanes += u64::from(last.replace(lane) != Some(lane));
                builder.event(event, false, about, &mut printer)
            })?;
        }
    }
    printer.finish()
}

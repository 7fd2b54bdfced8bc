//! The call tree printed: JSON with the keys of the corpus, text with indentation, or only its figures.

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
    /// An indented line a span.
    #[default]
    Text,
    /// One JSON object with all spans.
    Json,
    /// One JSON object with the figures alone.
    SummaryJson,
    /// The figures, for people.
    SummaryText,
}

/// Options of [`tree`].
#[derive(Debug, Default)]
pub struct TreeOptions {
    /// How it is printed.
    pub form: TreeForm,
    /// What events nest in.
    pub lanes: Lanes,
    /// Which spans are printed; the tree is made of all.
    pub selection: Selection,
    /// Show attributes in text.
    pub with_attributes: bool,
    /// As events come, in bounded memory, instead of exactly.
    pub streaming: Option<Streaming>,
}

/// How much is held back before spans are told as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streaming {
    /// Most finished spans kept of a lane.
    pub lane_spans_max: usize,
    /// Spans that ended so long before the latest end of their lane, in nanoseconds, are told; `None` waits.
    pub horizon_ns: Option<u64>,
}

impl Default for Streaming {
    /// The page's cap: 65,536 spans a lane.
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
    /// Spans without a span around them.
    pub roots: u64,
    /// Most spans around one.
    pub max_depth: u64,
    /// Spans that overlap another in part.
    pub partial_overlaps: u64,
    /// Spans told before a span around them could come; 0 in exact mode.
    pub parents_unknown: u64,
    /// Events that came when what they belong among had been told; 0 in exact mode.
    pub late: u64,
}

/// Prints the tree of a trace. Damage goes to the sink.
///
/// # Errors
/// I/O, conditions that Heph traces do not have, and what the sink returns.
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
        Some(streaming) => window::tell(reader, options.lanes, *streaming, &mut printer, sink)?,
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

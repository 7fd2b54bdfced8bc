//! How a tree is built and printed, and its figures.

use anytrace_core::Selection;

use crate::lanes::Lanes;

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

impl TreeForm {
    /// True when attributes are printed, or needed to find an event's actor.
    pub(super) fn wants_attributes(self) -> bool {
        self == Self::Text
    }
}

/// Options of [`tree`](super::tree()).
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

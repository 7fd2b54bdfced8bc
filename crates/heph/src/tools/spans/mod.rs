//! Events as a call tree: exact for traces of any size, or in order of arrival in bounded memory.
//!
//! [`tree`] prints it; [`anytrace_core::Trace::spans`] emits it for every verb that works on spans.

pub(crate) mod actors;
mod builder;
mod chunk;
pub(crate) mod collect;
pub(crate) mod event;
pub(crate) mod names;
mod printer;
pub(crate) mod rule;
mod sorter;
pub(crate) mod tracks;
mod tree;
mod window;

use anytrace_core::{Error, Sink};

use crate::reader::Place;
use crate::rules;

pub use tree::{Streaming, TreeForm, TreeOptions, TreeSummary, tree};

/// The unit within which events nest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lanes {
    /// Each substream of each stream by itself.
    #[default]
    Substream,
    /// A stream with all its substreams.
    Stream,
}

/// Reports oddities of an entire trace: a second epoch (place, the previous one, the other), events that end before
/// they start (the first one and how many).
fn report_oddities(
    epoch: Option<(Place, u64, u64)>,
    backward: Option<(Place, u64)>,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    if let Some((place, before, now)) = epoch {
        let report = rules::EPOCH_SET_AGAIN.at(place.offset).record(place.seq).field("epoch value");
        let report = report.expected(before.to_string()).found(now.to_string());
        sink.report(report.help("times are shown from the first epoch on"))?;
    }
    if let Some((place, count)) = backward {
        let report = rules::END_BEFORE_START.at(place.offset).record(place.seq);
        let found = format!("{count} events, the first here");
        sink.report(report.found(found).help("they count as points at their start"))?;
    }
    Ok(())
}

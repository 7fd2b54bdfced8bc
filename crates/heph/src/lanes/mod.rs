//! Events as spans, for every verb that works on spans: read to the end, sorted by lane and start, nested. And as
//! tables, in the order of the file.

pub(crate) mod actors;
mod chunk;
pub(crate) mod collect;
pub(crate) mod event;
pub(crate) mod layer;
pub(crate) mod marks;
pub(crate) mod names;
pub(crate) mod rule;
pub(crate) mod runtime;
mod sorter;
pub(crate) mod spans;
pub(crate) mod tables;
#[cfg(feature = "tools")]
pub(crate) mod tasks;

use anytrace_core::{Error, Place, Sink};

use crate::rules;

/// The unit within which events nest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lanes {
    /// Each substream of each stream by itself.
    #[default]
    Substream,
    /// Stream, with all its substreams.
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
        sink.report(report.help("times are relative to the first epoch"))?;
    }
    if let Some((place, count)) = backward {
        let report = rules::END_BEFORE_START.at(place.offset).record(place.seq);
        let found = format!("{count} events, the first here");
        sink.report(report.found(found).help("they count as instants at their start"))?;
    }
    Ok(())
}

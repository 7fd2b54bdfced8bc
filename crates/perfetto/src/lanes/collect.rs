//! Reads a trace to its end: events into the store, by track.

use anytrace_core::hash::Map;
use anytrace_core::{Error, Sink, Summary};

use super::attributes::Wanted;
use super::collector::Collector;
use super::ftrace;
use super::store::Store;
use crate::model::event::TrackKey;
use crate::model::names::NameNumber;
use crate::model::session::{Entered, Go, Packet, Session, walk};
use crate::wire::reader::Reader;
use crate::wire::record::data;

/// Everything that emitting needs.
pub(super) struct Collected {
    pub(super) session: Session,
    pub(super) store: Store,
    /// The tracks, in the order of their first events, each with the name of that event.
    pub(super) tracks: Vec<(TrackKey, NameNumber)>,
    /// When each arrow begins, and the packet there.
    pub(super) flows: Map<u64, (u64, u64)>,
    pub(super) start: Option<u64>,
    pub(super) summary: Summary,
}

/// Reads a trace.
pub(super) fn collect(
    mut reader: Reader,
    distinct_max: usize,
    wanted: Wanted,
    sink: &mut dyn Sink,
) -> Result<Collected, Error> {
    let mut collector = Collector::new(distinct_max, wanted);
    let passed = walk(&mut reader, sink, |packet, sink| {
        if let Some(entered) = collector.session.enter(packet, sink)? {
            read(&mut collector, packet, entered, sink)?;
        }
        Ok(Go::On)
    })?;
    let Collector { session, store, tracks, flows, start, .. } = collector;
    let summary = Summary { records: passed.records, bytes: passed.bytes };
    Ok(Collected { session, store, tracks, flows, start, summary })
}

/// Stores the events of a packet.
#[inline]
fn read(out: &mut Collector, packet: &Packet<'_>, entered: Entered, sink: &mut dyn Sink) -> Result<(), Error> {
    match packet.record.kind() {
        data::TRACK_EVENT => {
            if let Some(time) = entered.time {
                out.track_event(packet, time, entered.sequence, sink)?;
            }
        }
        data::FTRACE_EVENTS => ftrace::bundle(out, packet.record.data(), packet.place.seq)?,
        _ => return Ok(()),
    }
    if out.is_full { out.session.limit(packet, "tracks", sink) } else { Ok(()) }
}

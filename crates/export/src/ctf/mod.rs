//! CTF 1.8, the Common Trace Format, for babeltrace2, Trace Compass and other readers of LTTng's traces.
//!
//! A trace is a folder of two files: `metadata`, text that describes the bytes of the other, and `stream`, packets of
//! events in the order of time. Edges of several tracks arrive in any order between tracks, so that they are sorted
//! first: 16 MiB of them in memory, the rest on disk.
//!
//! | event | from |
//! |---|---|
//! | `track` | a track's first edge: its names |
//! | `span_begin`, `span_end` | a span; both have its name |
//! | `instant`, `counter`, `flow_out`, `flow_in` | the edge of that kind |
//!
//! Every event has the track's number, process, thread and label and its processor as its context; the number
//! distinguishes lanes of one thread. Numbers keep their width, attributes their types. Times are nanoseconds of one clock
//! that begins [`LEAD_NS`] before the trace's origin, at most; where the trace has an epoch the clock's offset is that.
//!
//! Form: "Common Trace Format" 1.8.3, diamon.org/ctf; what babeltrace2 2.0.4 reads.

mod event;
mod metadata;
mod packets;
mod sorted;

use anytrace_core::runs::Sorter;
use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink};

use crate::chrome::LEAD_NS;
use crate::timeline::clock::Clock;
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{self, Fragments, shown};
use packets::Packets;
use sorted::At;

/// The file of events.
pub(crate) const STREAM: &str = "stream";
/// The file that describes it.
pub(crate) const METADATA: &str = "metadata";

/// A trace being written.
pub(crate) struct Ctf<'a> {
    packets: Packets<'a>,
    clock: Clock,
    /// The time of the origin in the output.
    lead_ns: i64,
    tracks: Vec<OnTrack>,
    /// Names and places as zero-terminated strings.
    names: Fragments,
    places: Fragments,
    sorted: Sorter<At>,
    scratch: Vec<u8>,
}

/// What is known of a track.
struct OnTrack {
    /// The part of the context that all of its events share.
    context: Vec<u8>,
    /// The payload of the event that announces it, until that is written.
    announcement: Option<Vec<u8>>,
}

impl<'a> Ctf<'a> {
    pub(crate) fn new(outlet: Outlet<'a>) -> Self {
        Self {
            packets: Packets::new(outlet.out),
            clock: Clock::default(),
            lead_ns: 0,
            tracks: Vec::new(),
            names: Fragments::default(),
            places: Fragments::default(),
            sorted: Sorter::default(),
            scratch: Vec::new(),
        }
    }

    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge) -> Result<(), Error> {
        let time = u64::try_from(self.clock.since_origin(edge.time).saturating_add(self.lead_ns)).unwrap_or(0);
        let Some(track) = self.tracks.get_mut(edge.track as usize) else { return Ok(()) };
        let cpu = words::cpu(edge.cpu).map_or(-1, i32::from);
        if let Some(announcement) = track.announcement.take() {
            self.scratch.clear();
            event::head(&mut self.scratch, event::TRACK, &track.context, cpu);
            self.scratch.extend_from_slice(&announcement);
            self.sorted.push(At::new(time), &self.scratch)?;
        }
        let out = &mut self.scratch;
        out.clear();
        event::head(out, event::id(edge.kind), &track.context, cpu);
        out.extend_from_slice(nonempty(self.names.get(edge.name)));
        let mut attributes = batch.attributes(edge).peekable();
        match edge.kind {
            EdgeKind::Begin => out.extend_from_slice(nonempty(self.places.get(edge.name))),
            EdgeKind::Counter => event::value(out, attributes.next().map(|(_, value)| value)),
            EdgeKind::FlowOut | EdgeKind::FlowIn => event::number(out, attributes.next().map(|(_, value)| value)),
            EdgeKind::End | EdgeKind::Instant => {}
        }
        event::flags(out, edge.flags);
        event::attributes(out, attributes.map(|(key, value)| (nonempty(self.names.get(key)), value)));
        self.sorted.push(At::new(time), out)
    }
}

/// A string that was never announced is an empty one.
fn nonempty(text: &[u8]) -> &[u8] {
    if text.is_empty() { b"\0" } else { text }
}

impl SpanSink for Ctf<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        self.lead_ns = self.clock.length(source.origin).min(LEAD_NS).cast_signed();
        Ok(())
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        let mut context = Vec::new();
        context.extend_from_slice(&id.to_le_bytes());
        context.extend_from_slice(&track.process.to_le_bytes());
        context.extend_from_slice(&track.thread.to_le_bytes());
        event::string(&mut context, words::label(track).as_bytes());
        let mut announcement = Vec::new();
        event::string(&mut announcement, track.process_name.as_deref().unwrap_or_default().as_bytes());
        event::string(&mut announcement, track.name.as_deref().unwrap_or_default().as_bytes());
        announcement.extend_from_slice(&track.lane.to_le_bytes());
        announcement.push(u8::from(track.is_task));
        self.tracks.push(OnTrack { context, announcement: Some(announcement) });
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.names.add(|out| event::string(out, shown(name).as_bytes()));
        self.places.add(|out| event::string(out, location.map(words::place).unwrap_or_default().as_bytes()));
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().try_for_each(|edge| self.edge(batch, edge))
    }
}

impl Timeline for Ctf<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        let packets = &mut self.packets;
        std::mem::take(&mut self.sorted).each(&mut |at, event| packets.push(at.time, event))?;
        packets.finish()
    }

    fn beside(&self) -> Vec<u8> {
        metadata::text(&self.clock, self.lead_ns).into_bytes()
    }
}

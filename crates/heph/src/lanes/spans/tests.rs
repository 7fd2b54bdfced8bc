//! Tracks that lanes share when there are more lanes than tracks.

use std::collections::BTreeMap;

use anytrace_core::{Collect, Input, OpenOptions};
use proptest::prelude::*;

use super::*;
use crate::wire::record::Header;
use crate::wire::writer::Writer;

/// An event: stream, substream, start, length.
type One = (u32, u64, u64, u64);

/// Spans by track and the names of the tracks.
#[derive(Default)]
struct Shown {
    tracks: Vec<String>,
    open: BTreeMap<TrackId, Vec<u64>>,
    times: BTreeMap<TrackId, u64>,
    spans: Vec<(u64, u64, TrackId)>,
    instants: usize,
}

impl SpanSink for Shown {
    fn source(&mut self, _: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.name.clone().unwrap());
        Ok(())
    }

    fn name(&mut self, _: NameId, _: &[u8], _: Option<&anytrace_core::span::Location>) -> Result<(), Error> {
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let last = self.times.entry(edge.track).or_default();
            assert!(*last <= edge.time, "time goes back on track {}", edge.track);
            *last = edge.time;
            let open = self.open.entry(edge.track).or_default();
            match edge.kind {
                EdgeKind::Begin => open.push(edge.time),
                EdgeKind::End => self.spans.push((open.pop().unwrap(), edge.time, edge.track)),
                _ => self.instants += 1,
            }
        }
        Ok(())
    }
}

fn shown(events: &[One], limits: TrackLimits) -> (Shown, Collect) {
    let mut writer = Writer::new(Vec::new());
    let mut counters = BTreeMap::new();
    for &(stream, substream, start_ns, length) in events {
        let counter: &mut u32 = counters.entry(stream).or_default();
        let header = Header { stream, counter: *counter, substream, start_ns, end_ns: start_ns + length };
        *counter += 1;
        writer.event(&header, "request").finish().unwrap();
    }
    let input = Input::from_bytes("x", writer.finish().unwrap());
    let reader = Reader::new(input, &OpenOptions::default()).unwrap();
    let (mut out, mut sink) = (Shown::default(), Collect::default());
    emit_within(limits, reader, &mut out, &mut sink).unwrap();
    assert!(out.open.values().all(Vec::is_empty));
    (out, sink)
}

const FEW: TrackLimits = TrackLimits { lane: 4, owned: 3, shared: 2 };

/// A server under `tracing-heph` starts a lane for each request: with more requests than tracks, events were lost.
#[test]
fn lanes_one_after_the_other_share_a_track_and_lose_nothing() {
    let events: Vec<One> = (0..100).map(|n| (1, n, 10 * n, 10)).collect();
    let (out, sink) = shown(&events, FEW);
    assert!(sink.codes().is_empty(), "{:?}", sink.codes());
    assert_eq!(out.spans.len(), 100);
    assert_eq!(out.tracks.len(), 4);
    assert!(out.tracks[3].ends_with(", more substreams"), "{:?}", out.tracks);
}

#[test]
fn lanes_at_the_same_time_need_tracks_and_are_counted_when_there_are_none() {
    let events: Vec<One> = (0..9).map(|n| (1, n, 0, 10)).collect();
    let (out, sink) = shown(&events, FEW);
    assert_eq!((out.spans.len(), out.tracks.len()), (5, 5));
    assert_eq!(sink.codes(), ["heph/too-many-tracks"]);
}

#[test]
fn a_track_is_shared_within_its_stream_only() {
    let events: Vec<One> = (0..10).flat_map(|n| [(1, n, 10 * n, 5), (2, n, 10 * n, 5)]).collect();
    let (out, sink) = shown(&events, FEW);
    assert_eq!((out.spans.len(), out.tracks.len()), (20, 5));
    assert!(sink.codes().is_empty());
    assert!(out.tracks[3].contains('1') && out.tracks[4].contains('2'), "{:?}", out.tracks);
}

proptest! {
    /// Whatever the lanes, nothing is shown twice, lost without a count, or moved.
    #[test]
    fn every_event_is_shown_or_counted(events in prop::collection::vec((1..3_u32, 0..20_u64, 0..300_u64, 0..40_u64), 0..80)) {
        let (out, sink) = shown(&events, TrackLimits { lane: 3, owned: 2, shared: 5 });
        let found = sink.0.iter().find(|d| d.code() == "heph/too-many-tracks").and_then(|d| d.found.clone());
        let lost: usize = found.map_or(0, |found| found.split(' ').next().unwrap().parse().unwrap());
        prop_assert_eq!(out.spans.len() + out.instants + lost, events.len());
        let mut left: Vec<(u64, u64)> = events.iter().map(|&(_, _, start, length)| (start, start + length)).collect();
        for (start, end, _) in &out.spans {
            let at = left.iter().position(|one| one == &(*start, *end));
            prop_assert!(at.is_some());
            left.swap_remove(at.unwrap());
        }
        let (all, _) = shown(&events, TRACK_LIMITS);
        prop_assert_eq!(all.spans.len() + all.instants, events.len());
    }
}

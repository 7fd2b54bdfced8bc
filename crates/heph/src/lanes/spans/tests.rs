//! Rows that lanes share.

use std::collections::BTreeMap;

use anytrace_core::span::Track;
use anytrace_core::{Collect, Input, OpenOptions};
use proptest::prelude::*;

use super::*;
use crate::wire::dialect::LIFE;
use crate::wire::record::Header;
use crate::wire::writer::Writer;

/// An event: stream, substream, start, length.
type One = (u32, u64, u64, u64);

/// Spans by track and the names of the tracks.
#[derive(Default)]
struct Seen {
    tracks: Vec<(String, u64, u32)>,
    open: BTreeMap<TrackId, Vec<u64>>,
    times: BTreeMap<TrackId, u64>,
    spans: Vec<(u64, u64, TrackId)>,
    parents: Vec<(u64, Option<u64>)>,
    flows: Vec<(EdgeKind, u64, u64)>,
    instants: usize,
    without_lives: bool,
    complete: bool,
}

impl SpanSink for Seen {
    fn source(&mut self, _: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn wants_identities(&self) -> bool {
        true
    }

    fn takes_complete(&self) -> bool {
        self.complete
    }

    fn wants_lives(&self) -> bool {
        !self.without_lives
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push((track.name.clone().unwrap(), track.thread, track.lane));
        Ok(())
    }

    fn name(&mut self, _: NameId, _: &[u8], _: Option<&anytrace_core::span::Location>) -> Result<(), Error> {
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for (edge, identity) in batch.identified() {
            let last = self.times.entry(edge.track).or_default();
            assert!(*last <= edge.time, "time goes back on track {}", edge.track);
            *last = edge.time;
            let open = self.open.entry(edge.track).or_default();
            match edge.kind {
                EdgeKind::Begin if edge.flags.has(EdgeFlags::COMPLETE) => {
                    let Some((_, Value::U64(end))) = batch.attributes(edge).next() else { panic!("no end") };
                    self.spans.push((edge.time, end, edge.track));
                }
                EdgeKind::Begin => open.push(edge.time),
                EdgeKind::End => self.spans.push((open.pop().unwrap(), edge.time, edge.track)),
                EdgeKind::Instant => self.instants += 1,
                EdgeKind::FlowIn | EdgeKind::FlowOut => {
                    let Some((_, Value::U64(number))) = batch.attributes(edge).next() else { panic!("no number") };
                    self.flows.push((edge.kind, edge.time, number));
                }
                EdgeKind::Counter => panic!("a counter"),
            }
            self.parents.extend(identity);
        }
        Ok(())
    }
}

fn emitted(bytes: Vec<u8>, mut out: Seen) -> Seen {
    let reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
    let mut sink = Collect::default();
    emit(reader, &mut out, &mut sink).unwrap();
    assert!(sink.codes().is_empty(), "{:?}", sink.codes());
    assert!(out.open.values().all(Vec::is_empty));
    out
}

/// Appends an event with the numbers of its span, as `tracing-heph` does.
fn write(writer: &mut Writer<Vec<u8>>, counters: &mut BTreeMap<u32, u32>, one: One, name: &str, ids: [u64; 3]) {
    let (stream, substream, start_ns, length) = one;
    let counter = counters.entry(stream).or_default();
    let header = Header { stream, counter: *counter, substream, start_ns, end_ns: start_ns + length };
    *counter += 1;
    let mut event = writer.event(&header, name);
    for (key, value) in ["span.id", "span.parent", "span.poll"].into_iter().zip(ids).filter(|(_, value)| *value > 0) {
        event = event.unsigned(key, value);
    }
    event.finish().unwrap();
}

fn seen(events: &[One]) -> Seen {
    let (mut writer, mut counters) = (Writer::new(Vec::new()), BTreeMap::new());
    events.iter().for_each(|one| write(&mut writer, &mut counters, *one, "request", [0; 3]));
    emitted(writer.finish().unwrap(), Seen::default())
}

/// A server under `tracing-heph` starts a lane for each request. Each had a track, and where there were too many,
/// events were lost.
#[test]
fn lanes_one_after_the_other_share_a_track() {
    let out = seen(&(0..1000).map(|n| (1, n, 10 * n, 10)).collect::<Vec<_>>());
    assert_eq!((out.spans.len(), out.tracks.len()), (1000, 1));
}

#[test]
fn lanes_at_the_same_time_have_as_many_tracks_as_there_are() {
    let out = seen(&(0..9000).map(|n| (1, n, 0, 10)).collect::<Vec<_>>());
    assert_eq!((out.spans.len(), out.tracks.len()), (9000, 9000));
}

#[test]
fn a_lane_with_a_span_open_has_its_row_to_itself() {
    // Lane 1 waits in [40, 60): lane 2 is no child of it, though its times are inside.
    let out = seen(&[(1, 1, 0, 100), (1, 1, 10, 30), (1, 2, 45, 5), (1, 1, 60, 10), (1, 3, 100, 5)]);
    assert_eq!(out.tracks.len(), 2);
    let track = |start: u64| out.spans.iter().find(|span| span.0 == start).unwrap().2;
    assert_eq!([0, 10, 60].map(track), [0; 3]);
    assert_eq!((track(45), track(100)), (1, 0));
}

#[test]
fn a_track_is_shared_within_its_stream_only() {
    let events: Vec<One> = (0..10).flat_map(|n| [(1, n, 10 * n, 5), (2, n, 10 * n, 5)]).collect();
    let out = seen(&events);
    assert_eq!((out.spans.len(), out.tracks.len()), (20, 2));
    assert!(out.tracks[0].0.contains('1') && out.tracks[1].0.contains('2'), "{:?}", out.tracks);
}

/// Two requests on two threads; the first has a child, and is polled three times.
fn tasks() -> Vec<u8> {
    let (mut writer, mut counters) = (Writer::new(Vec::new()), BTreeMap::new());
    let events = [
        ((1, 1, 0, 10), "request", [1, 0, 0]),
        ((1, 2, 12, 10), "request", [2, 0, 0]),
        ((2, 1, 30, 4), "query", [3, 1, 0]),
        ((2, 1, 28, 10), "request", [1, 0, 1]),
        ((1, 1, 50, 5), "request", [1, 0, 2]),
        ((1, 3, 60, 5), "tick", [4, 0, 0]),
        ((2, LIFE | 1, 30, 5), "query", [3, 1, 0]),
        ((1, LIFE | 1, 0, 55), "request", [1, 0, 0]),
        ((2, LIFE | 2, 12, 11), "request", [2, 0, 0]),
        ((1, LIFE | 3, 60, 5), "tick", [4, 0, 0]),
    ];
    for (one, name, ids) in events {
        write(&mut writer, &mut counters, one, name, ids);
    }
    writer.finish().unwrap()
}

#[test]
fn runs_are_on_threads_and_lives_on_rows_by_the_names_of_their_roots() {
    let out = emitted(tasks(), Seen::default());
    let names: Vec<&str> = out.tracks.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["stream 1", "stream 2", "tasks: request", "tasks: request", "tasks: tick"]);
    assert_eq!((out.tracks[3].2, out.tracks[4].2), (1, 0));
    assert_eq!(out.spans.len(), 10);
    // The child's life is in that of its root, whichever thread closed it.
    assert!(out.spans.contains(&(0, 55, 2)) && out.spans.contains(&(30, 35, 2)) && out.spans.contains(&(12, 23, 3)));
    let (query, request) = (2_u64 << 32 | 2, 1_u64 << 32 | 4);
    assert!(out.parents.contains(&(query, Some(request))), "{:?}", out.parents);
}

#[test]
fn arrows_join_the_runs_of_a_span_and_no_others() {
    use EdgeKind::{FlowIn, FlowOut};
    for complete in [false, true] {
        let mut out = emitted(tasks(), Seen { complete, ..Seen::default() });
        out.flows.sort_by_key(|flow| flow.1);
        assert_eq!(out.flows, [(FlowOut, 0, 1), (FlowIn, 28, 1), (FlowOut, 28, 1), (FlowIn, 50, 1), (FlowOut, 50, 1)]);
        assert_eq!(out.spans.len(), 10);
    }
}

#[test]
fn who_sums_times_has_no_lives() {
    let out = emitted(tasks(), Seen { without_lives: true, ..Seen::default() });
    assert_eq!((out.spans.len(), out.tracks.len()), (6, 2));
}

/// The most lanes of a stream that have a span open at one time, by trying all starts.
fn at_once(events: &[One]) -> usize {
    let streams = events.iter().map(|one| one.0).collect::<std::collections::BTreeSet<_>>();
    let most = |stream: u32| {
        let of = || events.iter().filter(move |one| one.0 == stream && one.3 > 0);
        // A point is beside a span of another lane that ends there.
        let points = events.iter().filter(|one| one.0 == stream && one.3 == 0);
        let beside = points.map(|at| 1 + of().filter(|one| one.2 <= at.2 && at.2 <= one.2 + one.3).count()).max();
        let spans = of().map(|at| of().filter(|one| one.2 <= at.2 && at.2 < one.2 + one.3).count()).max();
        spans.max(beside).unwrap_or(1)
    };
    streams.into_iter().map(most).sum()
}

proptest! {
    /// Whatever the lanes, every event is shown once at its time, on no more tracks than spans were open at once.
    #[test]
    fn every_event_is_shown(events in prop::collection::vec((1..3_u32, 0..20_u64, 0..300_u64, 0..40_u64), 0..80)) {
        let out = seen(&events);
        prop_assert_eq!(out.spans.len() + out.instants, events.len());
        let mut left: Vec<(u64, u64)> = events.iter().map(|&(_, _, start, length)| (start, start + length)).collect();
        for (start, end, _) in &out.spans {
            let at = left.iter().position(|one| one == &(*start, *end));
            prop_assert!(at.is_some());
            left.swap_remove(at.unwrap());
        }
        prop_assert!(out.tracks.len() <= at_once(&events), "{} tracks", out.tracks.len());
    }
}

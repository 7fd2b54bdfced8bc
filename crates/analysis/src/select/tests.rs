//! Tests of the selection.

use anytrace_core::TimeBound;
use anytrace_core::span::{NO_CPU, TimeUnit};

use super::*;

/// What a sink got: tracks, and edges by track, kind and time.
#[derive(Default)]
struct Got {
    tracks: Vec<u64>,
    edges: Vec<(TrackId, EdgeKind, u64)>,
    parents: Vec<(u64, Option<u64>)>,
    takes_complete: bool,
}

impl SpanSink for Got {
    fn source(&mut self, _: &SpanSource) -> Result<(), Error> {
        Ok(())
    }
    fn takes_complete(&self) -> bool {
        self.takes_complete
    }
    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.thread);
        Ok(())
    }
    fn name(&mut self, _: NameId, _: &[u8], _: Option<&Location>) -> Result<(), Error> {
        Ok(())
    }
    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        self.edges.extend(batch.edges().iter().map(|edge| (edge.track, edge.kind, edge.time)));
        self.parents.extend(batch.identified().filter_map(|(_, identity)| identity));
        Ok(())
    }
}

fn edge(track: TrackId, kind: EdgeKind, time: u64, name: NameId) -> Edge {
    Edge { kind, time, track, name, seq: 0, flags: EdgeFlags::NONE, cpu: NO_CPU, attributes: (0, 0) }
}

/// Two threads: `main` from 0 to 100 with `work` from 10 to 50, which has `step` from 20 to 30 and from 30 to 35; and
/// `main` from 5 to 6. An instant at 25 in the first.
fn play(sink: &mut dyn SpanSink) {
    sink.source(&SpanSource { format: "test", unit: TimeUnit::Nanoseconds, origin: 0, epoch_ns: None, uptime: None })
        .unwrap();
    for (at, name) in (0..).zip(["main", "work", "step"]) {
        sink.name(at, name.as_bytes(), None).unwrap();
    }
    for (id, thread) in [(0, 70), (1, 80)] {
        sink.track(id, &Track { thread, ..Track::default() }).unwrap();
    }
    let spans: [(TrackId, NameId, u64, u64, Option<u64>); 5] = [
        (0, 0, 0, 100, None),
        (1, 0, 5, 6, None),
        (0, 1, 10, 50, Some(0)),
        (0, 2, 20, 30, Some(2)),
        (0, 2, 30, 35, Some(2)),
    ];
    let mut edges = Vec::new();
    for (number, (track, name, begin, end, parent)) in (0..).zip(spans) {
        edges.push((begin, 1, track, EdgeKind::Begin, name, number, parent, end));
        if !sink.takes_complete() {
            edges.push((end, 0, track, EdgeKind::End, name, number, parent, end));
        }
    }
    edges.push((25, 1, 0, EdgeKind::Instant, 2, 9, None, 0));
    edges.sort_by_key(|edge| (edge.0, edge.1));
    let mut batch = EdgeBatch::default();
    for (time, _, track, kind, name, number, parent, end) in edges {
        let mut edge = edge(track, kind, time, name);
        if kind == EdgeKind::Begin && sink.takes_complete() {
            edge.flags = EdgeFlags::COMPLETE;
        }
        batch.push(edge);
        if kind == EdgeKind::Begin && sink.takes_complete() {
            batch.attribute(0, Value::U64(end));
        }
        if kind == EdgeKind::Begin {
            batch.identify(number, parent);
        }
    }
    sink.edges(&batch).unwrap();
}

fn select(filter: impl Fn() -> SpanFilter, takes_complete: bool) -> (Got, u64) {
    let mut got = Got { takes_complete, ..Got::default() };
    let lengths = filter().duration.is_some().then(|| {
        let mut lengths = Lengths::new(&got, filter());
        play(&mut lengths);
        lengths
    });
    let mut selected = Selected::new(&mut got, filter(), lengths);
    play(&mut selected);
    let left_out = selected.left_out();
    (got, left_out)
}

/// Beginnings by track and time.
fn begins(got: &Got) -> Vec<(TrackId, u64)> {
    let is_begin = |edge: &&(TrackId, EdgeKind, u64)| edge.1 == EdgeKind::Begin;
    got.edges.iter().filter(is_begin).map(|edge| (edge.0, edge.2)).collect()
}

fn both(filter: impl Fn() -> SpanFilter + Copy, wanted: &[(TrackId, u64)], threads: &[u64]) {
    for takes_complete in [false, true] {
        let (got, left_out) = select(filter, takes_complete);
        assert_eq!(begins(&got), wanted, "complete: {takes_complete}");
        assert_eq!((left_out as usize, &got.tracks[..]), (5 - wanted.len(), threads));
        let ends = got.edges.iter().filter(|edge| edge.1 == EdgeKind::End).count();
        assert_eq!(ends, if takes_complete { 0 } else { wanted.len() });
    }
}

#[test]
fn each_condition_leaves_what_it_says() {
    both(SpanFilter::default, &[(0, 0), (1, 5), (0, 10), (0, 20), (0, 30)], &[70, 80]);
    both(|| SpanFilter { threads: vec![80], ..SpanFilter::default() }, &[(0, 5)], &[80]);
    both(|| SpanFilter { depth: Some(1..2), ..SpanFilter::default() }, &[(0, 10)], &[70]);
    both(
        || SpanFilter { name: Some(Box::new(|name| name == b"step")), ..SpanFilter::default() },
        &[(0, 20), (0, 30)],
        &[70],
    );
    let bounds = |from, to| Some((TimeBound::Native(from), TimeBound::Native(to)));
    both(|| SpanFilter { time: bounds(10, 30), ..SpanFilter::default() }, &[(0, 10), (0, 20)], &[70]);
    both(|| SpanFilter { duration: bounds(10, 41), ..SpanFilter::default() }, &[(0, 10), (0, 20)], &[70]);
}

#[test]
fn the_parent_of_a_span_is_the_next_around_it_that_counts() {
    let filter = || SpanFilter { name: Some(Box::new(|name| name != b"work")), ..SpanFilter::default() };
    let (got, _) = select(filter, false);
    assert_eq!(got.parents, [(0, None), (1, None), (3, Some(0)), (4, Some(0))]);
    assert!(got.edges.contains(&(0, EdgeKind::Instant, 25)));
}

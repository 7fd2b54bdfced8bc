//! Times by path.

use std::collections::BTreeMap;

use anytrace_core::span::Location;
use anytrace_core::{Collect, Input, OpenOptions};
use proptest::prelude::*;

use super::*;
use crate::wire::dialect::LIFE;
use crate::wire::record::Header;
use crate::wire::writer::Writer;

/// Self time by path.
#[derive(Default)]
struct Paths {
    names: Vec<String>,
    open: BTreeMap<TrackId, (Vec<NameId>, u64)>,
    times: BTreeMap<String, u64>,
}

impl SpanSink for Paths {
    fn source(&mut self, _: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn track(&mut self, id: TrackId, _: &Track) -> Result<(), Error> {
        self.open.insert(id, (Vec::new(), 0));
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push(String::from_utf8(name.to_vec()).unwrap());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let (open, last) = self.open.get_mut(&edge.track).unwrap();
            assert!(*last <= edge.time);
            if !open.is_empty() && edge.time > *last {
                let path: Vec<&str> = open.iter().map(|name| self.names[*name as usize].as_str()).collect();
                *self.times.entry(path.join(";")).or_default() += edge.time - *last;
            }
            *last = edge.time;
            match edge.kind {
                EdgeKind::Begin => open.push(edge.name),
                EdgeKind::End => assert_eq!(open.pop(), Some(edge.name)),
                _ => panic!("{edge:?}"),
            }
        }
        Ok(())
    }
}

/// An event: stream, substream, start, end; name; numbers of the span and its parent.
type One = ((u32, u64, u64, u64), &'static str, (u64, u64));

fn paths(events: &[One], causes: Causes) -> (Paths, Vec<&'static str>) {
    let (mut writer, mut counters) = (Writer::new(Vec::new()), BTreeMap::new());
    for &((stream, substream, start_ns, end_ns), name, (span, parent)) in events {
        let counter: &mut u32 = counters.entry(stream).or_default();
        let header = Header { stream, counter: *counter, substream, start_ns, end_ns };
        *counter += 1;
        let event = writer.event(&header, name);
        let event = if span > 0 { event.unsigned("span.id", span) } else { event };
        let event = if parent > 0 { event.unsigned("span.parent", parent) } else { event };
        event.finish().unwrap();
    }
    let reader = Reader::new(Input::from_bytes("x", writer.finish().unwrap()), &OpenOptions::default()).unwrap();
    let (mut out, mut sink) = (Paths::default(), Collect::default());
    emit(reader, causes, &mut out, &mut sink).unwrap();
    assert!(out.open.values().all(|(open, _)| open.is_empty()));
    (out, sink.codes())
}

/// A request whose query runs on another thread; another request runs in the same thread's time.
const EVENTS: [One; 9] = [
    ((1, 1, 0, 10), "request", (1, 0)),
    ((2, 1, 20, 30), "query", (2, 1)),
    ((1, 1, 43, 45), "query", (2, 1)),
    ((1, 1, 40, 50), "request", (1, 0)),
    ((1, 3, 60, 70), "other", (3, 0)),
    ((1, 0, 72, 74), "unnumbered", (0, 0)),
    ((1, LIFE | 1, 15, 48), "query", (2, 1)),
    ((1, LIFE | 1, 0, 100), "request", (1, 0)),
    ((1, LIFE | 3, 55, 70), "other", (3, 0)),
];

#[test]
fn runs_are_below_what_caused_them_on_any_thread() {
    let (found, codes) = paths(&EVENTS, Causes::Busy);
    let times: Vec<_> = found.times.iter().map(|(path, time)| (path.as_str(), *time)).collect();
    assert_eq!(times, [("other", 10), ("request", 18), ("request;query", 12)]);
    assert_eq!(codes, ["heph/without-number"]);
}

#[test]
fn waiting_is_what_neither_ran_nor_waited_for_a_child() {
    let (found, _) = paths(&EVENTS, Causes::BusyAndWaiting);
    let of = |path: &str| found.times.get(path).copied();
    // 100 of life, 33 of them with the query; 18 in runs.
    assert_eq!(of("request;(waiting)"), Some(49));
    assert_eq!((of("request;query;(waiting)"), of("other;(waiting)")), (Some(21), Some(5)));
    assert_eq!((of("request"), of("request;query"), of("other")), (Some(18), Some(12), Some(10)));
}

#[test]
fn a_parent_without_an_event_is_other_and_forged_circles_end() {
    let (found, _) = paths(&[((1, 1, 0, 10), "query", (9, 5)), ((1, 1, 20, 25), "self", (7, 7))], Causes::Busy);
    let times: Vec<_> = found.times.into_iter().collect();
    assert_eq!(times, [("(other);query".to_owned(), 10), ("self".to_owned(), 5)]);
}

#[test]
fn circles_of_any_length_end_soon() {
    for length in [2, 3, 7, 100] {
        let names = ["a"; 100];
        let events: Vec<One> =
            (1..=length).map(|span| ((1, 1, 10 * span, 10 * span + 5), names[0], (span, span % length + 1))).collect();
        let (found, _) = paths(&events, Causes::Busy);
        let longest = found.times.keys().map(|path| path.split(';').count() as u64).max().unwrap();
        assert!((length..=3 * length).contains(&longest), "{length}: {longest}");
    }
}

/// Spans of OpenTelemetry: children end, and get their numbers, before their parents.
#[test]
fn spans_without_runs_have_the_time_in_which_no_child_existed() {
    let events = [
        ((1, LIFE | 1, 30, 40), "leaf", (1, 2)),
        ((1, LIFE | 1, 20, 60), "inner", (2, 3)),
        ((1, LIFE | 1, 0, 100), "root", (3, 0)),
    ];
    for causes in [Causes::Busy, Causes::BusyAndWaiting] {
        let (found, codes) = paths(&events, causes);
        let times: Vec<_> = found.times.iter().map(|(path, time)| (path.as_str(), *time)).collect();
        assert_eq!(times, [("root", 60), ("root;inner", 30), ("root;inner;leaf", 10)]);
        assert_eq!(codes, [""; 0]);
    }
}

proptest! {
    /// All time in runs is somewhere, once.
    #[test]
    fn sums_are_the_time_in_runs(cuts in prop::collection::vec((1..3_u32, 1..8_u64, 0..8_u64, 0..50_u64, 1..30_u64), 1..40)) {
        let events: Vec<One> = cuts
            .iter()
            .map(|&(stream, span, parent, start, length)| ((stream, 1, start, start + length), "span", (span, parent)))
            .collect();
        let (found, _) = paths(&events, Causes::Busy);
        // Runs that cross are cut: what is shown is never more than what ran, and all of it where only one ran.
        let ran = |stream: u32| (0..100).filter(|at| cuts.iter().any(|c| c.0 == stream && c.3 <= *at && *at < c.3 + c.4)).count();
        prop_assert!(found.times.values().sum::<u64>() <= (ran(1) + ran(2)) as u64);
        let first = |stream: u32| cuts.iter().filter(|c| c.0 == stream).map(|c| (c.3, c.4)).min_by_key(|c| (c.0, u64::MAX - c.1));
        let least: u64 = [1, 2].into_iter().filter_map(first).map(|c| c.1).sum();
        prop_assert!(found.times.values().sum::<u64>() >= least);
    }
}

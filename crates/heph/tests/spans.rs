//! Call trees: the expectations of the corpus, the rule word by word on random traces, streaming, damage, tracks.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value as SpanValue,
};
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};
use anytrace_heph::Heph;
use anytrace_heph::tools::spans::{Lanes, Streaming, TreeForm, TreeOptions, TreeSummary, tree};
use common::Bytes;
use proptest::prelude::*;
use serde_json::Value;

fn printed(bytes: &[u8], options: &TreeOptions) -> (String, TreeSummary, Collect) {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let input = Input::from_bytes("trace", bytes.to_vec());
    let summary = tree(input, &OpenOptions::default(), options, &mut out, &mut sink).unwrap();
    (String::from_utf8(out).unwrap(), summary, sink)
}

fn json(bytes: &[u8], options: &TreeOptions) -> Value {
    serde_json::from_str(&printed(bytes, options).0).unwrap()
}

fn as_json() -> TreeOptions {
    TreeOptions { form: TreeForm::Json, ..TreeOptions::default() }
}

fn corpus(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(path)
}

#[test]
fn ties_points_and_overlaps_are_as_the_corpus_has_them() {
    let bytes = std::fs::read(corpus("valid/nesting_ties.heph")).unwrap();
    let found = json(&bytes, &as_json());
    let expected: Value =
        serde_json::from_slice(&std::fs::read(corpus("valid/nesting_ties.heph.tree.json")).unwrap()).unwrap();
    let keys = ["description", "start", "end", "parent", "overlaps"];
    let spans = found["spans"].as_array().unwrap();
    assert_eq!(spans.len(), expected.as_array().unwrap().len());
    for (found, expected) in spans.iter().zip(expected.as_array().unwrap()) {
        for key in keys {
            assert_eq!(found[key], expected[key], "{key} of {found}");
        }
    }
    let text = printed(&bytes, &as_json()).0;
    let first = text.lines().nth(1).unwrap();
    let order = ["description", "start", "end", "parent", "overlaps", "seq", "stream", "substream", "parent_seq"];
    let places: Vec<usize> = order.iter().map(|key| first.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{first}");
}

#[test]
fn the_figures_of_real_traces_are_as_the_corpus_has_them() {
    let expected: BTreeMap<String, Value> =
        serde_json::from_slice(&std::fs::read(corpus("real/tree_summary.json")).unwrap()).unwrap();
    let folders = common::corpora();
    let files =
        folders.iter().flat_map(|folder| expected.iter().map(move |row| (folder.join("real").join(row.0), row)));
    let mut seen = 0;
    for (path, (name, expected)) in files {
        let Ok(bytes) = std::fs::read(path) else { continue };
        seen += 1;
        let exact = json(&bytes, &as_json());
        assert_eq!(exact["summary"], *expected, "{name}");
        let streaming = TreeOptions { streaming: Some(Streaming::default()), ..as_json() };
        assert_eq!(json(&bytes, &streaming), exact, "{name}");
        let summary = json(&bytes, &TreeOptions { form: TreeForm::SummaryJson, ..TreeOptions::default() });
        assert_eq!((&summary["version"], &summary["summary"]), (&Value::from(1), expected));
    }
    assert!(seen >= 6);
}

/// An event: stream, substream, start, length.
type Made = (u32, u64, u64, u64);

fn trace(events: &[Made]) -> Vec<u8> {
    let mut counters: BTreeMap<u32, u32> = BTreeMap::new();
    let mut bytes = Bytes::new().epoch();
    for (n, &(stream, substream, start, length)) in events.iter().enumerate() {
        let counter = counters.entry(stream).or_default();
        bytes = bytes.event(stream, *counter, substream, start, start + length, &format!("e{n}")).end();
        *counter += 1;
    }
    bytes.bytes
}

/// Section 5 of the page, word by word, over all events of each lane: parent and overlapped event by number.
fn by_hand(events: &[Made], by_stream: bool) -> BTreeMap<usize, (Option<usize>, Option<usize>)> {
    let mut lanes: BTreeMap<(u32, u64), Vec<usize>> = BTreeMap::new();
    for (n, event) in events.iter().enumerate() {
        lanes.entry((event.0, if by_stream { 0 } else { event.1 })).or_default().push(n);
    }
    let mut rows = BTreeMap::new();
    for mut lane in lanes.into_values() {
        // Counters ascend with arrival, so of equal intervals the last to arrive comes first.
        lane.sort_by_key(|&n| (events[n].2, u64::MAX - (events[n].2 + events[n].3), usize::MAX - n));
        let mut stack: Vec<usize> = Vec::new();
        for n in lane {
            let (start, end) = (events[n].2, events[n].2 + events[n].3);
            let end_of = |n: usize| events[n].2 + events[n].3;
            while stack.last().is_some_and(|&top| end_of(top) < start || end_of(top) == start && end > start) {
                stack.pop();
            }
            let parent = stack.iter().rposition(|&open| end_of(open) >= end);
            let overlaps = stack.last().copied().filter(|&top| end_of(top) < end);
            rows.insert(n, (parent.map(|at| stack[at]), overlaps));
            stack.push(n);
        }
    }
    rows
}

fn found(value: &Value) -> BTreeMap<usize, (Option<usize>, Option<usize>)> {
    let number = |value: &Value| value.as_str().map(|name| name[1..].parse().unwrap());
    let spans = value["spans"].as_array().unwrap().iter();
    spans
        .map(|span| (number(&span["description"]).unwrap(), (number(&span["parent"]), number(&span["overlaps"]))))
        .collect()
}

fn events() -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec((0..2_u32, 0..3_u64, 0..40_u64, prop_oneof![Just(0), 0..8_u64, 0..40_u64]), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_tree_is_the_rule_word_by_word(events in events(), by_stream in any::<bool>()) {
        let lanes = if by_stream { Lanes::Stream } else { Lanes::Substream };
        let exact = json(&trace(&events), &TreeOptions { lanes, ..as_json() });
        prop_assert_eq!(found(&exact), by_hand(&events, by_stream));
        let streaming = TreeOptions { lanes, streaming: Some(Streaming::default()), ..as_json() };
        prop_assert_eq!(&json(&trace(&events), &streaming), &exact);
    }

    #[test]
    fn in_a_short_window_every_event_is_emitted_once_and_no_parent_is_invented(
        events in events(), lane_spans_max in 2..8_usize, horizon in prop::option::of(0..30_u64),
    ) {
        // In order of their ends, as a writer emits them.
        let mut events = events;
        events.sort_by_key(|event| event.2 + event.3);
        let streaming = Streaming { lane_spans_max, horizon_ns: horizon };
        let options = TreeOptions { streaming: Some(streaming), ..as_json() };
        let stored = json(&trace(&events), &options);
        let rows = found(&stored);
        prop_assert_eq!(rows.len(), events.len());
        for (n, (parent, _)) in rows {
            let Some(parent) = parent else { continue };
            let (inner, outer) = (events[n], events[parent]);
            prop_assert_eq!((inner.0, inner.1), (outer.0, outer.1));
            prop_assert!(outer.2 <= inner.2 && inner.2 + inner.3 <= outer.2 + outer.3);
        }
    }

    #[test]
    fn tracks_nest_and_keep_every_span_complete(events in events()) {
        let mut stored = StoredSpans::default();
        spans(&trace(&events), &mut stored);
        let of = |is_instant: bool| events.iter().enumerate().filter(move |(_, e)| (e.3 == 0) == is_instant);
        let mut expected: Vec<(String, u64, u64)> =
            of(false).map(|(n, e)| (format!("e{n}"), e.2, e.2 + e.3)).collect();
        expected.sort();
        let rows = by_hand(&events, false);
        // The enclosing span of an instant: points enclose nothing.
        let around = |n: usize| {
            let mut parent = rows[&n].0;
            while let Some(point) = parent.filter(|&parent| events[parent].3 == 0) {
                parent = rows[&point].0;
            }
            parent.map(|parent| format!("e{parent}"))
        };
        let mut instants: Vec<_> = of(true).map(|(n, e)| (format!("e{n}"), e.2, around(n))).collect();
        instants.sort();
        let mut found = stored.spans.clone();
        found.sort();
        prop_assert_eq!(&found, &expected);
        prop_assert!(stored.open.iter().all(Vec::is_empty));
        let mut complete = StoredSpans { takes_complete: true, ..StoredSpans::default() };
        spans(&trace(&events), &mut complete);
        complete.spans.sort();
        prop_assert_eq!(&complete.spans, &expected);
        let instants_of = |stored: &StoredSpans| {
            let mut all: Vec<_> = stored.instants.iter().map(|one| (one.0.clone(), one.1)).collect();
            all.sort();
            all
        };
        prop_assert_eq!(instants_of(&complete), instants_of(&stored));
        stored.instants.sort();
        prop_assert_eq!(stored.instants.len(), instants.len());
        for (found, expected) in stored.instants.iter().zip(&instants) {
            // A point at the very end of its span may find the row taken by what begins there in another lane.
            let ended = expected.2.as_ref().is_some_and(|name| {
                let (_, _, start, length) = events[name[1..].parse::<usize>().unwrap()];
                start + length == expected.1
            });
            prop_assert!(found == expected || ended && found.2.is_none(), "{:?}, expected {:?}", found, expected);
        }
        prop_assert_eq!(complete.tracks, stored.tracks);
    }

    #[test]
    fn damage_is_skipped_and_the_rest_is_emitted(at in 0..3000_usize, bit in 0..8_u8) {
        let mut bytes = std::fs::read(corpus("real/relay_new.bin.log")).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        for streaming in [None, Some(Streaming { lane_spans_max: 4, horizon_ns: Some(1000) })] {
            let (text, summary, _) = printed(&bytes, &TreeOptions { streaming, ..as_json() });
            let value: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(value["spans"].as_array().unwrap().len() as u64, summary.events);
            prop_assert!(summary.events >= 80);
        }
        let mut stored = StoredSpans::default();
        spans(&bytes, &mut stored);
        prop_assert!(stored.spans.len() + stored.instants.len() >= 80);
    }
}

fn spans(bytes: &[u8], stored: &mut StoredSpans) -> Collect {
    let mut sink = Collect::default();
    let input = Input::from_bytes("trace", bytes.to_vec());
    let opened = Heph.open(input, &OpenOptions::default()).unwrap();
    opened.spans(&SpanOptions::default(), stored, &mut sink).unwrap();
    sink
}

/// Checks the contract of edges and stores the spans.
#[derive(Default)]
struct StoredSpans {
    takes_complete: bool,
    source: Option<SpanSource>,
    tracks: Vec<Track>,
    names: Vec<String>,
    last: Vec<u64>,
    open: Vec<Vec<(NameId, u64)>>,
    spans: Vec<(String, u64, u64)>,
    /// Name, time, and the name of the enclosing span.
    instants: Vec<(String, u64, Option<String>)>,
    attributes: BTreeMap<String, Vec<String>>,
}

impl StoredSpans {
    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge) {
        let track = edge.track as usize;
        assert!(edge.time >= self.last[track], "time went back on a track");
        self.last[track] = edge.time;
        let name = self.names[edge.name as usize].clone();
        match edge.kind {
            EdgeKind::Begin if self.takes_complete => {
                let Some((_, SpanValue::U64(end))) = batch.attributes(edge).next() else { panic!("no end") };
                // Complete spans nest too: an open span must contain the next one or have ended.
                self.open[track]
                    .retain(|&(_, open_end)| open_end > edge.time || open_end == edge.time && end == edge.time);
                assert!(self.open[track].iter().all(|&(_, open_end)| open_end >= end), "spans cross on a track");
                self.open[track].push((edge.name, end));
                self.spans.push((name, edge.time, end));
            }
            EdgeKind::Begin => {
                self.open[track].push((edge.name, edge.time));
                for (key, value) in batch.attributes(edge) {
                    let key = self.names[key as usize].clone();
                    self.attributes.entry(key).or_default().push(format!("{name}: {value:?}"));
                }
            }
            EdgeKind::End => {
                let (begun, start) = self.open[track].pop().unwrap();
                assert_eq!(begun, edge.name);
                self.spans.push((name, start, edge.time));
            }
            EdgeKind::Instant => {
                assert!(!edge.flags.has(EdgeFlags::COMPLETE));
                let around = self.open[track].last().map(|open| self.names[open.0 as usize].clone());
                self.instants.push((name.clone(), edge.time, around));
                for (key, value) in batch.attributes(edge) {
                    let key = self.names[key as usize].clone();
                    self.attributes.entry(key).or_default().push(format!("{name}: {value:?}"));
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

impl SpanSink for StoredSpans {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert!(self.source.replace(*source).is_none());
        Ok(())
    }

    fn takes_complete(&self) -> bool {
        self.takes_complete
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        self.last.push(0);
        self.open.push(Vec::new());
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], _: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push(String::from_utf8(name.to_vec()).unwrap());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().for_each(|edge| self.edge(batch, edge));
        Ok(())
    }
}

#[test]
fn tracks_are_named_and_a_late_epoch_applies_to_all() {
    let bytes = std::fs::read(corpus("real/relay_new.bin.log")).unwrap();
    let mut stored = StoredSpans::default();
    spans(&bytes, &mut stored);
    let names: Vec<&str> = stored.tracks.iter().filter_map(|track| track.name.as_deref()).collect();
    assert!(names.contains(&"coordinator") && names.contains(&"worker 1"), "{names:?}");
    let lanes: std::collections::BTreeSet<(u64, u32)> = stored.tracks.iter().map(|t| (t.thread, t.lane)).collect();
    assert_eq!(lanes.len(), stored.tracks.len());
    let late = Bytes::new().poll(1, 0).epoch().poll(1, 1).bytes;
    let mut stored = StoredSpans::default();
    spans(&late, &mut stored);
    assert!(stored.source.unwrap().epoch_ns.is_some());
    let twice = Bytes::new().epoch().poll(1, 0).metadata("epoch", &[0; 8]).bytes;
    let sink = spans(&twice, &mut StoredSpans::default());
    assert_eq!(sink.codes(), ["heph/epoch-set-again"]);
}

#[test]
fn an_actor_s_event_is_certain_inside_one_run_and_likely_when_it_only_begins_there() {
    let run = |bytes: Bytes, counter, start, end| {
        let bytes = bytes.event(1, counter, 0, start, end, "Running thread-local process");
        bytes.attribute("id", 1).u64(7).attribute("name", 4).text("worker").end()
    };
    let bytes = Bytes::new().epoch().event(1, 0, 0, 12, 15, "inside").end();
    let bytes = run(bytes, 1, 10, 20).event(1, 2, 0, 14, 31, "waits").end();
    let bytes = run(bytes, 3, 30, 40).event(1, 4, 0, 41, 42, "after").end();
    let mut stored = StoredSpans::default();
    spans(&bytes.bytes, &mut stored);
    assert_eq!(stored.attributes["actor"].len(), 1);
    assert!(stored.attributes["actor"][0].starts_with("inside: "));
    assert!(stored.attributes["likely actor"][0].starts_with("waits: "));
    let text = printed(&bytes.bytes, &TreeOptions::default()).0;
    assert!(text.contains("inside [worker 7]\n") && text.contains("waits [worker 7?]"), "{text}");
    assert!(text.contains("  after\n"), "{text}");
}

#[test]
fn an_event_that_ends_before_it_starts_is_a_point_and_is_reported() {
    let bytes = Bytes::new().epoch().event(1, 0, 0, 9, 4, "odd").end().event(1, 1, 0, 0, 20, "around").end().bytes;
    let (text, _, sink) = printed(&bytes, &as_json());
    let value: Value = serde_json::from_str(&text).unwrap();
    let odd = &value["spans"][1];
    assert_eq!(
        (&odd["start"], &odd["end"], &odd["parent"]),
        (&Value::from(9), &Value::from(4), &Value::from("around"))
    );
    assert_eq!(sink.codes(), ["heph/end-before-start"]);
}

#[test]
fn events_of_no_length_are_instants_with_their_attributes() {
    let bytes = Bytes::new().epoch().event(1, 0, 0, 5, 5, "answered").attribute("bytes", 1).u64(512).end();
    let bytes = bytes.event(1, 1, 0, 9, 4, "odd").end().event(1, 2, 0, 0, 20, "around").end();
    let bytes = bytes.event(2, 0, 0, 7, 7, "alone").end().bytes;
    for takes_complete in [false, true] {
        let mut stored = StoredSpans { takes_complete, ..StoredSpans::default() };
        spans(&bytes, &mut stored);
        assert_eq!(stored.spans, [("around".to_owned(), 0, 20)]);
        let instants: Vec<_> = stored.instants.iter().map(|(name, time, _)| (name.as_str(), *time)).collect();
        assert_eq!(instants, [("answered", 5), ("odd", 9), ("alone", 7)]);
        assert_eq!(stored.attributes["bytes"], ["answered: U64(512)"]);
        assert_eq!(stored.attributes["end before start by ns"], ["odd: U64(5)"]);
    }
}

#[test]
fn an_empty_trace_is_an_empty_tree() {
    assert_eq!(json(&[], &as_json())["spans"], Value::Array(Vec::new()));
    let mut stored = StoredSpans::default();
    spans(&[], &mut stored);
    assert!(stored.source.is_some() && stored.spans.is_empty());
}

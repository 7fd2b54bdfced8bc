//! OTLP: every span once, with its parent, and ids that stay the same.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;
use std::io::Cursor;

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSource, TimeUnit, Track, Value as SpanValue,
};
use anytrace_export::cells::Cells;
use anytrace_export::timeline::{Outlet, by_name};
use common::random;
use serde_json::Value;

/// The spans of all lines, each of which is a request.
fn spans(lines: &[u8]) -> Vec<Value> {
    let lines = lines.split_inclusive(|byte| *byte == b'\n');
    let requests = lines.map(|line| serde_json::from_slice::<Value>(line.strip_suffix(b"\n").unwrap()).unwrap());
    requests
        .flat_map(|request| request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone())
        .collect()
}

#[test]
fn a_line_is_a_request_that_receivers_take() {
    let document = random(11, 9_000, TimeUnit::Nanoseconds).written("otlp");
    let lines: Vec<&[u8]> = document.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.len() > 2);
    for line in &lines {
        assert!(line.len() < 2 << 20);
        let request: Value = serde_json::from_slice(line).unwrap();
        let resource = &request["resourceSpans"][0]["resource"];
        assert_eq!(resource["attributes"][0]["key"], "service.name");
        assert!((1..=1000).contains(&spans(line).len()));
    }
    // Without any there is one, of a resource without spans.
    let empty = random(11, 0, TimeUnit::Nanoseconds).written("otlp");
    assert_eq!((empty.split(|byte| *byte == b'\n').count(), spans(&empty).len()), (2, 0));
}

#[test]
fn each_span_is_there_once_inside_its_parent() {
    let played = random(11, 4_000, TimeUnit::Nanoseconds);
    let count = |kind| played.edges.iter().filter(|(edge, _)| edge.kind == kind).count();
    let document = played.written("otlp");
    let all = spans(&document);
    let events: usize = all.iter().map(|span| span.get("events").map_or(0, |e| e.as_array().unwrap().len())).sum();
    let begins = count(EdgeKind::Begin) + count(EdgeKind::Instant) - events;
    assert_eq!(all.len(), begins);
    let ids: BTreeMap<&str, &Value> = all.iter().map(|span| (span["spanId"].as_str().unwrap(), span)).collect();
    assert_eq!(ids.len(), begins, "ids are unique");
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let mut with_parents = 0;
    for span in &all {
        assert_eq!((span["traceId"].as_str().unwrap().len(), span["spanId"].as_str().unwrap().len()), (32, 16));
        let Some(parent) = span["parentSpanId"].as_str() else { continue };
        with_parents += 1;
        let parent = ids[parent];
        assert!(time(parent, "startTimeUnixNano") <= time(span, "startTimeUnixNano"));
        assert!(time(parent, "endTimeUnixNano") >= time(span, "endTimeUnixNano"));
    }
    assert!(with_parents > begins / 2);
    assert_eq!(played.written("otlp"), document);
}

fn edge(batch: &mut EdgeBatch, seq: u64, time: u64, name: NameId, kind: EdgeKind) {
    batch.push(Edge { seq, time, track: 0, name, attributes: (0, 0), cpu: NO_CPU, kind, flags: EdgeFlags::NONE });
}

fn nested(numbers: &[(u64, Option<u64>)], first_seq: u64) -> Vec<Value> {
    let (mut out, mut spool) = (Vec::new(), Cursor::new(Vec::new()));
    let mut sink = (by_name("otlp").unwrap().open)(Outlet {
        out: &mut out,
        spool: &mut spool,
        title: "app.heph",
        cells: Cells::Guarded,
        threads: 1,
    });
    assert!(!sink.takes_complete() && sink.wants_identities());
    let unit = TimeUnit::Nanoseconds;
    sink.source(&SpanSource { format: "heph", unit, origin: 5, epoch_ns: Some(1_000), uptime: None }).unwrap();
    sink.track(0, &Track { thread: 3, ..Track::default() }).unwrap();
    sink.name(0, b"work", None).unwrap();
    sink.name(1, b"tick", None).unwrap();
    sink.name(2, b"key", None).unwrap();
    let mut batch = EdgeBatch::default();
    for (seq, &(identity, parent)) in (first_seq..).zip(numbers) {
        edge(&mut batch, seq, 10, 0, EdgeKind::Begin);
        batch.identify(identity, parent);
        batch.attribute(2, SpanValue::I64(-1));
        batch.attribute(2, SpanValue::Bool(true));
    }
    let first = numbers[0].0;
    edge(&mut batch, 90, 15, 1, EdgeKind::Instant);
    batch.identify(99, Some(first));
    batch.attribute(2, SpanValue::U64(4));
    numbers.iter().for_each(|_| edge(&mut batch, 91, 20, 0, EdgeKind::End));
    edge(&mut batch, 92, 21, 1, EdgeKind::Instant);
    sink.edges(&batch).unwrap();
    sink.finish().unwrap();
    drop(sink);
    spans(&out)
}

#[test]
fn instants_are_events_of_the_span_around_them_or_spans_of_no_length() {
    let all = nested(&[(7, None), (8, Some(7))], 0);
    let [inner, outer, alone] = &all[..] else { panic!("{all:?}") };
    assert!(inner.get("events").is_none());
    let event = serde_json::json!([{
        "timeUnixNano": "1015", "name": "tick", "attributes": [{"key": "key", "value": {"intValue": "4"}}],
    }]);
    assert_eq!(outer["events"], event);
    assert_eq!((&alone["name"], alone.get("parentSpanId")), (&"tick".into(), None));
    assert_eq!((&alone["startTimeUnixNano"], &alone["endTimeUnixNano"]), (&"1021".into(), &"1021".into()));
    let kind = serde_json::json!({"key": "anytrace.kind", "value": {"stringValue": "instant"}});
    assert!(alone["attributes"].as_array().unwrap().contains(&kind));
}

#[test]
fn ids_depend_on_the_identity_of_a_span_and_not_on_its_position() {
    let all = nested(&[(7, None), (8, Some(7))], 0);
    let mut part = nested(&[(8, Some(7))], 100);
    part[0].as_object_mut().unwrap().remove("events");
    assert_eq!(all[0], part[0], "a part of a trace has the ids of the trace");
    assert_eq!((&all[0]["parentSpanId"], all[1].get("parentSpanId")), (&all[1]["spanId"], None));
    assert_eq!((&all[0]["startTimeUnixNano"], &all[0]["endTimeUnixNano"]), (&"1010".into(), &"1020".into()));
    let keys: Vec<&str> =
        all[0]["attributes"].as_array().unwrap().iter().map(|attribute| attribute["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["thread.id", "thread.name", "key", "key#2"]);
    assert_eq!(all[0]["attributes"][2]["value"], serde_json::json!({"intValue": "-1"}));
}

#[test]
fn keys_that_repeat_are_numbered_however_many_there_are() {
    let (mut out, mut spool) = (Vec::new(), Cursor::new(Vec::new()));
    let outlet = Outlet { out: &mut out, spool: &mut spool, title: "x", cells: Cells::Guarded, threads: 1 };
    let mut sink = (by_name("otlp").unwrap().open)(outlet);
    let unit = TimeUnit::Nanoseconds;
    sink.source(&SpanSource { format: "x", unit, origin: 0, epoch_ns: None, uptime: None }).unwrap();
    sink.track(0, &Track::default()).unwrap();
    let names = ["work", "a", "b", "c"];
    (0..).zip(names).for_each(|(id, name)| sink.name(id, name.as_bytes(), None).unwrap());
    let mut batch = EdgeBatch::default();
    edge(&mut batch, 0, 1, 0, EdgeKind::Begin);
    let keys: Vec<NameId> = (0..200).map(|at| if at < 30 { 1 } else { 1 + at % 3 }).collect();
    keys.iter().for_each(|key| batch.attribute(*key, SpanValue::U64(1)));
    edge(&mut batch, 1, 2, 0, EdgeKind::End);
    sink.edges(&batch).unwrap();
    sink.finish().unwrap();
    drop(sink);
    let mut counts = [0; 4];
    let expected = keys.iter().map(|key| {
        counts[*key as usize] += 1;
        let (name, count) = (names[*key as usize], counts[*key as usize]);
        if count == 1 { name.to_owned() } else { format!("{name}#{count}") }
    });
    let all = spans(&out);
    let attributes = all[0]["attributes"].as_array().unwrap();
    let written = attributes.iter().map(|one| one["key"].as_str().unwrap().to_owned());
    assert!(written.filter(|key| names.contains(&key.split('#').next().unwrap())).eq(expected));
}

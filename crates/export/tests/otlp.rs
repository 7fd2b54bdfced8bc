//! OTLP: every span once, with its parent, and ids that stay the same.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;
use std::io::Cursor;

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, SpanSource, TimeUnit, Track, Value as SpanValue,
};
use anytrace_export::cells::Cells;
use anytrace_export::timeline::{Outlet, by_name};
use common::random;
use serde_json::Value;

fn spans(document: &[u8]) -> Vec<Value> {
    let value: Value = serde_json::from_slice(document).unwrap();
    value["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

#[test]
fn each_span_is_there_once_inside_its_parent() {
    let played = random(11, 4_000, TimeUnit::Nanoseconds);
    let begins = played.edges.iter().filter(|(edge, _)| edge.kind == EdgeKind::Begin).count();
    let document = played.written("otlp");
    let all = spans(&document);
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

fn whole(numbers: &[(u64, Option<u64>)], first_seq: u64) -> Vec<Value> {
    let (mut out, mut spool) = (Vec::new(), Cursor::new(Vec::new()));
    let mut sink = (by_name("otlp").unwrap().open)(Outlet {
        out: &mut out,
        spool: &mut spool,
        title: "app.heph",
        cells: Cells::Guarded,
    });
    assert!(sink.takes_whole() && sink.wants_identities());
    let unit = TimeUnit::Nanoseconds;
    sink.source(&SpanSource { format: "heph", unit, origin: 5, epoch_ns: Some(1_000) }).unwrap();
    sink.track(0, &Track { thread: 3, ..Track::default() }).unwrap();
    sink.name(0, b"work", None).unwrap();
    sink.name(1, b"end", None).unwrap();
    sink.name(2, b"key", None).unwrap();
    let mut batch = EdgeBatch::default();
    for (seq, &(identity, parent)) in (first_seq..).zip(numbers) {
        let (kind, flags, cpu) = (EdgeKind::Begin, EdgeFlags::WHOLE, NO_CPU);
        batch.push(Edge { seq, time: 10, track: 0, name: 0, attributes: (0, 0), cpu, kind, flags });
        batch.identify(identity, parent);
        batch.attribute(1, SpanValue::U64(20));
        batch.attribute(2, SpanValue::I64(-1));
        batch.attribute(2, SpanValue::Bool(true));
    }
    sink.edges(&batch).unwrap();
    sink.finish().unwrap();
    drop(sink);
    spans(&out)
}

#[test]
fn ids_are_made_of_what_identifies_a_span_and_not_of_where_it_stands() {
    let all = whole(&[(7, None), (8, Some(7))], 0);
    let part = whole(&[(8, Some(7))], 100);
    assert_eq!(all[1], part[0], "a part of a trace has the ids of the whole");
    assert_eq!((&all[1]["parentSpanId"], all[0].get("parentSpanId")), (&all[0]["spanId"], None));
    assert_eq!((&all[0]["startTimeUnixNano"], &all[0]["endTimeUnixNano"]), (&"1010".into(), &"1020".into()));
    let keys: Vec<&str> =
        all[0]["attributes"].as_array().unwrap().iter().map(|attribute| attribute["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["thread.id", "thread.name", "key", "key#2"]);
    assert_eq!(all[0]["attributes"][2]["value"], serde_json::json!({"intValue": "-1"}));
}

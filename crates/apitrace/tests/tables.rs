//! The trace as tables, beside the JSON lines of events and of calls, and the figures of `stats`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod traces;

use std::collections::BTreeMap;

use anytrace_apitrace::tools::flags::CallFlags;
use anytrace_apitrace::tools::jsonl::{JsonlOptions, jsonl};
use anytrace_apitrace::tools::stats::{By, Label, StatsOptions, stats};
use anytrace_apitrace::{Apitrace, Reader};
use anytrace_core::table::{Scan, Table};
use anytrace_core::testing::tables::{examine_tables, rows};
use anytrace_core::testing::{examine, mutations, rewrite, truncations};
use anytrace_core::text::shown;
use anytrace_core::{Collect, Format, Input, OpenOptions, Plan, Settings, TargetOptions};
use build::{Build, leb};
use serde_json::{Value, json};

type Rows = Vec<Vec<Value>>;

fn table(name: &str) -> &'static Table {
    Apitrace.tables().iter().find(|table| table.name == name).unwrap()
}

fn read(name: &str, bytes: &[u8]) -> Rows {
    rows(&Apitrace, bytes, table(name), &Scan::default()).unwrap().0
}

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    std::str::from_utf8(bytes).unwrap().lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn event_lines(bytes: &[u8]) -> Vec<Value> {
    lines(&examine(&Apitrace, bytes).jsonl)
}

fn call_lines(bytes: &[u8]) -> Vec<Value> {
    let mut out = Vec::new();
    jsonl(&mut reader(bytes), &JsonlOptions::default(), &mut out, &mut Collect::default()).unwrap();
    lines(&out)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A name of JSON lines as tables have it.
fn name_of(value: &Value) -> Value {
    match value.get("hex").and_then(Value::as_str) {
        Some(hex) => json!(shown(&bytes_of(hex))),
        None => value.clone(),
    }
}

fn assert_events(found: &Rows, lines: &[Value], what: &str) {
    assert_eq!(found.len(), lines.len(), "{what}");
    for (seq, (row, line)) in found.iter().zip(lines).enumerate() {
        let name = line.get("name").map_or(Value::Null, name_of);
        let thread = line.get("thread").map_or_else(|| row[2].clone(), Clone::clone);
        let (offset, kind) = (line["offset"].clone(), line["kind"].clone());
        assert_eq!(row[..7], [json!(seq), offset, thread, Value::Null, Value::Null, kind, name], "{what}");
        let mut fields = line.clone();
        for key in ["kind", "offset", "thread", "name"] {
            fields.as_object_mut().unwrap().remove(key);
        }
        let attributes: Value = serde_json::from_str(row[7].as_str().unwrap()).unwrap();
        assert!(attributes == fields, "{what}: {attributes} {fields}");
    }
}

/// Flags of a call as words.
fn words(flags: &Value) -> Value {
    let flags = CallFlags(u16::try_from(flags.as_u64().unwrap()).unwrap());
    let words = CallFlags::WORDS.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, word)| *word);
    json!(words.collect::<Vec<_>>().join(","))
}

fn assert_calls(found: &Rows, calls: &[Value], events: &[Value], what: &str) {
    assert_eq!(found.len(), calls.len(), "{what}");
    let is = |seq: &Value, kind: &str, call: &Value| {
        let event = &events[usize::try_from(seq.as_u64().unwrap()).unwrap()];
        event["kind"] == kind && event["call"] == *call
    };
    for (row, call) in found.iter().zip(calls) {
        let name = Some(name_of(&call["name"])).filter(|name| !name.is_null()).unwrap_or(json!("?"));
        assert_eq!([&row[0], &row[1], &row[3], &row[6]], [&call["no"], &call["thread"], &name, &words(&call["flags"])]);
        assert!(is(&row[4], "enter", &row[0]), "{what}: {row:?}");
        assert_eq!(row[5].is_null(), call.get("incomplete").is_some(), "{what}");
        assert!(row[5].is_null() || is(&row[5], "leave", &row[0]), "{what}: {row:?}");
        assert_eq!(row[7].is_null(), call.get("ret").is_none(), "{what}");
        if let Some(number) = call.get("ret").and_then(Value::as_i64) {
            assert_eq!(row[7], number.to_string(), "{what}");
        }
    }
}

/// What the columns after `name` have for a value of the JSON lines of calls; `None` where they are not compared.
fn cells(value: &Value) -> [Option<Value>; 6] {
    let row = |kind: &str, int: Value, uint: Value, text: Option<Value>, blob: Value| {
        [Some(json!(kind)), Some(int), Some(uint), Some(Value::Null), text, Some(blob)]
    };
    let none = || Value::Null;
    match value {
        Value::Null => row("null", none(), json!(0), Some(json!("NULL")), none()),
        Value::Bool(value) => row("bool", json!(u8::from(*value)), none(), Some(none()), none()),
        Value::Number(number) if number.is_i64() && number.as_i64() < Some(0) => {
            row("int", value.clone(), none(), Some(none()), none())
        }
        Value::Number(number) if number.is_u64() => {
            let int = number.as_i64().map_or(none(), |int| json!(int));
            row("uint", int, value.clone(), Some(none()), none())
        }
        Value::Number(_) => [None, Some(none()), Some(none()), None, Some(none()), Some(none())],
        Value::String(_) => row("text", none(), none(), Some(value.clone()), none()),
        Value::Array(_) => row("array", none(), none(), None, none()),
        Value::Object(fields) => {
            let field = |key: &str| fields.get(key).cloned();
            if let Some(length) = field("blob") {
                row("blob", none(), none(), Some(none()), length)
            } else if let Some(name) = field("enum") {
                row("enum", field("value").unwrap(), none(), Some(name_of(&name)), none())
            } else if let Some(pointer) = field("ptr") {
                let address = u64::from_str_radix(&pointer.as_str().unwrap()[2..], 16).unwrap();
                row("pointer", none(), json!(address), Some(pointer), none())
            } else if fields.contains_key("struct") {
                row("struct", none(), none(), None, none())
            } else if fields.contains_key("repr") {
                row("repr", none(), none(), None, none())
            } else {
                [None, None, None, None, None, None]
            }
        }
    }
}

fn assert_args(found: &Rows, calls: &[Value], what: &str) {
    let mut rest = found.iter();
    let mut compared = 0;
    for call in calls {
        for pair in call["args"].as_array().unwrap() {
            if pair[1].get("missing").is_some() {
                continue;
            }
            let row = rest.next().unwrap();
            assert_eq!(row[0], call["no"], "{what}");
            let name = name_of(&pair[0]);
            let is_nameless = name == "" && row[2] == format!("#{}", row[1]);
            assert!(is_nameless || row[2] == name, "{what}: {row:?} {name}");
            for (cell, expected) in row[3..].iter().zip(cells(&pair[1])) {
                assert!(expected.is_none_or(|expected| *cell == expected), "{what}: {row:?} {}", pair[1]);
            }
            compared += 1;
        }
    }
    assert_eq!((rest.count(), compared), (0, found.len()), "{what}");
}

fn assert_frames(found: &Rows, bytes: &[u8], calls: &Rows, what: &str) {
    let statistics = stats(&mut reader(bytes), &StatsOptions::default(), &mut Collect::default()).unwrap();
    let expected: Vec<_> = statistics
        .rows(By::Frame)
        .iter()
        .filter(|row| row.figures.calls > 0)
        .map(|row| (row.label.clone(), row.figures.calls))
        .collect();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (row, (label, calls)) in found.iter().zip(expected) {
        let Label::Number(frame) = label else { panic!("{label}") };
        assert_eq!((&row[0], &row[2]), (&json!(frame), &json!(calls)), "{what}");
    }
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    for call in calls {
        let (number, frame) = (call[0].as_u64().unwrap(), call[2].as_u64().unwrap());
        first.entry(frame).and_modify(|first| *first = number.min(*first)).or_insert(number);
    }
    let found: BTreeMap<_, _> = found.iter().map(|row| (row[0].as_u64().unwrap(), row[1].as_u64().unwrap())).collect();
    assert_eq!(found, first, "{what}");
}

/// The blobs of an event, in order.
fn blobs_in(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| blobs_in(value, found)),
        Value::Object(fields) => match fields.get("blob").and_then(Value::as_str) {
            Some(hex) => found.push(bytes_of(hex)),
            None => fields.values().for_each(|value| blobs_in(value, found)),
        },
        _ => {}
    }
}

fn assert_blobs(found: &Rows, events: &[Value], raw: &[u8], what: &str) {
    let mut rest = found.iter();
    for event in events {
        for detail in event["details"].as_array().unwrap() {
            let mut blobs = Vec::new();
            blobs_in(detail, &mut blobs);
            for blob in blobs {
                let row = rest.next().unwrap();
                let offset = usize::try_from(row[2].as_u64().unwrap()).unwrap();
                let hash = blob.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                });
                let position = detail.get("argument").cloned().unwrap_or_default();
                let expected =
                    [event["call"].clone(), position, row[2].clone(), json!(blob.len()), json!(hash), json!(blob)];
                assert!(row[..] == expected, "{what}: {:?}", &row[..5]);
                assert!(raw.get(offset..offset + blob.len()) == Some(&blob[..]), "{what}: {:?}", &row[..5]);
            }
        }
    }
    // Events that are nested too deeply for JSON have no details there.
    assert!(rest.next().is_none() || events.iter().any(|event| event.get("raw").is_some()), "{what}");
}

fn raw_of(bytes: &[u8]) -> Vec<u8> {
    let target = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap().0
}

#[test]
fn rows_are_the_events_and_calls_of_the_json_lines_and_the_frames_of_stats() {
    let mut seen = BTreeMap::new();
    for (what, bytes) in traces::undamaged() {
        let tables: BTreeMap<_, _> =
            ["events", "calls", "args", "frames", "blobs"].into_iter().map(|name| (name, read(name, &bytes))).collect();
        let (events, calls) = (event_lines(&bytes), call_lines(&bytes));
        assert_events(&tables["events"], &events, &what);
        assert_calls(&tables["calls"], &calls, &events, &what);
        assert_args(&tables["args"], &calls, &what);
        assert_frames(&tables["frames"], &bytes, &tables["calls"], &what);
        assert_blobs(&tables["blobs"], &events, &raw_of(&bytes), &what);
        for (name, rows) in tables {
            *seen.entry(name).or_insert(0) += rows.len();
        }
    }
    assert!(seen.values().all(|rows| *rows > 20), "{seen:?}");
}

#[test]
fn every_column_can_be_read_alone_and_damage_is_reported_all_the_same() {
    for path in traces::all() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > 60_000 {
            continue;
        }
        let tables = examine_tables(&Apitrace, &bytes);
        let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["events", "calls", "args", "frames", "blobs", "spans", "stacks"]);
        let records = examine(&Apitrace, &bytes).info.0.records;
        assert_eq!(tables[0].1.len() as u64, records, "{}", path.display());
        // A span for each call, and for each group.
        let calls = tables[5].1.iter().filter(|row| row[16].as_str().is_some_and(|text| text.contains("\"call\":")));
        assert_eq!(calls.count(), tables[1].1.len(), "{}", path.display());
    }
}

#[test]
fn cut_and_changed_traces_are_read_as_far_as_they_can_be() {
    for name in ["threads", "interleave", "allvals_v6"] {
        let bytes = std::fs::read(traces::own(name)).unwrap();
        let raw = raw_of(&bytes);
        truncations(&raw, 60, |_, cut| drop(examine_tables(&Apitrace, cut)));
        mutations(&raw, 7, 40, |bytes| drop(examine_tables(&Apitrace, bytes)));
    }
}

#[test]
fn blobs_of_an_event_that_is_cut_are_no_rows() {
    let mut build = Build::version(6);
    build.enter_new(0, 0, "f", &["a", "b"]).argument(0, b"\x08\x03abc").add(&[0]);
    build.enter(0, 0).argument(0, b"\x08\x03def");
    let long = [&[8][..], &leb(100_000), &[7; 99_999]].concat();
    build.argument(1, &long);
    let cut = read("blobs", &build.bytes);
    assert_eq!(cut.iter().map(|row| row[0].clone()).collect::<Vec<_>>(), [0]);
    build.add(&[7, 0]);
    let found = read("blobs", &build.bytes);
    let short: Vec<_> = found.iter().map(|row| (row[0].clone(), row[1].clone(), row[3].clone())).collect();
    assert_eq!(
        short,
        [(json!(0), json!(0), json!(3)), (json!(1), json!(0), json!(3)), (json!(1), json!(1), json!(100_000))]
    );
}

#[test]
fn values_that_are_too_deep_for_json_and_too_long_for_a_text_leave_a_row() {
    let mut build = Build::version(6);
    let deep = [&[11, 1].repeat(2000)[..], &[0]].concat();
    let wide = [&[11][..], &leb(600_000), &[0].repeat(600_000)].concat();
    build.enter_new(0, 0, "f", &["deep", "wide"]).argument(0, &deep).argument(1, &wide).add(&[0]);
    build.leave(0).add(&[0]);
    let events = read("events", &build.bytes);
    assert_eq!(events.len(), 2);
    let args = read("args", &build.bytes);
    let texts: Vec<_> = args.iter().map(|row| row[7].as_str().unwrap()).collect();
    assert!(texts[0].starts_with("&&&") && texts[0].ends_with("&NULL"));
    assert!(texts[1].starts_with("{NULL, NULL") && texts[1].ends_with('…') && texts[1].len() < 2 << 20);
}

#[test]
fn reading_ends_after_the_last_event_that_is_wanted() {
    let mut build = Build::version(6);
    build.enter_new(0, 0, "f", &[]).add(&[0]).leave(0).add(&[0]);
    for call in 1..50_000 {
        build.enter(0, 0).add(&[0]).leave(call).add(&[0]);
    }
    build.add(&[9]);
    let mut scan = Scan::default();
    scan.filter.seq = Some(7..=9);
    for columns in [None, Some(vec![0])] {
        scan.columns = columns;
        let (rows, damage) = rows(&Apitrace, &build.bytes, table("events"), &scan).unwrap();
        assert_eq!((rows.len(), damage.len()), (3, 0));
    }
}

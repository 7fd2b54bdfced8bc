//! The trace as tables, beside the JSON lines of `dump` and the calls that the library follows.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anytrace_core::span::{EdgeFlags, Location, Symbols};
use anytrace_core::table::{self, Batch, Scan};
use anytrace_core::tables;
use anytrace_core::testing::tables::{examine_tables, rows};
use anytrace_core::testing::{examine, mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Diagnostic, Error, Format, Input, OpenOptions, SpanOptions};
use anytrace_xray::{CallOptions, CallVisitor, Calls, End, Frame, Moment, Moments, Ordered, Xray};
use serde_json::{Value, json};

const NAMES: [&str; 6] = ["events", "functions", "calls", "custom_events", "spans", "stacks"];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(corpus().join(name)).unwrap()
}

/// Every trace of the corpora up to a size.
fn samples(bytes_max: u64) -> Vec<(String, Vec<u8>)> {
    let mut folders = vec![corpus(), corpus().join("bad"), corpus().join("found")];
    if let Some(shared) = shared_corpus("xray") {
        folders.extend(["real", "synth", "bad"].map(|folder| shared.join(folder)));
    }
    let mut made = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_trace = path.extension().is_some_and(|e| e == "xray" || e == "yaml");
            if is_trace && std::fs::metadata(&path).unwrap().len() <= bytes_max {
                made.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    made.sort();
    made
}

fn table(bytes: &[u8], name: &str) -> Vec<Vec<Value>> {
    let of = tables::all(&Xray).into_iter().find(|table| table.name == name).unwrap();
    rows(&Xray, bytes, &of, &Scan::default()).unwrap().0
}

/// The header line and the records of the JSON lines.
fn lines(bytes: &[u8]) -> (Value, Vec<Value>) {
    let jsonl = String::from_utf8(examine(&Xray, bytes).jsonl).unwrap();
    let mut lines = jsonl.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    (header, lines.filter(|line| line["kind"] != "gap").collect())
}

/// Threads and times of records, from the lines alone: what an FDR buffer's records say of those after them.
#[derive(Default)]
struct Reckoning {
    thread: Value,
    tsc: Option<u64>,
}

impl Reckoning {
    fn record(&mut self, line: &Value, is_fdr: bool) -> (Value, Option<u64>) {
        if !is_fdr {
            return (line["thread"].clone(), line["tsc"].as_u64());
        }
        let own = match line["kind"].as_str().unwrap() {
            "buffer-extents" => {
                *self = Self::default();
                None
            }
            "new-buffer" => {
                let thread = line["thread"].as_i64().unwrap();
                *self = Self { thread: json!(thread as u32), tsc: None };
                None
            }
            "new-cpu-id" | "tsc-wrap" => {
                self.tsc = line["tsc"].as_u64();
                self.tsc
            }
            _ => match (line["delta"].as_i64(), line["tsc"].as_u64()) {
                (Some(delta), _) => {
                    self.tsc = self.tsc.map(|tsc| tsc.wrapping_add_signed(delta));
                    self.tsc
                }
                (None, own) => own,
            },
        };
        (self.thread.clone(), own)
    }
}

fn ns(tsc: u64, header: &Value) -> Value {
    let hz = u128::from(header["cycle_frequency"].as_u64().unwrap());
    let ns = (u128::from(tsc) * 1_000_000_000 + hz / 2).checked_div(hz);
    json!(ns.map(|ns| u64::try_from(ns).unwrap()))
}

fn without(line: &Value, fields: &[&str]) -> Value {
    let mut rest = line.as_object().unwrap().clone();
    rest.retain(|key, _| !fields.contains(&key.as_str()));
    Value::Object(rest)
}

/// The name that a line gives its function.
fn name_of(line: &Value) -> Value {
    let kind = line["kind"].as_str().unwrap();
    let Some(id) = line["id"].as_i64().filter(|_| kind.starts_with("function") || kind == "call-argument") else {
        return Value::Null;
    };
    match line["function"].as_str().filter(|name| !name.is_empty() && *name != id.to_string()) {
        Some(name) => json!(name),
        None => json!(format!("#{id}")),
    }
}

#[test]
fn events_are_the_records_of_the_json_lines() {
    let mut timed = 0;
    for (path, bytes) in samples(2_000_000) {
        let exam = examine(&Xray, &bytes);
        let (header, lines) = lines(&bytes);
        let events = table(&bytes, "events");
        assert_eq!(events.len(), lines.len(), "{path}");
        let is_fdr = header["type"] == "fdr";
        let mut reckoning = Reckoning::default();
        // Where a buffer ends is not in the lines of a damaged trace.
        let is_intact = exam.info.1.is_empty();
        for (seq, (row, line)) in events.iter().zip(&lines).enumerate() {
            assert_eq!(row[0], json!(seq), "{path}");
            assert_eq!(row[1], line["offset"], "{path} {seq}");
            assert_eq!((&row[5], &row[4]), (&line["kind"], &Value::Null), "{path} {seq}");
            if !line["function"].is_object() {
                assert_eq!(row[6], name_of(line), "{path} {seq}");
            }
            let attributes = row[7].as_str().map_or(json!({}), |text| serde_json::from_str(text).unwrap());
            assert_eq!(attributes, without(line, &["kind", "offset", "thread"]), "{path} {seq}");
            let (thread, tsc) = reckoning.record(line, is_fdr);
            if is_intact {
                assert_eq!(row[2], thread, "{path} {seq}");
                let expected = tsc.map_or(Value::Null, |tsc| ns(tsc, &header));
                if tsc.is_none_or(|tsc| tsc < 1 << 60) {
                    assert_eq!(row[3], expected, "{path} {seq}");
                    timed += usize::from(!row[3].is_null());
                }
            }
        }
    }
    assert!(timed > 1000, "{timed}");
}

#[test]
fn custom_events_have_their_bytes() {
    let mut seen = (0, 0);
    for (path, bytes) in samples(2_000_000) {
        let (_, lines) = lines(&bytes);
        let events = table(&bytes, "events");
        let of_custom = |line: &Value| matches!(line["kind"].as_str(), Some("custom-event" | "typed-event"));
        let expected: Vec<_> = lines.iter().enumerate().filter(|(_, line)| of_custom(line)).collect();
        let found = table(&bytes, "custom_events");
        assert_eq!(found.len(), expected.len(), "{path}");
        for (row, (seq, line)) in found.iter().zip(expected) {
            assert_eq!(row[..3], [json!(seq), events[seq][2].clone(), events[seq][3].clone()], "{path}");
            let payload =
                row[4].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect::<Vec<_>>();
            match line["data"].as_str() {
                Some(text) => assert_eq!(payload, text.as_bytes(), "{path} {seq}"),
                None => {
                    let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
                    assert_eq!(json!(hex), line["data"]["hex"], "{path} {seq}");
                }
            }
            if line["kind"] == "typed-event" {
                assert_eq!(row[3], line["type"], "{path} {seq}");
                seen.1 += 1;
            } else {
                assert!(row[3].is_null());
                seen.0 += 1;
            }
        }
    }
    assert!(seen.0 > 10 && seen.1 > 10, "{seen:?}");
}

/// Names for some functions.
struct Map(Location);

impl Symbols for Map {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)> {
        match id {
            1 => Some(("main", Some(&self.0))),
            2 => Some(("helper()", None)),
            _ => None,
        }
    }
}

/// Some columns of a table, with names from a map.
fn named(bytes: &[u8], name: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let of = tables::all(&Xray).into_iter().find(|table| table.name == name).unwrap();
    let scan = Scan::columns_of(&of, columns).unwrap();
    let location = Location { file: "main.cpp".to_owned(), line: 7 };
    let options = SpanOptions { symbols: Some(Box::new(Map(location))), ..SpanOptions::default() };
    let trace = Xray.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut made = Vec::new();
    let mut take = |batch: Batch| -> Result<(), Error> {
        for row in 0..batch.rows {
            made.push(batch.columns.iter().map(|column| shown(column, row)).collect());
        }
        Ok(())
    };
    tables::read(&Xray, trace, name, &scan, &options, &mut take, &mut Collect::default()).unwrap();
    made
}

fn shown(column: &table::BatchColumn, row: usize) -> String {
    if !column.is_valid(row) {
        return "-".to_owned();
    }
    match &column.values {
        table::Values::Int32(values) => values[row].to_string(),
        table::Values::Text(strings) => String::from_utf8(strings.get(row).to_vec()).unwrap(),
        table::Values::Name { keys, names } => names.get(keys[row]).to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn functions_are_the_ids_of_function_records() {
    for (path, bytes) in samples(2_000_000) {
        let (_, lines) = lines(&bytes);
        let functions = table(&bytes, "functions");
        let ids: BTreeSet<i64> =
            lines.iter().filter(|line| !name_of(line).is_null()).map(|line| line["id"].as_i64().unwrap()).collect();
        assert_eq!(functions.iter().map(|row| row[0].as_i64().unwrap()).collect::<Vec<_>>(), Vec::from_iter(ids));
        for row in &functions {
            let id = row[0].as_i64().unwrap();
            assert_eq!(row[1], json!((id as u32) >> 24), "{path}");
            assert_eq!(row[3..], [Value::Null, Value::Null], "{path}");
            let names: Vec<_> = lines.iter().filter(|line| line["id"] == row[0]).map(name_of).collect();
            assert!(names.contains(&row[2]) || names.iter().any(|name| name.is_null()), "{path}: {row:?}");
        }
    }
}

#[test]
fn names_and_places_come_from_a_map() {
    let bytes = sample("v5.xray");
    let functions = named(&bytes, "functions", &["id", "name", "file", "line"]);
    assert_eq!(functions[0], ["1", "main", "main.cpp", "7"]);
    assert_eq!(functions[1], ["2", "helper()", "-", "-"]);
    assert!(functions[2..].iter().all(|row| row[1] == format!("#{}", row[0]) && row[2] == "-"), "{functions:?}");
    let name = |id: &str| functions.iter().find(|row| row[0] == id).unwrap()[1].clone();
    for call in named(&bytes, "calls", &["function_id", "name"]) {
        assert_eq!(call[1], name(&call[0]));
    }
    let events = named(&bytes, "events", &["kind", "name", "attributes"]);
    for event in events.iter().filter(|event| event[0].starts_with("function")) {
        let attributes: Value = serde_json::from_str(&event[2]).unwrap();
        assert_eq!(event[1], name(&attributes["id"].to_string()));
    }
}

/// The calls that the library follows: those that ended, in order.
struct Follow(Vec<Vec<Value>>, Vec<Vec<(u64, Vec<u64>)>>, Vec<(u32, u32)>);

impl CallVisitor for Follow {
    fn begin(&mut self, thread: usize, _: &Frame, _: usize, moment: &Moment<'_>) -> Result<(), Error> {
        self.1.resize(self.1.len().max(thread + 1), Vec::new());
        self.2.resize(self.2.len().max(thread + 1), (0, 0));
        self.2[thread] = (moment.process, moment.thread);
        self.1[thread].push((moment.at.seq, moment.arguments.to_vec()));
        Ok(())
    }

    fn end(&mut self, thread: usize, frame: &Frame, depth: usize, end: &End) -> Result<(), Error> {
        let (seq, arguments) = self.1[thread].pop().unwrap();
        let parent = self.1[thread].last().map(|open| open.0);
        let is_open = end.flags.has(EdgeFlags::UNFINISHED);
        let arguments: serde_json::Map<_, _> =
            (0..).zip(arguments).map(|(n, value)| (format!("arg{n}"), argument(value))).collect();
        let (process, number) = self.2[thread];
        let parts = (json!(seq), json!(end.at.seq), json!(number), json!(process), json!(depth), json!(parent));
        self.0.push(vec![
            parts.0,
            parts.1,
            parts.2,
            parts.3,
            parts.4,
            parts.5,
            json!(frame.enter),
            json!(end.tsc.saturating_sub(frame.enter)),
            json!(frame.function.cast_signed()),
            json!(is_open),
            if arguments.is_empty() { Value::Null } else { Value::Object(arguments) },
        ]);
        Ok(())
    }
}

/// Numbers that not every reader of JSON can hold are strings.
fn argument(value: u64) -> Value {
    if value > 1 << 53 { json!(value.to_string()) } else { json!(value) }
}

struct ByThread(Calls, Follow);

impl Moments for ByThread {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.0.moment(moment, &mut self.1)
    }

    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn calls_are_those_that_the_library_follows() {
    let (mut calls_seen, mut with_arguments) = (0, 0);
    for (path, bytes) in samples(2_000_000) {
        let mut sink = Collect::default();
        let input = Input::from_bytes("x", bytes.clone());
        let ordered = Ordered::open(input, &OpenOptions::default(), &mut sink).unwrap();
        let mut follow = ByThread(Calls::new(CallOptions::default()), Follow(Vec::new(), Vec::new(), Vec::new()));
        ordered.by_thread(&mut follow, &mut sink).unwrap();
        let ByThread(mut calls, mut followed) = follow;
        calls.finish(&mut followed).unwrap();
        let found = table(&bytes, "calls");
        // Times that go backwards are moved, so they differ from those of records.
        let is_ordered = calls.counts().backward == 0;
        assert_eq!(found.len(), followed.0.len(), "{path}");
        for (row, expected) in found.iter().zip(&followed.0) {
            let attributes = row[16].as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
            let is_open = row[13].as_str().unwrap().split(',').any(|word| word == "open");
            let mut parts = [0, 1, 4, 3, 6, 15, 8, 9, 17].map(|column| row[column].clone()).to_vec();
            parts.extend([json!(is_open), attributes]);
            let is_wide = expected[6].as_u64().unwrap() > i64::MAX as u64;
            if is_ordered && !is_wide {
                assert_eq!(&parts, expected, "{path}");
            }
            assert_eq!((&parts[..2], &parts[8]), (&expected[..2], &expected[8]), "{path}");
            with_arguments += usize::from(!parts[10].is_null());
        }
        calls_seen += found.len();
        let spans = table(&bytes, "spans");
        assert!(found.iter().map(|row| &row[..17]).eq(spans.iter().map(|row| &row[..])), "{path}");
        self_times_and_stacks_add_up(&path, &spans, &table(&bytes, "stacks"));
    }
    assert!(calls_seen > 1000 && with_arguments > 3, "{calls_seen} {with_arguments}");
}

/// What is inside a span is not its own; each stack is that of its parent and a name.
fn self_times_and_stacks_add_up(path: &str, spans: &[Vec<Value>], stacks: &[Vec<Value>]) {
    let number = |value: &Value| value.as_i64().unwrap();
    let mut inside: std::collections::BTreeMap<(i64, i64), i64> = std::collections::BTreeMap::new();
    let by_number: std::collections::BTreeMap<u64, &Vec<Value>> =
        stacks.iter().map(|row| (row[0].as_u64().unwrap(), row)).collect();
    assert_eq!(by_number.len(), stacks.len(), "{path}: a stack occurs once");
    // Times beyond 63 bits, which only garbage has, are cut.
    let is_narrow = spans.iter().all(|span| number(&span[8]) < i64::MAX);
    for span in spans.iter().filter(|_| is_narrow) {
        let key = (number(&span[2]), number(&span[0]));
        assert_eq!(
            number(&span[10]),
            number(&span[9]).saturating_sub(inside.remove(&key).unwrap_or(0)).max(0),
            "{path}"
        );
        if !span[15].is_null() {
            *inside.entry((key.0, number(&span[15]))).or_default() += number(&span[9]);
        }
        let stack = by_number[&span[14].as_u64().unwrap()];
        assert_eq!((&stack[2], &stack[3]), (&span[7], &span[6]), "{path}");
        assert_eq!(stack[1].is_null(), span[15].is_null(), "{path}");
    }
}

#[test]
fn every_table_of_every_sample_holds_what_tables_promise() {
    for (path, bytes) in samples(30_000) {
        let tables = examine_tables(&Xray, &bytes);
        let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, NAMES, "{path}");
    }
}

#[test]
fn cut_and_changed_traces_are_read_as_far_as_they_can_be() {
    for name in ["v5-event-payloads.xray", "args.yaml", "basic-v3.xray"] {
        let bytes = sample(name);
        truncations(&bytes[..bytes.len().min(1500)], 60, |_, cut| drop(examine_tables(&Xray, cut)));
        mutations(&bytes[..bytes.len().min(3000)], 7, 30, |bytes| drop(examine_tables(&Xray, bytes)));
    }
}

#[test]
fn reading_ends_after_the_last_record_that_is_wanted() {
    let basic = sample("basic-v1.xray");
    let basic = [&basic[..32], &basic[32..].repeat(5000)].concat();
    for (name, bytes) in [("longrun.xray", sample("longrun.xray")), ("basic", basic)] {
        let all = table(&bytes, "events");
        for table in ["events", "custom_events"] {
            let mut scan = Scan::default();
            scan.filter.seq = Some(3..=7);
            let trace = Xray.open(Input::from_bytes("x", bytes.clone()), &OpenOptions::default()).unwrap();
            let mut seen = 0;
            let mut take = |batch: Batch| -> Result<(), Error> {
                seen += batch.rows;
                Ok(())
            };
            let summary = trace.table(table, &scan, &SpanOptions::default(), &mut take, &mut Collect::default());
            let summary = summary.unwrap();
            assert!(summary.bytes < bytes.len() as u64 && summary.records < all.len() as u64, "{name} {summary:?}");
            assert!(table == "custom_events" || seen == 5, "{name} {seen}");
        }
    }
}

#[test]
fn a_table_that_is_not_there_is_a_usage_error() {
    let trace = Xray.open(Input::from_bytes("x", sample("v5.xray")), &OpenOptions::default()).unwrap();
    let mut take = |_: Batch| -> Result<(), Error> { Ok(()) };
    let scan = Scan::default();
    let error = tables::read(&Xray, trace, "args", &scan, &SpanOptions::default(), &mut take, &mut Collect::default());
    assert!(error.unwrap_err().to_string().contains("no table args"));
}

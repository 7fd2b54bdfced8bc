//! Spans against a slow model that reads the JSON into objects, and against the rules that every format keeps to.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;

use anytrace_chrome::Chrome;
use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::testing::mutations;
use anytrace_core::testing::public::Sample;
use anytrace_core::{Collect, Error, Format, Input, OpenOptions, SpanOptions, SpanSink};
use serde_json::Value as Json;

/// Name, start and length in nanoseconds.
type Row = (String, i64, i64);

fn ns(value: &Json) -> Option<i64> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some((text.parse::<f64>().ok()? * 1000.0).round() as i64)
}

/// The spans of a trace, found slowly: threads by the text of their numbers, ends joined in order of time.
fn model(text: &[u8]) -> Vec<Row> {
    let text = String::from_utf8_lossy(text).trim_start_matches('\u{feff}').trim().to_owned();
    let closed = format!("{}]", text.trim_end_matches(','));
    let value: Json = serde_json::from_str(&text)
        .or_else(|_| serde_json::from_str(&closed))
        .unwrap_or_else(|_| text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()).collect());
    let events = value.get("traceEvents").unwrap_or(&value).as_array().unwrap().clone();
    let (mut rows, mut ends) = (Vec::new(), BTreeMap::<String, Vec<(i64, usize, bool, Json)>>::new());
    for (number, event) in events.iter().enumerate() {
        let phase = event["ph"].as_str().unwrap();
        let name = event["name"].as_str().unwrap_or("").to_owned();
        let is_old = matches!(phase, "S" | "F");
        let key = match phase {
            "X" => {
                rows.push((name, ns(&event["ts"]).unwrap(), ns(&event["dur"]).unwrap()));
                continue;
            }
            "B" | "E" => format!("{} {}", event["pid"], event["tid"]),
            "b" | "e" | "S" | "F" => {
                let id = event.get("id").or_else(|| event["id2"].get("local"));
                let id = id
                    .map(|id| format!("{id} of {}", event["pid"]))
                    .or_else(|| Some(event["id2"].get("global")?.to_string()));
                let Some(id) = id else { continue };
                format!("{} {} {id} {}", event["cat"], event["scope"], if is_old { name.as_str() } else { "" })
            }
            _ => continue,
        };
        let is_begin = matches!(phase, "B" | "b" | "S");
        ends.entry(key).or_default().push((ns(&event["ts"]).unwrap(), number, is_begin, event.clone()));
    }
    for (_, mut ends) in ends {
        ends.sort_by_key(|(time, number, ..)| (*time, *number));
        let mut open: Vec<(i64, String)> = Vec::new();
        for (time, _, is_begin, event) in ends {
            let name = event["name"].as_str().unwrap_or("").to_owned();
            if is_begin {
                open.push((time, name));
            } else if let Some((start, name)) = open.pop() {
                rows.push((name, start, time - start));
            }
        }
    }
    rows.sort();
    rows
}

/// Takes edges and checks what every source promises.
#[derive(Default)]
struct Checked {
    takes_complete: bool,
    names: Vec<String>,
    tracks: Vec<Track>,
    open: Vec<Vec<(NameId, u64)>>,
    last: Vec<u64>,
    /// Spans that have both ends in the trace, with their times.
    rows: Vec<Row>,
    attributes: Vec<(String, String, String)>,
    counters: Vec<(String, String)>,
    flows: Vec<(EdgeKind, u64)>,
    instants: Vec<(String, EdgeFlags)>,
    unfinished: usize,
}

impl SpanSink for Checked {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        assert_eq!(source.format, "chrome");
        Ok(())
    }

    fn takes_complete(&self) -> bool {
        self.takes_complete
    }

    fn track(&mut self, id: TrackId, track: &Track) -> Result<(), Error> {
        assert_eq!(id as usize, self.tracks.len());
        self.tracks.push(track.clone());
        self.open.push(Vec::new());
        self.last.push(0);
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        assert_eq!(id as usize, self.names.len());
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            self.edge(batch, edge);
        }
        Ok(())
    }
}

impl Checked {
    fn edge(&mut self, batch: &EdgeBatch, edge: &Edge) {
        let (at, name) = (edge.track as usize, self.names[edge.name as usize].clone());
        assert!(edge.time >= self.last[at], "time goes back on track {at}");
        self.last[at] = edge.time;
        let mut own: Vec<_> = batch.attributes(edge).collect();
        match edge.kind {
            EdgeKind::Begin if edge.flags.has(EdgeFlags::COMPLETE) => {
                let Some((_, Value::U64(end))) = own.first().copied() else { panic!("no end") };
                own.remove(0);
                let open = &mut self.open[at];
                while open.last().is_some_and(|(_, end)| *end <= edge.time) {
                    open.pop();
                }
                assert!(open.last().is_none_or(|(_, around)| *around >= end), "a span does not nest");
                open.push((edge.name, end));
                self.ended(name.clone(), edge.time, end, edge.flags);
            }
            EdgeKind::Begin => self.open[at].push((edge.name, edge.time)),
            EdgeKind::End => {
                let (begun, start) = self.open[at].pop().expect("an end has a beginning");
                assert_eq!(begun, edge.name);
                self.ended(name.clone(), start, edge.time, edge.flags);
            }
            EdgeKind::Instant => self.instants.push((name.clone(), edge.flags)),
            EdgeKind::Counter => self.counters.push((name.clone(), format!("{:?}", own[0].1))),
            EdgeKind::FlowOut | EdgeKind::FlowIn => {
                let Some((_, Value::U64(number))) = own.first().copied() else { panic!("no number") };
                self.flows.push((edge.kind, number));
            }
        }
        for (key, value) in own {
            let shown = match value {
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                Value::Array(items) => format!("{:?}", items.collect::<Vec<_>>()),
                other => format!("{other:?}"),
            };
            self.attributes.push((name.clone(), self.names[key as usize].clone(), shown));
        }
    }

    fn ended(&mut self, name: String, start: u64, end: u64, flags: EdgeFlags) {
        if flags.has(EdgeFlags::UNFINISHED) {
            self.unfinished += 1;
        } else {
            self.rows.push((name, start as i64, (end - start) as i64));
        }
    }
}

fn spans(bytes: &[u8], takes_complete: bool) -> (Checked, Collect) {
    let mut checked = Checked { takes_complete, ..Checked::default() };
    let mut sink = Collect::default();
    let trace = Chrome.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    trace.spans(&SpanOptions::default(), &mut checked, &mut sink).unwrap();
    assert!(takes_complete || checked.open.iter().all(Vec::is_empty), "a span is left open");
    checked.rows.sort();
    (checked, sink)
}

fn samples(folders: &[&str]) -> Vec<Sample> {
    Sample::all(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"), folders, &["json"])
}

#[test]
fn spans_are_those_of_a_slow_model() {
    let mut all = 0;
    for sample in samples(&[""]) {
        let expected = model(&sample.bytes);
        all += expected.len();
        for takes_complete in [false, true] {
            let (checked, sink) = spans(&sample.bytes, takes_complete);
            assert_eq!(checked.rows, expected, "{}", sample.name);
            assert!(sink.0.is_empty(), "{}", sample.name);
        }
    }
    assert!(all > 150, "{all}");
}

#[test]
fn random_events_nest_on_their_lanes() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    for _ in 0..60 {
        let count = random(300);
        let events: Vec<String> = (0..count)
            .map(|n| {
                let (thread, ts, dur, id) = (random(2), random(40), random(20), random(3));
                let phase = ["X", "X", "X", "b", "e", "n", "i", "B", "E", "s", "C"][random(11) as usize];
                format!(
                    "{{\"ph\":\"{phase}\",\"pid\":1,\"tid\":{thread},\"ts\":{ts},\"dur\":{dur},\"id\":{id},\
                     \"name\":\"n{}\",\"args\":{{\"v\":{n}}}}}",
                    random(3)
                )
            })
            .collect();
        let text = format!("[{}]", events.join(","));
        let (pairs, _) = spans(text.as_bytes(), false);
        let (complete, _) = spans(text.as_bytes(), true);
        assert_eq!(pairs.rows, complete.rows);
        assert_eq!((pairs.unfinished, pairs.tracks.len()), (complete.unfinished, complete.tracks.len()));
        let begins = |phase: &str| events.iter().filter(|event| event.contains(&format!("\"ph\":\"{phase}\""))).count();
        assert_eq!(pairs.rows.len() + pairs.unfinished, begins("X") + begins("b") + begins("B"));
        let orphans = pairs.instants.iter().filter(|(_, flags)| flags.has(EdgeFlags::ORPHAN)).count();
        assert_eq!(pairs.instants.len() - orphans, begins("i") + begins("n"));
        assert_eq!(pairs.counters.len(), begins("C"));
    }
}

#[test]
fn damaged_samples_keep_the_promises_of_edges() {
    for sample in samples(&["", "odd", "bad"]) {
        mutations(&sample.bytes, 3, 40, |changed| {
            spans(changed, false);
            spans(changed, true);
        });
    }
}

#[test]
fn arguments_categories_and_unknown_fields_are_attributes() {
    let (checked, _) = spans(include_bytes!("../corpus/every-phase.json"), false);
    let of = |name: &str| -> Vec<(&str, &str)> {
        let own = checked.attributes.iter().filter(|(of, ..)| of == name);
        own.map(|(_, key, value)| (key.as_str(), value.as_str())).collect()
    };
    let request = [
        ("url", "a\"b\u{e9}"),
        ("n", "U64(1)"),
        ("deep.x", "[U64(1), U64(2)]"),
        ("deep.y.z", "Bool(true)"),
        ("cat", "io,net"),
        ("status", "U64(200)"),
    ];
    assert_eq!(of("request"), request);
    assert_eq!(of("parse"), [("tdur", "F64(0.2)")]);
    let counters: Vec<_> = checked.counters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(counters, [("memory used", "U64(10)"), ("memory free", "F64(2.5)"), ("memory[7]", "I64(-3)")]);
    let kinds: Vec<_> = checked.flows.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [EdgeKind::FlowOut, EdgeKind::FlowIn, EdgeKind::FlowIn, EdgeKind::FlowOut]);
    assert!(checked.flows.windows(2).all(|pair| pair[0].1 == pair[1].1));
    let task = checked.tracks.iter().filter(|track| track.name.as_deref() == Some("async: task")).count();
    assert_eq!(task, 2, "two ids at the same time");
}

#[test]
fn ends_and_times_that_do_not_fit_are_shown_as_what_they_are() {
    let (checked, sink) = spans(include_bytes!("../corpus/odd/pairs.json"), false);
    assert!(sink.0.is_empty());
    assert_eq!(checked.unfinished, 1 + 1, "never ends, and one without an id");
    assert!(checked.instants.iter().any(|(name, flags)| name == "orphan" && flags.has(EdgeFlags::ORPHAN)));
    let (early, _) = spans(include_bytes!("../corpus/odd/text-ids.json"), false);
    assert_eq!(early.rows[0], ("early".to_owned(), 0, 1000), "the earliest time becomes 0");
    let named: Vec<_> = early.tracks.iter().map(|t| (t.process_name.as_deref(), t.name.as_deref())).collect();
    assert_eq!(named, [(Some("game"), Some("render")), (Some("game"), Some("-1")), (None, None)]);
    let (order, _) = spans(include_bytes!("../corpus/odd/not-in-order.json"), false);
    let rows = [("inner".to_owned(), 3000, 2000), ("outer".to_owned(), 1000, 8000)];
    assert_eq!(order.rows, rows);
}

#[test]
fn an_event_without_a_field_that_it_needs_is_reported_and_not_counted() {
    let (checked, sink) = spans(include_bytes!("../corpus/bad/bad-field--dur.json"), false);
    assert_eq!(sink.codes(), ["chrome/bad-field"]);
    assert_eq!(checked.rows.len(), 1);
}

#[test]
fn more_open_spans_than_can_be_followed_are_reported() {
    let one = "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"a\"},";
    let text = format!("[{}", one.repeat(65_536 + 10));
    let (checked, sink) = spans(text.as_bytes(), false);
    assert_eq!((checked.unfinished, sink.codes()), (65_536, vec!["chrome/too-deep"]));
}

#[test]
fn ids_and_keys_are_bounded_in_bytes() {
    const COUNT: usize = 30;
    let long = "x".repeat(1 << 20);
    let events: Vec<_> = (0..COUNT)
        .map(|n| {
            format!(r#"{{"ph":"X","ts":{n},"dur":1,"pid":1,"tid":"{n}{long}","name":"run","args":{{"{n}{long}":1}}}}"#)
        })
        .collect();
    let (seen, sink) = spans(format!("[{}]", events.join(",\n")).as_bytes(), false);
    assert_eq!((seen.rows.len(), sink.codes()), (COUNT, vec!["chrome/too-many-keys"]));
    let names: usize = seen.names.iter().map(String::len).sum();
    assert!(names <= 13 << 20 && seen.names.iter().any(|name| name == "(other)"), "{names}");
    let tracks: usize = seen.tracks.iter().filter_map(|track| track.name.as_ref()).map(String::len).sum();
    assert!(tracks <= 24 << 20 && seen.tracks.len() > 5, "{tracks} of {}", seen.tracks.len());
    // All values are there, under the name of the others where their own had no room.
    assert_eq!(seen.attributes.len(), COUNT);
}

#[test]
fn names_of_threads_are_bounded_in_bytes() {
    let long = "x".repeat(1 << 20);
    let events = (0..30).map(|n| {
        let name = format!(r#"{{"ph":"M","pid":1,"tid":{n},"name":"thread_name","args":{{"name":"{long}"}}}}"#);
        format!(r#"{name},{{"ph":"X","ts":{n},"dur":1,"pid":1,"tid":{n},"name":"run"}}"#)
    });
    let text = format!("[{}]", events.collect::<Vec<_>>().join(",\n"));
    let (seen, sink) = spans(text.as_bytes(), false);
    assert_eq!((seen.rows.len(), seen.tracks.len(), sink.codes()), (30, 30, vec!["chrome/too-many-keys"]));
    let named = seen.tracks.iter().filter(|track| track.name.is_some()).count();
    assert!((10..=24).contains(&named), "{named}");
}

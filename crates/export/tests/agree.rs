//! Every output, read back by a simple reader of its own, contains the same spans as the list it was written from.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_core::span::TimeUnit;
use common::{Played, Seen, random};
use serde_json::Value;

const HZ: TimeUnit = TimeUnit::Ticks { per_second: Some(2_893_317_000) };

fn samples() -> Vec<Played> {
    let units = [TimeUnit::Nanoseconds, HZ, TimeUnit::Ticks { per_second: None }, TimeUnit::Order];
    units.into_iter().enumerate().map(|(n, unit)| random(n as u64, 2_000, unit)).collect()
}

/// Begins and ends of one track, matched by a stack.
#[derive(Default)]
struct Matcher {
    open: BTreeMap<usize, Vec<Seen>>,
    last: BTreeMap<usize, i128>,
    found: Vec<Seen>,
}

impl Matcher {
    fn begin(&mut self, track: usize, name: &str, start: i128) {
        self.forward(track, start);
        let open = self.open.entry(track).or_default();
        open.push(Seen { track, name: name.to_owned(), start, length: 0, depth: open.len(), own: 0 });
    }

    fn end(&mut self, track: usize, name: Option<&str>, at: i128) {
        self.forward(track, at);
        let open = self.open.get_mut(&track).unwrap();
        let mut span = open.pop().expect("an end has its begin");
        assert!(name.is_none_or(|name| name == span.name), "{name:?} ends {}", span.name);
        span.length = at - span.start;
        span.own += span.length;
        if let Some(parent) = open.last_mut() {
            parent.own -= span.length;
        }
        self.found.push(span);
    }

    fn forward(&mut self, track: usize, time: i128) {
        let last = self.last.insert(track, time).unwrap_or(time);
        assert!(last <= time, "time goes back on track {track}: {last} to {time}");
    }

    fn all(mut self) -> Vec<Seen> {
        assert!(self.open.values().all(Vec::is_empty), "something stayed open");
        self.found.sort();
        self.found
    }
}

fn number(value: &Value) -> i128 {
    value.as_i64().map(i128::from).unwrap()
}

#[test]
fn chrome() {
    for played in samples() {
        let json: Value = serde_json::from_slice(&played.written("chrome")).unwrap();
        let lead: i128 = json["otherData"]["origin-ts-ns"].as_str().unwrap().parse().unwrap();
        let mut matcher = Matcher::default();
        for event in json["traceEvents"].as_array().unwrap() {
            let track = usize::try_from(number(&event["tid"])).unwrap() - 10;
            let ts = || (event["ts"].as_f64().unwrap() * 1000.0).round() as i128 - lead;
            match event["ph"].as_str().unwrap() {
                "B" => matcher.begin(track, event["name"].as_str().unwrap(), ts()),
                "E" => matcher.end(track, event["name"].as_str(), ts()),
                other => assert_eq!(other, "M"),
            }
        }
        assert_eq!(matcher.all(), played.seen());
    }
}

#[test]
fn speedscope() {
    for played in samples() {
        let json: Value = serde_json::from_slice(&played.written("speedscope")).unwrap();
        let frames = json["shared"]["frames"].as_array().unwrap();
        let mut matcher = Matcher::default();
        for (track, profile) in json["profiles"].as_array().unwrap().iter().enumerate() {
            let events = profile["events"].as_array().unwrap();
            let ends = (number(&profile["startValue"]), number(&profile["endValue"]));
            assert_eq!(ends, (number(&events[0]["at"]), number(&events.last().unwrap()["at"])));
            let has_clock = played.source.unit.to_ns(1).is_some();
            assert_eq!(profile["unit"], if has_clock { "nanoseconds" } else { "none" });
            for event in events {
                let frame = usize::try_from(number(&event["frame"])).unwrap();
                let (name, at) = (frames[frame]["name"].as_str().unwrap(), number(&event["at"]));
                match event["type"].as_str().unwrap() {
                    "O" => matcher.begin(track, name, at),
                    "C" => matcher.end(track, Some(name), at),
                    other => panic!("{other}"),
                }
            }
        }
        assert_eq!(matcher.all(), played.seen());
    }
}

/// A table without quoted fields, as rows by column name.
fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), head.len(), "{line}");
            head.iter().copied().zip(fields).collect()
        })
        .collect()
}

#[test]
fn csv() {
    for played in samples() {
        let text = String::from_utf8(played.written("csv")).unwrap();
        let unit = match played.source.unit {
            TimeUnit::Order => "record",
            TimeUnit::Ticks { per_second: None } => "tick",
            _ => "ns",
        };
        let mut found: Vec<Seen> = rows(&text)
            .iter()
            .map(|row| {
                let number = |key: &str| row[key].parse::<i128>().unwrap();
                assert_eq!((row["kind"], row["thread"]), ("span", (number("track") + 10).to_string().as_str()));
                Seen {
                    track: usize::try_from(number("track")).unwrap(),
                    name: row["name"].to_owned(),
                    start: number(&format!("start_{unit}")),
                    length: number(&format!("duration_{unit}")),
                    depth: usize::try_from(number("depth")).unwrap(),
                    own: number(&format!("self_{unit}")),
                }
            })
            .collect();
        found.sort();
        assert_eq!(found, played.seen());
    }
}

/// Self time by path from the oracle; the path begins with the thread.
fn by_path(played: &Played) -> BTreeMap<String, i128> {
    let mut paths: BTreeMap<String, i128> = BTreeMap::new();
    for track in 0..played.tracks.len() {
        let mut spans: Vec<Seen> = played.seen().into_iter().filter(|span| span.track == track).collect();
        // The order of records is lost where times are equal; self time by name and depth remains comparable.
        spans.retain(|span| span.own > 0);
        for span in spans {
            *paths.entry(format!("{track} {} {}", span.depth, span.name)).or_default() += span.own;
        }
    }
    paths
}

#[test]
fn folded() {
    for played in samples().into_iter().filter(|played| played.source.unit != HZ) {
        let text = String::from_utf8(played.written("folded")).unwrap();
        let mut found: BTreeMap<String, i128> = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        for line in text.lines() {
            let (path, value) = line.rsplit_once(' ').unwrap();
            assert!(seen.insert(path), "{path} appears twice");
            let names: Vec<&str> = path.split(';').collect();
            let track =
                names[0].replace('\u{a0}', " ").strip_prefix("process 1, thread ").unwrap().parse::<usize>().unwrap()
                    - 10;
            let key = format!("{track} {} {}", names.len() - 2, names.last().unwrap());
            let value: i128 = value.parse().unwrap();
            if value > 0 {
                *found.entry(key).or_default() += value;
            }
        }
        assert_eq!(found, by_path(&played));
    }
}

/// Milliseconds in JSON as nanoseconds.
fn ms(value: &Value) -> i128 {
    (value.as_f64().unwrap() * 1e6).round() as i128
}

#[test]
fn firefox() {
    for played in samples() {
        let json: Value = serde_json::from_slice(&played.written("firefox")).unwrap();
        let mut found: BTreeMap<String, i128> = BTreeMap::new();
        for (track, thread) in json["threads"].as_array().unwrap().iter().enumerate() {
            check_tables(thread);
            let item = |table: &str, column: &str, row: usize| thread[table][column][row].clone();
            let row = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
            let samples = &thread["samples"];
            let (mut clock, mut work_ns) = (None, 0);
            for n in 0..row(&samples["length"]) {
                // What was worked since the sample before.
                assert_eq!((samples["threadCPUDelta"][n].as_f64().unwrap() * 1000.0).round() as i128, work_ns);
                work_ns = ms(&samples["weight"][n]);
                let (time, weight) = (ms(&samples["time"][n]), ms(&samples["weight"][n]));
                if let Some((last, is_idle)) = clock {
                    assert!(time == last || (is_idle && time > last), "samples lie end to end");
                }
                clock = Some((time + weight, samples["stack"][n].is_null()));
                if weight == 0 {
                    continue;
                }
                let top = row(&samples["stack"][n]);
                let (mut depth, mut below) = (0, item("stackTable", "prefix", top));
                while !below.is_null() {
                    depth += 1;
                    below = item("stackTable", "prefix", row(&below));
                }
                let function = item("frameTable", "func", row(&item("stackTable", "frame", top)));
                let string = item("funcTable", "name", row(&function));
                let name = thread["stringArray"][row(&string)].as_str().unwrap();
                *found.entry(format!("{track} {depth} {name}")).or_default() += weight;
            }
        }
        assert_eq!(found, by_path(&played));
    }
}

/// Asserts that all columns of a table have the length that it states.
fn check_tables(thread: &Value) {
    for (name, table) in thread.as_object().unwrap() {
        let Some(length) = table.get("length").and_then(Value::as_u64) else { continue };
        for (column, values) in table.as_object().unwrap() {
            if let Some(values) = values.as_array() {
                assert_eq!(values.len() as u64, length, "{name}.{column}");
            }
        }
    }
}

//! Where files and damage lie on the axis.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod client;

use client::{Client, example};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_file_that_is_moved_is_moved_in_every_answer() {
    let client = Client::of(&[example("relay.heph"), example("relay.heph")]);
    client.complete();
    let trace = |offsets: &str| client.json(&format!("api/trace?offsets={offsets}"));
    let own = trace("");
    let moved = trace("0,1000000000");
    let (start, end) = (number(&own["range"]["start"]), number(&own["range"]["end"]));
    assert_eq!((number(&moved["range"]["start"]), number(&moved["range"]["end"])), (start, end + 1e9));
    assert_eq!((&moved["files"][0]["moved"], &moved["files"][1]["moved"]), (&0.0.into(), &1e9.into()));
    // The second file alone, in its window.
    let counts = |offsets: &str, from: f64, to: f64| {
        let found = client.json(&format!("api/selection?start={from}&end={to}&offsets={offsets}"));
        found["names"].as_array().unwrap().iter().map(|name| name["count"].as_u64().unwrap()).sum::<u64>()
    };
    let all = counts("", start, end + 1.0);
    assert!(all > 0 && all % 2 == 0, "{all}");
    assert_eq!(counts("0,1000000000", start + 1e9, end + 1e9 + 1.0), all / 2);
    assert_eq!(counts("0,1000000000", start, end + 1e9 + 1.0), all);
    assert_eq!(counts("0,-1000000000", start - 1e9, end - 1e9 + 1.0), all / 2);
    // A hit of a search is where its slice is found.
    let found = client.json("api/search?q=Building%20runtime&offsets=0,1000000000");
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(number(&hits[1]["start"]) - number(&hits[0]["start"]), 1e9, "{found}");
    for hit in hits {
        let (track, depth, start) = (&hit["track"], &hit["depth"], &hit["start"]);
        let at = format!("api/slice?track={track}&depth={depth}&start={start}&offsets=0,1000000000");
        assert_eq!(client.json(&at)["name"], "Building runtime");
    }
    // What is exported has the trace's own times, wherever it is shown.
    let export = |offsets: &str, from: f64, to: f64| {
        let at = format!("api/export?form=native&file=1&start={from}&end={to}&offsets={offsets}");
        let answer = client.get(&at);
        assert_eq!(answer.status, 200, "{at}");
        answer.body
    };
    let middle = (start + end) / 2.0;
    assert_eq!(export("0,500", start + 500.0, middle + 500.0), export("", start, middle));
}

#[test]
fn offsets_that_are_no_places_are_refused() {
    let client = Client::of(&[example("relay.heph"), example("relay.heph")]);
    client.complete();
    for offsets in ["x", "1,y", "1e300", "nan", "inf", "0,9007199254740993"] {
        assert_eq!(client.get(&format!("api/trace?offsets={offsets}")).status, 400, "{offsets}");
    }
    // Those of files that are not there change nothing.
    assert_eq!(client.json("api/trace?offsets=,,7,x")["range"], client.json("api/trace")["range"]);
}

#[test]
fn damage_lies_between_the_times_around_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["relay.heph", "threads4.xray"] {
        let mut bytes = std::fs::read(example(name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 24].fill(0xee);
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let client = Client::of(&[path]);
        let trace = client.complete();
        let (start, end) = (number(&trace["range"]["start"]), number(&trace["range"]["end"]));
        let damage = trace["damage"].as_array().unwrap();
        let placed: Vec<_> = damage.iter().filter(|one| one["start"].is_number()).collect();
        assert!(!placed.is_empty(), "{name}: {damage:?}");
        for one in placed {
            let (from, to) = (number(&one["start"]), number(&one["end"]));
            // One nanosecond is several ticks.
            assert!(from <= to && from >= start - 8.0 && to <= end + 8.0, "{name}: {one}, {start} to {end}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_comes_through_a_pipe_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.casemate");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let trace = std::fs::read(example("free_tree.casemate")).unwrap();
    let to = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(to, trace).unwrap());
    let client = Client::of(&[pipe]);
    let shown = client.complete();
    writer.join().unwrap();
    assert!(shown["instants"].as_u64().unwrap() > 0 && shown["sections"] == serde_json::json!([]), "{shown}");
    // Whoever opened it again would wait for a writer.
    let slice = client.json("api/slice?track=0&depth=0&start=3");
    assert_eq!((&slice["attributes"], &slice["explanations"]), (&Value::Null, &serde_json::json!([])));
    assert_eq!(client.get("api/explain?name=state&track=0&at=3").status, 404);
    assert_eq!(client.get("api/export?form=native&file=0&start=0&end=5").status, 400);
    assert_eq!(client.get("api/section/Summary").status, 404);
}

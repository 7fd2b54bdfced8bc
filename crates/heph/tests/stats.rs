//! Statistics, compared with sums computed another way, and with the figures printed by the recorded programs.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_heph::tools::compat;
use anytrace_heph::tools::stats::{HephStats, StatsOptions, compare, stats, threshold};
use common::Bytes;
use serde_json::Value;

fn of(bytes: &[u8]) -> HephStats {
    let input = Input::from_bytes("trace", bytes.to_vec());
    stats(input, &OpenOptions::default(), &StatsOptions::default(), &mut Collect::default()).unwrap()
}

fn real(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real").join(name)).unwrap()
}

fn run(bytes: Bytes, stream: u32, counter: u32, times: (u64, u64), actor: (u64, &str)) -> Bytes {
    let bytes = bytes.event(stream, counter, 0, times.0, times.1, "Running thread-local process");
    bytes.attribute("id", 1).u64(actor.0).attribute("name", 4).text(actor.1).end()
}

fn scheduling(bytes: Bytes, counter: u32, times: (u64, u64), ready: u64) -> Bytes {
    let bytes = bytes.event(1, counter, 0, times.0, times.1, "Scheduling processes");
    bytes.attribute("local amount", 1).u64(ready).attribute("total amount", 1).u64(ready).end()
}

fn worker() -> Vec<u8> {
    let bytes = Bytes::new().epoch().event(1, 0, 0, 110, 150, "Polling for OS events").end();
    let bytes = scheduling(bytes, 1, (100, 200), 3);
    let bytes = bytes.event(1, 2, 0, 210, 240, "compute").end();
    let bytes = run(bytes, 1, 3, (200, 300), (7, "a"));
    let bytes = run(bytes, 1, 4, (300, 310), (8, "b"));
    let bytes = run(bytes, 1, 5, (400, 500), (7, "a"));
    scheduling(bytes, 6, (500, 600), 0).bytes
}

#[test]
fn a_worker_s_time_is_divided_and_its_actors_are_busy_and_idle() {
    let found = of(&worker());
    let worker = &found.workers[0];
    assert_eq!((worker.lifetime_ns, worker.running_ns, worker.scheduling_ns, worker.polling_ns), (500, 210, 160, 40));
    assert_eq!((worker.rest_ns(), worker.runs), (90, 3));
    let actor = &found.actors[0];
    assert_eq!((actor.name.as_str(), actor.id, actor.runs.count), ("a", 7, 2));
    assert_eq!((actor.runs.total_ns, actor.idle_ns()), (200, 100));
    assert_eq!((found.actors[1].runs.total_ns, found.actors[1].idle_ns()), (10, 0));
    assert_eq!(found.runs.count, 3);
    assert_eq!(found.run_histogram, [(8, 1), (64, 2)]);
    let longest: Vec<u64> = found.longest.iter().map(|run| run.duration_ns).collect();
    assert_eq!(longest, [100, 100, 10]);
    assert_eq!(found.longest[0].inside, Some((b"compute".to_vec(), 30)));
    let queue = found.queues.iter().find(|queue| queue.attribute == "local amount").unwrap();
    assert_eq!((queue.all.count, queue.all.max, queue.all.mean()), (2, 3, 1.5));
    assert_eq!((queue.steps[0].max, queue.steps.last().map(|step| step.count)), (3, Some(0)));
    let json = found.to_json("x");
    assert_eq!((&json["version"], &json["actors"][0]["idle_ns"]), (&Value::from(1), &Value::from(100)));
    assert!(json["descriptions"][0]["p99.9_ns"].is_u64());
}

#[test]
fn sums_of_a_real_trace_are_those_of_its_records() {
    for name in ["relay_new.bin.log", "relay_pid.bin.log", "attrs_plain.bin.log"] {
        let lines = real(&format!("{name}.jsonl"));
        let mut events = 0;
        let mut totals = std::collections::BTreeMap::<String, (u64, u128)>::new();
        for line in String::from_utf8(lines).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            if record["kind"] == "event" {
                events += 1;
                let row = totals.entry(record["description"].as_str().unwrap().to_owned()).or_default();
                row.0 += 1;
                row.1 += u128::from(record["end"].as_u64().unwrap() - record["start"].as_u64().unwrap());
            }
        }
        let found = of(&real(name));
        assert_eq!(found.events, events);
        assert_eq!(found.descriptions.len(), totals.len());
        for row in &found.descriptions {
            let expected = totals[std::str::from_utf8(&row.description).unwrap()];
            assert_eq!((row.lengths.count, row.lengths.total_ns), expected, "{name}");
            assert!(row.self_ns <= row.lengths.total_ns);
        }
        let runs: u64 = found.actors.iter().map(|actor| actor.runs.count).sum();
        assert_eq!(
            (runs + found.other_runs, found.workers.iter().map(|w| w.runs).sum::<u64>()),
            (found.runs.count, runs)
        );
        let dialect = if name.contains("pid") { "old" } else { "new" };
        assert_eq!(found.dialect, Some(dialect), "{name}");
    }
}

#[test]
fn growth_beyond_a_threshold_is_reported() {
    let base = of(&worker());
    let slow = run(Bytes::new().epoch(), 1, 0, (0, 150), (7, "a"));
    let slow = of(&run(slow, 1, 1, (200, 350), (7, "a")).bytes);
    let thresholds = [threshold("p99=40%").unwrap(), threshold("count=0").unwrap()];
    let changes = compare(&base, &slow, &thresholds);
    let actor = changes.iter().find(|change| change.is_actor && change.name == b"a").unwrap();
    assert_eq!(actor.exceeded, [(5, 40.0)]);
    let gone = changes.iter().find(|change| change.name == b"compute").unwrap();
    assert!(gone.shown.is_none() && gone.exceeded.is_empty());
    assert!(compare(&base, &base, &thresholds).iter().all(|change| change.exceeded.is_empty()));
    assert!(threshold("p99").is_none() && threshold("p98=1").is_none());
    assert!(threshold("p99=-1").is_none());
}

fn converted(bytes: &[u8]) -> String {
    let open = OpenOptions::default();
    let input = || Input::from_bytes("trace", bytes.to_vec());
    let epoch = compat::first_epoch(input(), &open).unwrap();
    let mut out = Vec::new();
    compat::convert(input(), &open, epoch, &mut out, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_converter_s_layout_is_kept_and_its_faults_are_not() {
    let line = "\t\t{\"pid\": 1, \"tid\": 5, \"ts\": 1610113734118012, \"dur\": 0, \"name\": \"say \\\"hi\\\"\", \
                \"args\": {\"n\": 18446744073709551615, \"f\": -0, \"a\": [1, 2], \"x\": \"NaN\"}, \"ph\": \"X\", \"cat\": \"\"}";
    let bytes = Bytes::new().event(1, 0, 5, 2001, 2999, "say \"hi\"").attribute("n", 1).u64(u64::MAX);
    let bytes = bytes.attribute("f", 3).u64((-0.0_f64).to_bits()).attribute("a", 0x81).u16(2).u64(1).u64(2);
    let bytes = bytes.attribute("x", 3).u64(f64::NAN.to_bits()).end().epoch().bytes;
    let text = converted(&bytes);
    assert_eq!(text, format!("{{\n\t\"displayTimeUnit\": \"ns\",\n\t\"traceEvents\": [\n{line}\n\t]\n}}"));
    serde_json::from_str::<Value>(&text).unwrap();
    assert_eq!(converted(&[]), "{\n\t\"displayTimeUnit\": \"ns\",\n\t\"traceEvents\": [\n\n\t]\n}");
}

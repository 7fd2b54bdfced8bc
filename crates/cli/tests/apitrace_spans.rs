//! Graphics traces in the verbs over spans: calls in their order, for there is no clock.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const IMM: &str = "examples/traces/imm.trace";

fn run(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).current_dir(root).output().unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn converted(to: &str) -> String {
    text(&["convert", IMM, "-o", "-", "--to", to])
}

/// Numbers of calls by function, as `apitrace dump` lists them.
fn counts() -> std::collections::BTreeMap<String, u64> {
    let mut counts = std::collections::BTreeMap::new();
    for line in text(&["apitrace", "dump", "-v", "--multiline=no", IMM]).lines() {
        let Some((_, call)) = line.split_once(' ').filter(|(number, _)| number.parse::<u64>().is_ok()) else {
            continue;
        };
        *counts.entry(call.split('(').next().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn statistics_count_the_calls_and_say_that_there_is_no_clock() {
    let page = text(&["stats", IMM]);
    assert!(page.lines().next().unwrap().ends_with("no clock: times count records"), "{page}");
    let value: Value = serde_json::from_str(&text(&["stats", IMM, "--format", "json"])).unwrap();
    assert_eq!((&value["format"], &value["unit"]), (&"apitrace".into(), &"record".into()));
    let rows = value["rows"].as_array().unwrap();
    let found = rows.iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap()));
    assert_eq!(found.collect::<std::collections::BTreeMap<_, _>>(), counts());
    let events = text(&["stats", IMM, "--events"]);
    assert!(events.contains("end of frame"), "{events}");
}

#[test]
fn flame_graphs_and_timelines_say_what_they_count() {
    let folded = text(&["flame", IMM]);
    let calls: u64 = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(calls, counts().values().sum::<u64>());
    let picture = text(&["flame", IMM, "--format", "svg"]);
    assert!(picture.contains("records (no clock: the axis is record order)"));
    let timeline = text(&["timeline", IMM]);
    assert!(timeline.contains("no clock: times count records") && timeline.contains("glClear"), "{timeline}");
}

#[test]
fn every_output_has_the_calls_and_says_that_their_times_are_places() {
    let note = "the format has no clock: 1 record is shown as 1 ns";
    let calls = usize::try_from(counts().values().sum::<u64>()).unwrap();
    let chrome: Value = serde_json::from_str(&converted("chrome")).unwrap();
    assert_eq!(chrome["otherData"]["note"], note);
    let begins = chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "B");
    let begins: Vec<&Value> = begins.collect();
    assert_eq!(begins.len(), calls);
    let color = begins.iter().find(|event| event["name"] == "glColor3f").unwrap();
    assert_eq!((&color["args"]["red"], &color["args"]["call"]), (&1.0.into(), &10.into()));
    assert!(begins.iter().any(|event| event["args"]["mode"] == "GL_TRIANGLES"));
    let csv = converted("csv");
    assert!(csv.starts_with("seq,kind") && csv.contains("start_record"));
    assert_eq!(csv.matches(",span,").count(), calls);
    let folded = converted("folded");
    assert!(folded.starts_with("/usr/local/bin/gltest, thread\u{a0}0;") && folded.contains(";glClear 8\n"), "{folded}");
    for output in ["firefox", "speedscope", "svg"] {
        let out = converted(output);
        assert!(out.contains("record"), "{output} says no unit");
        assert!(out.contains("glBegin"), "{output}");
    }
    let perfetto = run(&["convert", IMM, "-o", "-", "--to", "perfetto"]);
    assert_eq!(perfetto.status.code(), Some(0));
    assert!(perfetto.stdout.windows(9).any(|bytes| bytes == b"glColor3f"));
    // The format's own JSON lines stay what they were: events, which can be read back.
    assert!(converted("jsonl").contains("\"enter\""));
}

#[test]
fn damage_is_reported_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.trace");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bytes = std::fs::read(root.join(IMM)).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 100]).unwrap();
    let output = run(&["stats", cut.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("glBegin") && !output.stderr.is_empty());
}

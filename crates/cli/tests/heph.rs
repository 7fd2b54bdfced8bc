//! Heph's own verbs from the command line: exit codes, JSON, pipes.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const RELAY: &str = "examples/traces/relay.heph";
const CAPTURE: &str = "crates/heph/corpus/net/all.dgrams";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn code(arguments: &[&str]) -> i32 {
    run(arguments).status.code().unwrap()
}

#[test]
fn losses_are_reported_and_a_threshold_makes_the_exit_code_1() {
    let found = json(&["heph", "loss", "--datagrams", CAPTURE, "--format", "json"]);
    assert_eq!((&found["version"], &found["received"], &found["duplicates"]), (&1.into(), &592.into(), &8.into()));
    assert_eq!(found["lost"]["40001/0"], serde_json::json!([14, 57, 129]));
    assert_eq!(code(&["heph", "loss", "--datagrams", CAPTURE]), 0);
    assert_eq!(code(&["heph", "loss", "--datagrams", CAPTURE, "--fail-above", "3%"]), 0);
    assert_eq!(code(&["heph", "loss", "--datagrams", CAPTURE, "--fail-above", "2%"]), 1);
    assert_eq!(code(&["heph", "loss", "--datagrams", "crates/heph/corpus/net/several_packets_per_datagram.dgrams"]), 1);
    assert_eq!(code(&["heph", "loss"]), 2);
    assert_eq!(code(&["heph", "loss", RELAY, "--fail-above", "many"]), 2);
}

#[test]
fn only_heph_traces_are_taken() {
    for verb in [&["heph", "spans"][..], &["heph", "stats"], &["heph", "loss"]] {
        let output = run(&[verb, &["examples/traces/threads4.xray"]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("expected a Heph trace, found an LLVM XRay trace"));
    }
}

#[test]
fn a_pipe_gives_what_a_file_gives() {
    for verb in [&["heph", "spans", "--format", "json"][..], &["heph", "spans", "--streaming", "--format", "json"]] {
        let file = run(&[verb, &[RELAY]].concat());
        let mut child = command(&[verb, &["-"]].concat()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RELAY)).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let piped = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(file.status.success() && piped.stdout == file.stdout);
    }
}

#[test]
fn every_event_is_one_span_of_every_timeline() {
    let events = json(&["heph", "spans", RELAY, "--format", "json"])["spans"].as_array().unwrap().len();
    let chrome = json(&["convert", RELAY, "--to", "chrome", "-o", "-"]);
    let spans = chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    assert_eq!(spans.count(), events);
    let otlp = json(&["convert", RELAY, "--to", "otlp", "-o", "-"]);
    assert_eq!(otlp["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len(), events);
    let compat = json(&["heph", "convert", "--compat", RELAY, "-o", "-"]);
    assert_eq!(compat["traceEvents"].as_array().unwrap().len(), events);
    let csv = run(&["convert", RELAY, "--to", "csv", "-o", "-"]).stdout;
    let rows = String::from_utf8(csv).unwrap().lines().filter(|line| line.split(',').nth(1) == Some("span")).count();
    assert_eq!(rows, events);
    let stats = json(&["stats", RELAY, "--format", "json"]);
    assert_eq!(stats["spans"], events, "{stats}");
}

#[test]
fn statistics_are_compared_with_thresholds() {
    let same = json(&["heph", "stats", RELAY, "--compare", RELAY, "--format", "json"]);
    assert!(same["rows"].as_array().unwrap().iter().all(|row| row["base"] == row["shown"]));
    assert_eq!(code(&["heph", "stats", RELAY, "--compare", RELAY, "--fail-above", "p99=0"]), 0);
    let other = "crates/heph/corpus/real/relay_pid.bin.log";
    assert_eq!(code(&["heph", "stats", RELAY, "--compare", other, "--fail-above", "max=0%"]), 1);
    assert_eq!(code(&["heph", "stats", RELAY, "--fail-above", "max=0%"]), 2);
    let stats = json(&["heph", "stats", RELAY, "--format", "json"]);
    assert_eq!((&stats["version"], &stats["dialect"]), (&1.into(), &"new".into()));
}

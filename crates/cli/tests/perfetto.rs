//! Perfetto traces through the program: what `convert --to perfetto` writes is read as what it was made of.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Runs the program on bytes from a pipe.
fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    let mut child =
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.to_vec();
    let writer = std::thread::spawn(move || _ = stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn bytes(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = piped(arguments, input);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Count, sum of lengths and self time by name, in nanoseconds.
type Rows = BTreeMap<String, [u64; 5]>;

fn stats(trace: &[u8]) -> (Rows, [u64; 2]) {
    let stats: Value = serde_json::from_slice(&bytes(&["stats", "--format", "json", "-"], trace)).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let rows = stats["rows"].as_array().unwrap().iter().map(|row| {
        let cells = ["count", "sum", "self", "threads", "unfinished"].map(|key| number(&row[key]));
        (row["name"].as_str().unwrap().to_owned(), cells)
    });
    (rows.collect(), [number(&stats["orphans"]), number(&stats["deduced"])])
}

#[test]
fn an_export_has_the_statistics_of_the_trace_it_was_made_of() {
    // Traces with lives of spans (`tasks.heph`) have more slices in the export than in their own statistics.
    for name in [
        "examples/traces/threads4.xray",
        "examples/traces/relay.heph",
        "crates/xray/corpus/fib12-thr5.xray",
        "crates/heph/corpus/real/attrs_plain.bin.log",
    ] {
        let trace = std::fs::read(project(name)).unwrap();
        let export = bytes(&["convert", "-", "-o", "-", "--to", "perfetto"], &trace);
        let (wanted, found) = (stats(&trace), stats(&export));
        assert_eq!(wanted.1, found.1, "{name}: orphans and deduced ends");
        assert_eq!(wanted.0.len(), found.0.len(), "{name}");
        for ((name, wanted), (other, found)) in wanted.0.iter().zip(&found.0) {
            assert_eq!((name, wanted[0], &wanted[3..]), (other, found[0], &found[3..]), "{name}");
            // Ticks are rounded at each end of a slice in the export, and once in the statistics of the trace.
            for at in [1, 2] {
                let slack = if name.ends_with(".heph") { 0 } else { 2 * wanted[0] + wanted[0] * 16 };
                assert!(wanted[at].abs_diff(found[at]) <= slack, "{name}: {wanted:?}, {found:?}");
            }
        }
        // What is read of the export is written as the same slices.
        // The numbers of packets differ.
        let csv = |trace: &[u8]| {
            let text = String::from_utf8(bytes(&["convert", "-", "-o", "-", "--to", "csv"], trace)).unwrap();
            let mut lines: Vec<_> = text.lines().map(|line| line.split_once(',').unwrap().1.to_owned()).collect();
            lines.sort();
            lines
        };
        let again = bytes(&["convert", "-", "-o", "-", "--to", "perfetto", "--depth", "..1000"], &export);
        assert_eq!(stats(&again), found, "{name}");
        assert_eq!(csv(&again), csv(&export), "{name}");
    }
}

#[test]
fn the_format_is_copied_unless_spans_are_selected() {
    let trace = std::fs::read(project("crates/perfetto/corpus/real/tracing-perfetto.pftrace")).unwrap();
    assert!(bytes(&["convert", "-", "-o", "-", "--to", "perfetto"], &trace) == trace);
    assert!(bytes(&["convert", "-", "-o", "-"], &trace) == trace);
    let main = bytes(&["convert", "-", "-o", "-", "--to", "perfetto", "--name", "main"], &trace);
    let rows = stats(&main).0;
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["main"], "{rows:?}");
    let refused = piped(&["convert", "-", "-o", "-", "--to", "perfetto", "--version", "1"], &trace);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_cut_trace_says_where_and_gives_what_is_before() {
    let trace = std::fs::read(project("crates/perfetto/corpus/real/chromium-cut.pftrace")).unwrap();
    for verb in [&["stats", "-"][..], &["info", "-"], &["check", "-"], &["flame", "-", "-o", "-"]] {
        let output = piped(verb, &trace);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("[perfetto/truncated]"), "{verb:?}: {said}");
    }
    let whole = bytes(&["repair", "-", "-o", "-"], &trace[..trace.len() - 11]);
    assert!(trace.starts_with(&whole) && whole.len() + 100 > trace.len());
}

//! `convert --to chrome|perfetto|…`: every timeline output through the program.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_export::timeline::{OUTPUTS, TimelineOutput};
use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name)
}

/// The outputs that are files; `ctf.rs` has the one that is a folder.
fn files() -> impl Iterator<Item = &'static TimelineOutput> {
    OUTPUTS.iter().filter(|output| output.folder.is_none())
}

fn convert(input: &Path, to: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.arg("convert").arg(input).args(["-o", "-", "--to", to]).args(more).output().unwrap()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_trace_is_written_in_every_output_from_a_file_and_from_a_pipe() {
    let path = example("threads4.xray");
    for output in files() {
        let by_name = convert(&path, output.name, &[]);
        assert_eq!(by_name.status.code(), Some(0), "{}", String::from_utf8_lossy(&by_name.stderr));
        assert!(by_name.stdout.len() > 250, "{}", output.name);
        if output.extension.ends_with("json") {
            let is_lines = output.name == "otlp";
            let documents = by_name.stdout.split_inclusive(|byte| is_lines && *byte == b'\n');
            documents.for_each(|document| drop(serde_json::from_slice::<Value>(document).unwrap()));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.args(["convert", "-", "-o", "-", "--to", output.name]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let piped = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        // The title is the file's name, which a pipe does not have.
        if !["callgrind", "firefox", "otlp", "speedscope", "svg"].contains(&output.name) {
            assert!(piped.stdout == by_name.stdout, "{}", output.name);
        }
    }
}

#[test]
fn each_entry_of_a_trace_is_a_begin_in_chrome_and_a_row_in_csv() {
    let path = example("threads4.xray");
    let info = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(["info", "--format", "json"]).arg(&path).output();
    let info: Value = serde_json::from_slice(&info.unwrap().stdout).unwrap();
    let entries: u64 =
        ["function-enter", "function-enter-arg"].iter().filter_map(|kind| info["kinds"][kind].as_u64()).sum();
    assert!(entries > 0, "{info}");
    let chrome: Value = serde_json::from_slice(&convert(&path, "chrome", &[]).stdout).unwrap();
    let begins = chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "B").count();
    let csv = String::from_utf8(convert(&path, "csv", &[]).stdout).unwrap();
    let rows = csv.lines().filter(|line| line.split(',').nth(1) == Some("span")).count();
    assert_eq!((begins as u64, rows as u64), (entries, entries));
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let casemate = error(&convert(&example("free_tree.casemate"), "chrome", &[]));
    assert!(casemate.contains("cannot be written as chrome; --to accepts casemate"), "{casemate}");
    let casemate = error(&convert(&example("threads4.xray"), "casemate", &[]));
    assert!(
        casemate.contains("--to accepts xray, fdr, basic, yaml, jsonl, callgrind, chrome, csv, ctf, firefox"),
        "{casemate}"
    );
    let version = error(&convert(&example("threads4.xray"), "chrome", &["--version", "3"]));
    assert!(version.contains("--version does not apply to chrome"), "{version}");
    let chains = error(&convert(&example("threads4.xray"), "yaml", &["--tail-chains"]));
    assert!(chains.contains("apply only to timelines"), "{chains}");
    error(&convert(&example("threads4.xray"), "chrome", &["-m", "no/such/program"]));
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines.jsonl");
    std::fs::write(&lines, convert(&example("threads4.xray"), "jsonl", &[]).stdout).unwrap();
    let lines = error(&convert(&lines, "chrome", &[]));
    assert!(lines.contains("first convert them with"), "{lines}");
}

#[test]
fn an_empty_file_is_an_empty_timeline_and_a_cut_one_keeps_what_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.xray");
    std::fs::write(&empty, b"").unwrap();
    let cut = folder.path().join("cut.xray");
    let bytes = std::fs::read(example("threads4.xray")).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    for output in files() {
        let nothing = convert(&empty, output.name, &[]);
        assert_eq!(nothing.status.code(), Some(0), "{}", output.name);
        let part = convert(&cut, output.name, &[]);
        assert_eq!(part.status.code(), Some(1), "{}", output.name);
        assert!(!part.stdout.is_empty() && !part.stderr.is_empty());
        if output.extension.ends_with("json") {
            serde_json::from_slice::<Value>(&nothing.stdout).unwrap();
            serde_json::from_slice::<Value>(&part.stdout).unwrap();
        }
    }
}

/// Sums by stack over all threads, of stacks that have any time.
fn sums<'a>(stacks: impl Iterator<Item = (String, &'a str)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (stack, time) in stacks {
        *sums.entry(stack).or_insert(0) += time.parse::<u64>().unwrap();
    }
    sums.retain(|_, time| *time > 0);
    sums
}

#[test]
fn periods_of_perf_script_are_the_self_times_of_folded() {
    for trace in ["threads4.xray", "relay.heph", "tasks.heph", "imm.trace"] {
        let folded = String::from_utf8(convert(&example(trace), "folded", &[]).stdout).unwrap().replace('\u{a0}', " ");
        let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
        let wanted = sums(lines.map(|(path, time)| (path.split_once(';').unwrap().1.to_owned(), time)));

        let samples = String::from_utf8(convert(&example(trace), "perf-script", &[]).stdout).unwrap();
        let samples: Vec<_> = samples.split("\n\n").filter(|sample| sample.contains('\t')).collect();
        let stacks = samples.iter().map(|sample| {
            let (head, stack) = sample.split_once('\n').unwrap();
            let frame = |line: &str| line.trim().strip_prefix("0 ")?.strip_suffix(" ([unknown])").map(str::to_owned);
            let names: Vec<String> = stack.lines().rev().map(|line| frame(line).unwrap().replace(';', ":")).collect();
            (names.join(";"), head.split_whitespace().rev().nth(1).unwrap())
        });
        let found = sums(stacks);
        assert!(found.keys().eq(wanted.keys()), "{trace}");
        for (stack, time) in &wanted {
            // The ends of a sample are rounded to nanoseconds, a sum only once.
            assert!(found[stack].abs_diff(*time) <= samples.len() as u64, "{trace}: {stack}: {} {time}", found[stack]);
        }
        let total = |sums: &BTreeMap<String, u64>| sums.values().sum::<u64>();
        assert!(trace.ends_with("xray") || total(&found) == total(&wanted), "{trace}: exact where a tick is 1 ns");
    }
}

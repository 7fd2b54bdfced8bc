//! Recordings of perf through the program: what `convert --to perf-script` writes is read with the same stacks, and sums
//! are those of perf itself.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anytrace_core::testing::has_program;

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

/// Sums of the stacks, without the thread with which they begin where there are several: its name has another form.
fn folded(trace: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8(bytes(&["convert", "-", "-o", "-", "--to", "folded"], trace)).unwrap();
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let (stack, sum) = line.rsplit_once(' ').unwrap();
        let stack = stack.split_once(';').map_or("", |(_, rest)| rest);
        *sums.entry(stack.to_owned()).or_default() += sum.parse::<u64>().unwrap();
    }
    sums
}

#[test]
fn an_export_has_the_stacks_of_the_trace_it_was_made_of() {
    for name in [
        "examples/traces/threads4.xray",
        "examples/traces/relay.heph",
        "crates/xray/corpus/fib12-thr5.xray",
        "crates/perf/corpus/stacks.perf",
        "crates/perf/corpus/callgraph.data",
        "crates/perf/corpus/inlined.perf",
    ] {
        let trace = std::fs::read(project(name)).unwrap();
        let export = bytes(&["convert", "-", "-o", "-", "--to", "perf-script"], &trace);
        let (wanted, found) = (folded(&trace), folded(&export));
        assert!(!wanted.is_empty(), "{name}");
        assert!(wanted.keys().eq(found.keys()), "{name}: {wanted:?} {found:?}");
        // Lengths of ticks are rounded to nanoseconds one by one in the export, in sums otherwise.
        let rounding = if name.ends_with(".xray") { 20 } else { 0 };
        let is_same = wanted.values().zip(found.values()).all(|(a, b)| a.abs_diff(*b) <= rounding);
        assert!(is_same, "{name}: {wanted:?} {found:?}");
        let check = piped(&["check", "-"], &export);
        assert_eq!(check.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&check.stdout));
    }
}

/// Samples and sum of the periods of each event, as `perf report` says.
#[test]
fn periods_are_those_of_perf_report() {
    if !has_program("perf") {
        return;
    }
    let names = ["callgraph", "two-events", "addresses", "user-stacks", "compressed", "compressed-stream"];
    for name in names.map(|name| format!("{name}.data")) {
        let path = project("crates/perf/corpus").join(&name);
        // perf reads only files of the user who runs it.
        let copy = std::env::temp_dir().join(format!("anytrace-perf-{}-{name}", std::process::id()));
        std::fs::copy(&path, &copy).unwrap();
        let report =
            Command::new("perf").args(["report", "--stdio", "--no-children", "-i"]).arg(&copy).output().unwrap();
        std::fs::remove_file(&copy).unwrap();
        let report = String::from_utf8_lossy(&report.stdout).into_owned();
        let sums = report.lines().filter_map(|line| line.strip_prefix("# Event count (approx.): "));
        let mut wanted: Vec<u64> = sums.map(|sum| sum.trim().parse().unwrap()).collect();
        let info: serde_json::Value =
            serde_json::from_slice(&bytes(&["info", "--format", "json", "-"], &std::fs::read(&path).unwrap())).unwrap();
        let events = info["details"]["events"].as_array().or(info["events"].as_array()).unwrap();
        let mut found: Vec<u64> = events.iter().map(|event| event["period"].as_u64().unwrap()).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        found.retain(|sum| *sum > 0);
        assert_eq!(found, wanted, "{name}: {report}");
    }
}

/// Threads, times and stacks, as `perf script` prints them of a recording that is made here.
#[test]
fn compressed_samples_are_those_of_perf_script() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let record = |level: &str, more: &[&str]| {
        let arguments = ["record", "-q", level, "-m", "4", "-F", "2000", "-e", "cpu-clock", "-g"];
        let target = ["-o", "perf.data", "--", "sh", "-c", "xz -T2 -9 < /bin/sh | xz -d | cksum"];
        let command = Command::new("perf").args(arguments).args(more).args(target).current_dir(folder.path()).output();
        command.is_ok_and(|output| output.status.success())
    };
    if !has_program("perf") || !record("-z1", &[]) {
        return;
    }
    for (level, more) in [("-z1", &[][..]), ("-z22", &[]), ("-z1", &["--threads"])] {
        let is_folder = more == ["--threads"];
        if !record(level, more) {
            continue;
        }
        let script = Command::new("perf").args(["script", "-F", "tid,time,period,event", "-i"]).arg(&file).output();
        let script = String::from_utf8(script.unwrap().stdout).unwrap();
        let mut wanted: Vec<(u64, u64)> = script.lines().filter_map(sample_line).collect();
        let dump = Command::new(env!("CARGO_BIN_EXE_anytrace")).arg("dump").arg(&file).output().unwrap();
        let text = String::from_utf8(dump.stdout).unwrap();
        let number =
            |line: &str, name: &str| line.split(name).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let samples = text.lines().filter(|line| line.contains(" sample "));
        let mut found: Vec<(u64, u64)> =
            samples.map(|line| (number(line, "thread="), number(line, "time_ns=") / 1000)).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        assert!(wanted.len() > 20 && found == wanted, "{level} {is_folder}: {} {}", found.len(), wanted.len());
        if is_folder {
            std::fs::remove_dir_all(&file).unwrap();
        }
    }
}

/// Thread and microseconds of a line of a sample.
fn sample_line(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace();
    let (thread, time) = (words.next()?.parse().ok()?, words.next()?.strip_suffix(':')?);
    let (seconds, micros) = time.split_once('.')?;
    Some((thread, format!("{seconds}{micros}").parse().ok()?))
}

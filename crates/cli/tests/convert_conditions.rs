//! `convert` to timelines with conditions on spans: the same spans as `stats` counts with them, in every form.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap()
}

/// Spans and their total length, by `stats`.
fn wanted(trace: &str, conditions: &[&str]) -> (u64, u64) {
    let output = run(&[&["stats", "--format", "json", trace], conditions].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum();
    (sum("count"), sum("total"))
}

fn converted(trace: &str, to: &str, conditions: &[&str]) -> (String, String) {
    let output = run(&[&["convert", trace, "-o", "-", "--to", to], conditions].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{trace} {conditions:?}: {said}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), said)
}

/// The same of the rows of CSV, and the threads in it.
fn of_csv(text: &str) -> (u64, u64) {
    let mut rows = csv_rows(text);
    let head = rows.next().unwrap();
    let at = |name: &str| head.iter().position(|cell| cell.starts_with(name)).unwrap();
    let (start, duration) = (at("start"), at("duration"));
    let mut found = (0, 0);
    for row in rows {
        assert!(!row[start].is_empty());
        if let Ok(length) = row[duration].parse::<u64>() {
            found = (found.0 + 1, found.1 + length);
        }
    }
    found
}

/// Cells of names of these examples have no quotes.
fn csv_rows(text: &str) -> impl Iterator<Item = Vec<String>> + '_ {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect())
}

/// Spans of Chrome's form, and threads that have any.
fn of_chrome(text: &str) -> (u64, usize) {
    let report: Value = serde_json::from_str(text).unwrap();
    let events = report["traceEvents"].as_array().or(report.as_array()).unwrap();
    let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "B").collect();
    let threads: std::collections::BTreeSet<_> = spans.iter().map(|event| event["tid"].to_string()).collect();
    (spans.len() as u64, threads.len())
}

#[test]
fn convert_keeps_what_stats_counts() {
    let traces = ["tour/threads.yaml.gz", "traces/threads4.xray"];
    let conditions: [&[&str]; 9] = [
        &[],
        &["--depth", "1"],
        &["--depth", "1.."],
        &["--name", "work|Worker::(step|run)"],
        &["--time", "2ms..4ms"],
        &["--duration", "200ns.."],
        &["--duration", "..1us", "--depth", "..3"],
        &["--duration", "100ns..1us", "--name", "s", "--time", "1ms.."],
        &["--name", "no such name"],
    ];
    for name in traces {
        let trace = example(name);
        let trace = trace.to_str().unwrap();
        let mut seen = 0;
        for conditions in conditions {
            let wanted = wanted(trace, conditions);
            let (csv, said) = converted(trace, "csv", conditions);
            assert_eq!(of_csv(&csv).0, wanted.0, "{name} {conditions:?}");
            let (chrome, _) = converted(trace, "chrome", conditions);
            assert_eq!(of_chrome(&chrome).0, wanted.0, "{name} {conditions:?}");
            let all = wanted_all(trace);
            assert_eq!(said.contains("were left out"), wanted.0 < all, "{said}");
            assert!(wanted.0 == all || said.contains(&format!("{} spans outside --", all - wanted.0)));
            seen += usize::from(wanted.0 > 0 && wanted.0 < all);
        }
        assert!(seen >= 4, "{name}: conditions that leave some and not all");
    }
}

fn wanted_all(trace: &str) -> u64 {
    wanted(trace, &[]).0
}

#[test]
fn one_thread_is_one_track() {
    let trace = example("tour/threads.yaml.gz");
    let trace = trace.to_str().unwrap();
    let report: Value =
        serde_json::from_slice(&run(&["stats", "--by", "thread", "--format", "json", trace]).stdout).unwrap();
    let threads = report["rows"].as_array().unwrap();
    assert_eq!(threads.len(), 5);
    for thread in threads {
        let id = thread["thread"].to_string();
        let conditions = ["--thread", id.as_str()];
        let found = of_chrome(&converted(trace, "chrome", &conditions).0);
        assert_eq!(found, (wanted(trace, &conditions).0, 1));
        for to in ["speedscope", "firefox"] {
            let text = converted(trace, to, &conditions).0;
            let shown: Value = serde_json::from_str(&text).unwrap();
            let profiles = shown["profiles"].as_array().or(shown["threads"].as_array()).unwrap();
            assert_eq!(profiles.len(), 1, "{to}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let trace = example("traces/threads4.xray");
    let trace = trace.to_str().unwrap();
    let refused = |arguments: &[&str]| {
        let output = run(&[&["convert", trace, "-o", "-"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--to", "yaml", "--name", "x"]).contains("apply only to timelines"));
    assert!(refused(&["--to", "parquet", "--thread", "1"]).contains("apply only to timelines"));
    // Standard input, and a pipe that has a name.
    for script in
        ["convert - -o - --to csv --duration 1.. < \"$1\"", "convert <(cat \"$1\") -o - --to csv --duration 1.."]
    {
        let script = format!("exec timeout 20 \"$0\" {script}");
        let piped = Command::new("bash").args(["-c", &script, env!("CARGO_BIN_EXE_anytrace"), trace]).output().unwrap();
        let said = String::from_utf8(piped.stderr).unwrap();
        assert!(piped.status.code() == Some(2) && said.contains("can be read once only"), "{script}: {said}");
    }
}

#[test]
fn a_page_is_the_report_of_the_trace_and_takes_no_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for trace in ["threads4.xray", "boxes.cacheray", "free_tree.casemate"] {
        let trace = example("traces").join(trace).display().to_string();
        let report = run(&["report", &trace, "-o", &path("report.html"), "--force"]);
        let by_name = run(&["convert", &trace, "-o", &path("page.html"), "--force"]);
        let by_option = run(&["convert", &trace, "-o", "-", "--to", "html"]);
        assert_eq!([&report, &by_name, &by_option].map(|output| output.status.code()), [Some(0); 3], "{trace}");
        let pages = ["report.html", "page.html"].map(|name| std::fs::read(path(name)).unwrap());
        assert!(pages[0] == pages[1] && pages[0] == by_option.stdout, "{trace}");
    }
    let trace = example("traces/threads4.xray").display().to_string();
    for refused in [&["--thread", "28976"][..], &["--table", "spans"], &["--align", "begin"], &[&trace]] {
        let output = run(&[&["convert", &trace, "-o", &path("none.html"), "--to", "html"], refused].concat());
        assert_eq!(output.status.code(), Some(2), "{refused:?}");
        assert!(!folder.path().join("none.html").exists());
    }
}

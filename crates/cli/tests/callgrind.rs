//! `convert --to callgrind`: what Valgrind's own program reads in it is what `stats` counts.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::testing::has_program;
use serde_json::Value;

/// An xray trace with recursion, one of several threads, heph traces with recursion and without, and one without a
/// clock.
const TRACES: [&str; 5] = [
    "crates/xray/corpus/fib12-thr5.xray",
    "examples/traces/threads4.xray",
    "examples/traces/relay.heph",
    "examples/traces/tasks.heph",
    "examples/traces/imm.trace",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn anytrace(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// What `callgrind_annotate` prints of a profile, away from sources of the same names.
fn annotate(profile: &Path, options: &[&str]) -> String {
    let mut command = Command::new("callgrind_annotate");
    command.args(["--threshold=100", "--show-percs=no"]).args(options).arg(profile);
    let output = command.current_dir(profile.parent().unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{}: {said}", profile.display());
    String::from_utf8(output.stdout).unwrap()
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

/// Costs by `FILE:FUNCTION`, functions of `[threads]` apart.
fn costs(text: &str) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let rows = text.lines().filter_map(|line| line.trim_start().split_once("  "));
    let rows = rows.filter_map(|(cost, name)| Some((name.to_owned(), number(cost)?)));
    let rows = rows.filter(|(name, _)| name != "PROGRAM TOTALS");
    rows.partition(|(name, _)| !name.starts_with("[threads]:"))
}

fn totals(text: &str) -> u64 {
    let line = text.lines().find(|line| line.ends_with("PROGRAM TOTALS")).unwrap_or_else(|| panic!("{text}"));
    number(line.trim_end_matches("PROGRAM TOTALS").trim()).unwrap()
}

/// A column of `stats` by name as callgrind_annotate prints it.
fn column(stats: &Value, column: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in stats["rows"].as_array().unwrap() {
        let file = row["file"].as_str().unwrap_or("???");
        *sums.entry(format!("{file}:{}", row["name"].as_str().unwrap())).or_default() += row[column].as_u64().unwrap();
    }
    sums
}

#[test]
fn callgrind_annotate_sums_what_stats_counts() {
    if !has_program("callgrind_annotate") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut recursive = 0;
    for trace in TRACES {
        let stats: Value = serde_json::from_slice(&anytrace(&["stats", "--format", "json", trace])).unwrap();
        let profile = folder.path().join("trace.callgrind");
        std::fs::write(&profile, anytrace(&["convert", trace, "-o", "-", "--to", "callgrind"])).unwrap();

        let (own, threads) = costs(&annotate(&profile, &[]));
        assert_eq!(own, column(&stats, "self"), "{trace}: self");
        assert!(threads.is_empty() || threads.values().all(|cost| *cost == 0), "{trace}: {threads:?}");
        assert_eq!(totals(&annotate(&profile, &[])), own.values().sum::<u64>(), "{trace}");

        let (inclusive, threads) = costs(&annotate(&profile, &["--inclusive=yes"]));
        assert_eq!(inclusive, column(&stats, "total"), "{trace}: inclusive");
        // All self time is somewhere in what threads called.
        let difference = threads.values().sum::<u64>().abs_diff(own.values().sum());
        assert!(difference <= own.len() as u64, "{trace}: {threads:?}");

        assert_eq!(calls(&annotate(&profile, &["--tree=caller"])), column(&stats, "count"), "{trace}: calls");
        recursive += column(&stats, "recursive").values().sum::<u64>();
    }
    assert!(recursive > 100, "there is recursion in these traces");
}

/// Calls by function: the sum of `(Nx)` of its callers, which precede it, `<` with a number each.
fn calls(text: &str) -> BTreeMap<String, u64> {
    let (mut calls, mut sum) = (BTreeMap::new(), 0);
    for line in text.lines() {
        if let Some((_, caller)) = line.split_once(" < ") {
            sum += number(caller.rsplit_once(" (").unwrap().1.split('x').next().unwrap()).unwrap();
        } else if let Some((_, name)) = line.split_once(" *  ") {
            if sum > 0 {
                calls.insert(name.to_owned(), sum);
            }
            sum = 0;
        }
    }
    calls
}

#[test]
fn units_without_length_are_named_in_the_profile() {
    let text = |trace: &str| String::from_utf8(anytrace(&["convert", trace, "-o", "-", "--to", "callgrind"])).unwrap();
    let imm = text(TRACES[4]);
    assert!(imm.contains("\nevents: record\n") && imm.contains("# the format has no clock: "), "{imm}");
    assert!(text(TRACES[0]).contains("\nevents: ns\n"));
}

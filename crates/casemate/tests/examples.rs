//! The examples, run on samples of the corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anytrace_core::testing::example_prints;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_every_record_with_its_place() {
    let (text, damage) = example_prints("casemate-records", &[sample("positional_h_t0sz25_ok.log")]);
    let lines: Vec<&str> = text.lines().collect();
    let source = std::fs::read_to_string(sample("positional_h_t0sz25_ok.log")).unwrap();
    assert_eq!(lines.len(), source.lines().count());
    assert_eq!(lines[2], "0x54 2: thread 0, MemWrite { order: Release, address: 2147483656, value: 2147487747 }");
    assert_eq!(damage, "");
}

#[test]
fn records_goes_on_after_damage() {
    let (text, damage) = example_prints("casemate-records", &[sample("bad/unknown-kind--mem-frob.log")]);
    assert!(!text.is_empty(), "{damage}");
    assert!(damage.contains("casemate/unknown-kind"), "{damage}");
}

#[test]
fn filter_writes_the_same_bytes_for_the_records_it_keeps() {
    let path = sample("head_good_bbm.log");
    let (kept, _) = example_prints("casemate-filter", &[path.as_os_str(), OsStr::new("0")]);
    let source = std::fs::read_to_string(&path).unwrap();
    let expected: String = source.lines().filter(|line| line.contains("(tid 0)")).map(|l| format!("{l}\n")).collect();
    assert!(!expected.is_empty());
    assert_eq!(kept, expected);
}

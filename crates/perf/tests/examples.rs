//! The programs in `examples/`, run on a sample: what they print.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::example_prints;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("perf-records", &[path("bad/bad-record--type.data")]);
    assert!(out.starts_with("0 at byte 0x0: header of 264 bytes\n1 at byte 0x108: "), "{out}");
    assert!(out.contains(": mmap2 of ") && out.contains(": sample of ") && out.contains(": features of "), "{out}");
    assert_eq!(err.matches("[perf/").count(), 1, "{err}");
}

#[test]
fn filter_removes_samples() {
    let folder = std::env::temp_dir().join(format!("anytrace-perf-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.perf");
    let printed = example_prints("perf-filter", &[path("side-band.perf"), copy.clone()]);
    let text = std::fs::read_to_string(&copy).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, (String::new(), String::new()));
    assert!(!text.is_empty() && text.lines().all(|line| line.contains(": PERF_RECORD_")), "{text}");
}

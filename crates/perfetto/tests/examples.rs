//! The programs in `examples/`, run on a sample: what they print.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::example_prints;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("perfetto-records", &[path("bad/bad-packet--garbage-between.pftrace")]);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 7, "{out}");
    assert_eq!(lines[0], "0 at byte 0x0: track_descriptor of sequence 1, 9 bytes");
    assert_eq!(lines[3], "3 at byte 0x4b: track_event of sequence 1, 14 bytes");
    assert_eq!(err.matches("[perfetto/").count(), 1, "{err}");
}

#[test]
fn filter_keeps_one_sequence() {
    let folder = std::env::temp_dir().join(format!("anytrace-perfetto-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.pftrace");
    let printed = example_prints("perfetto-filter", &[path("features.pftrace"), copy.clone(), "3".into()]);
    let printed_copy = example_prints("perfetto-records", &[copy]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, (String::new(), String::new()));
    assert_eq!(printed_copy.0.lines().count(), 6);
    assert!(printed_copy.0.lines().all(|line| line.contains("of sequence 3")), "{}", printed_copy.0);
}

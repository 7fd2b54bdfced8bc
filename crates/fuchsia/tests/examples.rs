//! The programs in `examples/`, run on a sample: what they print.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::example_prints;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("fuchsia-records", &[path("bad/truncated--in-event.fxt")]);
    assert!(out.starts_with("0 at byte 0x0: magic of 8 bytes\n1 at byte 0x8: provider_info of 16 bytes\n"), "{out}");
    assert_eq!(err.matches("[fuchsia/").count(), 1, "{err}");
}

#[test]
fn filter_removes_instants() {
    let folder = std::env::temp_dir().join(format!("anytrace-fuchsia-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.fxt");
    let printed = example_prints("fuchsia-filter", &[path("features.fxt"), copy.clone()]);
    let (bytes, all) = (std::fs::read(&copy).unwrap(), std::fs::read(path("features.fxt")).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, (String::new(), String::new()));
    assert_eq!(bytes.len() + 24, all.len(), "one instant of three words");
}

//! The programs in `examples/`, run on a sample: what they print.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::example_prints;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("ctf-records", &[path("bad/truncated--in-packet.tar")]);
    assert!(out.starts_with("0 at byte 0x0: file of 512 bytes\n1 at byte 0x200: metadata of "), "{out}");
    assert_eq!(err.matches("[ctf/").count(), 1, "{err}");
}

#[test]
fn filter_copies_what_is_in_the_trace() {
    let folder = std::env::temp_dir().join(format!("anytrace-ctf-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.tar");
    let printed = example_prints("ctf-filter", &[path("features.tar"), copy.clone()]);
    let (bytes, all) = (std::fs::read(&copy).unwrap(), std::fs::read(path("features.tar")).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, (String::new(), String::new()));
    assert!(bytes == all, "it has no other files");
}

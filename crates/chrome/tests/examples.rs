//! The programs in `examples/`, run on a sample: what they print.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_chrome::Chrome;
use anytrace_core::testing::{examine, example_prints};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("chrome-records", &[path("bad/bad-event--missing-comma.json")]);
    let expected =
        "0 at byte 0x2: begin of 47 bytes\n1 at byte 0x56: complete of 61 bytes\n2 at byte 0x95: end of 33 bytes\n";
    assert_eq!(out, expected);
    assert_eq!(err.matches("[chrome/").count(), 1, "{err}");
}

#[test]
fn filter_leaves_out_counters() {
    let folder = std::env::temp_dir().join(format!("anytrace-chrome-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (from, copy) = (path("every-phase.json"), folder.join("copy.json"));
    let printed = example_prints("chrome-filter", &[from.as_os_str(), copy.as_os_str()]);
    let bytes = std::fs::read(&copy).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, (String::new(), String::new()));
    let all = examine(&Chrome, &std::fs::read(from).unwrap()).info.0;
    let kept = examine(&Chrome, &bytes).info.0;
    let counters = |info: &anytrace_core::Info| info.kinds.iter().any(|(kind, _)| kind == "counter");
    assert!(counters(&all) && !counters(&kept) && kept.records == all.records - 2);
}

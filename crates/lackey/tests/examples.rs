//! The programs in `examples/`, run on samples: what they print.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::{examine, example_prints};
use anytrace_lackey::Lackey;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let path = path("printed.lackey");
    let (out, err) = example_prints("lackey-records", &[&path]);
    let exam = examine(&Lackey, &std::fs::read(&path).unwrap());
    assert_eq!(out.lines().count() as u64, exam.info.0.records);
    let records: Vec<&str> = out.lines().take(2).collect();
    let expected = ["0 at byte 0xeb: fetch of 6 bytes at 0x401000", "1 at byte 0xf9: fetch of 7 bytes at 0x401006"];
    assert_eq!(records, expected);
    assert_eq!((err.matches("[lackey/").count(), err.is_empty()), (exam.info.1.len(), false), "{err}");
}

#[test]
fn filter_keeps_the_data_accesses() {
    let folder = std::env::temp_dir().join(format!("anytrace-lackey-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (from, copy) = (path("rows.lackey"), folder.join("copy.lackey"));
    let (out, err) = example_prints("lackey-filter", &[from.as_os_str(), copy.as_os_str()]);
    let text = std::fs::read_to_string(&copy).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((out, err), (String::new(), String::new()));
    let all = std::fs::read_to_string(from).unwrap();
    let data: Vec<&str> =
        all.lines().filter(|line| [" L ", " S ", " M "].iter().any(|m| line.starts_with(m))).collect();
    assert!(!data.is_empty());
    assert_eq!(text.lines().collect::<Vec<_>>(), data);
}

#[cfg(feature = "lanes")]
#[test]
fn accesses_counts_by_kind() {
    let (out, err) = example_prints("lackey-accesses", &[path("rows.lackey")]);
    assert_eq!(err, "");
    let expected = "fetch: 204 accesses, 862 bytes\nread: 33 accesses, 200 bytes\nwrite: 32 accesses, 192 bytes\n";
    assert_eq!(out, expected);
}

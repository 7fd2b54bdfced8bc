//! The programs in `examples/`, run on samples: what they print.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use std::path::PathBuf;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::{examine, example_prints};
use common::{corpus, sample};

fn path(name: &str) -> PathBuf {
    corpus().join(format!("{name}.trace"))
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("cacheray-records", &[path("broken/badtag-04-middle")]);
    let exam = examine(&Cacheray, &sample("broken/badtag-04-middle"));
    assert_eq!(out.lines().count() as u64, exam.info.0.records);
    let records: Vec<&str> = out.lines().take(3).collect();
    let expected = [
        "0 at byte 0x0: rtta_add 0x5555deadb000 by thread 0",
        "1 at byte 0x27: read 0x5555deadb000 by thread 0",
        "2 at byte 0x39: write 0x5555deadb008 by thread 0",
    ];
    assert_eq!(records, expected);
    assert_eq!((err.matches("[cacheray/bad-tag]").count(), exam.info.1.len()), (1, 1), "{err}");
}

#[test]
fn filter_keeps_what_is_no_read() {
    let folder = std::env::temp_dir().join(format!("anytrace-cacheray-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.trace");
    let name = "traces/packed.up14-O0";
    let (out, err) = example_prints("cacheray-filter", &[path(name).as_os_str(), copy.as_os_str()]);
    let bytes = std::fs::read(&copy).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((out, err), (String::new(), String::new()));
    let kinds = |bytes: &[u8]| examine(&Cacheray, bytes).info.0.kinds;
    let without_reads: Vec<_> = kinds(&sample(name)).into_iter().filter(|(kind, _)| kind != "read").collect();
    assert_eq!(kinds(&bytes), without_reads);
}

#[cfg(feature = "lanes")]
#[test]
fn accesses_counts_by_thread() {
    let (out, err) = example_prints("cacheray-accesses", &[path("traces/rust-boxes")]);
    assert_eq!(err, "");
    assert_eq!(out, "thread 0: 1103 accesses, 6624 bytes\n");
}

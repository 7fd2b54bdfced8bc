//! The programs in `examples/`, run on samples: what they print.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::ffi::OsStr;
use std::path::PathBuf;

use anytrace_core::testing::{examine, example_prints};
use anytrace_heph::Heph;
use common::own_corpus;

fn path(name: &str) -> PathBuf {
    own_corpus().join(name)
}

#[test]
fn records_prints_places_attributes_and_damage() {
    let (out, err) = example_prints("heph-records", &[path("seed/both.heph")]);
    assert_eq!(err, "");
    let expected = "0 at byte 0x0: option epoch\n1 at byte 0x17: My event\n  Test = Unsigned(123)\n  Test2 = Array([Float(123.456), Float(789.0)])\n";
    assert_eq!(out, expected);
    let (_, err) = example_prints("heph-records", &[path("broken/bad_utf8.heph")]);
    assert_eq!(err.matches("[heph/bad-utf8]").count(), 3, "{err}");
}

#[test]
fn filter_keeps_one_stream_and_the_metadata() {
    let folder = std::env::temp_dir().join(format!("anytrace-heph-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (from, copy) = (path("real/relay_new.bin.log"), folder.join("copy.heph"));
    let (out, err) = example_prints("heph-filter", &[from.as_os_str(), OsStr::new("1"), copy.as_os_str()]);
    let bytes = std::fs::read(&copy).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((out, err), (String::new(), String::new()));
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8(examine(&Heph, bytes).text).unwrap();
        text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let mut expected = lines(&std::fs::read(from).unwrap());
    let all = expected.len();
    expected.retain(|line| line.starts_with("metadata") || line.starts_with("event stream=1 "));
    assert!(expected.len() > 2 && expected.len() < all);
    assert_eq!(lines(&bytes), expected);
}

#[cfg(feature = "lanes")]
#[test]
fn spans_prints_names_and_durations() {
    let (out, err) = example_prints("heph-spans", &[path("valid/nesting_ties.heph")]);
    assert_eq!(err, "");
    let expected = [
        "times in ns",
        "thread 1: left from 0 for 400",
        "thread 1: zero at boundary at 400",
        "thread 1: partial from 300 for 300",
        "thread 1: deep from 410 for 10",
        "thread 1: deep2 from 410 for 10",
        "thread 1: right from 400 for 600",
        "thread 1: root from 0 for 1000",
        "thread 1: same as root from 0 for 1000",
        "thread 1: after from 1000 for 200",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[cfg(feature = "lanes")]
#[test]
fn calls_prints_a_tree() {
    let (out, err) = example_prints("heph-calls", &[path("valid/nesting_ties.heph")]);
    assert_eq!(err, "");
    let expected = [
        "stream 1",
        "          start µs       length µs  span",
        "             0.000           1.000  same as root",
        "             0.000           1.000    root",
        "             0.000           0.400      left",
        "             0.400           0.600      right",
        "             0.400           0.000        zero at boundary",
        "             0.410           0.010        deep2",
        "             0.410           0.010          deep",
        "             1.000           0.200  after",
        "stream 1",
        "          start µs       length µs  span",
        "             0.300           0.300  partial",
    ];
    assert_eq!(out.lines().collect::<Vec<_>>(), expected, "what overlaps has a track of its own");
}

//! Counters modulo 2^32: losses, late events, duplicates, writers that restart.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::examine;
use anytrace_heph::Heph;
use common::Bytes;
use serde_json::Value;

/// A trace of one stream with these counters.
fn trace(counters: &[u32]) -> Vec<u8> {
    counters.iter().fold(Bytes::new().epoch(), |made, counter| made.event(0, *counter, 0, 0, 0, "").end()).bytes
}

/// The diagnostics of `check` about counters, including notes: record number, code, number.
fn reported(bytes: &[u8]) -> Vec<(u64, String, String)> {
    let exam = examine(&Heph, bytes);
    let mut reported: Vec<_> = exam
        .check
        .iter()
        .filter_map(|d| {
            let code = d.code().strip_prefix("heph/counter-")?;
            Some((d.record.unwrap(), code.to_owned(), d.found.clone().unwrap().split(' ').next().unwrap().to_owned()))
        })
        .collect();
    reported.sort();
    // The JSON lines have the same warnings on the lines of the records.
    let mut in_lines = Vec::new();
    for (seq, line) in (0..).zip(String::from_utf8(exam.jsonl).unwrap().lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        for warning in line["warnings"].as_array().into_iter().flatten() {
            if let Some((code, number)) = warning.as_str().unwrap().split_once(':') {
                in_lines.push((seq, code.strip_prefix("counter-").unwrap().to_owned(), number.to_owned()));
            }
        }
    }
    in_lines.sort();
    let without_notes: Vec<_> = reported.iter().filter(|row| row.1 != "out-of-order").cloned().collect();
    assert_eq!(in_lines, without_notes, "dump and check agree");
    reported
}

fn row(record: u64, code: &str, number: u64) -> (u64, String, String) {
    (record, code.to_owned(), number.to_string())
}

#[test]
fn after_the_last_counter_comes_zero() {
    assert_eq!(reported(&trace(&[u32::MAX - 1, u32::MAX, 0, 1])), [row(1, "starts-at", u64::from(u32::MAX - 1))]);
    assert_eq!(reported(&trace(&[u32::MAX - 1, 2])), [row(1, "starts-at", u64::from(u32::MAX - 1)), row(2, "gap", 3)]);
}

#[test]
fn a_gap_is_reported_where_it_is_seen() {
    assert_eq!(reported(&trace(&[0, 1, 5, 6, 9])), [row(3, "gap", 3), row(5, "gap", 2)]);
}

#[test]
fn inverted_neighbors_are_no_loss() {
    assert_eq!(reported(&trace(&[0, 2, 1, 3])), [row(3, "out-of-order", 1)]);
    assert_eq!(reported(&trace(&[1, 0, 2])), [row(2, "out-of-order", 1)]);
    assert_eq!(reported(&trace(&[0, 4, 3, 2, 1, 5])), [row(3, "out-of-order", 3)]);
}

#[test]
fn a_gap_that_is_partly_filled_counts_the_rest() {
    assert_eq!(reported(&trace(&[0, 5, 3, 6])), [row(2, "gap", 3), row(3, "out-of-order", 1)]);
}

#[test]
fn a_gap_is_settled_when_its_window_has_passed() {
    let mut counters = vec![0, 2];
    counters.extend(3..5000);
    counters.push(1);
    let reported = reported(&trace(&counters));
    assert_eq!(reported, [row(2, "gap", 1), row(5000, "back", 4999)]);
}

#[test]
fn a_duplicate_does_not_disturb_what_follows() {
    assert_eq!(reported(&trace(&[0, 1, 2, 2, 3, 4])), [row(4, "back", 1)]);
    assert_eq!(reported(&trace(&[0, 1, 2, 1, 3, 4])), [row(4, "back", 2)]);
}

#[test]
fn a_writer_that_starts_again_is_reported_once() {
    assert_eq!(reported(&trace(&[0, 1, 2, 3, 0, 1, 2, 3, 4, 5])), [row(5, "back", 4)]);
}

#[test]
fn one_wrong_counter_far_ahead_is_no_loss() {
    let bytes = trace(&[0, 1, 1 << 30, 3, 4, 5]);
    let reported = reported(&bytes);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!(reported[0], row(3, "gap", (1 << 30) - 2));
    let info = examine(&Heph, &bytes).info.0;
    assert!(!info.details.iter().any(|(key, _)| *key == "lost_events"));
}

#[test]
fn streams_are_counted_apart() {
    let bytes = Bytes::new().epoch().poll(1, 0).poll(2, 0).poll(1, 1).poll(2, 2).bytes;
    assert_eq!(reported(&bytes), [row(4, "gap", 1)]);
    let info = examine(&Heph, &bytes).info.0;
    let lost = info.details.iter().find(|(key, _)| *key == "lost_events_by_stream").unwrap();
    assert_eq!(lost.1, serde_json::json!({"2": 1}));
}

#[test]
fn the_counter_of_a_damaged_packet_was_used() {
    let bytes = Bytes::new().epoch().poll(1, 0).event(1, 1, 0, 0, 0, "x").attribute("a", 9).end().poll(1, 2).bytes;
    assert_eq!(reported(&bytes), []);
}

#[test]
fn many_open_gaps_stay_bounded_and_are_all_reported() {
    let counters: Vec<u32> = (0..3000).map(|n| n * 2).collect();
    assert_eq!(reported(&trace(&counters)).len(), 2999);
    let backwards: Vec<u32> = (0..3000).map(|n| 900_000 - n * 2).collect();
    assert!(reported(&trace(&backwards)).len() > 1);
}

#[test]
fn warnings_of_one_line_are_in_one_list() {
    let bytes = Bytes::new().event(3, 9, 0, 5, 4, "").end().bytes;
    let exam = examine(&Heph, &bytes);
    let line: Value = serde_json::from_slice(&exam.jsonl).unwrap();
    assert_eq!(line["warnings"], serde_json::json!(["no-epoch-yet", "end-before-start", "counter-starts-at:9"]));
}

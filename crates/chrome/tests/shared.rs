//! The suite that every format passes, on every sample of the crate's corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use anytrace_chrome::Chrome;
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::tables::examine_tables;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    same_bytes, through_jsonl, truncations,
};
use anytrace_core::{Confidence, Format, Input, OpenOptions, Plan, Severity, TargetOptions};

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn all_samples() -> Vec<(String, Vec<u8>)> {
    ["", "odd", "bad"].into_iter().flat_map(samples).collect()
}

#[test]
fn undamaged_samples_stay_as_they_are() {
    for folder in ["", "odd"] {
        for (name, bytes) in samples(folder) {
            let exam = examine(&Chrome, &bytes);
            assert!(exam.info.0.records > 0 && exam.errors().is_empty(), "{name}: {:?}", exam.check);
            // These are parts of traces: spans have begun before and end after that.
            assert!(
                folder == "odd" || matches!(name.as_str(), "chromium" | "node") || exam.check.is_empty(),
                "{name}: {:?}",
                exam.check
            );
            let (copy, outcome, _) = rewrite(&Chrome, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
            assert!(copy == bytes && outcome.records_written == exam.info.0.records, "{name}");
            assert!(through_jsonl(&Chrome, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
            let repaired = assert_repairs(&Chrome, &bytes, &name);
            let is_whole = !matches!(name.as_str(), "open-array" | "separators");
            assert_eq!(repaired == bytes, is_whole, "{name}: {}", String::from_utf8_lossy(&repaired));
            assert_eq!(Chrome.probe(&Input::from_bytes("x", bytes).head()), Confidence::Certain, "{name}");
        }
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("chrome/{}", name.split("--").next().unwrap());
        let exam = examine(&Chrome, &bytes);
        assert_eq!(exam.error_codes(), [code.as_str()], "{name}: {:?}", exam.check);
        let skipped: u64 = exam.info.1.iter().map(|d| d.skipped_bytes).sum();
        let lost = rewrite(&Chrome, &bytes, &Plan::Convert(TargetOptions::default())).unwrap().1.bytes_lost;
        assert_eq!(lost, skipped, "{name}: what is skipped is what is lost");
        assert_eq!(exam.info.0.bytes, bytes.len() as u64, "{name}");
        let repaired = assert_repairs(&Chrome, &bytes, &name);
        assert!(serde_json::from_slice::<serde_json::Value>(&repaired).is_ok(), "{name}: a repaired trace is JSON");
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Chrome.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let code = rule.code.trim_start_matches("chrome/");
        // Large ones are made by tests in `public.rs` and `spans.rs`.
        assert!(
            matches!(code, "event-too-long" | "too-deep")
                || bad.iter().any(|name| name.split("--").next() == Some(code)),
            "{code}"
        );
    }
}

#[test]
fn every_event_is_a_row_of_events() {
    for (name, bytes) in all_samples() {
        let records = examine(&Chrome, &bytes).info.0.records;
        let tables = examine_tables(&Chrome, &bytes);
        let rows = tables.iter().find(|(table, _)| *table == "events").map(|(_, rows)| rows.len() as u64);
        assert_eq!(rows, Some(records), "{name}");
    }
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let mut most = 0;
    for (_, bytes) in all_samples() {
        most = most.max(examine_parts(&Chrome, &bytes));
        mutations(&bytes, 23, 40, |changed| _ = examine_parts(&Chrome, changed));
    }
    assert!(most >= 4, "{most}");
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Chrome, &bytes);
        mutations(&bytes, 17, 6, |changed| assert_windows_agree(&Chrome, changed));
    }
}

#[test]
fn a_cut_anywhere_keeps_the_events_before_it() {
    for (name, bytes) in all_samples() {
        let intact = examine(&Chrome, &bytes);
        let is_damaged = !intact.errors().is_empty();
        truncations(&bytes, 1500, |cut, part| {
            let exam = examine(&Chrome, part);
            // After damage a cut may show an event inside another.
            assert!(is_damaged || intact.text.starts_with(&exam.text), "{name} cut at {cut}");
            assert!(exam.info.1.iter().all(|d| d.offset <= part.len() as u64), "{name} cut at {cut}");
            assert_repairs(&Chrome, part, &format!("{name} cut at {cut}"));
        });
    }
}

#[test]
fn a_flipped_bit_costs_few_events() {
    for (name, bytes) in samples("") {
        let records = examine(&Chrome, &bytes).info.0.records;
        bit_flips(&bytes, 4000, |bit, flipped| {
            let exam = examine(&Chrome, flipped);
            let found = exam.info.0.records;
            // Before the array, a quote or the key decide whether there are events.
            let is_in_head = bytes.get(..bit / 8).is_some_and(|before| !before.contains(&b'['));
            let is_lost = is_in_head && !exam.errors().is_empty();
            assert!(is_lost || found + 3 >= records, "{name} bit {bit}: {found} of {records}");
            assert_repairs(&Chrome, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        mutations(&bytes, 5, 200, |changed| {
            fuzz_parse(&Chrome, changed);
            fuzz_roundtrip(&Chrome, changed, &same_bytes);
        });
    }
}

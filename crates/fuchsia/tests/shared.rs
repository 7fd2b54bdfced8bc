//! The suite that every format passes, on every sample of the crate's corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::testing::tables::examine_tables;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    same_bytes, through_jsonl, truncations,
};
use anytrace_core::{Confidence, Format, Input, OpenOptions, Plan, Severity, TargetOptions};
use anytrace_fuchsia::Fuchsia;

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "fxt"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn all_samples() -> Vec<(String, Vec<u8>)> {
    ["", "bad"].into_iter().flat_map(samples).collect()
}

#[test]
fn undamaged_samples_stay_as_they_are() {
    for (name, bytes) in samples("") {
        let exam = examine(&Fuchsia, &bytes);
        assert!(exam.info.0.records > 0 && exam.errors().is_empty(), "{name}: {:?}", exam.check);
        let (copy, outcome, _) = rewrite(&Fuchsia, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert!(copy == bytes && outcome.records_written == exam.info.0.records, "{name}");
        assert!(through_jsonl(&Fuchsia, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
        assert!(assert_repairs(&Fuchsia, &bytes, &name) == bytes, "{name}");
        assert_eq!(Fuchsia.probe(&Input::from_bytes("x", bytes).head()), Confidence::Certain, "{name}");
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("fuchsia/{}", name.split("--").next().unwrap());
        let exam = examine(&Fuchsia, &bytes);
        assert_eq!(exam.error_codes(), [code.as_str()], "{name}");
        assert_eq!(exam.info.0.bytes, bytes.len() as u64, "{name}");
        assert_repairs(&Fuchsia, &bytes, &name);
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Fuchsia.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let code = rule.code.trim_start_matches("fuchsia/");
        // A record that is too long is made by a test in `public.rs`.
        assert!(code == "record-too-long" || bad.iter().any(|name| name.split("--").next() == Some(code)), "{code}");
    }
}

#[test]
fn every_record_is_a_row_of_events() {
    for (name, bytes) in all_samples() {
        let records = examine(&Fuchsia, &bytes).info.0.records;
        for (table, rows) in examine_tables(&Fuchsia, &bytes) {
            assert!(table != "events" || rows.len() as u64 == records, "{name}");
        }
    }
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Fuchsia, &bytes);
        mutations(&bytes, 17, 6, |changed| assert_windows_agree(&Fuchsia, changed));
    }
}

#[test]
fn a_cut_anywhere_keeps_the_records_before_it() {
    for (name, bytes) in all_samples() {
        let intact = examine(&Fuchsia, &bytes);
        truncations(&bytes, usize::MAX, |cut, part| {
            let exam = examine(&Fuchsia, part);
            // Where records begin behind damage is a guess, for which what follows counts.
            let is_guess = name.starts_with("bad-record");
            assert!(is_guess || intact.text.starts_with(&exam.text), "{name} cut at {cut}");
            assert!(exam.info.1.iter().all(|d| d.offset <= part.len() as u64), "{name} cut at {cut}");
            assert_repairs(&Fuchsia, part, &format!("{name} cut at {cut}"));
        });
    }
}

#[test]
fn a_flipped_bit_costs_few_records() {
    for (name, bytes) in samples("") {
        let records = examine(&Fuchsia, &bytes).info.0.records;
        bit_flips(&bytes, usize::MAX, |bit, flipped| {
            let found = examine(&Fuchsia, flipped).info.0.records;
            // A length that is damaged swallows what it covers, at most 32 KiB.
            assert!(found * 3 >= records, "{name} bit {bit}: {found} of {records}");
            assert_repairs(&Fuchsia, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        mutations(&bytes, 5, 200, |changed| {
            fuzz_parse(&Fuchsia, changed);
            fuzz_roundtrip(&Fuchsia, changed, &same_bytes);
        });
    }
}

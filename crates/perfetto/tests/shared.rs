//! The suite that every format passes, on every sample of the crate's corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::tables::examine_tables;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    same_bytes, through_jsonl, truncations,
};
use anytrace_core::{Confidence, Format, Input, OpenOptions, Plan, Severity, TargetOptions};
use anytrace_perfetto::Perfetto;

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "perfetto"));
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
        let exam = examine(&Perfetto, &bytes);
        assert!(exam.info.0.records > 0 && exam.check.is_empty(), "{name}: {:?}", exam.check);
        let (copy, outcome, _) = rewrite(&Perfetto, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert!(copy == bytes && outcome.records_written == exam.info.0.records, "{name}");
        assert!(through_jsonl(&Perfetto, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
        assert!(assert_repairs(&Perfetto, &bytes, &name) == bytes, "{name}");
        assert_eq!(Perfetto.probe(&Input::from_bytes("x", bytes).head()), Confidence::Certain, "{name}");
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("perfetto/{}", name.split("--").next().unwrap());
        let exam = examine(&Perfetto, &bytes);
        assert_eq!(exam.error_codes(), [code.as_str()], "{name}");
        assert_eq!(exam.check, exam.info.1, "{name}: info reports damage, too");
        let lost = rewrite(&Perfetto, &bytes, &Plan::Repair(TargetOptions::default())).unwrap().1.bytes_lost;
        let skipped: u64 = exam.info.1.iter().map(|d| d.skipped_bytes).sum();
        assert_eq!(lost, skipped, "{name}: what is skipped is what is lost");
        assert_eq!(exam.info.0.bytes, bytes.len() as u64, "{name}");
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Perfetto.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let code = rule.code.trim_start_matches("perfetto/");
        // A line of 1 MiB is made by a test in `public.rs`.
        assert!(code == "line-too-long" || bad.iter().any(|name| name.split("--").next() == Some(code)), "{code}");
    }
}

#[test]
fn every_record_is_a_row_of_each_table() {
    for (name, bytes) in all_samples() {
        let records = examine(&Perfetto, &bytes).info.0.records;
        for (table, rows) in examine_tables(&Perfetto, &bytes) {
            assert_eq!(rows.len() as u64, records, "{name}: {table}");
        }
    }
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let mut most = 0;
    for (_, bytes) in all_samples() {
        most = most.max(examine_parts(&Perfetto, &bytes));
        mutations(&bytes, 23, 40, |changed| _ = examine_parts(&Perfetto, changed));
    }
    assert!(most >= 4, "{most}");
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Perfetto, &bytes);
        mutations(&bytes, 17, 6, |changed| assert_windows_agree(&Perfetto, changed));
    }
}

#[test]
fn a_cut_anywhere_keeps_the_records_before_it() {
    for (name, bytes) in all_samples() {
        let intact = examine(&Perfetto, &bytes);
        truncations(&bytes, usize::MAX, |cut, part| {
            let exam = examine(&Perfetto, part);
            assert!(intact.text.starts_with(&exam.text), "{name} cut at {cut}");
            assert!(exam.info.1.iter().all(|d| d.offset <= part.len() as u64), "{name} cut at {cut}");
            assert_repairs(&Perfetto, part, &format!("{name} cut at {cut}"));
        });
    }
}

#[test]
fn a_flipped_bit_costs_at_most_two_records() {
    for (name, bytes) in samples("") {
        let records = examine(&Perfetto, &bytes).info.0.records;
        let header = b"perfetto 1\n".len();
        bit_flips(&bytes, usize::MAX, |bit, flipped| {
            let found = examine(&Perfetto, flipped).info.0.records;
            // A header of another version ends the reading.
            assert!(bit / 8 < header || found + 2 >= records, "{name} bit {bit}: {found} of {records}");
            assert_repairs(&Perfetto, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        mutations(&bytes, 5, 200, |changed| {
            fuzz_parse(&Perfetto, changed);
            fuzz_roundtrip(&Perfetto, changed, &same_bytes);
        });
    }
}

//! The suite that every format passes, on every sample of the crate's corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

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
    paths.retain(|path| path.extension().is_some_and(|e| e == "pftrace"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn all_samples() -> Vec<(String, Vec<u8>)> {
    ["", "odd", "bad", "real"].into_iter().flat_map(samples).collect()
}

/// Short enough for every cut and every bit.
fn short_samples() -> Vec<(String, Vec<u8>)> {
    all_samples().into_iter().filter(|(_, bytes)| bytes.len() < 1100).collect()
}

#[test]
fn undamaged_samples_stay_as_they_are() {
    let real = samples("real").into_iter().filter(|(name, _)| !name.ends_with("-cut"));
    for (name, bytes) in samples("").into_iter().chain(samples("odd")).chain(real) {
        let exam = examine(&Perfetto, &bytes);
        assert!(exam.info.0.records > 0 && exam.errors().is_empty(), "{name}: {:?}", exam.check);
        let (copy, outcome, _) = rewrite(&Perfetto, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert!(copy == bytes && outcome.records_written == exam.info.0.records, "{name}");
        assert!(through_jsonl(&Perfetto, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
        assert!(assert_repairs(&Perfetto, &bytes, &name) == bytes, "{name}");
        assert_eq!(Perfetto.probe(&Input::from_bytes("x", bytes).head()), Confidence::Certain, "{name}");
        let kinds: u64 = exam.info.0.kinds.iter().map(|(_, count)| count).sum();
        assert_eq!(kinds, exam.info.0.records, "{name}");
        // Every known packet is shown with its fields, not as hexadecimal.
        assert!(!String::from_utf8(exam.jsonl).unwrap().contains("\"packet\":{"), "{name}");
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("perfetto/{}", name.split("--").next().unwrap());
        let exam = examine(&Perfetto, &bytes);
        assert_eq!(exam.error_codes(), [code.as_str()], "{name}");
        let (_, outcome, sink) = rewrite(&Perfetto, &bytes, &Plan::Repair(TargetOptions::default())).unwrap();
        assert!(outcome.bytes_lost > 0 && sink.errors() == 1, "{name}: {:?}", sink.codes());
        assert!(outcome.bytes_lost <= 40, "{name}: {} bytes", outcome.bytes_lost);
        let skipped: u64 = exam.info.1.iter().map(|d| d.skipped_bytes).sum();
        assert!(skipped <= outcome.bytes_lost, "{name}");
        assert_eq!(exam.info.0.bytes, bytes.len() as u64, "{name}");
        assert!(exam.info.0.records >= 6, "{name}: nothing good is lost");
    }
}

#[test]
fn every_rule_has_a_sample() {
    let found: Vec<_> = all_samples().iter().flat_map(|(_, bytes)| examine(&Perfetto, bytes).check).collect();
    for rule in Perfetto.rules() {
        // Packets of 16 MiB, 65,537 tracks and streams that are longer than memory are made by tests.
        let is_made = ["perfetto/packet-too-long", "perfetto/limit", "perfetto/stream-time"].contains(&rule.code);
        assert!(is_made || found.iter().any(|d| d.code() == rule.code), "{}", rule.code);
        assert!(rule.severity != Severity::Error || !is_made || rule.code.ends_with("too-long"));
    }
}

#[test]
fn every_packet_is_a_row_of_each_own_table() {
    for (name, bytes) in all_samples() {
        let records = examine(&Perfetto, &bytes).info.0.records;
        for (table, rows) in examine_tables(&Perfetto, &bytes) {
            if ["events", "packets"].contains(&table) {
                assert_eq!(rows.len() as u64, records, "{name}: {table}");
            }
        }
    }
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Perfetto, &bytes);
        if bytes.len() < 1100 {
            mutations(&bytes, 17, 40, |changed| assert_windows_agree(&Perfetto, changed));
        }
    }
}

#[test]
fn a_cut_anywhere_keeps_the_packets_before_it() {
    for (name, bytes) in all_samples() {
        let intact = examine(&Perfetto, &bytes);
        // Damage before a cut hides a different number of bytes.
        let is_damaged = intact.info.0.details.iter().any(|(key, _)| *key == "lost_bytes");
        truncations(&bytes, 700, |cut, part| {
            let exam = examine(&Perfetto, part);
            assert!(is_damaged || intact.text.starts_with(&exam.text), "{name} cut at {cut}");
            assert!(exam.info.1.iter().all(|d| d.offset <= part.len() as u64), "{name} cut at {cut}");
            assert!(exam.info.1.len() <= 2, "{name} cut at {cut}: {:?}", exam.info.1);
            assert_repairs(&Perfetto, part, &format!("{name} cut at {cut}"));
        });
    }
}

#[test]
fn a_flipped_bit_costs_few_packets() {
    for (name, bytes) in samples("") {
        let records = examine(&Perfetto, &bytes).info.0.records;
        bit_flips(&bytes, usize::MAX, |bit, flipped| {
            let found = examine(&Perfetto, flipped).info.0.records;
            // A length that covers several packets reads them as one.
            assert!(found + 5 >= records, "{name} bit {bit}: {found} of {records}");
            assert_repairs(&Perfetto, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in short_samples() {
        mutations(&bytes, 5, 200, |changed| {
            fuzz_parse(&Perfetto, changed);
            fuzz_roundtrip(&Perfetto, changed, &same_bytes);
        });
    }
}

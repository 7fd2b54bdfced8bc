//! The suite that every format passes, on every sample of the crate's corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::testing::tables::examine_tables;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    same_bytes, through_jsonl, truncations,
};
use anytrace_core::{Confidence, Format, Input, OpenOptions, Plan, Severity, TargetOptions};
use anytrace_perf::Perf;

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "perf" || e == "data"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn all_samples() -> Vec<(String, Vec<u8>)> {
    ["", "bad"].into_iter().flat_map(samples).collect()
}

/// The rule that a bad sample is named after.
fn code(name: &str) -> &str {
    name.split("--").next().unwrap().split('.').next().unwrap()
}

#[test]
fn undamaged_samples_stay_as_they_are() {
    for (name, bytes) in samples("") {
        let exam = examine(&Perf, &bytes);
        assert!(exam.info.0.records > 0 && exam.errors().is_empty(), "{name}: {:?}", exam.check);
        let (copy, outcome, _) = rewrite(&Perf, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert!(copy == bytes && outcome.records_written == exam.info.0.records, "{name}");
        assert!(through_jsonl(&Perf, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
        assert!(assert_repairs(&Perf, &bytes, &name) == bytes, "{name}");
        assert_eq!(Perf.probe(&Input::from_bytes("x", bytes).head()), Confidence::Certain, "{name}");
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let exam = examine(&Perf, &bytes);
        assert_eq!(exam.error_codes(), [format!("perf/{}", code(&name))], "{name}");
        assert_eq!(exam.info.0.bytes, bytes.len() as u64, "{name}");
        assert_repairs(&Perf, &bytes, &name);
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Perf.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let own = rule.code.trim_start_matches("perf/");
        // A record that is too long is made by a test in `public.rs`.
        assert!(own == "record-too-long" || bad.iter().any(|name| code(name) == own), "{own}");
    }
}

#[test]
fn every_record_is_a_row_of_events() {
    for (name, bytes) in all_samples() {
        let info = examine(&Perf, &bytes).info.0;
        for (table, rows) in examine_tables(&Perf, &bytes) {
            if table == "events" {
                assert_eq!(rows.len() as u64, info.records, "{name}");
            } else if table == "samples" {
                let events = info.details.iter().find(|(key, _)| *key == "events").unwrap().1.as_array().unwrap();
                let samples: u64 = events.iter().map(|event| event["samples"].as_u64().unwrap()).sum();
                assert_eq!(rows.len() as u64, samples, "{name}");
            }
        }
    }
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    // A stream cannot be read from its end, where the names of tracepoints and the level of compression are.
    let ends = ["switches.data", "compressed.data", "bad-compression--block.data"];
    for (_, bytes) in all_samples().into_iter().filter(|(name, _)| !ends.contains(&name.as_str())) {
        assert_windows_agree(&Perf, &bytes);
        if !bytes.starts_with(b"PERFILE2\x68") {
            mutations(&bytes, 17, 3, |changed| assert_windows_agree(&Perf, changed));
        }
    }
}

#[test]
fn a_cut_anywhere_keeps_the_records_before_it() {
    for (name, bytes) in all_samples() {
        let places = examine(&Perf, &bytes).text_places();
        truncations(&bytes, 1500, |cut, part| {
            let exam = examine(&Perf, part);
            let own = exam.text_places();
            // The last piece behind the records may be shorter.
            assert!(places.starts_with(&own), "{name} cut at {cut}: {own:?} {places:?}");
            assert!(
                exam.info.1.iter().all(|d| d.within.is_some() || d.offset <= part.len() as u64),
                "{name} cut at {cut}"
            );
            assert_repairs(&Perf, part, &format!("{name} cut at {cut}"));
        });
    }
}

#[test]
fn a_flipped_bit_costs_few_records() {
    for (name, bytes) in samples("") {
        // Compressed records are one stream: what is behind damage in it is lost.
        let count = |bytes: &[u8]| {
            let info = examine(&Perf, bytes).info.0;
            let packed = info.details.iter().find(|(key, _)| *key == "compressed");
            info.records - packed.map_or(0, |(_, packed)| packed["records_inside"].as_u64().unwrap())
        };
        let records = count(&bytes);
        let header =
            if bytes.starts_with(b"PERFILE2") { usize::from(bytes[40]) + 256 * usize::from(bytes[41]) } else { 0 };
        bit_flips(&bytes, 4000, |bit, flipped| {
            let found = count(flipped);
            // Without a header nothing can be read; a length that is damaged swallows what follows, at most 64 KiB.
            assert!(bit / 8 < header.max(16) || found * 2 >= records, "{name} bit {bit}: {found} of {records}");
            assert_repairs(&Perf, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        mutations(&bytes, 5, 60, |changed| {
            fuzz_parse(&Perf, changed);
            fuzz_roundtrip(&Perf, changed, &same_bytes);
        });
    }
}

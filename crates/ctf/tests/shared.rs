//! The suite that every format passes, on every sample of the crate's corpus.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::testing::tables::examine_tables;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    same_bytes, through_jsonl, truncations,
};
use anytrace_core::{Confidence, Format, Input, OpenOptions, Plan, Severity, TargetOptions};
use anytrace_ctf::Ctf;

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "tar"));
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
        let exam = examine(&Ctf, &bytes);
        assert!(exam.info.0.records > 0 && exam.errors().is_empty(), "{name}: {:?}", exam.check);
        let (copy, outcome, _) = rewrite(&Ctf, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert!(copy == bytes && outcome.records_written == exam.info.0.records, "{name}");
        assert!(through_jsonl(&Ctf, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
        assert!(assert_repairs(&Ctf, &bytes, &name) == bytes, "{name}");
        assert_eq!(Ctf.probe(&Input::from_bytes("x", bytes).head()), Confidence::Certain, "{name}");
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("ctf/{}", name.split("--").next().unwrap());
        let exam = examine(&Ctf, &bytes);
        assert_eq!(exam.error_codes().first(), Some(&code.as_str()), "{name}");
        assert_eq!(exam.info.0.bytes, bytes.len() as u64, "{name}");
        assert_repairs(&Ctf, &bytes, &name);
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Ctf.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let code = rule.code.trim_start_matches("ctf/");
        // An event that is too long is made by a test in `public.rs`.
        assert!(code == "event-too-long" || bad.iter().any(|name| name.split("--").next() == Some(code)), "{code}");
    }
}

#[test]
fn every_record_is_a_row_of_events() {
    for (name, bytes) in all_samples() {
        let records = examine(&Ctf, &bytes).info.0.records;
        for (table, rows) in examine_tables(&Ctf, &bytes) {
            assert!(table != "events" || rows.len() as u64 == records, "{name}");
        }
    }
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Ctf, &bytes);
        mutations(&bytes, 17, 6, |changed| assert_windows_agree(&Ctf, changed));
    }
}

/// Where the first packet begins; the end of a trace whose packets have no magic number.
fn first_packet(bytes: &[u8]) -> usize {
    let is_magic = |four: &[u8]| matches!(four, [0xc1, 0x1f, 0xfc, 0xc1] | [0xc1, 0xfc, 0x1f, 0xc1]);
    bytes.windows(4).position(is_magic).unwrap_or(bytes.len())
}

#[test]
fn a_cut_anywhere_keeps_the_records_before_it() {
    for (name, bytes) in samples("") {
        let events = |bytes: &[u8]| {
            let text = String::from_utf8(examine(&Ctf, bytes).text).unwrap();
            text.lines().filter(|line| line.contains(" event ")).map(str::to_owned).collect::<Vec<_>>()
        };
        let (all, start) = (events(&bytes), first_packet(&bytes));
        truncations(&bytes, 3000, |cut, part| {
            let exam = examine(&Ctf, part);
            assert!(exam.info.1.iter().all(|d| d.offset <= part.len() as u64), "{name} cut at {cut}");
            // The description comes first: with all of it, events before the cut are what they were.
            assert!(cut < start || all.starts_with(&events(part)), "{name} cut at {cut}");
            if cut % 7 == 0 {
                assert_repairs(&Ctf, part, &format!("{name} cut at {cut}"));
            }
        });
    }
}

#[test]
fn a_flipped_bit_costs_few_records() {
    for (name, bytes) in samples("") {
        let start = first_packet(&bytes);
        let records = examine(&Ctf, &bytes).info.0.records;
        bit_flips(&bytes[start..], 4000, |bit, flipped| {
            let changed = [&bytes[..start], flipped].concat();
            let found = examine(&Ctf, &changed).info.0.records;
            // The rest of a packet, or a file whose header is damaged: one sample has no other.
            assert!(found * 12 >= records || name == "anytrace", "{name} bit {bit}: {found} of {records}");
            if bit % 5 == 0 {
                assert_repairs(&Ctf, &changed, &format!("{name} bit {bit}"));
            }
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        mutations(&bytes, 5, 200, |changed| {
            fuzz_parse(&Ctf, changed);
            fuzz_roundtrip(&Ctf, changed, &same_bytes);
        });
    }
}

//! Every sample of the crate's corpus: goldens, must-fail files, cuts, flips, windows and round trips.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

// Repaired and trimmed traces keep the violations of the traced program.
use anytrace_casemate::GrammarOnly as Casemate;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    through_jsonl, truncations,
};
use anytrace_core::{Confidence, Diagnostic, Format, Input, OpenOptions, Plan, Severity, TargetOptions};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

fn samples(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "log"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn all_samples() -> Vec<(String, Vec<u8>)> {
    ["", "odd", "bad"].into_iter().flat_map(samples).collect()
}

fn convert(bytes: &[u8]) -> Vec<u8> {
    rewrite(&Casemate, bytes, &Plan::Convert(TargetOptions::default())).unwrap().0
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        diagnostic.render("transition", &mut text).unwrap();
        text.push('\n');
    }
    text
}

fn assert_golden(name: &str, kind: &str, text: &str) {
    let path = folder(&format!("{}.{kind}", name.trim_end_matches(".log")));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(text, expected, "{} (UPDATE_GOLDENS=1 rewrites it)", path.display());
}

#[test]
fn the_output_of_the_verbs_matches_the_goldens() {
    for name in ["seed_example", "seed_positional", "head_bad_race", "condensed_good_bbm", "positional_h_t0sz25_ok"] {
        let bytes = std::fs::read(folder(&format!("{name}.log"))).unwrap();
        let exam = examine(&Casemate, &bytes);
        let info = &exam.info.0;
        let mut text = format!("dialect {:?}\nbytes {}\nrecords {}\n", info.dialect, info.bytes, info.records);
        for (kind, n) in &info.kinds {
            writeln!(text, "kind {kind} {n}").unwrap();
        }
        for (thread, n) in &info.threads {
            writeln!(text, "thread {thread} {n}").unwrap();
        }
        for (key, value) in &info.details {
            writeln!(text, "{key} {value}").unwrap();
        }
        assert_golden(name, "info", &text);
        assert_golden(name, "dump", std::str::from_utf8(&exam.text).unwrap());
        assert_golden(name, "check", &rendered(&exam.check));
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("casemate/{}", name.split("--").next().unwrap());
        let exam = examine(&Casemate, &bytes);
        assert!(exam.error_codes().contains(&code.as_str()), "{name}: {:?}", exam.error_codes());
        for diagnostic in &exam.check {
            assert!(diagnostic.offset <= bytes.len() as u64, "{name}");
            let (line, column) = diagnostic.line.unwrap();
            let before = &bytes[..usize::try_from(diagnostic.offset).unwrap()];
            let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            assert_eq!(line, 1 + before.iter().filter(|b| **b == b'\n').count() as u64, "{name}");
            assert_eq!(column, (before.len() - line_start) as u64 + 1, "{name}");
        }
        if !name.contains("alone") && !name.starts_with("stray-text") {
            assert!(exam.info.0.records >= 1, "{name}: the record before the damage is kept");
        }
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Casemate.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let code = rule.code.trim_start_matches("casemate/");
        // A record beyond the limit would be a sample of a megabyte; `damage.rs` makes one.
        if code != "record-too-long" {
            assert!(bad.iter().any(|name| name.split("--").next() == Some(code)), "{code}");
        }
    }
}

#[test]
fn odd_samples_have_no_errors_and_are_not_changed() {
    for (name, bytes) in samples("odd").into_iter().chain(samples("")) {
        let exam = examine(&Casemate, &bytes);
        assert!(exam.errors().is_empty(), "{name}: {:?}", exam.errors());
        assert!(convert(&bytes) == bytes, "{name}");
        assert!(assert_repairs(&Casemate, &bytes, &name) == bytes, "{name}");
        assert!(through_jsonl(&Casemate, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
    }
}

#[test]
fn every_sample_is_recognized_unless_it_has_no_record() {
    for (name, bytes) in all_samples() {
        let input = Input::from_bytes("sample", bytes);
        let confidence = Casemate.probe(&input.head());
        let expected = match name.as_str() {
            "blank.log" | "unfounded-claim--alone.log" => Confidence::Maybe,
            "stray-text--all-bytes.log" => Confidence::No,
            "record-without-name--nested.log" => Confidence::Certain,
            _ => Confidence::Certain,
        };
        assert_eq!(confidence, expected, "{name}");
    }
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Casemate, &bytes[..bytes.len().min(4000)]);
    }
}

#[test]
fn a_cut_anywhere_is_located_and_keeps_the_records_before_it() {
    for (name, bytes) in all_samples() {
        let intact = examine(&Casemate, &bytes);
        let intact_lines: Vec<_> = intact.text.split(|b| *b == b'\n').collect();
        truncations(&bytes, 3000, |cut, part| {
            let exam = examine(&Casemate, part);
            for diagnostic in exam.info.1.iter().chain(&exam.check) {
                assert!(diagnostic.offset <= part.len() as u64 && diagnostic.line.is_some(), "{name} cut at {cut}");
            }
            assert_repairs(&Casemate, part, &format!("{name} cut at {cut}"));
            if intact.errors().is_empty() {
                let lines: Vec<_> = exam.text.split(|b| *b == b'\n').filter(|line| !line.starts_with(b"!")).collect();
                let kept = lines.iter().filter(|line| intact_lines.contains(line)).count();
                assert!(kept as u64 >= exam.info.0.records, "{name} cut at {cut}");
                assert!(exam.errors().len() <= 1, "{name} cut at {cut}: {:?}", exam.errors());
            }
        });
    }
}

#[test]
fn a_flipped_bit_costs_at_most_three_records() {
    for (name, bytes) in samples("").into_iter().chain(samples("odd")) {
        let records = examine(&Casemate, &bytes).info.0.records;
        bit_flips(&bytes, 2500, |bit, flipped| {
            let exam = examine(&Casemate, flipped);
            // A semicolon hides the rest of its line, which may be the rest of the trace.
            if flipped[bit / 8] != b';' {
                assert!(exam.info.0.records + 3 >= records, "{name} bit {bit}: {} of {records}", exam.info.0.records);
            }
            assert_repairs(&Casemate, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn info_and_check_agree_on_damage() {
    for (name, bytes) in all_samples() {
        mutations(&bytes, 11, 20, |changed| {
            let exam = examine(&Casemate, changed);
            let damage: Vec<_> = exam.info.1.iter().filter(|d| d.severity == Severity::Error).collect();
            for diagnostic in &damage {
                assert!(exam.check.contains(diagnostic), "{name}: {diagnostic:?}");
            }
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        let bytes = &bytes[..bytes.len().min(3000)];
        mutations(bytes, 5, 60, |changed| {
            fuzz_parse(&Casemate, changed);
            fuzz_roundtrip(&Casemate, changed, &|a, b| a == b);
        });
        mutations(bytes, 17, 6, |changed| assert_windows_agree(&Casemate, changed));
    }
}

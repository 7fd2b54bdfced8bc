//! Every sample of the crate's corpus: goldens, must-fail files, cuts, flips, windows and round trips.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    same_bytes, through_jsonl, truncations,
};
use anytrace_core::{Confidence, Diagnostic, Format, Input, OpenOptions, Plan, Severity, TargetOptions};
use anytrace_lackey::Lackey;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

fn samples(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "lackey"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn all_samples() -> Vec<(String, Vec<u8>)> {
    ["", "odd", "bad"].into_iter().flat_map(samples).collect()
}

fn convert(bytes: &[u8]) -> Vec<u8> {
    rewrite(&Lackey, bytes, &Plan::Convert(TargetOptions::default())).unwrap().0
}

fn rendered(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        diagnostic.render("record", &mut text).unwrap();
        text.push('\n');
    }
    text
}

fn assert_golden(name: &str, kind: &str, text: &str) {
    let path = folder(&format!("{name}.{kind}"));
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(text, expected, "{} (UPDATE_GOLDENS=1 rewrites it)", path.display());
}

#[test]
fn the_output_of_the_verbs_matches_the_goldens() {
    for name in ["rows", "rows32", "blocks", "printed", "fault", "two-processes", "odd/verbose", "odd/words"] {
        let bytes = std::fs::read(folder(&format!("{name}.lackey"))).unwrap();
        let exam = examine(&Lackey, &bytes);
        let info = &exam.info.0;
        let mut text = format!("bytes {}\nrecords {}\n", info.bytes, info.records);
        for (kind, n) in &info.kinds {
            writeln!(text, "kind {kind} {n}").unwrap();
        }
        for (key, value) in &info.details {
            writeln!(text, "{key} {value}").unwrap();
        }
        assert_golden(name, "info", &text);
        let dump: String =
            std::str::from_utf8(&exam.text).unwrap().lines().take(30).map(|l| format!("{l}\n")).collect();
        assert_golden(name, "dump", &dump);
        assert_golden(name, "check", &rendered(&exam.check));
    }
}

#[test]
fn every_bad_sample_yields_the_code_it_is_named_after() {
    for (name, bytes) in samples("bad") {
        let code = format!("lackey/{}", name.split("--").next().unwrap());
        let exam = examine(&Lackey, &bytes);
        assert_eq!(exam.error_codes(), [code.as_str()], "{name}");
        for diagnostic in exam.check.iter().chain(&exam.info.1) {
            assert!(diagnostic.offset <= bytes.len() as u64, "{name}");
            let (line, column) = diagnostic.line.unwrap();
            let before = &bytes[..usize::try_from(diagnostic.offset).unwrap()];
            let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            assert_eq!(line, 1 + before.iter().filter(|b| **b == b'\n').count() as u64, "{name}");
            assert_eq!(column, (before.len() - line_start) as u64 + 1, "{name}");
        }
        assert!(exam.info.0.records >= 2, "{name}: the records before the damage are kept");
        let lost = rewrite(&Lackey, &bytes, &Plan::Repair(TargetOptions::default())).unwrap().1.bytes_lost;
        let skipped: u64 = exam.info.1.iter().map(|d| d.skipped_bytes).sum();
        assert_eq!(lost, skipped, "{name}: what is skipped is what is lost");
    }
}

#[test]
fn every_error_rule_has_a_bad_sample() {
    let bad: Vec<String> = samples("bad").into_iter().map(|(name, _)| name).collect();
    for rule in Lackey.rules().iter().filter(|rule| rule.severity == Severity::Error) {
        let code = rule.code.trim_start_matches("lackey/");
        assert!(bad.iter().any(|name| name.split("--").next() == Some(code)), "{code}");
    }
}

#[test]
fn undamaged_samples_stay_as_they_are() {
    for (name, bytes) in samples("odd").into_iter().chain(samples("")) {
        if name == "two-processes.lackey" {
            continue;
        }
        let exam = examine(&Lackey, &bytes);
        assert!(exam.errors().is_empty(), "{name}: {:?}", exam.errors());
        assert!(convert(&bytes) == bytes, "{name}");
        assert!(through_jsonl(&Lackey, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}: JSON lines");
        let repaired = assert_repairs(&Lackey, &bytes, &name);
        let has_end = bytes.ends_with(b"\n");
        // In `printed`, text before a record gets a line of its own.
        let is_same = name == "printed.lackey" || repaired.starts_with(&bytes);
        let added = if name == "printed.lackey" { 4 } else { usize::from(!has_end) };
        assert!(is_same && repaired.len() == bytes.len() + added, "{name}");
    }
}

#[test]
fn every_sample_is_recognized_and_by_no_other_name() {
    for (name, bytes) in all_samples() {
        let confidence = Lackey.probe(&Input::from_bytes("sample", bytes.clone()).head());
        let has_banner = bytes.windows(6).any(|part| part == b"Lackey");
        let is_long = bytes.len() > 2000;
        let expected = match name.as_str() {
            _ if has_banner || is_long => Confidence::Certain,
            "only-blocks.lackey" => Confidence::Certain,
            "words.lackey" => Confidence::Maybe,
            _ => Confidence::Likely,
        };
        assert_eq!(confidence, expected, "{name}");
    }
}

#[test]
fn every_sample_reads_the_same_through_any_window() {
    for (_, bytes) in all_samples() {
        assert_windows_agree(&Lackey, &bytes);
    }
}

#[test]
fn a_cut_anywhere_is_located_and_keeps_the_records_before_it() {
    for (name, bytes) in all_samples() {
        let intact = examine(&Lackey, &bytes);
        truncations(&bytes, 700, |cut, part| {
            let exam = examine(&Lackey, part);
            for diagnostic in exam.info.1.iter().chain(&exam.check) {
                assert!(diagnostic.offset <= part.len() as u64 && diagnostic.line.is_some(), "{name} cut at {cut}");
            }
            let text = String::from_utf8(exam.text.clone()).unwrap();
            let intact_text = String::from_utf8(intact.text.clone()).unwrap();
            let mut lines = text.lines().rev();
            // Only the last record may read differently: its size may be cut.
            let last = lines.next();
            let kept = lines.rev().collect::<Vec<_>>();
            assert!(intact_text.lines().take(kept.len()).eq(kept.iter().copied()), "{name} cut at {cut}");
            if let Some(last) = last.filter(|last| !intact_text.contains(last)) {
                let codes: Vec<_> = exam.info.1.iter().map(Diagnostic::code).collect();
                assert!(codes.contains(&"lackey/no-line-end"), "{name} cut at {cut}: {last} {codes:?}");
            }
            if intact.errors().is_empty() {
                assert!(exam.errors().len() <= 1, "{name} cut at {cut}: {:?}", exam.errors());
            }
            assert_repairs(&Lackey, part, &format!("{name} cut at {cut}"));
        });
    }
}

#[test]
fn a_flipped_bit_costs_at_most_two_records() {
    for (name, bytes) in samples("").into_iter().chain(samples("odd")) {
        let records = examine(&Lackey, &bytes).info.0.records;
        bit_flips(&bytes, 800, |bit, flipped| {
            let exam = examine(&Lackey, flipped);
            assert!(exam.info.0.records + 2 >= records, "{name} bit {bit}: {} of {records}", exam.info.0.records);
            assert_repairs(&Lackey, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn info_and_check_agree_on_damage() {
    for (name, bytes) in all_samples() {
        mutations(&bytes, 11, 20, |changed| {
            let exam = examine(&Lackey, changed);
            for diagnostic in &exam.info.1 {
                assert!(exam.check.contains(diagnostic), "{name}: {diagnostic:?}");
            }
        });
    }
}

#[test]
fn mutated_samples_neither_panic_nor_change_on_their_way() {
    for (_, bytes) in all_samples() {
        let bytes = &bytes[..bytes.len().min(3000)];
        mutations(bytes, 5, 40, |changed| {
            fuzz_parse(&Lackey, changed);
            fuzz_roundtrip(&Lackey, changed, &same_bytes);
        });
        mutations(bytes, 17, 6, |changed| assert_windows_agree(&Lackey, changed));
    }
}

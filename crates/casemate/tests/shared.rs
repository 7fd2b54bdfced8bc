//! Every file of the shared corpus against its expectation. Skipped if the corpus is not available.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

// Repaired and trimmed traces keep the violations of the traced program.
use anytrace_casemate::GrammarOnly as Casemate;
use anytrace_core::testing::{assert_repairs, assert_windows_agree, examine, rewrite, shared_corpus, through_jsonl};
use anytrace_core::{OpenOptions, Plan, Severity, TargetOptions};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "log"));
    files.sort();
    files
}

fn convert(bytes: &[u8]) -> Vec<u8> {
    rewrite(&Casemate, bytes, &Plan::Convert(TargetOptions::default())).unwrap().0
}

/// Rows of a table without its first line.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn every_trace_reads_without_damage_and_converts_byte_for_byte() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let mut seen = 0;
    for row in rows(&corpus.join("verdicts.tsv")) {
        let bytes = std::fs::read(corpus.join("traces").join(&row[0])).unwrap();
        let exam = examine(&Casemate, &bytes);
        let info = &exam.info.0;
        assert_eq!(info.records.to_string(), row[3], "{}", row[0]);
        assert_eq!(exam.info.1, [], "{}", row[0]);
        if row[4] == "ok" {
            assert!(exam.errors().is_empty(), "{}: {:?}", row[0], exam.errors());
        }
        let dialect = match row[1].as_str() {
            "positional" => "positional",
            "seed" => "seed",
            _ => "head",
        };
        assert_eq!(info.dialect.as_deref(), Some(dialect), "{}", row[0]);
        assert_eq!(info.kinds.iter().map(|(_, n)| n).sum::<u64>(), info.records);
        assert_eq!(info.threads.iter().map(|(_, n)| n).sum::<u64>(), info.records);
        assert!(convert(&bytes) == bytes, "{}", row[0]);
        let back = through_jsonl(&Casemate, &OpenOptions::default(), &bytes).unwrap();
        assert!(back == bytes, "{}: JSON lines", row[0]);
        if exam.errors().is_empty() {
            assert!(assert_repairs(&Casemate, &bytes, &row[0]) == bytes, "{}", row[0]);
        } else {
            eprintln!("{}: {} {:?}", row[0], row[4], exam.error_codes());
        }
        seen += 1;
    }
    assert!(seen > 300);
}

#[test]
fn real_logs_read_without_damage_and_keep_their_claims() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    for row in rows(&corpus.join("upstream_verdicts.tsv")) {
        let bytes = std::fs::read(corpus.join(&row[0])).unwrap();
        let exam = examine(&Casemate, &bytes);
        assert_eq!(exam.errors(), Vec::<&anytrace_core::Diagnostic>::new(), "{}", row[0]);
        assert!(exam.info.1.iter().all(|d| d.severity == Severity::Note), "{}: {:?}", row[0], exam.info.1);
        let claim = exam.info.0.details.iter().find(|(key, _)| *key == "claimed_violation").map(|(_, v)| v.clone());
        let expected = row[2].strip_prefix("! ").map(|text| text.to_owned().into());
        assert_eq!(claim, expected, "{}", row[0]);
        assert!(convert(&bytes) == bytes, "{}", row[0]);
        assert!(through_jsonl(&Casemate, &OpenOptions::default(), &bytes).unwrap() == bytes, "{}", row[0]);
        assert!(assert_repairs(&Casemate, &bytes, &row[0]) == bytes, "{}", row[0]);
    }
}

#[test]
fn every_dump_of_the_reference_reads_back() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let folder = corpus.join("reference-dumps");
    for name in ["bad_bbm_missing_tlbi", "bad_no_bbm_stage1", "good_bbm", "good_bbm_by_VMID"] {
        let records = |form: &str| {
            let bytes = std::fs::read(folder.join(format!("{name}.{form}.txt"))).unwrap();
            let exam = examine(&Casemate, &bytes);
            assert_eq!(exam.error_codes(), Vec::<&str>::new(), "{name}.{form}");
            assert!(convert(&bytes) == bytes, "{name}.{form}");
            assert!(through_jsonl(&Casemate, &OpenOptions::default(), &bytes).unwrap() == bytes, "{name}.{form}");
            assert_eq!(exam.info.0.kinds.iter().map(|(_, n)| n).sum::<u64>(), exam.info.0.records);
            exam.info.0.kinds
        };
        let trace = records("trace");
        for form in ["print", "diff", "color", "condensed"] {
            assert_eq!(records(form), trace, "{name}.{form}");
        }
    }
}

#[test]
fn malformed_files_are_accepted_or_rejected_as_in_their_table() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    let folder = corpus.join("malformed");
    for row in rows(&folder.join("malformed.tsv")) {
        let bytes = std::fs::read(folder.join(&row[0])).unwrap();
        let exam = examine(&Casemate, &bytes);
        // The seed's own example writes to 0x42: an address that is not aligned is a warning.
        let is_warned = row[3].starts_with("unaligned write");
        let is_accepted = is_warned
            || row[3].starts_with("accepted")
            || row[3].contains("tolerant reader accepts")
            || row[3].ends_with("is ok")
            // In no document, but in the architecture, or kept with a warning.
            || ["m_dsb_osh.log", "m_bad_tlbi.log", "m_bad_sysreg.log"].contains(&row[0].as_str());
        assert_eq!(exam.errors().is_empty(), is_accepted, "{}: {} {:?}", row[0], row[3], exam.check);
        assert_repairs(&Casemate, &bytes, &row[0]);
        assert_windows_agree(&Casemate, &bytes);
    }
}

#[test]
fn every_file_reads_the_same_through_any_window() {
    let Some(corpus) = shared_corpus("casemate") else { return };
    for folder in ["seed-style", "upstream-head-run"] {
        for file in files(&corpus.join(folder)) {
            assert_windows_agree(&Casemate, &std::fs::read(file).unwrap());
        }
    }
}

//! Every file of the corpus against its expectation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use anytrace_core::testing::{assert_repairs, assert_windows_agree, examine, rewrite, through_jsonl};
use anytrace_core::{OpenOptions, Plan, Severity, TargetOptions};
use anytrace_heph::Heph;
use serde_json::Value;

fn read_text(path: &Path) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(path) {
        return Some(text);
    }
    let packed = std::fs::read(path.with_added_extension("gz")).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    Some(text)
}

fn traces(root: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for folder in ["seed", "valid", "broken", "real"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "heph" || e == "log") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn counts_errors_and_warnings_are_those_of_expected_json() {
    for root in common::corpora() {
        let table: Value = serde_json::from_slice(&std::fs::read(root.join("expected.json")).unwrap()).unwrap();
        let mut seen = 0;
        for row in table.as_array().unwrap() {
            let file = row["file"].as_str().unwrap();
            if file.starts_with("net/") {
                continue;
            }
            let bytes = std::fs::read(root.join(file)).unwrap();
            let exam = examine(&Heph, &bytes);
            let kind = |name: &str| exam.info.0.kinds.iter().find(|row| row.0 == name).map_or(0, |row| row.1);
            assert_eq!(kind("event"), row["events"].as_u64().unwrap(), "{file}");
            assert_eq!(kind("metadata"), row["metadata"].as_u64().unwrap(), "{file}");
            assert_eq!(exam.info.0.records, kind("event") + kind("metadata"), "{file}");

            let errors: Vec<_> =
                exam.errors().iter().map(|d| (d.offset, d.code().to_owned(), d.skipped_bytes)).collect();
            let expected: Vec<_> = row["errors"].as_array().unwrap().iter().map(error).collect();
            assert_eq!(errors, expected, "{file}");
            let in_info: Vec<_> =
                exam.info.1.iter().map(|d| (d.offset, d.code().to_owned(), d.skipped_bytes)).collect();
            assert_eq!(in_info, expected, "{file}: info and check agree on damage");

            let warnings: BTreeSet<_> = exam
                .check
                .iter()
                .filter(|d| d.severity == Severity::Warning)
                .map(|d| (d.offset, d.code().to_owned(), number(d)))
                .collect();
            let expected: BTreeSet<_> = row["warnings"].as_array().unwrap().iter().flat_map(warnings_of).collect();
            assert_eq!(warnings, expected, "{file}");
            seen += 1;
        }
        assert!(seen >= 40, "{seen} files in {}", root.display());
    }
}

fn error(row: &Value) -> (u64, String, u64) {
    let code = format!("heph/{}", row["code"].as_str().unwrap());
    (row["offset"].as_u64().unwrap(), code, row["skipped"].as_u64().unwrap())
}

/// The number in a warning about counters.
fn number(diagnostic: &anytrace_core::Diagnostic) -> Option<String> {
    diagnostic.code().contains("/counter-").then(|| diagnostic.found.clone().unwrap().into_owned())
}

fn warnings_of(row: &Value) -> Vec<(u64, String, Option<String>)> {
    let offset = row["offset"].as_u64().unwrap();
    let names = row["what"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    names
        .map(|name| match name.split_once(':') {
            Some((name, number)) => (offset, format!("heph/{name}"), Some(number.to_owned())),
            None => (offset, format!("heph/{name}"), None),
        })
        .collect()
}

#[test]
fn json_lines_are_those_of_the_corpus() {
    for root in common::corpora() {
        let mut seen = 0;
        for path in traces(&root) {
            let Some(expected) = read_text(&path.with_added_extension("jsonl")) else { panic!("{}", path.display()) };
            let exam = examine(&Heph, &std::fs::read(&path).unwrap());
            let ours = String::from_utf8(exam.jsonl).unwrap();
            assert_eq!(ours.lines().count(), expected.lines().count(), "{}", path.display());
            for (ours, expected) in ours.lines().zip(expected.lines()) {
                let ours: Value = serde_json::from_str(ours).unwrap();
                let expected: Value = serde_json::from_str(expected).unwrap();
                assert_eq!(ours, expected, "{}", path.display());
            }
            seen += 1;
        }
        assert!(seen > 45, "{seen} files in {}", root.display());
    }
}

#[test]
fn undamaged_files_are_converted_byte_for_byte_and_come_back_from_json_lines() {
    for root in common::corpora() {
        for path in traces(&root) {
            let bytes = std::fs::read(&path).unwrap();
            let exam = examine(&Heph, &bytes);
            let plan = Plan::Convert(TargetOptions::default());
            let (copy, outcome, sink) = rewrite(&Heph, &bytes, &plan).unwrap();
            assert_eq!(sink.errors(), exam.errors().len(), "{}", path.display());
            assert_eq!(outcome.records_written, exam.info.0.records, "{}", path.display());
            if exam.errors().is_empty() {
                assert!(copy == bytes, "{}", path.display());
                if !bytes.is_empty() {
                    let back = through_jsonl(&Heph, &OpenOptions::default(), &bytes).unwrap();
                    assert!(back == bytes, "{}", path.display());
                }
            }
            let repaired = assert_repairs(&Heph, &bytes, &path.display().to_string());
            assert!(repaired == copy, "{}: repair keeps every complete packet", path.display());
        }
    }
}

#[test]
fn windows_of_any_size_give_the_same() {
    for (name, bytes) in common::samples() {
        if bytes.len() < 4000 {
            eprintln!("{name}");
            assert_windows_agree(&Heph, &bytes);
        }
    }
}

/// The figures of `tree_summary.json` were computed from all spans of a lane, sorted; ours come from one pass with a
/// bounded window.
#[test]
fn partial_overlaps_are_about_those_of_the_tree_summary() {
    for root in common::corpora() {
        let table: Value =
            serde_json::from_slice(&std::fs::read(root.join("real/tree_summary.json")).unwrap()).unwrap();
        for (file, row) in table.as_object().unwrap() {
            let Ok(bytes) = std::fs::read(root.join("real").join(file)) else { continue };
            let exam = examine(&Heph, &bytes);
            let info = exam.info.0;
            let detail = |key: &str| info.details.iter().find(|(k, _)| *k == key).unwrap().1.as_u64().unwrap();
            let (ours, exact) = (detail("partial_overlaps"), row["partial_overlaps"].as_u64().unwrap());
            assert_eq!(detail("substreams"), row["lanes"].as_u64().unwrap(), "{file}");
            assert!(ours.abs_diff(exact) * 4 <= exact, "{file}: {ours}, exactly {exact}");
            let notes = exam.check.iter().filter(|d| d.code() == "heph/partial-overlap").count();
            assert_eq!(notes, usize::from(exact > 0), "{file}: one note a file");
        }
    }
}

#[test]
fn both_dialects_are_named() {
    for root in common::corpora() {
        for path in traces(&root.clone()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.ends_with(".log") {
                continue;
            }
            let info = examine(&Heph, &std::fs::read(&path).unwrap()).info.0;
            let expected = if name.contains("_pid") { "old" } else { "new" };
            assert_eq!(info.dialect.as_deref(), Some(expected), "{name}");
        }
    }
}

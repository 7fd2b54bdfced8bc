//! Truncated, bit-flipped and modified traces: no panic, diagnostics with places, and repair produces a trace without
//! errors.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, shared_corpus,
    truncations,
};
use anytrace_xray::Xray;

fn samples() -> Vec<(String, Vec<u8>)> {
    let mut folders: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")];
    if let Some(shared) = shared_corpus("xray") {
        folders.extend([shared.join("synth"), shared.join("real")]);
    }
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let is_yaml = path.extension().is_some_and(|e| e == "yaml") && path.with_extension("xray").exists();
            if path.extension().is_some_and(|e| e == "xray") || is_yaml {
                found.push((path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.retain(|(_, bytes)| bytes.len() <= 4000);
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

#[test]
fn windows_of_any_size_give_the_same() {
    for (name, bytes) in samples() {
        println!("{name}");
        assert_windows_agree(&Xray, bytes.get(..4000).unwrap_or(&bytes));
    }
}

#[test]
fn cut_anywhere_the_complete_records_before_the_cut_are_kept() {
    for (name, bytes) in samples() {
        let complete = examine(&Xray, &bytes);
        let offsets: Vec<u64> = jsonl_offsets(&complete.jsonl);
        truncations(&bytes, 400, |cut, part| {
            let exam = examine(&Xray, part);
            let what = format!("{name} cut at {cut}");
            assert!(exam.check.iter().all(|d| d.offset <= cut as u64), "{what}");
            let before = offsets.iter().filter(|&&offset| offset < cut as u64).count() as u64;
            if !name.ends_with(".yaml") {
                assert!(exam.info.0.records + 1 >= before, "{what}: {} of {before}", exam.info.0.records);
            }
            assert_repairs(&Xray, part, &what);
        });
    }
}

fn jsonl_offsets(jsonl: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(jsonl);
    let lines = text.lines().skip(1).filter(|line| !line.contains("\"kind\":\"gap\""));
    lines.filter_map(|line| line.rsplit_once("\"offset\":")?.1.trim_end_matches('}').parse().ok()).collect()
}

#[test]
fn single_bit_flips_repair() {
    for (name, bytes) in samples() {
        bit_flips(&bytes, 500, |bit, part| {
            let exam = examine(&Xray, part);
            assert!(exam.check.iter().all(|d| d.offset <= part.len() as u64), "{name} bit {bit}");
            assert_repairs(&Xray, part, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn changed_bytes_neither_panic_nor_lose_their_way() {
    for (n, (name, bytes)) in samples().into_iter().enumerate() {
        mutations(&bytes, 77 + n as u64, 50, |part| {
            fuzz_parse(&Xray, part);
            fuzz_roundtrip(&Xray, part, &|a, b| a == b || name.ends_with(".yaml"));
        });
    }
}

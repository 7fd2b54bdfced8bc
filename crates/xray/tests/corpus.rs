//! Every file of the shared corpus, against what is known about it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use anytrace_core::testing::{assert_repairs, examine, rewrite, shared_corpus, through_jsonl};
use anytrace_core::{OpenOptions, Plan, TargetOptions};
use anytrace_xray::Xray;

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "xray") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Extents 16 bytes short per typed event cut the last record of a buffer.
const CUT: [&str; 2] = ["events", "typed-tinybuf"];

#[test]
fn real_and_made_traces_are_read_without_error() {
    let Some(corpus) = shared_corpus("xray") else { return };
    for folder in ["real", "synth"] {
        for (name, bytes) in files(&corpus.join(folder)) {
            let exam = examine(&Xray, &bytes);
            let codes = exam.error_codes();
            if CUT.contains(&name.as_str()) {
                assert!(
                    codes.iter().all(|code| *code == "xray/record-cut-by-extents" || *code == "xray/truncated"),
                    "{name}: {codes:?}"
                );
                assert!(!codes.is_empty(), "{name}");
            } else if name == "v5-extent-short" {
                assert_eq!(codes, ["xray/extents-too-short"], "{name}");
            } else {
                assert!(codes.is_empty(), "{name}: {:#?}", exam.errors());
            }
            let info = &exam.info.0;
            assert_eq!(info.kinds.iter().map(|(_, n)| n).sum::<u64>(), info.records, "{name}");
            let all: Vec<_> = exam.info.1.iter().filter(|d| !exam.check.contains(d)).collect();
            assert!(all.is_empty(), "{name}: info reports what check does not: {all:?}");
        }
    }
}

#[test]
fn undamaged_traces_are_copied_byte_for_byte_and_through_json_lines() {
    let Some(corpus) = shared_corpus("xray") else { return };
    for folder in ["real", "synth"] {
        for (name, bytes) in files(&corpus.join(folder)) {
            if CUT.contains(&name.as_str()) || name == "v5-extent-short" {
                continue;
            }
            let (copy, outcome, _) = rewrite(&Xray, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
            assert!(copy == bytes, "{name}: convert changed it");
            assert_eq!(outcome.records_written, examine(&Xray, &bytes).info.0.records, "{name}");
            assert!(outcome.notes.is_empty(), "{name}: {:?}", outcome.notes);
            let back = through_jsonl(&Xray, &OpenOptions::default(), &bytes).unwrap();
            assert!(back == bytes, "{name}: the way through JSON lines changed it");
        }
    }
}

#[test]
fn every_trace_repairs() {
    let Some(corpus) = shared_corpus("xray") else { return };
    for folder in ["real", "synth", "bad"] {
        for (name, bytes) in files(&corpus.join(folder)) {
            let before = examine(&Xray, &bytes);
            let repaired = assert_repairs(&Xray, &bytes, &name);
            if before.errors().is_empty()
                && !name.starts_with("v5-gap")
                && !["llvmw-v3", "llvmw-v5"].contains(&name.as_str())
                && !name.starts_with("v5-trailing")
                && name != "bad-empty"
            {
                assert!(repaired == bytes, "{name}: repair changed a trace without errors");
            }
        }
    }
}

/// Whether the peer rejects the file in `convert -f yaml`, by file.
fn verdicts(corpus: &Path) -> BTreeMap<String, bool> {
    let text = std::fs::read_to_string(corpus.join("bad/verdicts.tsv")).unwrap();
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        if fields[1] == "convert -f yaml" {
            found.insert(fields[0].trim_end_matches(".xray").to_owned(), fields[2] != "0");
        }
    }
    found
}

/// The peer accepts these although bytes that the extents promise are missing, or a record is lost.
fn is_loss_the_peer_does_not_see(name: &str, codes: &[&str]) -> bool {
    let is_cut = codes == ["xray/truncated"];
    (is_cut && (name.contains("-cut") || name.contains("trunc") || name.starts_with("bad-real-")))
        || (name == "bad-flip1851" && codes == ["xray/extents-inside-buffer"])
}

#[test]
fn files_that_the_peer_rejects_are_errors_and_few_others() {
    let Some(corpus) = shared_corpus("xray") else { return };
    let verdicts = verdicts(&corpus);
    for (name, bytes) in files(&corpus.join("bad")) {
        let codes = examine(&Xray, &bytes).error_codes();
        let refused = verdicts[&name];
        if refused {
            // An idle program and an empty file are not errors, whatever the peer reports (page, section 5, point 1).
            assert!(!codes.is_empty() || ["bad-basic-header-only", "bad-empty"].contains(&name.as_str()), "{name}");
        } else {
            assert!(codes.is_empty() || is_loss_the_peer_does_not_see(&name, &codes), "{name}: {codes:?}");
        }
    }
}

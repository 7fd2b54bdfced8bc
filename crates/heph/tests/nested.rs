//! Arrays of arrays: rejected by default, recovered on request and then always reported.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::{examine, examine_with, rewrite_with, through_jsonl};
use anytrace_core::{DumpForm, Input, OpenOptions, Plan, Selection, Settings, Severity, TargetOptions};
use anytrace_heph::Heph;
use common::{Bytes, dump};
use serde_json::{Value, json};

fn recovering() -> OpenOptions {
    OpenOptions { own: Settings::default().with_flag("recover"), ..OpenOptions::default() }
}

fn attributes(bytes: &[u8]) -> Vec<Value> {
    let lines = dump(bytes, &recovering(), DumpForm::Jsonl, Selection::default());
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["attributes"].clone()).collect()
}

#[test]
fn the_real_nested_packets_are_recovered_and_written_back() {
    for root in common::corpora() {
        let bytes = std::fs::read(root.join("real/attrs_nested.bin.log")).unwrap();
        let exam = examine_with(&Heph, &recovering(), &|| Input::from_bytes("x", bytes.clone()));
        assert_eq!(exam.errors().len(), 0);
        let recovered: Vec<_> = exam.check.iter().map(|d| (d.code(), d.severity, d.offset)).collect();
        let expected = [1122, 1225, 1298, 1381].map(|at| ("heph/nested-array-recovered", Severity::Warning, at));
        assert_eq!(recovered, expected);
        assert_eq!(exam.info.0.records, 27);
        let in_info: Vec<_> = exam.info.1.iter().map(|d| d.offset).collect();
        assert_eq!(in_info, [1122, 1225, 1298, 1381], "info reports it too");
        assert_eq!(through_jsonl(&Heph, &recovering(), &bytes).unwrap(), bytes);
        let plan = Plan::Convert(TargetOptions::default());
        assert_eq!(rewrite_with(&Heph, &recovering(), &bytes, &plan).unwrap().0, bytes);
        let (repaired, outcome, _) =
            rewrite_with(&Heph, &recovering(), &bytes, &Plan::Repair(TargetOptions::default())).unwrap();
        assert_eq!(examine(&Heph, &repaired).errors().len(), 0, "a repaired trace passes without recovery");
        assert_eq!((outcome.records_written, outcome.bytes_lost), (23, 384));
        let jsonl = || TargetOptions { to: Some("jsonl".to_owned()), ..TargetOptions::default() };
        let (lines, outcome, _) = rewrite_with(&Heph, &recovering(), &bytes, &Plan::Repair(jsonl())).unwrap();
        assert_eq!((outcome.records_written, outcome.bytes_lost), (23, 384));
        assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 23);
    }
}

#[test]
fn the_sample_of_the_writer_reads_as_it_was_meant() {
    let bytes = std::fs::read(common::own_corpus().join("broken/array_of_arrays.heph")).unwrap();
    assert_eq!(attributes(&bytes)[2], json!([["a", "u64[][]", [[1, 2], [3, 4]]]]));
    let lines = dump(&bytes, &recovering(), DumpForm::Jsonl, Selection::default());
    let line: Value = serde_json::from_str(lines.lines().nth(2).unwrap()).unwrap();
    assert_eq!(line["warnings"], json!(["nested-array-recovered"]));
    let text = dump(&bytes, &recovering(), DumpForm::Text, Selection::default());
    assert!(text.contains("\"a\"=u64[][]:[[1, 2], [3, 4]]"), "{text}");
}

#[test]
fn three_levels_strings_and_flat_arrays_beside_them() {
    let bytes = Bytes::new()
        .epoch()
        .event(1, 0, 0, 0, 1, "deep")
        .attribute("flat", 0x81)
        .u16(1)
        .u64(9)
        .attribute("deep", 0x82)
        .u16(1)
        .u16(2)
        .u16(1)
        .u64(u64::MAX)
        .u16(0)
        .attribute("words", 0x84)
        .u16(2)
        .u16(1)
        .text("ab")
        .u16(2)
        .text("c")
        .text("d")
        .end()
        .poll(1, 1)
        .bytes;
    let found = &attributes(&bytes)[1];
    assert_eq!(
        *found,
        json!([
            ["flat", "u64[]", [9]],
            ["deep", "i64[][][]", [[[-1], []]]],
            ["words", "str[][]", [["ab"], ["c", "d"]]]
        ])
    );
    assert_eq!(through_jsonl(&Heph, &recovering(), &bytes).unwrap(), bytes);
}

#[test]
fn damage_is_not_taken_for_nesting() {
    for (name, bytes) in common::samples() {
        if name.contains("nested") || name.contains("array_of_arrays") {
            continue;
        }
        let plain = examine(&Heph, &bytes);
        let exam = examine_with(&Heph, &recovering(), &|| Input::from_bytes("sample", bytes.clone()));
        assert_eq!(exam, plain, "{name}");
    }
}

#[test]
fn a_packet_that_cannot_be_decided_costs_bounded_time() {
    let mut made = Bytes::new().epoch().event(1, 0, 0, 0, 1, "hostile");
    for _ in 0..3000 {
        made = made.attribute("", 0x81).u16(1).u64(0x0001_0000_0000_0001);
    }
    let bytes = made.u8(7).end().poll(1, 1).bytes;
    let exam = examine_with(&Heph, &recovering(), &|| Input::from_bytes("x", bytes.clone()));
    assert_eq!(exam.info.0.records, 2);
}

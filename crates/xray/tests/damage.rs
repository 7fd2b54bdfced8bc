//! One damaged record, whichever it is: it is reported as an error, and every verb keeps all others.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{assert_repairs, assert_windows_agree, examine, rewrite};
use anytrace_core::{Plan, TargetOptions};
use anytrace_xray::Xray;

mod common;
use common::made::{Content, Made, fdr};
use common::slow::decode;

/// Every trace whose record number `seq` begins with an invalid byte.
fn each_damaged(mut visit: impl FnMut(&str, &[u8], u64, usize, &[u8])) {
    for big in [false, true] {
        for version in 1..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            for (seq, (at, _)) in decode(&source).records.into_iter().enumerate() {
                let mut bytes = source.clone();
                bytes[at] = 0xff;
                let what = format!("version {version} big {big}: record {seq} at {at:#x}");
                visit(&what, &source, seq as u64, at, &bytes);
            }
        }
    }
}

/// The payload of a damaged event is lost with it, and may look like a record.
fn is_event(source: &[u8], at: usize) -> bool {
    decode(source)
        .entries
        .iter()
        .any(|entry| entry.what.kind.ends_with("-event") && at + 16 + entry.what.data.len() == entry.end)
}

/// A function record whose first byte says metadata may cost the function record after it too.
fn cost(source: &[u8], at: usize) -> u64 {
    let is_function = decode(source).records.contains(&(at, at + 8));
    if is_function { 2 } else { 1 }
}

#[test]
fn a_damaged_record_is_an_error_and_the_others_are_counted() {
    each_damaged(|what, source, _, at, bytes| {
        if is_event(source, at) {
            return;
        }
        let exam = examine(&Xray, bytes);
        let records = decode(source).records.len() as u64;
        assert!(!exam.error_codes().is_empty(), "{what}: no error");
        assert!(exam.info.1.iter().any(|d| d.offset <= at as u64 + 16), "{what}");
        assert!(
            exam.info.0.records + cost(source, at) >= records,
            "{what}: {} of {records}: {:?}",
            exam.info.0.records,
            exam.error_codes()
        );
    });
}

#[test]
fn a_copy_without_the_damaged_record_is_read_as_well_as_the_source() {
    each_damaged(|what, source, _, at, bytes| {
        // Where the end of a version 1 buffer is missing, its filler is read as records.
        let is_end = source[..2].contains(&1) && [0x03, 0x81].contains(&source[at]);
        if is_event(source, at) || is_end {
            return;
        }
        let records = examine(&Xray, bytes).info.0.records;
        let (copy, outcome, _) = rewrite(&Xray, bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert_eq!(outcome.records_written, records, "{what}");
        assert_eq!(examine(&Xray, &copy).info.0.records, records, "{what}: {:?}", examine(&Xray, &copy).check);
    });
}

#[test]
fn a_repair_keeps_every_function_but_the_damaged_one() {
    each_damaged(|what, source, _, at, bytes| {
        let functions =
            |bytes: &[u8]| decode(bytes).entries.iter().filter(|entry| entry.what.kind.starts_with("function")).count();
        if !is_event(source, at) {
            let repaired = assert_repairs(&Xray, bytes, what);
            assert!(functions(&repaired) as u64 + cost(source, at) >= functions(source) as u64, "{what}");
        }
    });
}

#[test]
fn zeros_in_place_of_a_new_buffer_record_are_no_functions() {
    for big in [false, true] {
        for version in 1..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            let slow = decode(&source);
            let first = if version == 1 { 0 } else { 1 };
            let mut bytes = source.clone();
            let at = slow.records[first].0;
            bytes[at..at + 16].fill(0);
            let what = format!("version {version} big {big}");
            let exam = examine(&Xray, &bytes);
            assert_eq!(exam.error_codes()[0], "xray/unknown-metadata-kind", "{what}");
            assert_eq!((exam.info.1[0].offset, exam.info.1[0].skipped_bytes), (at as u64, 16), "{what}");
            assert_eq!(exam.info.0.records, slow.records.len() as u64 - 1, "{what}");
            let repaired = assert_repairs(&Xray, &bytes, &what);
            assert_eq!(decode(&repaired).entries.len(), slow.entries.len(), "{what}");
        }
    }
}

#[test]
fn zero_filler_after_a_damaged_end_of_buffer_has_no_functions() {
    for damage in [0xff, 0x00] {
        let body = |made: Made, thread| made.thread(thread).wall().cpu(100).pair();
        let made = body(Made::header(1, 1, 16384), 1);
        let end = made.bytes.len();
        let mut made = made.end_of_buffer();
        made.bytes[end] = damage;
        made.bytes.resize(32 + 16384, 0);
        let mut made = body(made, 2).end_of_buffer();
        made.bytes.resize(32 + 2 * 16384, 0);
        let exam = examine(&Xray, &made.bytes);
        let codes: Vec<_> = exam.check.iter().map(|d| d.code()).collect();
        assert!(codes.contains(&"xray/end-of-buffer-missing"), "{damage:#x}: {codes:?}");
        assert_eq!(exam.info.0.records, 5 + 6, "{damage:#x}: {codes:?}");
        assert_eq!(decode(&assert_repairs(&Xray, &made.bytes, "filler")).records.len(), 12, "{damage:#x}");
        assert_windows_agree(&Xray, &made.bytes);
    }
}

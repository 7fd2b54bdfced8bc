//! Damage costs only what is damaged: every intact record is kept, as counted by a slow decoder.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{assert_repairs, examine, rewrite};
use anytrace_core::{Plan, Severity, TargetOptions};
use anytrace_xray::Xray;

mod common;
use common::made::{BUFFER_SIZE, Content, Made, basic, fdr, v5, with_buffer};
use common::slow::{What, decode, meanings};
use common::{convert, sample, target};

fn sources() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for big in [false, true] {
        for version in 1..=5 {
            all.push((format!("fdr {version} big {big}"), fdr(version, big, Content::Rich).bytes));
        }
        for version in 1..=3 {
            all.push((format!("basic {version} big {big}"), basic(version, big, Content::Rich).bytes));
        }
    }
    for name in ["v5", "be-v2", "customs-tinybuf", "ring", "basic-exc", "llvmw-v1"] {
        all.push((name.to_owned(), sample(&format!("{name}.xray"))));
    }
    all.push(("yaml".to_owned(), convert(&all[4].1, target(Some("yaml"), None, None))));
    all
}

/// The records that end before the cut, with the arguments that do so too.
fn complete_before(bytes: &[u8], cut: usize) -> Vec<What> {
    let entries = decode(bytes).entries.into_iter().filter(|entry| entry.end <= cut);
    entries
        .map(|mut entry| {
            let arguments = entry.argument_ends.iter().filter(|&&end| end <= cut).count();
            entry.what.arguments.truncate(arguments);
            entry.what
        })
        .collect()
}

#[test]
fn cut_at_any_offset_a_repair_keeps_every_complete_record() {
    for (name, bytes) in sources() {
        let is_yaml = name == "yaml";
        for cut in 0..bytes.len() {
            let part = &bytes[..cut];
            let repaired = assert_repairs(&Xray, part, &format!("{name} cut at {cut}"));
            if repaired.is_empty() {
                assert!(cut < 33, "{name} cut at {cut}");
                continue;
            }
            let (found, expected) = (meanings(&repaired), complete_before(&bytes, cut));
            // The last line end of YAML is not part of the entry's meaning.
            let is_same = found == expected || (is_yaml && found == complete_before(&bytes, cut + 1));
            assert!(is_same, "{name} cut at {cut}: {found:#?}, expected {expected:#?}");
        }
    }
}

#[test]
fn cut_at_any_offset_info_counts_every_complete_record() {
    for (name, bytes) in sources().into_iter().filter(|(name, _)| name != "yaml") {
        let records = decode(&bytes).records;
        for cut in 32..bytes.len() {
            let expected = records.iter().filter(|(_, end)| *end <= cut).count() as u64;
            let exam = examine(&Xray, &bytes[..cut]);
            assert_eq!(exam.info.0.records, expected, "{name} cut at {cut}");
            let lines = exam.jsonl.split(|&b| b == b'\n').skip(1).filter(|line| !line.is_empty());
            let lines = lines.filter(|line| !line.starts_with(b"{\"kind\":\"gap\"")).count() as u64;
            assert_eq!(lines, expected, "{name} cut at {cut}: lines of the dump");
        }
    }
}

#[test]
fn a_cut_inside_a_record_or_buffer_is_an_error() {
    for (name, bytes) in sources().into_iter().filter(|(name, _)| name.starts_with("fdr") || name.starts_with("basic"))
    {
        let ends: Vec<usize> = decode(&bytes).records.iter().map(|(_, end)| *end).collect();
        let is_version_1 = name.starts_with("fdr 1");
        for cut in 33..bytes.len() {
            let is_filler = is_version_1 && {
                let start = cut - 1 - (cut - 33) % BUFFER_SIZE;
                ends.iter().filter(|&&end| end > start && end <= start + BUFFER_SIZE).all(|&end| end <= cut)
            };
            let is_between_basic = name.starts_with("basic") && cut % 32 == 0;
            let is_between = decode_starts(&bytes).contains(&cut) || is_filler || is_between_basic;
            let codes = examine(&Xray, &bytes[..cut]).error_codes();
            assert_eq!(codes.is_empty(), is_between, "{name} cut at {cut}: {codes:?}");
        }
    }
}

/// Where buffers of version 2 and later begin.
fn decode_starts(bytes: &[u8]) -> Vec<usize> {
    let first = if bytes[0] == 0 { 0x87 } else { 0x0f };
    decode(bytes).records.iter().map(|(start, _)| *start).filter(|&start| bytes[start] == first).collect()
}

#[test]
fn a_damaged_record_costs_itself_and_the_rest_is_kept() {
    for big in [false, true] {
        let source = fdr(5, big, Content::Plain).bytes;
        let entries = decode(&source).entries;
        for (n, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.what.kind.starts_with("function")) {
            let mut bytes = source.clone();
            // Kind 7 of a function record.
            let at = entry.end - 8;
            bytes[at] |= if big { 0x70 } else { 0x0e };
            let what = format!("record {} at {at:#x} big {big}", entry.seq);
            let exam = examine(&Xray, &bytes);
            assert_eq!(exam.error_codes()[0], "xray/unknown-function-kind", "{what}");
            assert_eq!(exam.info.1[0].offset, at as u64, "{what}");
            let repaired = meanings(&assert_repairs(&Xray, &bytes, &what));
            assert_eq!(repaired.len(), entries.len() - 1, "{what}");
            let ids: Vec<_> = repaired.iter().map(|what| what.id).collect();
            let expected: Vec<_> =
                entries.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, entry)| entry.what.id).collect();
            assert_eq!(ids, expected, "{what}");
        }
    }
}

#[test]
fn a_damaged_basic_record_costs_itself_only() {
    let source = basic(3, false, Content::Rich).bytes;
    for n in 0..(source.len() - 32) / 32 {
        let mut bytes = source.clone();
        bytes[32 + n * 32] = 9;
        let repaired = assert_repairs(&Xray, &bytes, "basic");
        // An argument is lost with its function.
        let with_arguments = if n == 0 { 3 } else { 1 };
        assert_eq!(repaired.len(), source.len() - 32 * with_arguments, "record {n}");
    }
}

#[test]
fn extents_that_end_between_records_keep_the_records_behind_them() {
    for big in [false, true] {
        for version in 2..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            let slow = decode(&source);
            let starts = decode_starts(&source);
            for (start, next) in starts.iter().zip(starts.iter().skip(1).chain([&source.len()])) {
                let inside = slow.records.iter().filter(|(at, end)| at > start && end < next);
                for (at, end) in inside {
                    // Fewer than six records: ids and deltas that occur in hardly any program count as garbage.
                    let is_odd = slow.entries.iter().any(|entry| {
                        let is_behind = (*end + 1..=*next).contains(&entry.end);
                        is_behind && (entry.what.id == 0x0fff_ffff || entry.what.thread == 12)
                    });
                    if is_odd && version > 2 {
                        continue;
                    }
                    let what =
                        format!("version {version} big {big}: extents at {start:#x} end at {end:#x}, record {at:#x}");
                    let size = (end - start - 16) as u64;
                    let mut bytes = source.clone();
                    bytes[start + 1..start + 9].copy_from_slice(&if big {
                        size.to_be_bytes()
                    } else {
                        size.to_le_bytes()
                    });
                    let exam = examine(&Xray, &bytes);
                    assert_eq!(exam.error_codes(), ["xray/extents-too-short"], "{what}");
                    let error = exam.errors()[0];
                    assert_eq!(error.offset, *end as u64, "{what}");
                    assert_eq!(exam.info.0.records, slow.records.len() as u64, "{what}");
                    assert_eq!(meanings(&assert_repairs(&Xray, &bytes, &what)), meanings(&source), "{what}");
                    let (copy, _, _) = rewrite(&Xray, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
                    assert_eq!(copy, source, "{what}: convert corrects the extents");
                }
            }
        }
    }
}

#[test]
fn records_behind_extents_are_kept_up_to_padding_and_in_any_number() {
    let functions = |made: Made, n: u32| (0..n).fold(made, |made, n| made.function(n % 2, 1 + n / 2, 3));
    for (count, padding) in [(1, 24), (5, 64), (9, 0), (9000, 0), (30_000, 40)] {
        let made = functions(v5().extents(64 + 16).preamble(3, 100).pair(), count);
        let made = with_buffer(made.raw(&vec![0; padding]));
        let exam = examine(&Xray, &made.bytes);
        assert_eq!(exam.error_codes(), ["xray/extents-too-short"], "{count} records, {padding} bytes");
        assert_eq!(exam.info.0.records, 7 + u64::from(count) + 7, "{count} records, {padding} bytes");
        let repaired = assert_repairs(&Xray, &made.bytes, "behind");
        assert_eq!(meanings(&repaired).len() as u32, count + 4, "{count} records, {padding} bytes");
    }
}

#[test]
fn gaps_between_buffers_stay_gaps() {
    for gap in [
        &b"what is this?"[..],
        b"ff b ddd",
        b"\x20\x20\x20\x20\x20\x20\x20\x20",
        &[0; 5],
        &[0; 64],
        &[0xff; 33],
        &[0x0f; 3],
        &[0x0f, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x92, 0, 0, 0, 1, 0, 0, 0],
        &[0x12, 0, 0, 0, 5, 0, 0, 0, 0xff],
    ] {
        let made = with_buffer(with_buffer(v5()).raw(gap));
        let exam = examine(&Xray, &made.bytes);
        assert!(exam.errors().is_empty(), "{gap:?}: {:#?}", exam.errors());
        assert!(exam.check.iter().any(|d| d.severity == Severity::Warning), "{gap:?}");
        assert_eq!(exam.info.0.records, 14, "{gap:?}");
        assert_eq!(convert(&made.bytes, TargetOptions::default()), made.bytes, "{gap:?}");
        assert_eq!(assert_repairs(&Xray, &made.bytes, "gap"), with_buffer(with_buffer(v5())).bytes, "{gap:?}");
    }
}

#[test]
fn a_repair_reports_what_it_left_out() {
    let made = with_buffer(v5().extents(96).preamble(3, 100).meta(10, |made| made).pair());
    let (_, outcome, _) = rewrite(&Xray, &made.bytes, &Plan::Repair(TargetOptions::default())).unwrap();
    assert_eq!((outcome.bytes_lost, outcome.records_read, outcome.records_written), (16, 14, 14));
    assert_eq!(outcome.notes, ["16 bytes that are not part of a complete record were left out."]);
}

#[test]
fn a_repair_of_an_intact_trace_changes_nothing() {
    for (name, bytes) in sources().into_iter().filter(|(name, _)| !name.starts_with("llvmw")) {
        let (repaired, outcome, _) = rewrite(&Xray, &bytes, &Plan::Repair(TargetOptions::default())).unwrap();
        assert_eq!(repaired, bytes, "{name}");
        assert!(outcome.notes.is_empty() && outcome.bytes_lost == 0, "{name}: {:?}", outcome.notes);
    }
}

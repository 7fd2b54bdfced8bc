//! Where buffers begin: gaps full of false introducers, damaged first records, buffers of version 1 at their
//! boundaries.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{assert_repairs, examine, rewrite};
use anytrace_core::{Confidence, Format, Plan, Severity, TargetOptions};
use anytrace_xray::Xray;

mod common;
use common::made::{BUFFER_SIZE, Content, Made, fdr};
use common::slow::{What, decode, meanings};

/// Offsets at which buffers begin.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let slow = decode(bytes);
    let (big, version) = (bytes[0] == 0, u16::from(bytes[0] | bytes[1]));
    let kind = if version == 1 { 0 } else { 7 };
    let first = if big { 0x80 | kind } else { kind << 1 | 1 };
    slow.records.iter().map(|&(at, _)| at).filter(|&at| bytes[at] == first).collect()
}

/// Reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

fn with_gap(source: &[u8], at: usize, gap: &[u8]) -> Vec<u8> {
    [&source[..at], gap, &source[at..]].concat()
}

fn assert_gap_is_harmless(source: &[u8], at: usize, gap: &[u8], what: &str) {
    let bytes = with_gap(source, at, gap);
    let exam = examine(&Xray, &bytes);
    assert!(exam.errors().is_empty(), "{what}: {:?}", exam.errors());
    assert!(exam.check.iter().any(|d| d.severity == Severity::Warning && d.offset == at as u64), "{what}: no warning");
    assert_eq!(exam.info.0.records, decode(source).records.len() as u64, "{what}");
    let repaired = assert_repairs(&Xray, &bytes, what);
    assert_eq!(meanings(&repaired), meanings(source), "{what}");
    let (copy, _, _) = rewrite(&Xray, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
    assert_eq!(copy, bytes, "{what}");
}

#[test]
fn introducers_in_front_of_a_buffer_do_not_hide_it() {
    for big in [false, true] {
        for version in 2..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            let introducer = if big { 0x87 } else { 0x0f };
            for at in starts(&source) {
                for length in 1..60 {
                    let what = format!("version {version} big {big} at {at:#x}: {length}");
                    assert_gap_is_harmless(&source, at, &vec![introducer; length], &what);
                }
                // One introducer and zeros: with 15 of them it would be the extents of an empty buffer.
                for zeros in (1..15).chain(16..40) {
                    let gap = [&[introducer][..], &vec![0; zeros]].concat();
                    let what = format!("version {version} big {big} at {at:#x}: {zeros} zeros");
                    assert_gap_is_harmless(&source, at, &gap, &what);
                }
            }
        }
    }
}

#[test]
fn a_gap_of_bytes_that_begin_records_hides_no_buffer() {
    let mut dice = Dice(7);
    for round in 0..400 {
        let (big, version) = (round % 2 == 1, 2 + u16::try_from(round / 2 % 4).unwrap());
        let source = fdr(version, big, Content::Rich).bytes;
        let starts = starts(&source);
        let at = starts[dice.roll(starts.len())];
        // A first byte that no record has: bytes that could be a record of the previous buffer are another case.
        let mut gap = vec![0x55 | 0x80];
        gap.extend((0..dice.roll(60)).map(|_| [0, 0x0f, 0x87, 0x55][dice.roll(4)]));
        assert_gap_is_harmless(&source, at, &gap, &format!("round {round}: {gap:02x?} at {at:#x}"));
    }
}

#[test]
fn a_damaged_extents_record_is_reported_at_its_place() {
    for big in [false, true] {
        for version in 2..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            for (n, at) in starts(&source).into_iter().enumerate() {
                for bit in 0..8 {
                    let what = format!("version {version} big {big} at {at:#x}: bit {bit}");
                    let mut bytes = source.clone();
                    bytes[at] ^= 1 << bit;
                    let exam = examine(&Xray, &bytes);
                    assert!(!exam.errors().is_empty(), "{what}");
                    assert_eq!(exam.errors()[0].offset, at as u64, "{what}: {:?}", exam.errors());
                    let repaired = assert_repairs(&Xray, &bytes, &what);
                    assert_eq!(meanings(&repaired), meanings(&source), "{what}: buffer {n}");
                }
            }
        }
    }
}

/// A version 1 trace of three buffers, each padded at the end with `filler`.
fn version_1(big: bool, pairs: u32, filler: &mut dyn FnMut(usize) -> u8) -> Vec<u8> {
    let mut made = Made { garbage: 0xcc, ..Made::header_in(big, 1, 1, BUFFER_SIZE as u64) };
    for thread in 11..14 {
        let start = made.bytes.len();
        made = made.thread(thread).wall().cpu(1000);
        made = (0..pairs).fold(made, |made, _| made.pair()).end_of_buffer();
        let used = made.bytes.len() - start;
        let rest: Vec<u8> = (used..BUFFER_SIZE).map(&mut *filler).collect();
        made.push(&rest);
    }
    made.bytes
}

fn without_owner(all: Vec<What>) -> Vec<What> {
    all.into_iter().map(|what| What { thread: 0, process: 0, ..what }).collect()
}

#[test]
fn a_version_1_buffer_with_a_damaged_first_byte_keeps_its_records() {
    let mut dice = Dice(3);
    for big in [false, true] {
        let stale = Made::header_in(big, 1, 1, 0).thread(99).wall().cpu(1).pair().end_of_buffer().bytes.split_off(32);
        for pairs in [1, 2, 5, 20] {
            for kind in 0..4 {
                let mut filler = |at: usize| match kind {
                    0 => 0,
                    1 => 0xaa,
                    2 => u8::try_from(dice.roll(256)).unwrap(),
                    _ => stale[at % stale.len()],
                };
                let source = version_1(big, pairs, &mut filler);
                for (buffer, bit) in (0..3).flat_map(|buffer| (0..8).map(move |bit| (buffer, bit))) {
                    let at = 32 + buffer * BUFFER_SIZE;
                    let mut bytes = source.clone();
                    bytes[at] ^= 1 << bit;
                    let what = format!("big {big}, {pairs} pairs, filler {kind}, buffer {buffer}, bit {bit}");
                    let exam = examine(&Xray, &bytes);
                    assert_eq!(exam.errors().first().map(|d| d.offset), Some(at as u64), "{what}: {:?}", exam.errors());
                    assert_eq!(exam.info.0.records + 1, decode(&source).records.len() as u64, "{what}");
                    let repaired = assert_repairs(&Xray, &bytes, &what);
                    assert_eq!(without_owner(meanings(&repaired)), without_owner(meanings(&source)), "{what}");
                    let kept = meanings(&repaired).iter().filter(|what| what.thread != 0).count();
                    assert_eq!(kept, 4 * usize::try_from(pairs).unwrap(), "{what}: others keep their threads");
                }
            }
        }
    }
}

#[test]
fn a_gap_in_front_of_the_first_buffer_loses_no_record_and_hides_no_format() {
    for big in [false, true] {
        for version in 1..=5 {
            let source = fdr(version, big, Content::Rich).bytes;
            for gap in [&[0x0f; 5][..], &[0x87; 30], &[0x55, 0x0f, 0x87, 0, 0x0f], &[0x01; 3], &[0x80; 40]] {
                let bytes = with_gap(&source, 32, gap);
                let what = format!("version {version} big {big}: {gap:02x?}");
                let head = anytrace_core::Input::from_bytes("x", bytes.clone());
                assert_eq!(Xray.probe(&head.head()), Confidence::Certain, "{what}");
                let repaired = assert_repairs(&Xray, &bytes, &what);
                assert_eq!(meanings(&repaired), meanings(&source), "{what}");
            }
        }
    }
}

#[test]
fn a_version_1_buffer_without_any_preamble_is_an_error() {
    for big in [false, true] {
        let mut bytes = version_1(big, 20, &mut |_| 0);
        let at = 32 + BUFFER_SIZE;
        bytes[at..at + 40].fill(0xff);
        let exam = examine(&Xray, &bytes);
        assert_eq!(exam.errors()[0].offset, at as u64);
        let repaired = assert_repairs(&Xray, &bytes, "no preamble");
        assert!(meanings(&repaired).len() >= 3 * 40 - 2);
    }
}

#[test]
fn a_buffer_whose_thread_was_lost_is_not_given_to_the_thread_before() {
    for big in [false, true] {
        let mut bytes = version_1(big, 3, &mut |_| 0);
        bytes[32 + BUFFER_SIZE] = 0xff;
        let yaml = Plan::Convert(TargetOptions { to: Some("yaml".into()), ..TargetOptions::default() });
        let (yaml, _, _) = rewrite(&Xray, &bytes, &yaml).unwrap();
        let threads: Vec<u32> = meanings(&yaml).iter().map(|what| what.thread).collect();
        assert_eq!(threads, [[11; 6], [0; 6], [13; 6]].concat());
    }
}

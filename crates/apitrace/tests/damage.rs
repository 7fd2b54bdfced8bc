//! Samples cut at every byte, with every bit flipped, and mixed up.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    truncations,
};
use anytrace_core::{Plan, Settings, TargetOptions};
use build::{Build, blob, rich, snappy, uint};

fn raw_of(bytes: &[u8]) -> Vec<u8> {
    let target = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap().0
}

/// The lines of the text dump without offsets.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = examine(&Apitrace, bytes).text;
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).collect()
}

const SAMPLES: [&[u8]; 5] = [
    include_bytes!("../corpus/interleave.trace"),
    include_bytes!("../corpus/sparse_ids.trace"),
    include_bytes!("../corpus/upstream_incomplete-call.trace"),
    include_bytes!("../corpus/container_zstdseek.trace"),
    include_bytes!("../corpus/container_snappy64.trace"),
];

#[test]
fn a_cut_keeps_every_complete_event_before_it() {
    for raw in [rich().bytes, include_bytes!("../corpus/allvals_v2.trace").to_vec()] {
        let raw = raw_of(&raw);
        let entire = lines(&raw);
        truncations(&raw, 600, |cut, bytes| {
            if cut == 0 {
                return;
            }
            // In Snappy a short stream remains recognizable.
            let bytes = snappy(bytes, 1 << 20);
            let exam = examine(&Apitrace, &bytes);
            let found = lines(&bytes);
            assert!(entire.starts_with(&found), "cut at {cut} invents events: {found:?}");
            let offsets: Vec<u64> = event_ends(&raw);
            let expected = offsets.iter().filter(|end| **end <= cut as u64).count();
            assert_eq!(found.len(), expected, "cut at {cut}");
            let is_border = offsets.contains(&(cut as u64));
            assert!(is_border || !exam.errors().is_empty() || expected == 0, "cut at {cut} goes unnoticed");
            let repaired = assert_repairs(&Apitrace, &bytes, "cut");
            assert_eq!(lines(&repaired), found, "cut at {cut}");
        });
    }
}

/// Where each event ends.
fn event_ends(raw: &[u8]) -> Vec<u64> {
    let text = String::from_utf8(examine(&Apitrace, raw).text).unwrap();
    let starts =
        text.lines().map(|l| u64::from_str_radix(l.split(' ').next().unwrap().trim_start_matches("0x"), 16).unwrap());
    starts.skip(1).chain([raw.len() as u64]).collect()
}

#[test]
fn any_cut_and_any_flipped_bit_of_a_sample_is_survived() {
    for sample in SAMPLES {
        truncations(sample, 700, |_, bytes| fuzz_parse(&Apitrace, bytes));
        bit_flips(sample, 2500, |_, bytes| fuzz_parse(&Apitrace, bytes));
    }
}

#[test]
fn a_flipped_bit_in_the_raw_stream_is_survived_and_what_reads_without_error_is_written_back() {
    let raw = rich().bytes;
    bit_flips(&raw, 4000, |_, bytes| {
        fuzz_parse(&Apitrace, bytes);
        fuzz_roundtrip(&Apitrace, bytes, &|a, b| raw_of(a) == raw_of(b));
    });
}

#[test]
fn mixed_up_bytes_are_survived_in_any_window() {
    for (seed, sample) in (1..).zip([raw_of(&rich().bytes), rich().snappy(50)]) {
        mutations(&sample, seed, 1500, |bytes| {
            fuzz_parse(&Apitrace, bytes);
            fuzz_roundtrip(&Apitrace, bytes, &|a, b| raw_of(a) == raw_of(b));
        });
        mutations(&sample, seed + 10, 200, |bytes| assert_windows_agree(&Apitrace, bytes));
    }
}

#[test]
fn samples_read_alike_in_any_window() {
    for sample in SAMPLES {
        assert_windows_agree(&Apitrace, sample);
    }
    assert_windows_agree(&Apitrace, include_bytes!("../corpus/allvals_v0.trace"));
}

/// A trace of `calls` calls in chunks of 512 bytes.
fn long(calls: u64) -> Build {
    let mut b = Build::version(6);
    b.enter_new(0, 0, "glVertex", &["x"]).end().leave(0).end();
    b.calls(0, 1, calls);
    b
}

#[test]
fn calls_after_a_lost_chunk_are_found_again_with_their_numbers() {
    let entire = long(400);
    let chunks = entire.snappy(512);
    let expected = lines(&chunks);
    let size = 4 + 2 + 3 + 512;
    for chunk in 1..8 {
        let mut bytes = chunks.clone();
        bytes[2 + chunk * size + 6] = 2;
        let found = lines(&bytes);
        assert!(found.len() + 110 > expected.len(), "chunk {chunk}: {} of {}", found.len(), expected.len());
        // Event numbers differ from there on; calls and values do not.
        let strip = |line: &String| line.split_once(' ').unwrap().1.to_owned();
        let known: std::collections::HashSet<_> = expected.iter().map(strip).collect();
        for line in &found {
            let line = strip(line);
            let is_leave_of_lost = line.starts_with("leave") && line.contains('?');
            assert!(known.contains(&line) || is_leave_of_lost, "chunk {chunk}: {line} was never there");
        }
        let repaired = assert_repairs(&Apitrace, &bytes, "lost chunk");
        let kept = examine(&Apitrace, &repaired).info.0;
        // The call before the gap may have lost its leave; no leave has lost its enter.
        assert!(kept.kinds[0].1 - kept.kinds[1].1 <= 1, "chunk {chunk}: repaired calls pair up");
    }
}

#[test]
fn zeros_after_damage_are_not_taken_for_events() {
    let mut b = long(20);
    b.enter(0, 0).argument(0, &[99]).add(&[0; 5000]);
    let exam = examine(&Apitrace, &b.snappy(1 << 20));
    assert_eq!(exam.info.0.records, 42);
    let mut cut = long(20);
    cut.enter(0, 0).argument(0, &blob(&[0; 3000]));
    cut.bytes.truncate(cut.bytes.len() - 500);
    assert_eq!(examine(&Apitrace, &cut.snappy(1 << 20)).info.0.records, 42);
}

#[test]
fn the_event_after_a_broken_one_is_kept() {
    let mut b = long(10);
    b.enter(0, 0).argument(0, &[0x42]).end().leave(11).end();
    b.calls(0, 12, 30);
    let exam = examine(&Apitrace, &b.bytes);
    assert_eq!(exam.error_codes(), ["apitrace/unknown-type"]);
    // Only the enter of call 11 is lost: its leave and all that follows is read.
    assert_eq!(exam.info.0.records, 22 + 1 + 60);
    assert_eq!(exam.errors()[0].resumed_at, Some(22));
    let repaired = assert_repairs(&Apitrace, &b.bytes, "one event");
    assert_eq!(examine(&Apitrace, &repaired).info.0.records, 22 + 60);
}

#[test]
fn a_definition_in_a_broken_event_is_carried_to_the_next_use() {
    let mut b = long(10);
    b.enter_new(0, 8, "glCarried", &["v"]).argument(0, &[0x42]).end().leave(11).end();
    for call in 12..20 {
        b.enter(0, 8).argument(0, &uint(call)).end().leave(call).end();
    }
    let repaired = assert_repairs(&Apitrace, &b.bytes, "carried");
    let text = lines(&repaired);
    assert_eq!(
        text.iter().filter(|line| line.contains("enter") && line.contains("glCarried(v = ")).count(),
        8,
        "{text:?}"
    );
}

#[test]
fn a_blob_larger_than_every_buffer_is_passed_through() {
    let mut b = long(3);
    b.enter_new(0, 9, "glBufferData", &["data"]).argument(0, &blob(&vec![0xa5; 9 << 20])).end().leave(4).end();
    b.calls(0, 5, 3);
    let limits = anytrace_core::Limits::default().with_record_bytes_max(2 << 20);
    let options = anytrace_core::OpenOptions { limits, ..Default::default() };
    let raw = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
    let entire = b.snappy(1 << 20);
    let (copy, outcome, sink) =
        anytrace_core::testing::rewrite_with(&Apitrace, &options, &entire, &Plan::Repair(raw.clone())).unwrap();
    assert!(copy == b.bytes && sink.0.is_empty() && outcome.records_written == 16);
    // Cut inside: the part that was written is ended, and the result is a trace.
    let cut = &b.bytes[..8 << 20];
    let (copy, outcome, _) =
        anytrace_core::testing::rewrite_with(&Apitrace, &options, cut, &Plan::Repair(raw)).unwrap();
    assert_eq!(examine(&Apitrace, &copy).errors().len(), 0);
    assert_eq!(examine(&Apitrace, &copy).info.0.records, 9);
    assert!(outcome.notes.iter().any(|note| note.contains("zero-filled")), "{:?}", outcome.notes);
}

#[test]
fn bytes_made_to_look_like_events_take_no_longer_than_their_length_allows() {
    let mut b = long(2);
    b.enter(0, 0).add(&[9]);
    for pattern in [&[0, 0, 0, 1, 0, 11, 0xff, 0x7f][..], &[0, 0, 0, 1, 0, 1], &[11, 1], &[0, 11, 1, 1]] {
        let mut bytes = b.bytes.clone();
        bytes.extend(pattern.repeat(400_000 / pattern.len()));
        // This tests that it ends: without a bound on the effort it takes minutes.
        assert_eq!(examine(&Apitrace, &bytes).info.0.records, 6);
    }
}

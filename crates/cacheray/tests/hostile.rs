//! Cuts, flips and mutations of every small sample: nothing panics or hangs, damage has a place, complete records
//! before a cut are kept, and repaired traces pass `check`.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use anytrace_cacheray::{Cacheray, Layout, Need, parse};
use anytrace_core::testing::{assert_repairs, bit_flips, examine, fuzz_parse, fuzz_roundtrip, mutations, truncations};
use anytrace_core::{Collect, Format, Input, OpenOptions};
use common::{Trace, corpus, traces};

/// Samples that stay below a size.
fn small(bytes_max: usize) -> Vec<(String, Vec<u8>)> {
    let all = traces(&corpus()).into_iter().map(|(name, path)| (name, std::fs::read(path).unwrap()));
    all.filter(|(_, bytes)| (1..=bytes_max).contains(&bytes.len())).collect()
}

/// Starts of the complete records of a good trace.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    while let Ok((_, used)) = parse(&bytes[*starts.last().unwrap()..], &Layout::default()) {
        starts.push(starts.last().unwrap() + used);
    }
    starts
}

#[test]
fn every_cut_keeps_all_complete_records_before_it() {
    for (name, bytes) in small(1500) {
        let is_good = examine(&Cacheray, &bytes).info.1.is_empty();
        let starts = starts(&bytes);
        truncations(&bytes, 1500, |cut, part| {
            if part.is_empty() {
                return;
            }
            let trace = Cacheray.open(Input::from_bytes("x", part.to_vec()), &OpenOptions::default()).unwrap();
            let mut sink = Collect::default();
            let info = trace.info(&mut sink).unwrap();
            assert!(sink.0.iter().all(|d| d.offset <= cut as u64), "{name} cut at {cut}");
            // One or two records, the last one cut, may read equally well with narrow pointers.
            let is_clear = cut >= if name.contains("access-size") { 200 } else { 60 };
            if is_good && is_clear && !name.contains("ptr32") {
                let complete = starts.iter().filter(|&&start| start <= cut).count() - 1;
                assert_eq!(info.records, complete as u64, "{name} cut at {cut}");
                assert_eq!(sink.errors(), usize::from(!starts.contains(&cut)), "{name} cut at {cut}");
            }
            let repaired = assert_repairs(&Cacheray, part, &format!("{name} cut at {cut}"));
            let kept = starts.iter().rev().find(|&&start| start <= cut).copied().unwrap_or(0);
            if is_good && is_clear {
                assert_eq!(repaired.len(), kept, "{name} cut at {cut}");
            }
        });
    }
}

#[test]
fn every_bit_flip_is_survived_and_repaired() {
    for (name, bytes) in small(1300) {
        bit_flips(&bytes, 1200, |bit, flipped| {
            let exam = examine(&Cacheray, flipped);
            let (info, damage) = &exam.info;
            assert_eq!(info.bytes, bytes.len() as u64, "{name} bit {bit}");
            let errors = damage.iter().filter(|d| d.severity == anytrace_core::Severity::Error);
            let ours: Vec<_> = errors.map(|d| (d.code(), d.offset)).collect();
            let checks: Vec<_> = exam.errors().iter().map(|d| (d.code(), d.offset)).collect();
            assert_eq!(ours, checks, "{name} bit {bit}: info and check disagree");
            assert_repairs(&Cacheray, flipped, &format!("{name} bit {bit}"));
        });
    }
}

#[test]
fn one_flipped_tag_costs_one_record_of_a_real_trace() {
    let bytes = common::sample("traces/packed.up14-O0");
    let undamaged = examine(&Cacheray, &bytes).info.0.records;
    for at in starts(&bytes).into_iter().skip(100).step_by(97).take(12) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        let exam = examine(&Cacheray, &flipped);
        assert_eq!(exam.error_codes(), ["cacheray/bad-tag"]);
        assert_eq!((exam.errors()[0].offset, exam.info.0.records), (at as u64, undamaged - 1));
    }
}

#[test]
fn mutations_neither_panic_nor_break_promises() {
    for (seed, (_, bytes)) in small(3000).into_iter().enumerate() {
        mutations(&bytes, seed as u64 * 2 + 99, 25, |mutated| {
            fuzz_parse(&Cacheray, mutated);
            fuzz_roundtrip(&Cacheray, mutated, &|a, b| a == b);
        });
    }
}

#[test]
fn rubbish_of_valid_tags_ends_in_time() {
    // Every byte is a tag, so every offset parses; none of it is plausible.
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| [0, 1, 0x40, 0xc1][(n % 4) as usize]).collect();
    examine(&Cacheray, &bytes);
    // Adds whose names extend past the end, again and again, each followed by a plausible record.
    let mut trace = Trace::new();
    for _ in 0..400 {
        trace = trace.ordinary(17).add_raw(2, common::HEAP, 0, (8, 1), 10 << 20, b"");
    }
    let exam = examine(&Cacheray, &trace.bytes);
    assert_eq!(exam.errors().len(), 400);
    assert_eq!(exam.info.0.records, 400 * 17);
}

#[test]
fn the_parser_asks_for_bytes_until_it_has_them() {
    let trace = Trace::new().add(common::HEAP, 8, 1, b"struct.T");
    for have in 0..trace.bytes.len() {
        let Err(Need::More(need)) = parse(&trace.bytes[..have], &Layout::default()) else { panic!("at {have}") };
        assert!(need as usize > have && need as usize <= trace.bytes.len());
    }
}

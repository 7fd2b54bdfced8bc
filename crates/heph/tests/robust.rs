//! Damage of every kind at every place: no panic, diagnostics with places, intact packets kept.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::{
    assert_repairs, assert_windows_agree, bit_flips, dripping, examine, fuzz_parse, fuzz_roundtrip, mutations, rewrite,
    truncations,
};
use anytrace_core::{Collect, Format, Input, OpenOptions, Plan, TargetOptions};
use anytrace_heph::{Heph, Layout, parse};
use common::Bytes;

/// Ends of the packets from the start on, up to the first that does not decode.
fn packet_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    while let Ok((_, used)) = parse(&bytes[ends[ends.len() - 1]..], &Layout::default()) {
        ends.push(ends[ends.len() - 1] + used);
    }
    ends
}

#[test]
fn a_cut_anywhere_keeps_every_packet_before_it_and_is_one_located_error() {
    for (name, bytes) in common::samples() {
        let ends = packet_ends(&bytes);
        let sound = *ends.last().unwrap();
        truncations(&bytes[..sound], 600, |cut, part| {
            let exam = examine(&Heph, part);
            let kept = ends.iter().rposition(|end| *end <= cut).unwrap();
            assert_eq!(exam.info.0.records, kept as u64, "{name} cut at {cut}");
            let errors = exam.errors();
            if ends.contains(&cut) {
                assert!(errors.is_empty(), "{name} cut at {cut}: {errors:?}");
            } else {
                assert_eq!(errors.len(), 1, "{name} cut at {cut}: {errors:?}");
                assert_eq!(
                    (errors[0].code(), errors[0].offset),
                    ("heph/truncated", ends[kept] as u64),
                    "{name} at {cut}"
                );
            }
            assert_eq!(assert_repairs(&Heph, part, &name), bytes[..ends[kept]], "{name} cut at {cut}");
        });
    }
}

#[test]
fn a_flipped_bit_costs_the_packet_it_is_in_and_no_other() {
    for (name, bytes) in common::samples() {
        if !name.starts_with("valid") && !name.starts_with("real/relay") && !name.starts_with("seed") {
            continue;
        }
        let ends = packet_ends(&bytes);
        bit_flips(&bytes, 2500, |bit, flipped| {
            let exam = examine(&Heph, flipped);
            let start = ends.iter().rev().find(|end| **end <= bit / 8).unwrap();
            // A size that leads to the start of another packet by chance is trusted, and the packets in between are
            // skipped.
            let is_in_size = (4..8).contains(&(bit / 8 - start));
            let lost = ends.len() as u64 - 1 - exam.info.0.records.min(ends.len() as u64 - 1);
            assert!(lost <= 1 || is_in_size, "{name}: bit {bit}: {lost} lost");
            assert!(exam.errors().len() <= 2, "{name}: bit {bit}: {:?}", exam.error_codes());
            assert_repairs(&Heph, flipped, &name);
        });
    }
}

#[test]
fn flipped_bits_of_broken_files_do_no_harm() {
    for (name, bytes) in common::samples() {
        if name.starts_with("broken") {
            bit_flips(&bytes, 300, |_, flipped| fuzz_parse(&Heph, flipped));
        }
    }
}

#[test]
fn mutated_samples_do_no_harm_and_intact_packets_are_recovered() {
    for (seed, (name, bytes)) in (1..).zip(common::samples()) {
        let rounds = if bytes.len() < 1000 { 150 } else { 20 };
        mutations(&bytes, seed, rounds, |mutated| {
            fuzz_parse(&Heph, mutated);
            fuzz_roundtrip(&Heph, mutated, &|a, b| a == b);
        });
        eprintln!("{name}");
    }
}

#[test]
fn mutated_samples_read_the_same_through_any_window() {
    for (seed, (_, bytes)) in (1..).zip(common::samples()) {
        if bytes.len() < 400 {
            mutations(&bytes, seed * 77, 6, |mutated| assert_windows_agree(&Heph, mutated));
        }
    }
}

#[test]
fn info_and_check_agree_on_damage() {
    for (seed, (name, bytes)) in (1..).zip(common::samples()) {
        if bytes.len() < 2000 {
            mutations(&bytes, seed * 31, 60, |mutated| {
                let exam = examine(&Heph, mutated);
                let of = |all: &[anytrace_core::Diagnostic]| -> Vec<_> {
                    let errors = all.iter().filter(|d| d.severity == anytrace_core::Severity::Error);
                    errors.map(|d| (d.code(), d.offset, d.skipped_bytes)).collect()
                };
                assert_eq!(of(&exam.info.1), of(&exam.check), "{name}");
            });
        }
    }
}

#[test]
fn skipped_bytes_and_packets_add_up_to_the_file() {
    for (seed, (name, bytes)) in (1..).zip(common::samples()) {
        mutations(&bytes, seed * 13, 20, |mutated| {
            let exam = examine(&Heph, mutated);
            let skipped: u64 = exam.check.iter().map(|d| d.skipped_bytes).sum();
            let (kept, outcome, _) = rewrite(&Heph, mutated, &Plan::Convert(TargetOptions::default())).unwrap();
            assert_eq!(kept.len() as u64 + skipped, mutated.len() as u64, "{name}");
            assert_eq!(outcome.bytes_lost, skipped, "{name}");
        });
    }
}

#[test]
fn a_size_of_4_gib_in_a_pipe_asks_for_no_such_memory_and_swallows_nothing() {
    let mut made = Bytes::new().epoch().event(1, 0, 0, 0, 1, "torn").sized(u32::MAX);
    for counter in 1..400_000 {
        made = made.poll(1, counter);
    }
    let input = dripping("pipe", &made.bytes, 65_536);
    let mut sink = Collect::default();
    let info = Heph.open(input, &OpenOptions::default()).unwrap().info(&mut sink).unwrap();
    assert_eq!(info.records, 400_000);
    assert_eq!(sink.codes(), ["heph/size-too-big"]);
}

/// At every eight bytes, a magic whose packet nearly fills the file and is invalid at its very end.
#[test]
fn nested_false_packets_cost_no_quadratic_time() {
    let mut made = Bytes::new();
    let total: u32 = 3_000_000;
    while made.bytes.len() + 200 < total as usize {
        let left = total - made.bytes.len() as u32;
        made = made.raw(&0xC1FC1FB7_u32.to_be_bytes()).u32(left);
        // A body whose description is empty and whose attributes are arrays that contain the next packets.
        made = made.raw(&[0; 32]).u16(0).u16(0).u8(0x81).u16(((left - 60) / 8).min(2000) as u16);
    }
    let input = Input::from_bytes("x", made.bytes);
    let mut sink = Collect::default();
    let started = std::time::Instant::now();
    Heph.open(input, &OpenOptions::default()).unwrap().check(&mut sink).unwrap();
    assert!(sink.errors() > 0);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn noise_is_one_error_however_long() {
    let mut noise = Vec::new();
    let mut state = 7_u64;
    while noise.len() < 3 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.extend_from_slice(&state.to_be_bytes());
    }
    let exam = examine(&Heph, &noise);
    assert_eq!(exam.error_codes(), ["heph/bad-magic"]);
    assert_eq!(exam.check[0].skipped_bytes, noise.len() as u64);
}

#[test]
fn a_packet_as_large_as_the_limit_goes_through_every_verb() {
    let mut made = Bytes::new().epoch().event(1, 0, 0, 0, 1, "large");
    for n in 0..31_u64 {
        made = made.attribute("a", 0x83).u16(u16::MAX);
        for value in 0..65_535_u64 {
            made.bytes.extend_from_slice(&(value * n).to_be_bytes());
        }
    }
    let bytes = made.end().poll(1, 1).bytes;
    assert!(bytes.len() > 15 << 20 && bytes.len() < 16 << 20);
    let mut sink = Collect::default();
    let open = || Heph.open(Input::from_bytes("x", bytes.clone()), &OpenOptions::default()).unwrap();
    assert_eq!(open().check(&mut sink).unwrap().records, 3);
    assert!(sink.0.is_empty(), "{:?}", sink.0);
    assert!(rewrite(&Heph, &bytes, &Plan::Repair(TargetOptions::default())).unwrap().0 == bytes);
}

/// Stores the size of the largest piece that was written at once.
#[derive(Default)]
struct Largest(usize, u64);

impl std::io::Write for Largest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.max(bytes.len());
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_of_a_trace_full_of_gaps_are_buffered_within_bounds() {
    for step in [2, 40] {
        let made = (0..200_000).fold(Bytes::new().epoch(), |made, n| made.poll(n % 3, n / 3 + n / step));
        let options = anytrace_core::DumpOptions { form: anytrace_core::DumpForm::Jsonl, ..Default::default() };
        let mut out = Largest::default();
        let trace = Heph.open(Input::from_bytes("x", made.bytes), &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        assert!(out.0 < 4 << 20 && out.1 > 25 << 20, "{} of {}", out.0, out.1);
    }
}

/// Small good packets between frames whose sizes cover nearly all of the rest, or more than the limit: in memory and
/// through a pipe, where each refill moves the window.
#[test]
fn false_sizes_between_good_packets_cost_no_quadratic_time() {
    let total = 6_000_000_u32;
    for size in [|left: u32| left - 9, |_: u32| 12 << 20, |_: u32| 1 << 30] {
        let mut made = Bytes::new();
        while made.bytes.len() < total as usize {
            let left = total + 1000 - made.bytes.len() as u32;
            made = made.event(1, 0, 0, 0, 0, "").sized(size(left)).poll(2, 0);
        }
        let goods = made.bytes.len() as u64 / 100;
        let started = std::time::Instant::now();
        for input in [Input::from_bytes("x", made.bytes.clone()), dripping("pipe", &made.bytes, 65_536)] {
            let info = Heph.open(input, &OpenOptions::default()).unwrap().info(&mut Collect::default()).unwrap();
            assert!(info.records >= goods / 2, "{} of {goods}", info.records);
        }
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        eprintln!("{:?}", started.elapsed());
    }
}

//! The engine against a list that is searched.

use std::collections::BTreeMap;

use anytrace_core::access::{AccessFlags, AccessKind};
use proptest::prelude::*;

use super::*;

fn access(seq: u64, thread: u32, address: u64, bytes: u16) -> Access {
    Access { address, seq, thread, bytes, kind: AccessKind::Read, flags: AccessFlags::NONE }
}

/// Distances by searching a list, first touches, and touches.
#[derive(Default)]
struct Slow {
    list: Vec<u64>,
    distances: BTreeMap<u64, u64>,
    cold: u64,
    touches: u64,
}

impl Slow {
    fn take(&mut self, access: &Access, line_bytes: u64) {
        for at in 0..u64::from(access.bytes) {
            let address = access.address.wrapping_add(at);
            if at > 0 && !address.is_multiple_of(line_bytes) {
                continue;
            }
            let line = address / line_bytes;
            self.touches += 1;
            match self.list.iter().rev().position(|other| *other == line) {
                Some(distance) => *self.distances.entry(distance as u64).or_default() += 1,
                None => self.cold += 1,
            }
            self.list.retain(|other| *other != line);
            self.list.push(line);
        }
    }

    fn curve(&self) -> Curve {
        Curve::new(self.touches, self.cold, self.distances.iter().map(|(d, n)| (*d, *n)).collect())
    }
}

fn run(accesses: &[Access], batch: usize, options: ReuseOptions) -> ReuseResults {
    let mut reuse = Reuse::new(options);
    for thread in 0..=accesses.iter().map(|access| access.thread).max().unwrap_or(0) {
        reuse.thread(thread, Some(u64::from(thread) + 10)).unwrap();
    }
    for batch in accesses.chunks(batch) {
        reuse.accesses(batch).unwrap();
    }
    reuse.finish(accesses.len() as u64)
}

fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let address = prop_oneof![
        4 => 0_u64..2000,
        2 => (0_u64..200).prop_map(|n| n << 12),
        1 => (0_u64..300).prop_map(|n| u64::MAX - n),
    ];
    let bytes = prop_oneof![6 => 0_u16..17, 1 => 0_u16..400];
    prop::collection::vec((0_u32..3, address, bytes), 0..400).prop_map(|all| {
        all.into_iter().zip(0..).map(|((thread, address, bytes), seq)| access(seq, thread, address, bytes)).collect()
    })
}

/// Curves of groups of distances, from exact ones.
fn grouped(curve: &Curve) -> Vec<u64> {
    curve.sizes().into_iter().map(|lines| curve.misses(lines)).collect()
}

proptest! {
    #[test]
    fn distances_are_those_a_list_gives(all in accesses(), shift in 1_u32..10, batch in 1_usize..50) {
        let line_bytes = 1 << shift;
        let mut slow = Slow::default();
        all.iter().for_each(|access| slow.take(access, line_bytes));
        let found = run(&all, batch, ReuseOptions { line_bytes, has_windows: true, ..ReuseOptions::default() });
        prop_assert_eq!(&found.curve, &slow.curve());
        prop_assert_eq!(found.zero_size, all.iter().filter(|access| access.bytes == 0).count() as u64);
        let windows = found.working_set.unwrap().windows;
        prop_assert_eq!(windows.iter().map(|window| window.new_lines).sum::<u64>(), slow.cold);
        // A sample of all lines is exact too.
        let sample = Some(Sample::Lines(1 << 20));
        let sampled = run(&all, batch, ReuseOptions { line_bytes, sample, ..ReuseOptions::default() });
        prop_assert_eq!(sampled.sampled, None);
        prop_assert_eq!(grouped(&sampled.curve), grouped(&slow.curve()));
    }

    #[test]
    fn parts_of_a_shared_cache_add_up_and_private_caches_are_each_alone(all in accesses(), batch in 1_usize..50) {
        let mut slow = Slow::default();
        all.iter().for_each(|access| slow.take(access, 64));
        for sample in [None, Some(Sample::Rate(0.5))] {
            let found = run(&all, batch, ReuseOptions { parts: Parts::Thread, sample, ..ReuseOptions::default() });
            for lines in found.curve.sizes() {
                let sum: u64 = found.parts.iter().map(|part| part.curve.misses(lines)).sum();
                prop_assert_eq!(sum, slow.curve().misses(lines));
            }
            let options = ReuseOptions { parts: Parts::PrivateThread, sample, ..ReuseOptions::default() };
            let found = run(&all, batch, options);
            for part in &found.parts {
                let mut slow = Slow::default();
                let is_own = |access: &&Access| format!("thread {}", access.thread + 10) == part.name;
                all.iter().filter(is_own).for_each(|access| slow.take(access, 64));
                prop_assert_eq!(grouped(&part.curve), grouped(&slow.curve()));
            }
        }
    }
}

#[test]
fn accesses_belong_to_the_type_that_lives_at_their_first_byte() {
    let mut reuse = Reuse::new(ReuseOptions { parts: Parts::Type, ..ReuseOptions::default() });
    reuse.type_name(0, Some(b"struct.A")).unwrap();
    reuse.type_name(1, None).unwrap();
    let region =
        |address, type_number| RegionAdded { seq: 0, address, element_bytes: 100, elements: 1, type_number, thread: 0 };
    reuse.region_added(&region(0x1000, 0)).unwrap();
    reuse.region_added(&region(0x2000, 1)).unwrap();
    reuse.accesses(&[access(1, 0, 0x1000, 8), access(2, 0, 0x2000, 8), access(3, 0, 0x1008, 8)]).unwrap();
    reuse.region_removed(&RegionRemoved { seq: 4, address: 0x1000, thread: 0 }).unwrap();
    reuse.accesses(&[access(5, 0, 0x1000, 8), access(6, 0, 0x1000, 8)]).unwrap();
    let found = reuse.finish(7);
    let parts: Vec<_> =
        found.parts.iter().map(|p| (p.name.as_str(), p.curve.line_accesses, p.curve.misses(1))).collect();
    assert_eq!(parts, [("(untyped)", 2, 0), ("struct.A", 2, 2), ("(other types)", 1, 1)]);
    assert_eq!((found.curve.line_accesses, found.curve.misses(1)), (5, 3));
}

/// Programs of several kinds: loops, hops over a heap, phases, hot and cold.
fn program(kind: u64, records: u64) -> Vec<Access> {
    let mut state = kind.wrapping_mul(0x9e37_79b9) | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    (0..records)
        .map(|seq| {
            let line = match kind {
                0 => seq / 8 % 20_000,
                1 => random(50_000),
                2 => (seq / (records / 4)) * 1_000_000 + random(5000),
                3 => {
                    let below = random(60_000) + 1;
                    let below = random(below) + 1;
                    random(below)
                }
                4 if random(3) > 0 => random(30),
                4 => 1000 + random(100_000),
                5 => seq / 4 % 700 + 700 * (seq / 400_000),
                _ => random(3) * 8 + seq / 64 * 3,
            };
            access(seq, 0, line * 64 + random(8) * 8, 8)
        })
        .collect()
}

/// How far a curve is from the exact one in caches of this many lines.
fn errors(exact: &Curve, found: &Curve, sizes: &[u64]) -> Vec<f64> {
    sizes.iter().map(|lines| (exact.ratio(*lines) - found.ratio(*lines)).abs()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn a_hundredth_of_the_lines_yields_the_curve_to_two_hundredths() {
    for kind in 0..7 {
        let all = program(kind, 3_000_000);
        let exact = run(&all, 1024, ReuseOptions::default()).curve;
        for sample in [Sample::Rate(0.01), Sample::Lines(1024), Sample::Rate(0.1)] {
            let found = run(&all, 1024, ReuseOptions { sample: Some(sample), ..ReuseOptions::default() });
            let by_power = mean(&errors(&exact, &found.curve, &exact.sizes()));
            let most = exact.lines_that_suffice();
            let each: Vec<u64> = (1..=500).map(|n| most * n / 500).collect();
            let by_line = mean(&errors(&exact, &found.curve, &each));
            assert!(by_power < 0.02 && by_line < 0.02, "program {kind}, {sample:?}: {by_power} {by_line}");
            assert_eq!(found.curve.line_accesses, exact.line_accesses);
            assert_eq!(found.curve.misses(0), exact.misses(0));
        }
    }
}

/// Two phases that follow each other: some hundred lines, then many. Of each period the share is of the first.
fn phases(records: u64, period: u64, share: f64) -> Vec<Access> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % below
    };
    (0..records)
        .map(|seq| {
            let is_first = ((seq % period) as f64) < period as f64 * share;
            access(seq, 0, if is_first { random(400) } else { 1 << 20 | random(20_000) } * 64, 8)
        })
        .collect()
}

#[test]
fn programs_with_phases_of_any_length_are_estimated_as_well() {
    let programs = [(131_072, 0.1), (65_536, 0.5), (16_384, 0.5), (99_991, 0.5), (400_000, 0.25), (1_500_000, 0.4)];
    for (period, share) in programs {
        let all = phases(3_000_000, period, share);
        let exact = run(&all, 1024, ReuseOptions::default()).curve;
        for sample in [Sample::Rate(0.01), Sample::Lines(1024), Sample::Rate(0.1)] {
            let found = run(&all, 1024, ReuseOptions { sample: Some(sample), ..ReuseOptions::default() });
            let mean = mean(&errors(&exact, &found.curve, &exact.sizes()));
            assert!(mean < 0.02, "period {period}, share {share}, {sample:?}: {mean}");
        }
    }
}

#[test]
fn short_traces_are_estimated_better() {
    // Of these only some ten bursts would show the first phase.
    for (records, period, share) in [(630_000, 40_000, 0.3), (400_000, 130_000, 0.5), (900_000, 300_000, 0.9)] {
        let all = phases(records, period, share);
        let exact = run(&all, 1024, ReuseOptions::default()).curve;
        let options = ReuseOptions { sample: Some(Sample::Rate(0.01)), ..ReuseOptions::default() };
        let found = run(&all, 1024, options).curve;
        let most = errors(&exact, &found, &exact.sizes()).into_iter().fold(0.0, f64::max);
        assert!(most < 0.01, "{records} records, period {period}, share {share}: {most}");
    }
}

#[test]
fn accesses_that_a_format_leaves_out_change_nothing() {
    let all = program(3, 3_000_000);
    let options = ReuseOptions { sample: Some(Sample::Rate(0.01)), has_windows: true, ..ReuseOptions::default() };
    let expected = run(&all, 1024, options.clone());
    let mut reuse = Reuse::new(options);
    let (mut seq, mut sieved_out) = (0, 0);
    for run in all.chunks(777) {
        let sieve = reuse.sieve(seq);
        let passes = |access: &&Access| sieve.is_none_or(|sieve| sieve.passes(access.address, access.bytes));
        let batch: Vec<_> = run.iter().filter(passes).copied().collect();
        reuse.sieved_out((run.len() - batch.len()) as u64, 0).unwrap();
        reuse.accesses(&batch).unwrap();
        seq += run.len() as u64;
        sieved_out += run.len() - batch.len();
    }
    assert!(sieved_out > all.len() / 2);
    assert_eq!(reuse.finish(seq), expected);
}

#[test]
fn a_sample_has_the_lines_asked_for_and_says_so() {
    let all = program(1, 300_000);
    let sample = Some(Sample::Lines(500));
    let found = run(&all, 1000, ReuseOptions { sample, ..ReuseOptions::default() });
    let sampled = found.sampled.unwrap();
    assert_eq!(sampled.lines, 500);
    assert!((sampled.rate - 500.0 / 50_000.0).abs() < 0.002);
    assert!((found.curve.cold as f64 / 50_000.0 - 1.0).abs() < 0.1, "{}", found.curve.cold);
}

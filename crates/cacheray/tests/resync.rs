//! Damage in traces of many kinds of records: it is located, costs the damaged record, and invents none.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use anytrace_cacheray::Cacheray;
use anytrace_core::testing::{assert_windows_agree, examine, rewrite};
use anytrace_core::{Plan, TargetOptions};
use common::{LAYOUTS, Trace, heap, sample};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Three hundred records of three threads on a page, with regions that are added and removed.
fn program(seed: u64, (is_big, pointer): (bool, usize)) -> Trace {
    let mut dice = Dice(seed);
    let mut trace = Trace::of(is_big, pointer);
    let mut live = Vec::new();
    let names: [&[u8]; 3] = [b"struct.Foo", b"double", b"class.ns::Bar<int, char>"];
    for _ in 0..300 {
        let thread = dice.below(3);
        let region = heap(pointer) + dice.below(64) * 64;
        trace = match dice.below(16) {
            0 | 1 => {
                live.push(region);
                let name = names[dice.below(3) as usize];
                trace.add_raw(2, region, thread, (24, 1), u32::try_from(name.len()).unwrap(), name)
            }
            2 if !live.is_empty() => {
                let at = dice.below(live.len() as u64) as usize;
                trace.remove_raw(3, live.swap_remove(at), thread)
            }
            _ => {
                let size = 1 << dice.below(5);
                let tag = [0, 1, 0x40, 0x41, 0x80, 0x81][dice.below(6) as usize];
                trace.access(tag, heap(pointer) + dice.below(4096 / size) * size, size as u8, thread)
            }
        };
    }
    trace
}

fn repaired(bytes: &[u8]) -> Vec<u8> {
    rewrite(&Cacheray, bytes, &Plan::Repair(TargetOptions::default())).unwrap().0
}

/// Calls `test` with traces of every layout, the number of a record in the middle, and random numbers.
fn each_program(seeds: u64, mut test: impl FnMut(&Trace, usize, &mut Dice, &str)) {
    for seed in 0..seeds {
        for layout in LAYOUTS {
            let trace = program(seed, layout);
            let mut dice = Dice(seed + 1000);
            for _ in 0..3 {
                let record = 40 + dice.below(210) as usize;
                test(&trace, record, &mut dice, &format!("seed {seed}, {layout:?}, record {record}"));
            }
        }
    }
}

/// The trace without one record.
fn without(trace: &Trace, record: usize) -> Vec<u8> {
    [&trace.bytes[..trace.starts[record]], &trace.bytes[trace.starts[record + 1]..]].concat()
}

#[test]
fn a_damaged_tag_costs_its_record_and_no_other() {
    each_program(12, |trace, record, _, what| {
        let mut bytes = trace.bytes.clone();
        bytes[trace.starts[record]] = 0x3f;
        assert!(repaired(&bytes) == without(trace, record), "{what}");
    });
}

#[test]
fn rubbish_between_records_costs_no_record() {
    each_program(12, |trace, record, dice, what| {
        let rubbish: Vec<u8> = (0..3 + dice.below(37)).map(|_| 4 + dice.below(56) as u8).collect();
        let at = trace.starts[record];
        let bytes = [&trace.bytes[..at], &rubbish, &trace.bytes[at..]].concat();
        assert!(repaired(&bytes) == trace.bytes, "{what}, {} bytes", rubbish.len());
    });
}

#[test]
fn bytes_lost_inside_a_record_are_found_where_they_are_missing() {
    let mut exact = 0;
    each_program(12, |trace, record, dice, what| {
        let (at, next) = (trace.starts[record], trace.starts[record + 1]);
        let lost = 1 + dice.below((next - at) as u64 - 1) as usize;
        let bytes = [&trace.bytes[..at], &trace.bytes[at + lost..]].concat();
        let result = repaired(&bytes);
        // The rest of the record may read as another that ends well; later records are never lost.
        let head = &trace.bytes[..at];
        let kept = result.starts_with(head) && result.len().abs_diff(trace.bytes.len()) < 160;
        assert!(kept, "{what}, {lost} bytes lost: {} of {} left", result.len(), trace.bytes.len());
        exact += usize::from(result == without(trace, record));
    });
    assert!(exact > 100, "{exact} of 144");
}

#[test]
fn samples_resume_at_the_record_after_the_damage() {
    let junk = examine(&Cacheray, &sample("broken/junk-before-remove"));
    assert_eq!(junk.errors().iter().map(|d| d.skipped_bytes).collect::<Vec<_>>(), [32]);
    let tag = examine(&Cacheray, &sample("broken/badtag-ptr32-le"));
    assert_eq!(tag.errors().iter().map(|d| d.offset).collect::<Vec<_>>(), [0xbda]);
    let lost = examine(&Cacheray, &sample("broken/bytes-lost-in-record"));
    assert_eq!(lost.errors().iter().map(|d| d.offset).collect::<Vec<_>>(), [0x760]);
    for exam in [&junk, &tag, &lost] {
        let codes: Vec<_> = exam.check.iter().map(|d| d.code()).collect();
        assert!(!codes.contains(&"cacheray/odd-size") && !codes.contains(&"cacheray/address-not-canonical"));
    }
    for name in ["junk-before-remove", "badtag-ptr32-le", "bytes-lost-in-record"] {
        assert_windows_agree(&Cacheray, &sample(&format!("broken/{name}")));
    }
}

#[test]
fn odd_records_before_a_damaged_tag_are_kept() {
    for layout in LAYOUTS {
        let base = heap(layout.1);
        for odd in 1..40 {
            let mut trace = Trace::of(layout.0, layout.1).add(base, 4, 1, b"int").ordinary(60);
            for n in 0..odd {
                trace = trace.access(0, base + 0x101 + n, [3, 5, 7, 0, 255][n as usize % 5], 1 << (33 + n % 7));
            }
            let (at, records) = (trace.bytes.len() as u64, trace.starts.len() as u64);
            let exam = examine(&Cacheray, &trace.rubbish(&[0x3f; 5]).ordinary(40).bytes);
            let [error] = exam.errors()[..] else { panic!("{:?}", exam.errors()) };
            assert_eq!((error.offset, error.skipped_bytes), (at, 5), "{layout:?} {odd}");
            assert_eq!(exam.info.0.records, records + 40);
        }
    }
}

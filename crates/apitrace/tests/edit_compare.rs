//! Comparisons of edited traces: what was changed is what differs, in every form of the comparison, and repacking
//! changes nothing that a comparison sees.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod random;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::diff::{DiffForm, DiffOptions, DiffTotals, Source, diff};
use anytrace_apitrace::tools::trim::{TrimOptions, trim};
use anytrace_apitrace::{Apitrace, Container, Reader};
use anytrace_core::testing::rewrite;
use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions, Plan, Settings, TargetOptions};
use build::{Build, rich, snappy, uint};
use random::{Random, random_stream};

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn compared(a: &[u8], b: &[u8], form: DiffForm) -> (DiffTotals, String) {
    let open = |bytes: &[u8]| Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default());
    let (open_a, open_b) = (|| open(a), || open(b));
    let (mut damage_a, mut damage_b) = (Collect::default(), Collect::default());
    let mut out = Vec::new();
    let options = DiffOptions { form, ..DiffOptions::default() };
    let (first, second) = (Source::new(&open_a, &mut damage_a), Source::new(&open_b, &mut damage_b));
    let totals = diff(first, second, &options, &mut out).unwrap();
    (totals, String::from_utf8_lossy(&out).into_owned())
}

/// Calls of four functions, each with one number.
fn calls(list: &[(u64, u64)]) -> Vec<u8> {
    let mut b = Build::version(6);
    let mut known = [false; 4];
    for (call, (function, number)) in (0..).zip(list) {
        if std::mem::replace(&mut known[*function as usize], true) {
            b.enter(0, *function);
        } else {
            b.enter_new(0, *function, ["glA", "glB", "glC", "glD"][*function as usize], &["n"]);
        }
        b.argument(0, &uint(*number)).end().leave(call).end();
    }
    b.bytes
}

fn list(random: &mut Random, length: u64) -> Vec<(u64, u64)> {
    // Numbers that are all different: each call has one counterpart.
    (0..length).map(|n| (random.below(4), n * 1000)).collect()
}

#[test]
fn a_trace_does_not_differ_from_itself_in_any_container() {
    for seed in 1..15 {
        let bytes = random_stream(&mut Random(seed * 31), [3, 4, 5, 6][seed as usize % 4], 50);
        for form in [DiffForm::Text, DiffForm::Json] {
            for other in [bytes.clone(), snappy(&bytes, 999)] {
                let (totals, _) = compared(&bytes, &other, form);
                assert!(totals.is_equal() && totals.same == 50, "seed {seed}: {totals:?}");
            }
        }
    }
}

#[test]
fn calls_that_were_left_out_are_those_that_are_missing() {
    for seed in 1..25 {
        let random = &mut Random(seed * 13);
        let all = list(random, 120);
        let mut gone = Vec::new();
        let mut rest = Vec::new();
        let mut at = 0;
        while at < all.len() {
            let kept = (at + 8 + random.below(20) as usize).min(all.len());
            rest.extend_from_slice(&all[at..kept]);
            at = (kept + random.below(5) as usize).min(all.len());
            gone.extend_from_slice(&all[kept..at]);
        }
        for form in [DiffForm::Text, DiffForm::Json] {
            let (there, text) = compared(&calls(&all), &calls(&rest), form);
            assert_eq!((there.same, there.removed), (rest.len() as u64, gone.len() as u64), "seed {seed}");
            assert_eq!((there.added, there.changed), (0, 0));
            for (_, number) in &gone {
                assert!(text.contains(&number.to_string()), "{number} is missing in the text");
            }
            let (back, _) = compared(&calls(&rest), &calls(&all), form);
            assert_eq!((back.same, back.added, back.removed), (there.same, there.removed, 0));
        }
    }
}

#[test]
fn calls_with_other_values_are_changes() {
    for seed in 1..25 {
        let random = &mut Random(seed * 17);
        let all = list(random, 100);
        let mut other = all.clone();
        let mut changed = 0;
        for at in (10..90).step_by(10 + random.below(7) as usize) {
            other[at].1 += 1;
            changed += 1;
        }
        let (totals, _) = compared(&calls(&all), &calls(&other), DiffForm::Json);
        assert_eq!((totals.changed, totals.removed, totals.added), (changed, 0, 0), "seed {seed}");
        assert_eq!(totals.same, 100 - changed);
    }
}

#[test]
fn totals_add_up_to_both_traces_whatever_they_are() {
    for seed in 1..40 {
        let random = &mut Random(seed * 19);
        let a: Vec<(u64, u64)> = (0..random.below(60)).map(|_| (random.below(4), random.below(3))).collect();
        let b: Vec<(u64, u64)> = (0..random.below(60)).map(|_| (random.below(4), random.below(3))).collect();
        let (totals, text) = compared(&calls(&a), &calls(&b), DiffForm::Json);
        assert_eq!(totals.same + totals.removed + totals.changed, a.len() as u64, "seed {seed}");
        assert_eq!(totals.same + totals.added + totals.changed, b.len() as u64, "seed {seed}");
        assert_eq!(totals.is_equal(), a == b, "seed {seed}");
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
}

fn converted(bytes: &[u8], container: &str) -> Vec<u8> {
    let target = TargetOptions { own: Settings::default().with("container", container), ..TargetOptions::default() };
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap().0
}

#[test]
fn every_container_holds_the_same_bytes() {
    for bytes in [rich().bytes, random_stream(&mut Random(5), 6, 300), random_stream(&mut Random(6), 4, 300)] {
        for container in ["snappy", "zstd", "zstd-seekable", "gzip"] {
            let packed = converted(&bytes, container);
            assert_ne!(packed, bytes, "{container}");
            assert_eq!(converted(&packed, "raw"), bytes, "{container}");
            assert!(compared(&packed, &bytes, DiffForm::Json).0.is_equal());
        }
    }
}

#[test]
fn a_part_differs_by_the_calls_that_were_left_out() {
    for seed in 1..10 {
        let bytes = calls(&list(&mut Random(seed * 23), 90));
        let set = CallSet::parse(["0-29,60-"], &mut |_| Err(std::io::Error::other("no files"))).unwrap();
        let options = TrimOptions { calls: Some(set), container: Some(Container::Raw), ..TrimOptions::default() };
        let mut out = MemoryTarget::default();
        trim(reader(&bytes), &options, &mut out, &mut Collect::default()).unwrap();
        let (totals, _) = compared(&bytes, &out.0, DiffForm::Text);
        assert_eq!((totals.same, totals.removed, totals.added, totals.changed), (60, 30, 0, 0), "seed {seed}");
    }
}

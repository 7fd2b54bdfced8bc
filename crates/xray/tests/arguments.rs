//! Arguments belong to the function record before them, and to no other if that one was lost.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{assert_repairs, examine, rewrite};
use anytrace_core::{Plan, Selection, TargetOptions};
use anytrace_xray::Xray;

mod common;
use common::made::Made;
use common::slow::meanings;

/// Two functions with arguments; record `lost` of the body is damaged.
fn damaged(version: u16, big: bool, lost: &'static str) -> Made {
    let made = Made { garbage: 0xaa, ..Made::header_in(big, version, 1, common::made::BUFFER_SIZE as u64) };
    let process = (version > 2).then_some(9);
    let mut labels = std::collections::BTreeMap::new();
    let mut made = made.buffer(7, process, 1, 100, |made| {
        let made = made.label("first").function(3, 10, 5).label("first argument").value(1).value(2);
        let made = made.label("second").function(3, 15, 5).label("second argument").value(3).label("last").value(4);
        made.function(1, 15, 5).function(1, 10, 5)
    });
    labels.append(&mut made.labels);
    // The builder may measure a body before it writes it: the labels of the last call count.
    let at = labels[lost];
    made.bytes[at] = match (lost, big) {
        ("first" | "second", true) => 0x70,
        ("first" | "second", false) => 0x0e,
        _ => 0xff,
    };
    Made { labels, ..made }
}

fn each(mut visit: impl FnMut(u16, bool)) {
    for version in 1..=5 {
        visit(version, false);
        visit(version, true);
    }
}

#[test]
fn arguments_of_a_lost_function_are_left_out_and_named() {
    each(|version, big| {
        let what = format!("version {version} big {big}");
        let made = damaged(version, big, "second");
        let exam = examine(&Xray, &made.bytes);
        let orphans: Vec<u64> =
            exam.check.iter().filter(|d| d.rule.code == "xray/argument-without-function").map(|d| d.offset).collect();
        let at = made.labels["second argument"] as u64;
        assert_eq!(orphans, [at, at + 16], "{what}");
        let (_, outcome, _) = rewrite(&Xray, &made.bytes, &Plan::Repair(TargetOptions::default())).unwrap();
        assert!(outcome.notes.iter().any(|note| note.starts_with("2 arguments")), "{what}: {:?}", outcome.notes);
        let repaired = assert_repairs(&Xray, &made.bytes, &what);
        let kept: Vec<_> = meanings(&repaired).into_iter().map(|what| (what.id, what.arguments)).collect();
        assert_eq!(kept, [(10, vec![1, 2]), (15, vec![]), (10, vec![])], "{what}");
    });
}

#[test]
fn no_argument_is_carried_over_damage_by_any_form() {
    each(|version, big| {
        let what = format!("version {version} big {big}");
        let made = damaged(version, big, "second argument");
        for to in ["yaml", "fdr"] {
            let options = TargetOptions { to: Some(to.into()), version: Some(5), ..TargetOptions::default() };
            let Ok((bytes, _, _)) = rewrite(&Xray, &made.bytes, &Plan::Convert(options)) else {
                panic!("{what}: {to}")
            };
            if to == "fdr" && version == 5 {
                continue;
            }
            let kept: Vec<_> = meanings(&bytes).into_iter().map(|what| (what.id, what.arguments)).collect();
            assert_eq!(kept, [(10, vec![1, 2]), (15, vec![]), (15, vec![]), (10, vec![])], "{what}: {to}");
        }
    });
}

#[test]
fn a_selected_function_does_not_take_the_arguments_of_a_lost_one() {
    each(|version, big| {
        let made = damaged(version, big, "second");
        let selection = Selection { threads: vec![7], ..Selection::default() };
        let (bytes, _, _) = rewrite(&Xray, &made.bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap();
        assert_eq!(meanings(&bytes)[0].arguments, [1, 2], "version {version} big {big}");
    });
}

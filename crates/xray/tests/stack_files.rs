//! Stacks of several traces of one program: calls open at the end of one continue in the next.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::truncations;
use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_xray::tools::stack::{Oddities, OrphanRule, StackOptions, StackProfile};
use anytrace_xray::tools::stack_files::{Beginning, StackFiles, begin, order};
use anytrace_xray::tools::{StackGrouping, StackReport, StackView, Weight};
use common::made::{Made, v5, yaml};

fn count(files: &[&Made], orphans: OrphanRule) -> (StackProfile, Vec<Oddities>) {
    let mut all = StackFiles::new(StackOptions { orphans, ..StackOptions::default() });
    let open = OpenOptions { threads: 2, ..OpenOptions::default() };
    let add =
        |file: &&Made| all.add(Input::from_bytes("x", file.bytes.clone()), &open, &mut Collect::default()).unwrap();
    let oddities = files.iter().map(add).collect();
    (all.finish(), oddities)
}

fn flame(files: &[&Made]) -> String {
    lines(&count(files, OrphanRule::Pass).0)
}

fn lines(profile: &StackProfile) -> String {
    let view = StackView { grouping: StackGrouping::Aggregate, ..StackView::default() };
    let mut out = Vec::new();
    StackReport::new(profile, view, None).unwrap().flame(Weight::Time, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// One buffer of thread 7 of process 70.
fn trace(seconds: u64, tsc: u64, body: impl Fn(Made) -> Made) -> Made {
    let inside = |made: Made| {
        let made = made.thread(7).meta(4, |made| made.u64(seconds).u32(9)).pid(70);
        body(made.cpu(tsc))
    };
    let length = inside(v5()).bytes.len() - v5().bytes.len();
    inside(v5().extents(length as u64))
}

#[test]
fn open_calls_go_on_in_the_next_trace() {
    let first = trace(1, 1000, |made| made.function(0, 1, 0).function(0, 2, 10));
    let second = trace(2, 2000, |made| made.function(0, 3, 0).function(1, 3, 5).function(1, 2, 5).function(1, 1, 0));
    // 1 from 1000 to 2010, 2 from 1010 to 2010, 3 from 2000 to 2005.
    assert_eq!(flame(&[&first, &second]), "#1 10\n#1;#2 995\n#1;#2;#3 5\n");
    let (profile, _) = count(&[&first, &second], OrphanRule::Pass);
    assert_eq!(profile.oddities, Oddities::default());
    // A trace of other threads in between changes nothing.
    let other = trace(1, 1500, |made| made.thread(8).meta(4, |made| made.u64(1).u32(9)).pid(70).cpu(1500).pair());
    let (profile, _) = count(&[&first, &other, &second], OrphanRule::Pass);
    assert_eq!((profile.oddities.unfinished, profile.oddities.orphans), (0, 0));
}

#[test]
fn nothing_goes_on_where_time_goes_back_or_processes_differ() {
    let first = trace(1, 1000, |made| made.function(0, 1, 0));
    let earlier = trace(1, 10, |made| made.function(0, 3, 0).function(1, 3, 5).function(1, 1, 5));
    let (profile, each) = count(&[&first, &earlier], OrphanRule::Pass);
    assert_eq!(lines(&profile), "#3 5\n");
    assert_eq!((profile.oddities.unfinished, each[0].unfinished, each[1].unfinished), (1, 0, 1));
    assert_eq!(each[1].orphans, 1);
    // The peer does not compare times.
    let (profile, _) = count(&[&first, &earlier], OrphanRule::EndAll);
    assert_eq!((profile.oddities.unfinished, profile.oddities.orphans, profile.oddities.backwards), (0, 0, 1));
    let other = Made { bytes: first.bytes.clone(), ..v5() };
    let process = other.bytes.iter().position(|byte| *byte == 70).unwrap();
    let mut other = other;
    other.bytes[process] = 71;
    let (profile, _) = count(&[&first, &other], OrphanRule::Pass);
    assert_eq!(profile.oddities.unfinished, 2);
}

#[test]
fn traces_are_put_in_order_by_the_wall_clock_or_by_ticks() {
    let open = OpenOptions::default();
    let first = trace(1, 5000, |made| made.pair());
    let second = trace(2, 10, |made| made.pair());
    let beginning = |made: &Made| begin(&made.bytes, &open);
    assert_eq!(beginning(&first), Beginning { wall: Some((1, 9)), tsc: Some(5005) });
    let nothing = begin(b"", &open);
    assert_eq!(nothing, Beginning::default());
    assert_eq!(order(&[beginning(&second), nothing, beginning(&first)]), [1, 2, 0]);
    let text =
        yaml("  - { type: 0, func-id: 1, function: f, cpu: 0, thread: 7, kind: function-enter, tsc: 900, data: '' }\n");
    assert_eq!(beginning(&text), Beginning { wall: None, tsc: Some(900) });
    // Not all of them have a wall clock.
    assert_eq!(order(&[beginning(&first), beginning(&text), beginning(&second)]), [2, 1, 0]);
    assert_eq!(order(&[]), [0; 0]);
}

#[test]
fn beginnings_are_read_from_anything() {
    let first = trace(1, 5000, |made| made.pair());
    truncations(&first.bytes, 4096, |_, cut| {
        let wall = begin(cut, &OpenOptions::default()).wall;
        assert!(wall.is_none() || wall == Some((1, 9)));
    });
}

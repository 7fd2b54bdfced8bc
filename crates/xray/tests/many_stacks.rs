//! Traces with more different stacks than fit into a table: runs, and hashes of paths, against a slow count.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashMap;

use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_export::cells::Cells;
use anytrace_xray::tools::stack::{OrphanRule, StackOptions, StackProfile, stack};
use anytrace_xray::tools::{StackGrouping, StackReport, StackView};
use common::made::Made;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Function records of one thread: kind, function, delta. Some exits are missing, some have no entry.
fn records(state: &mut u64, functions: u64, length: usize) -> Vec<(u32, u32, u32)> {
    let (mut open, mut records) = (Vec::new(), Vec::new());
    while records.len() < length {
        let delta = random(state) as u32 % 50;
        let odd = random(state) % 997;
        if odd == 0 {
            records.push((1, 999, delta));
        } else if odd == 1 && open.len() > 2 {
            open.pop();
        } else if open.len() > 12 || (!open.is_empty() && random(state).is_multiple_of(2)) {
            records.push((1, open.pop().unwrap(), delta));
        } else {
            let function = (random(state) % functions) as u32 + 1;
            open.push(function);
            records.push((0, function, delta));
        }
    }
    records
}

/// Leaf calls and their ticks by thread and path.
type Slow = HashMap<(i32, Vec<u32>), (u64, u64)>;

fn slow(threads: &[Vec<(u32, u32, u32)>]) -> Slow {
    let mut leaves = Slow::new();
    for (thread, records) in (70..).zip(threads) {
        let (mut open, mut time, mut has_left): (Vec<(u32, u64)>, u64, bool) = (Vec::new(), 0, false);
        for &(kind, function, delta) in records {
            time += u64::from(delta);
            if kind == 0 {
                open.push((function, time));
                has_left = false;
            } else if let Some(depth) = open.iter().rposition(|call| call.0 == function) {
                while open.len() > depth {
                    let path = open.iter().map(|call| call.0).collect();
                    let (_, entered) = open.pop().unwrap();
                    if !has_left {
                        let leaf = leaves.entry((thread, path)).or_default();
                        (leaf.0, leaf.1) = (leaf.0 + 1, leaf.1 + (time - entered));
                    }
                    has_left = true;
                }
                has_left = true;
            }
        }
    }
    leaves
}

fn trace(threads: &[Vec<(u32, u32, u32)>]) -> Vec<u8> {
    let made = (70..).zip(threads).fold(Made::header(5, 1, 0), |made, (thread, records)| {
        made.buffer(thread, Some(7), 0, 1000, |made| {
            records.iter().fold(made, |made, &(kind, id, delta)| made.function(kind, id, delta))
        })
    });
    made.bytes
}

fn profile(bytes: &[u8], threads: usize, tops: Option<usize>) -> StackProfile {
    let open = OpenOptions { threads, ..OpenOptions::default() };
    let options = StackOptions { orphans: OrphanRule::Pass, make_file: None, tops };
    stack(Input::from_bytes("x", bytes.to_vec()), &open, &options, &mut Collect::default()).unwrap()
}

fn tables(profile: &StackProfile, grouping: StackGrouping) -> String {
    let view = StackView { grouping, ..StackView::default() };
    let mut out = Vec::new();
    StackReport::new(profile, view, None).unwrap().tables(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The values after `Sum: ` or `Count: `.
fn values(tables: &str, word: &str) -> Vec<u64> {
    tables.lines().filter_map(|line| line.strip_prefix(word)).map(|value| value.trim().parse().unwrap()).collect()
}

#[test]
fn tables_of_many_stacks_are_those_of_a_slow_count() {
    let mut state = 3;
    for functions in [6, 24] {
        let threads: Vec<_> = (0..3).map(|_| records(&mut state, functions, 90_000)).collect();
        let bytes = trace(&threads);
        let leaves = slow(&threads);
        let largest = |value: fn(&(u64, u64)) -> u64| {
            let mut all: Vec<u64> = leaves.values().map(value).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            all.truncate(10);
            all
        };
        let runs = profile(&bytes, 1, None);
        assert!(runs.runs.is_some(), "more stacks than a table holds");
        let by_runs = tables(&runs, StackGrouping::Separate);
        assert!(by_runs.starts_with(&format!("\nUnique Stacks: {}\n", leaves.len())), "{by_runs:.40}");
        assert_eq!(values(&by_runs, "Sum: "), largest(|leaf| leaf.1));
        assert_eq!(values(&by_runs, "Count: "), largest(|leaf| leaf.0));
        for workers in [1, 2, 3] {
            let hashed = profile(&bytes, workers, Some(10));
            assert!(hashed.tops.is_some() && hashed.oddities == runs.oddities);
            assert_eq!(tables(&hashed, StackGrouping::Separate), by_runs, "whatever the way and the workers");
        }
    }
}

#[test]
fn every_stack_of_many_is_listed_once_with_its_counts() {
    let mut state = 8;
    let threads: Vec<_> = (0..2).map(|_| records(&mut state, 20, 80_000)).collect();
    let leaves = slow(&threads);
    let profile = profile(&trace(&threads), 2, None);
    let mut csv = Vec::new();
    StackReport::new(&profile, StackView::default(), None).unwrap().csv(Cells::Guarded, &mut csv).unwrap();
    let mut found = Slow::new();
    for line in String::from_utf8(csv).unwrap().lines().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        let path: Vec<u32> = f[9].split(';').map(|name| name[1..].parse().unwrap()).collect();
        let leaf = (f[4].parse().unwrap(), f[5].parse().unwrap());
        if leaf.0 > 0 {
            assert_eq!(found.insert((f[1].parse().unwrap(), path), leaf), None, "listed once");
        }
    }
    assert_eq!(found, leaves);
}

#[test]
fn few_stacks_are_counted_in_the_table_whatever_is_requested() {
    let mut state = 4;
    let threads = vec![records(&mut state, 2, 500)];
    let bytes = trace(&threads);
    let (few, plain) = (profile(&bytes, 2, Some(10)), profile(&bytes, 1, None));
    assert!(few.tops.is_none() && few.runs.is_none());
    assert_eq!(tables(&few, StackGrouping::Separate), tables(&plain, StackGrouping::Separate));
}

//! Differences and matching blocks of sequences, intervals on lanes, overviews: checked by undoing them, and against
//! the definitions.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeMap;

use anytrace_analysis::diff::{Change, Line, LineMaker, TEXT_BYTES, Totals, WINDOW_LINES, align, align_pairing};
use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::matching::{Operation, matching_blocks, operations};
use anytrace_analysis::overview::{Overview, Picture};
use anytrace_analysis::quantiles::Quantiles;
use anytrace_analysis::top::Top;
use anytrace_analysis::weave::{Weave, Woven};
use anytrace_core::span::{Edge, EdgeKind};
use common::{Forest, Made, Random, edge, pass};

fn lines(numbers: &[u64]) -> impl Iterator<Item = Line> + '_ {
    numbers.iter().map(|number| Line::new(format!("record {number}").as_bytes()))
}

fn compared(a: &[u64], b: &[u64]) -> (Totals, Vec<Change>) {
    let mut changes = Vec::new();
    let totals = align(lines(a), lines(b), &mut |change| changes.push(change));
    (totals, changes)
}

/// The second sequence, made from the first and the changes.
fn patched(a: &[u64], changes: &[Change]) -> Vec<Vec<u8>> {
    let (mut removed, mut added) = (Vec::new(), BTreeMap::new());
    for change in changes {
        match change {
            Change::Removed { at, line } => {
                assert_eq!(line.text(), format!("record {}", a[*at as usize]).as_bytes());
                removed.push(*at);
            }
            Change::Added { at, line } => drop(added.insert(*at, line.text().to_vec())),
            Change::Changed { .. } => panic!("nothing is paired"),
        }
    }
    let mut kept = (0..).zip(a).filter(|(at, _)| !removed.contains(at));
    let length = (a.len() - removed.len() + added.len()) as u64;
    (0..length)
        .map(|at| match added.remove(&at) {
            Some(text) => text,
            None => format!("record {}", kept.next().unwrap().1).into_bytes(),
        })
        .collect()
}

/// Edits of a sequence: parts cut out, put in, repeated, moved.
fn edited(random: &mut Random, a: &[u64]) -> Vec<u64> {
    let mut b = a.to_vec();
    for _ in 0..random.below(8) {
        let at = random.below(b.len() as u64 + 1) as usize;
        let to = (at + random.below(20) as usize).min(b.len());
        match random.below(3) {
            0 => drop(b.drain(at..to)),
            1 => drop(b.splice(at..at, (0..random.below(30)).map(|n| 1_000_000 + n))),
            _ => {
                let part: Vec<u64> = b.drain(at..to).collect();
                let place = random.below(b.len() as u64 + 1) as usize;
                drop(b.splice(place..place, part));
            }
        }
    }
    b
}

#[test]
fn changes_turn_the_first_sequence_into_the_second() {
    let mut random = Random(1);
    for round in 0..60 {
        let kinds = [3, 40, 100_000][round % 3];
        let a: Vec<u64> = (0..random.below(900)).map(|_| random.below(kinds)).collect();
        let b = edited(&mut random, &a);
        let (totals, changes) = compared(&a, &b);
        let expected: Vec<Vec<u8>> = b.iter().map(|number| format!("record {number}").into_bytes()).collect();
        assert!(patched(&a, &changes) == expected, "round {round}");
        assert_eq!((totals.same + totals.removed, totals.same + totals.added), (a.len() as u64, b.len() as u64));
        assert_eq!(totals.is_equal(), a == b);
    }
}

#[test]
fn exchanging_the_sides_exchanges_what_is_added_and_removed() {
    let mut random = Random(2);
    for _ in 0..40 {
        let a: Vec<u64> = (0..300).map(|_| random.below(1 << 40)).collect();
        let b = edited(&mut random, &a);
        let ((there, _), (back, _)) = (compared(&a, &b), compared(&b, &a));
        assert_eq!(there.is_equal(), back.is_equal());
        assert_eq!(there.removed as i64 - there.added as i64, back.added as i64 - back.removed as i64);
    }
}

#[test]
fn distinct_records_that_were_cut_out_are_exactly_the_removed_ones() {
    let mut random = Random(3);
    let a: Vec<u64> = (0..3000).collect();
    for _ in 0..10 {
        let (mut b, mut gone) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < a.len() {
            let run = 6 + random.below(200) as usize;
            b.extend_from_slice(&a[at..(at + run).min(a.len())]);
            at = (at + run).min(a.len());
            let cut = (at + random.below(12) as usize).min(a.len());
            gone.extend_from_slice(&a[at..cut]);
            at = cut;
        }
        let (totals, changes) = compared(&a, &b);
        let removed: Vec<u64> =
            changes.iter().map(|change| if let Change::Removed { at, .. } = change { *at } else { panic!() }).collect();
        assert_eq!(removed, gone);
        assert_eq!((totals.added, totals.same), (0, b.len() as u64));
    }
}

#[test]
fn a_difference_longer_than_the_window_is_complete() {
    let a: Vec<u64> = (0..100).chain(10_000..10_000 + 3 * WINDOW_LINES as u64).chain(100..400).collect();
    let b: Vec<u64> = (0..400).collect();
    let (totals, changes) = compared(&a, &b);
    let expected: Vec<Vec<u8>> = b.iter().map(|number| format!("record {number}").into_bytes()).collect();
    assert!(patched(&a, &changes) == expected);
    assert_eq!(totals.same + totals.removed, a.len() as u64);
}

#[test]
fn alike_records_are_paired_in_order() {
    let text = |texts: &[&str]| texts.iter().map(|text| Line::new(text.as_bytes())).collect::<Vec<_>>();
    let (a, b) = (text(&["begin", "x=1", "x=2", "y=1", "end"]), text(&["begin", "x=3", "y=2", "end"]));
    let alike = |old: &Line, new: &Line| old.text().first() == new.text().first();
    let mut seen = Vec::new();
    let totals = align_pairing(a.into_iter(), b.into_iter(), &alike, &mut |change| {
        seen.push(match change {
            Change::Changed { at, old, new } => {
                assert!(alike(&old, &new));
                format!("{}>{}", at.0, at.1)
            }
            Change::Removed { at, .. } => format!("-{at}"),
            Change::Added { at, .. } => format!("+{at}"),
        });
    });
    assert_eq!(seen, ["1>1", "-2", "3>2"]);
    assert_eq!((totals.same, totals.changed, totals.removed, totals.added), (2, 2, 1, 0));
}

#[test]
fn long_records_are_compared_beyond_the_text_that_is_kept() {
    let long = |last: u8| {
        let mut maker = LineMaker::default();
        maker.push(&vec![b'x'; TEXT_BYTES]);
        maker.push(&[last]);
        maker.finish()
    };
    assert_eq!(long(1).text(), long(2).text());
    assert_ne!(long(1), long(2));
    let pieces = |sizes: &[usize]| {
        let mut maker = LineMaker::default();
        sizes.iter().for_each(|size| maker.push(&vec![b'y'; *size]));
        maker.finish()
    };
    assert_eq!(pieces(&[100]), pieces(&[40, 60]));
    assert_ne!(pieces(&[100]), pieces(&[99]), "a shorter record is another");
}

#[test]
fn operations_cover_both_sequences_and_rebuild_the_second() {
    let mut random = Random(4);
    for _ in 0..200 {
        let a: Vec<u64> = (0..random.below(60)).map(|_| random.below(6)).collect();
        let b: Vec<u64> = if random.once_in(2) { edited(&mut random, &a) } else { a.iter().rev().copied().collect() };
        let (mut i, mut j) = (0, 0);
        let mut before = None;
        for (operation, of_a, of_b) in operations(&a, &b, &|_| false) {
            assert_eq!((of_a.start, of_b.start), (i, j), "no gaps");
            (i, j) = (of_a.end, of_b.end);
            let (removed, added) = (!of_a.is_empty(), !of_b.is_empty());
            match operation {
                Operation::Equal => assert!(removed && a[of_a] == b[of_b]),
                Operation::Delete => assert!(removed && !added),
                Operation::Insert => assert!(!removed && added),
                Operation::Replace => assert!(removed && added),
            }
            assert_ne!(before.replace(operation), Some(operation), "neighbors of one kind are joined");
        }
        assert_eq!((i, j), (a.len(), b.len()));
        assert_eq!(matching_blocks(&a, &a, &|_| false), if a.is_empty() { vec![] } else { vec![(0, 0, a.len())] });
    }
}

#[test]
fn woven_intervals_nest_on_their_lanes_and_none_is_lost() {
    for seed in 1..30 {
        let mut random = Random(seed);
        let mut now = 0;
        let mut intervals: Vec<(u64, u64)> = (0..200)
            .map(|_| {
                now += random.below(5);
                (now, now + random.below(60))
            })
            .collect();
        if seed % 3 == 0 {
            random.shuffle(&mut intervals);
        }
        let mut weave = Weave::default();
        let mut edges: Vec<Woven<usize>> = Vec::new();
        for (number, (start, end)) in intervals.iter().enumerate() {
            weave.push(*start, *end, number, &mut |woven| edges.push(woven));
        }
        weave.finish(&mut |woven| edges.push(woven));
        let late = (0..intervals.len()).filter(|at| intervals[..*at].iter().any(|before| before.0 > intervals[*at].0));
        assert_eq!(weave.late(), late.count() as u64);
        let mut open: BTreeMap<u32, (u64, Vec<usize>)> = BTreeMap::new();
        let mut ended = 0;
        for woven in &edges {
            let (last, stack) = open.entry(woven.lane).or_default();
            assert!(woven.time >= *last, "time goes back on lane {}", woven.lane);
            *last = woven.time;
            let (start, end) = intervals[woven.value];
            if woven.is_begin {
                assert_eq!(woven.time, start);
                assert!(stack.iter().all(|around| intervals[*around].1 >= end), "it ends inside what is around it");
                stack.push(woven.value);
            } else {
                assert_eq!((stack.pop(), woven.time), (Some(woven.value), end));
                ended += 1;
            }
        }
        assert_eq!(ended, intervals.len());
        assert_eq!(open.len(), weave.lanes());
        if seed % 3 != 0 {
            // No more lanes than intervals that overlap at one time.
            let at_once = |time: u64| intervals.iter().filter(|(from, to)| (*from..=*to).contains(&time)).count();
            assert!(weave.lanes() <= intervals.iter().map(|(start, _)| at_once(*start)).max().unwrap());
        }
    }
}

fn picture(edges: &[Edge], filter: SpanFilter, width: usize) -> Picture {
    let mut overview = Overview::default();
    pass(edges, filter, false, &mut overview);
    overview.picture(width)
}

#[test]
fn busy_times_of_a_picture_are_those_of_the_spans() {
    for seed in 1..8 {
        let forest = Forest::grow(seed, 3, 5, 120);
        let shown = picture(&forest.mixed(seed), SpanFilter::default(), 50);
        let mut by_name: BTreeMap<u32, u128> = BTreeMap::new();
        for span in &forest.spans {
            *by_name.entry(span.name()).or_default() += u128::from(span.own);
        }
        by_name.retain(|_, own| *own > 0);
        let names: BTreeMap<u32, u128> = shown.names.iter().copied().collect();
        assert_eq!(names, by_name);
        assert!(shown.names.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert_eq!((shown.threads, shown.lines.len()), (3, 3));
        for line in &shown.lines {
            let own = forest.spans.iter().filter(|span| span.track == line.thread);
            assert_eq!(line.spans as usize, own.clone().count());
            let outermost: u64 = own.filter(|span| span.depth() == 0).map(|span| span.length()).sum();
            assert_eq!(line.busy, u128::from(outermost));
            // A column is the share of its time; all of them together are the time of the line.
            let length = (shown.to - shown.from) as f64;
            let drawn: f64 = line.columns.iter().map(|column| column.busy * length / 50.0).sum();
            assert!((drawn - outermost as f64).abs() <= length * 0.05 + 50.0, "{drawn} of {outermost}");
        }
    }
}

#[test]
fn a_column_of_one_unit_is_busy_where_a_span_is_open() {
    let (mut pictures, mut named) = (0, 0);
    for seed in 90..130 {
        let forest = Forest::grow(seed, 2, 4, [2, 12][seed as usize % 2]);
        let first = picture(&forest.mixed(1), SpanFilter::default(), 1);
        let length = first.to - first.from;
        if length > 1000 {
            continue;
        }
        pictures += 1;
        let shown = picture(&forest.mixed(1), SpanFilter::default(), length as usize);
        for line in &shown.lines {
            for (time, column) in (shown.from..).zip(&line.columns).take(length as usize - 1) {
                let is_open = |span: &&Made| span.track == line.thread && (span.start..span.end).contains(&time);
                let open: Vec<_> = forest.spans.iter().filter(is_open).collect();
                assert_eq!(column.busy > 0.5, !open.is_empty(), "seed {seed} at {time}");
                // In a longer trace several units share the list of their names.
                if length < 90 {
                    named += 1;
                    let innermost = open.iter().max_by_key(|span| span.depth()).map(|span| span.name());
                    assert_eq!(column.name, innermost, "seed {seed} at {time}");
                }
            }
        }
    }
    assert!(pictures >= 10 && named > 0, "{pictures} pictures, {named} columns with names");
}

#[test]
fn an_overview_of_an_empty_trace_is_empty() {
    let shown = picture(&[], SpanFilter::default(), 10);
    assert_eq!((shown.from, shown.to, shown.threads, shown.names.len()), (0, 0, 0, 0));
    let instant = picture(&[edge(EdgeKind::Instant, 77, 0, 0)], SpanFilter::default(), 4);
    assert_eq!((instant.from, instant.to, instant.threads), (77, 77, 0));
    assert!(instant.lines[0].columns.iter().any(|column| column.has_instant));
}

#[test]
fn parts_merged_in_any_order_are_the_numbers_themselves() {
    for seed in 1..6 {
        let mut random = Random(seed);
        let mut parts: Vec<Vec<u64>> = (0..12)
            .map(|_| {
                let bound = [10, 5000, 100_000, u64::MAX][random.below(4) as usize];
                (0..random.below(1500)).map(|_| random.below(bound)).collect()
            })
            .collect();
        let all: Vec<u64> = parts.iter().flatten().copied().collect();
        let mut expected = all.clone();
        expected.sort_unstable();
        random.shuffle(&mut parts);
        let mut merged = Quantiles::default();
        for part in &parts {
            let mut one = Quantiles::default();
            part.iter().for_each(|value| one.push(*value));
            merged.merge(one);
        }
        assert_eq!((merged.count(), merged.sum()), (all.len() as u64, all.iter().map(|v| u128::from(*v)).sum()));
        let sorted = merged.sorted();
        for (place, value) in (0..).zip(&expected).step_by(37) {
            assert_eq!(sorted.nth(place), Some(*value));
        }
        assert_eq!((sorted.nth(all.len() as u64), sorted.fraction(1, 1)), (None, expected.last().copied()));
    }
}

#[test]
fn the_greatest_few_are_the_head_of_a_stable_sort() {
    let mut random = Random(9);
    for limit in [0, 1, 2, 17, 500] {
        let keys: Vec<u64> = (0..400).map(|_| random.below(30)).collect();
        let mut expected: Vec<(u64, usize)> = keys.iter().copied().zip(0..).collect();
        expected.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
        expected.truncate(limit);
        let (mut top, mut made) = (Top::new(limit), 0);
        for (key, number) in keys.iter().zip(0_usize..) {
            top.offer(*key, || {
                made += 1;
                (*key, number)
            });
        }
        assert_eq!(top.seen(), 400);
        assert!(made <= 400 && made >= expected.len());
        assert_eq!(top.into_sorted(), expected);
    }
}

//! Engines over spans, on trees of spans whose properties are known from how they were made.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::accounting::{Accounting, By, Row, Statistic};
use anytrace_analysis::compare::{Pair, pair};
use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::gaps::Gaps;
use anytrace_analysis::histogram::Histograms;
use anytrace_analysis::longest::{Longest, Measure};
use anytrace_analysis::pass::{Engine, Pass};
use anytrace_analysis::threshold::{Threshold, growth_percent};
use anytrace_core::TimeBound;
use anytrace_core::span::{Edge, EdgeKind, TimeUnit};
use common::{Forest, Made, NANOSECONDS, pass, play};

fn rows(edges: &[Edge], filter: SpanFilter, by: By) -> BTreeMap<(Option<u32>, Option<u32>), Row> {
    let mut accounting = Accounting::new(by);
    pass(edges, filter, false, &mut accounting);
    accounting.into_rows().into_iter().map(|row| ((row.name, row.thread), row)).collect()
}

/// Spans that a filter keeps, as (count, time in them without that of spans inside).
fn weight(edges: &[Edge], filter: SpanFilter) -> (u64, u128) {
    let all = rows(edges, filter, By::Name);
    (all.values().map(|row| row.count).sum(), all.values().map(|row| row.self_time).sum())
}

#[test]
fn rows_do_not_depend_on_batches_or_on_how_tracks_are_mixed() {
    let forest = Forest::grow(1, 4, 6, 300);
    for by in [By::Name, By::Thread, By::NameAndThread] {
        let expected = rows(&forest.mixed(1), SpanFilter::default(), by);
        for (seed, batch) in [(2, 1), (3, 7), (4, 1000)] {
            let mut accounting = Accounting::new(by);
            let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut accounting]);
            play(&forest.mixed(seed), batch, NANOSECONDS, &mut pass);
            pass.finish();
            let found: BTreeMap<_, _> =
                accounting.into_rows().into_iter().map(|row| ((row.name, row.thread), row)).collect();
            assert_eq!(found, expected, "{by:?}, batches of {batch}");
        }
    }
}

#[test]
fn rows_of_one_track_at_a_time_add_up() {
    let forest = Forest::grow(5, 5, 4, 300);
    let edges = forest.mixed(9);
    let all = rows(&edges, SpanFilter::default(), By::Name);
    let mut sums: BTreeMap<Option<u32>, (u64, u128, u128, u128)> = BTreeMap::new();
    for thread in 100..105 {
        let filter = SpanFilter { threads: vec![thread], ..SpanFilter::default() };
        for row in rows(&edges, filter, By::Name).values() {
            assert_eq!(row.threads, 1);
            let sum = sums.entry(row.name).or_default();
            *sum = (sum.0 + row.count, sum.1 + row.total, sum.2 + row.self_time, sum.3 + row.sum);
        }
    }
    assert_eq!(sums.len(), all.len());
    for row in all.values() {
        assert_eq!(sums[&row.name], (row.count, row.total, row.self_time, row.sum));
    }
}

#[test]
fn later_times_change_nothing_and_longer_times_change_in_proportion() {
    let forest = Forest::grow(6, 2, 5, 200);
    let edges = forest.mixed(1);
    let moved = |by: fn(u64) -> u64| edges.iter().map(|edge| Edge { time: by(edge.time), ..*edge }).collect::<Vec<_>>();
    let base = rows(&edges, SpanFilter::default(), By::Name);
    assert_eq!(rows(&moved(|time| time + (1 << 50)), SpanFilter::default(), By::Name), base);
    for (key, row) in rows(&moved(|time| time * 1000), SpanFilter::default(), By::Name) {
        let before = &base[&key];
        assert_eq!((row.count, row.recursive, row.threads), (before.count, before.recursive, before.threads));
        for statistic in Statistic::ALL.into_iter().filter(|statistic| *statistic != Statistic::Count) {
            assert_eq!(row.get(statistic), before.get(statistic) * 1000, "{statistic:?}");
        }
    }
}

#[test]
fn parts_of_a_selection_add_up_to_the_trace() {
    let forest = Forest::grow(7, 3, 5, 400);
    let edges = forest.mixed(3);
    let all = weight(&edges, SpanFilter::default());
    assert_eq!(all.0 as usize, forest.spans.len());
    assert_eq!(all.1, forest.spans.iter().map(|span| u128::from(span.own)).sum::<u128>());
    let add = |a: (u64, u128), b: (u64, u128)| (a.0 + b.0, a.1 + b.1);
    let native = TimeBound::Native;
    for cut in [1, 600, 900, 5000] {
        let before = SpanFilter { time: Some((TimeBound::Open, native(cut))), ..SpanFilter::default() };
        let after = SpanFilter { time: Some((native(cut), TimeBound::Open)), ..SpanFilter::default() };
        assert_eq!(add(weight(&edges, before), weight(&edges, after)), all, "time {cut}");
        let short = SpanFilter { duration: Some((TimeBound::Open, native(cut))), ..SpanFilter::default() };
        let long = SpanFilter { duration: Some((native(cut), TimeBound::Open)), ..SpanFilter::default() };
        assert_eq!(add(weight(&edges, short), weight(&edges, long)), all, "duration {cut}");
    }
    let depths = (0..12).map(|depth| SpanFilter { depth: Some(depth..depth + 1), ..SpanFilter::default() });
    assert_eq!(depths.map(|filter| weight(&edges, filter)).fold((0, 0), add), all);
    let names = (0..5).map(|name| {
        let wanted = format!("f{name}").into_bytes();
        SpanFilter { name: Some(Box::new(move |name: &[u8]| name == wanted)), ..SpanFilter::default() }
    });
    assert_eq!(names.map(|filter| weight(&edges, filter)).fold((0, 0), add), all);
}

#[test]
fn conditions_of_a_filter_must_all_be_true() {
    let forest = Forest::grow(8, 3, 4, 300);
    let edges = forest.mixed(5);
    for round in 0..20_u64 {
        let (from, to) = (500 + round * 20, 700 + round * 90);
        let (short, long) = (round % 7, 40 + round * 3);
        let (thread, low, high) = (100 + round % 3, round % 4, round % 4 + 3);
        let filter = SpanFilter {
            threads: vec![thread],
            time: Some((TimeBound::Native(from), TimeBound::Native(to))),
            name: Some(Box::new(|name: &[u8]| name != b"f1")),
            depth: Some(low..high),
            duration: Some((TimeBound::Native(short), TimeBound::Native(long))),
        };
        let is_kept = |span: &&Made| {
            u64::from(span.track) + 100 == thread
                && (from..to).contains(&span.start)
                && span.name() != 1
                && (low..high).contains(&(span.depth() as u64))
                && (short..long).contains(&span.length())
        };
        let kept: Vec<&Made> = forest.spans.iter().filter(is_kept).collect();
        let expected = (kept.len() as u64, kept.iter().map(|span| u128::from(span.own)).sum());
        assert_eq!(weight(&edges, filter), expected, "round {round}");
    }
}

#[test]
fn a_pass_counts_what_it_hands_out() {
    let forest = Forest::grow(9, 6, 4, 300);
    let mut longest = Longest::new(3, Measure::Length);
    let done = pass(&forest.mixed(2), SpanFilter::default(), true, &mut longest);
    assert!(done.counts.is_clean());
    assert_eq!(done.counts.spans as usize, forest.spans.len());
    assert_eq!(done.threads, 6);
    let start = forest.spans.iter().map(|span| span.start).min().unwrap();
    let end = forest.spans.iter().map(|span| span.end).max().unwrap();
    assert_eq!(done.range, Some((start, end)));
    let paths: BTreeSet<&[u32]> = forest.spans.iter().map(|span| span.path.as_slice()).collect();
    assert_eq!(done.stacks.unwrap().len(), paths.len());
    assert_eq!((done.directory.track_count(), done.directory.name(3)), (6, b"f3".as_slice()));
}

#[test]
fn the_longest_are_the_head_of_the_sorted_list() {
    for seed in 20..30 {
        let forest = Forest::grow(seed, 2, 4, 150);
        let mut lengths: Vec<u64> = forest.spans.iter().map(Made::length).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        for limit in [0, 1, 10, 1000] {
            let mut longest = Longest::new(limit, Measure::Length);
            let done = pass(&forest.mixed(seed), SpanFilter::default(), true, &mut longest);
            let found = longest.into_spans().into_iter().map(|long| long.span).collect::<Vec<_>>();
            let expected: Vec<u64> = lengths.iter().copied().take(limit).collect();
            assert_eq!(found.iter().map(|span| span.duration()).collect::<Vec<_>>(), expected);
            let stacks = done.stacks.unwrap();
            for span in found {
                let path = stacks.path(span.stack);
                let is_it = |made: &Made| {
                    (made.track, made.start, made.end, made.own) == (span.track, span.start, span.end, span.self_time)
                        && made.path == path
                };
                assert!(forest.spans.iter().any(is_it), "a span that was never made: {span:?}");
            }
        }
    }
}

#[test]
fn histograms_count_each_length_in_its_class() {
    let forest = Forest::grow(31, 2, 3, 300);
    let mut histograms = Histograms::new(Box::new(|name: &[u8]| name != b"f2"));
    pass(&forest.mixed(1), SpanFilter::default(), false, &mut histograms);
    let bounds: Vec<u64> = histograms.classes().iter().map(|class| class.from_units).collect();
    assert_eq!(bounds[..8], [0, 1, 2, 5, 10, 20, 50, 100]);
    assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(histograms.histograms().len(), 2);
    for histogram in histograms.histograms() {
        let own: Vec<u64> =
            forest.spans.iter().filter(|span| span.name() == histogram.name).map(Made::length).collect();
        assert_eq!(histogram.count() as usize, own.len());
        for (at, from) in bounds.iter().enumerate() {
            let to = bounds.get(at + 1).copied();
            let inside: Vec<u64> =
                own.iter().copied().filter(|length| length >= from && to.is_none_or(|to| *length < to)).collect();
            assert_eq!(histogram.counts[at] as usize, inside.len(), "from {from}");
            assert_eq!(histogram.sums[at], inside.iter().map(|length| u128::from(*length)).sum::<u128>());
        }
    }
}

#[test]
fn classes_of_slow_clocks_are_never_empty_by_construction() {
    // A tick is 4 ns: lengths of 1, 2 and 3 ns do not occur.
    let mut histograms = Histograms::new(Box::new(|_: &[u8]| true));
    let edges = [common::edge(EdgeKind::Begin, 0, 0, 0), common::edge(EdgeKind::End, 5, 0, 0)];
    let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut histograms]);
    play(&edges, 8, TimeUnit::Ticks { per_second: Some(250_000_000) }, &mut pass);
    pass.finish();
    let units: Vec<u64> = histograms.classes().iter().map(|class| class.from_units).collect();
    assert!(units.windows(2).all(|pair| pair[0] < pair[1]), "{units:?}");
    for class in &histograms.classes()[1..] {
        let (from, units) = (u128::from(class.from), u128::from(class.from_units));
        assert!(units * 4 >= from && (units - 1) * 4 < from, "{class:?}");
    }
    assert_eq!(histograms.histograms()[0].counts.iter().sum::<u64>(), 1);
}

#[test]
fn gaps_of_each_depth_lie_between_its_spans() {
    for (seed, depth) in [(40, 0_u64), (41, 1), (42, 2)] {
        let forest = Forest::grow(seed, 3, 4, 200);
        let mut gaps = Gaps::new(TimeBound::Native(4), usize::MAX);
        let filter = SpanFilter { depth: Some(depth..u64::MAX), ..SpanFilter::default() };
        pass(&forest.mixed(1), filter, false, &mut gaps);
        let mut expected = Vec::new();
        for track in 0..3 {
            let own: Vec<&Made> =
                forest.spans.iter().filter(|span| span.track == track && span.depth() as u64 == depth).collect();
            for pair in own.windows(2).filter(|pair| pair[1].start - pair[0].end >= 4) {
                expected.push((track, pair[0].end, pair[1].start, pair[0].name(), pair[1].name()));
            }
        }
        let idle: u64 = gaps.idle().iter().map(|idle| idle.total).sum();
        assert_eq!(idle, expected.iter().map(|(_, from, to, ..)| to - from).sum::<u64>());
        let mut found: Vec<_> =
            gaps.into_gaps().iter().map(|gap| (gap.track, gap.start, gap.end, gap.before, gap.after)).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn many_engines_in_one_pass_find_what_each_finds_alone() {
    let forest = Forest::grow(50, 3, 5, 250);
    let edges = forest.mixed(4);
    let (mut names, mut threads) = (Accounting::new(By::Name), Accounting::new(By::Thread));
    let (mut longest, mut gaps) = (Longest::new(5, Measure::Length), Gaps::new(TimeBound::Open, 5));
    let engines: Vec<&mut dyn Engine> = vec![&mut names, &mut threads, &mut longest, &mut gaps];
    let mut all = Pass::new(SpanFilter::default(), false, engines);
    play(&edges, 50, NANOSECONDS, &mut all);
    all.finish();
    let (mut name, mut thread) = (Accounting::new(By::Name), Accounting::new(By::Thread));
    pass(&edges, SpanFilter::default(), false, &mut name);
    pass(&edges, SpanFilter::default(), false, &mut thread);
    let (mut long, mut gap) = (Longest::new(5, Measure::Length), Gaps::new(TimeBound::Open, 5));
    pass(&edges, SpanFilter::default(), false, &mut long);
    pass(&edges, SpanFilter::default(), false, &mut gap);
    assert_eq!(names.into_rows(), name.into_rows());
    assert_eq!(threads.into_rows(), thread.into_rows());
    assert_eq!(longest.into_spans(), long.into_spans());
    assert_eq!((gaps.idle().to_vec(), gaps.into_gaps()), (gap.idle().to_vec(), gap.into_gaps()));
}

fn compared(base: &[Edge], shown: &[Edge]) -> Vec<Pair> {
    let (mut before, mut after) = (Accounting::new(By::Name), Accounting::new(By::Name));
    let (of_base, of_shown) =
        (pass(base, SpanFilter::default(), false, &mut before), pass(shown, SpanFilter::default(), false, &mut after));
    pair((&before.into_rows(), &of_base.directory), (&after.into_rows(), &of_shown.directory))
}

#[test]
fn a_trace_does_not_differ_from_itself_and_differences_have_two_directions() {
    let (a, b) = (Forest::grow(60, 2, 4, 100).mixed(1), Forest::grow(61, 2, 6, 160).mixed(1));
    for pair in compared(&a, &a) {
        assert_eq!(pair.base, pair.shown);
        assert!(Statistic::ALL.iter().all(|statistic| pair.distance(*statistic) == 0));
        assert!(!pair.exceeds(&Threshold { statistic: Statistic::Total, percent: 0.0 }));
    }
    let (there, back) = (compared(&a, &b), compared(&b, &a));
    assert_eq!(there.len(), back.len());
    for (one, other) in there.iter().zip(&back) {
        assert_eq!((&one.name, one.base, one.shown), (&other.name, other.shown, other.base));
        for statistic in Statistic::ALL {
            assert_eq!(one.distance(statistic), other.distance(statistic));
            let growth = one.growth_percent(statistic).unwrap_or(0.0);
            let shrinkage = other.growth_percent(statistic).unwrap_or(0.0);
            assert!(growth == 0.0 && shrinkage == 0.0 || (growth > 0.0) != (shrinkage > 0.0), "{growth} {shrinkage}");
        }
    }
    assert!(there.windows(2).all(|pair| pair[0].name < pair[1].name), "names are in order, each once");
}

#[test]
fn thresholds_read_what_they_write() {
    let word = |word: &str| Statistic::from_word(word);
    for statistic in Statistic::ALL {
        for percent in ["0", "10", "2.5", "1e3"] {
            for end in ["", "%"] {
                let text = format!("{}={percent}{end}", statistic.word());
                let threshold = Threshold::parse(&text, word).unwrap();
                assert_eq!(threshold.statistic, statistic);
                assert!((threshold.percent - percent.parse::<f64>().unwrap()).abs() < 1e-9);
            }
        }
    }
    for wrong in ["", "total", "total=", "total=%", "=10", "sum=10", "total=-1", "total=inf", "total=NaN", "total=1o"] {
        assert!(Threshold::parse(wrong, word).is_none(), "{wrong}");
    }
    assert!(Threshold::parse_signed("total=-5%", word).is_some_and(|threshold| threshold.is_exceeded(Some(-4.0))));
}

#[test]
fn growth_is_exceeded_exactly_beyond_the_bound() {
    for (base, shown, percent) in [(100, 110, 10.0), (1, 2, 100.0), (8, 9, 12.5), (4, 1, -75.0)] {
        let growth = growth_percent(base, shown);
        assert_eq!(growth, Some(percent));
        let threshold = Threshold { statistic: (), percent };
        assert!(!threshold.is_exceeded(growth), "{base} to {shown} is the bound itself");
        assert!(threshold.is_exceeded(growth_percent(base, shown + 1)));
    }
    let threshold = Threshold { statistic: (), percent: 1e9 };
    assert!(threshold.is_exceeded(growth_percent(0, 1)) && !threshold.is_exceeded(growth_percent(0, 0)));
}

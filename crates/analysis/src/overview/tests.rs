use anytrace_core::TimeBound;
use anytrace_core::span::TimeUnit;

use super::*;
use crate::filter::SpanFilter;
use crate::pass::Pass;
use crate::played::{Random, begin, edge, end, obvious, play, random_edges};

fn overview(edges: &[Edge], filter: SpanFilter) -> Overview {
    let mut overview = Overview::default();
    let mut pass = Pass::new(filter, false, vec![&mut overview]);
    play(edges, TimeUnit::Nanoseconds, &mut pass);
    pass.finish();
    overview
}

#[test]
fn names_of_short_traces_are_those_of_their_columns() {
    let edges = [begin(0, 0, 0), end(5, 0, 0), begin(6, 0, 1), end(10, 0, 1)];
    let picture = overview(&edges, SpanFilter::default()).picture(10);
    let names: Vec<_> = picture.lines[0].columns.iter().map(|column| column.name).collect();
    let (a, b) = (Some(0), Some(1));
    assert_eq!(names, [a, a, a, a, a, None, b, b, b, b]);
    // Up to many times that length, a name never appears in place of another.
    for times in 1..200 {
        let edges: Vec<_> =
            (0..10).flat_map(|n| [begin(n * times, 0, n as u32), end((n + 1) * times, 0, n as u32)]).collect();
        let picture = overview(&edges, SpanFilter::default()).picture(10);
        let names: Vec<_> = picture.lines[0].columns.iter().map(|column| column.name).collect();
        assert_eq!(names, (0..10).map(Some).collect::<Vec<_>>(), "{times}");
    }
}

#[test]
fn columns_are_shares_of_busy_time() {
    for seed in 1..30 {
        let edges = random_edges(&mut Random(seed), 3, 4, 200);
        let slow = obvious(&edges);
        let picture = overview(&edges, SpanFilter::default()).picture(7);
        for line in &picture.lines {
            let own = || slow.iter().filter(|span| span.track == line.thread);
            let is_busy = |time: u64| own().any(|span| (span.start..span.end).contains(&time));
            let busy = (picture.from..picture.to).filter(|&time| is_busy(time)).count();
            assert_eq!((line.busy, line.spans as usize), (busy as u128, own().count()));
            let length = u128::from(picture.to - picture.from);
            let edge = |n: usize| picture.from + (length * n as u128 / 7) as u64;
            for (n, column) in line.columns.iter().enumerate() {
                let times = edge(n)..edge(n + 1);
                let share = times.clone().filter(|&time| is_busy(time)).count() as f64 / times.count() as f64;
                // Bins are wider than a unit here, so the border of a column may fall inside one.
                assert!((column.busy - share).abs() < 0.05, "{} for {share}", column.busy);
            }
        }
        let mut names = [0; 4];
        slow.iter().for_each(|span| names[span.name() as usize] += u128::from(span.self_time));
        picture.names.iter().for_each(|&(name, own)| assert_eq!(own, names[name as usize]));
        assert!(picture.names.windows(2).all(|pair| pair[0].1 >= pair[1].1));
    }
}

#[test]
fn any_time_range_fits_and_nothing_is_lost() {
    for gap in [1, 1000, 1 << 20, 1 << 40, 1 << 60] {
        // The second track begins before the first: the grid has to grow to the left too.
        let edges = [
            begin(gap * 2, 0, 0),
            end(gap * 3, 0, 0),
            begin(gap / 2, 1, 1),
            end(gap, 1, 1),
            begin(gap * 7, 1, 2),
            end(gap * 8, 1, 2),
        ];
        let found = overview(&edges, SpanFilter::default());
        let in_bins: u128 = found.rows[1].busy.iter().map(|&busy| u128::from(busy)).sum();
        assert_eq!(in_bins, u128::from(gap - gap / 2 + gap));
        let picture = found.picture(15);
        assert_eq!((picture.from, picture.to), (gap / 2, gap * 8));
        if gap > 1000 {
            let names: Vec<_> = picture.lines[1].columns.iter().map(|column| column.name).collect();
            assert_eq!((names[0], names[6], names[14]), (Some(1), None, Some(2)));
        }
    }
}

#[test]
fn bins_that_get_wider_keep_their_contents() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let mut step = move || {
            let most = 1 << (1 + random.below(24));
            random.below(most)
        };
        let mut edges = Vec::new();
        for track in 0..4 {
            let mut time = step() * 64;
            for _ in 0..50 {
                time += step();
                edges.push(begin(time, track, track));
                time += step();
                edges.push(end(time, track, track));
            }
        }
        let mut found = overview(&edges, SpanFilter::default());
        found.close_cell();
        for (track, row) in (0..).zip(&found.rows) {
            let own = obvious(&edges).into_iter().filter(|span| span.track == track);
            let expected: u128 = own.map(|span| u128::from(span.duration())).sum();
            let in_bins: u128 = row.busy.iter().map(|&busy| u128::from(busy)).sum();
            let in_cells: u128 = row.cells.iter().flatten().map(|&(_, busy)| u128::from(busy)).sum();
            assert_eq!((in_bins, in_cells, row.total), (expected, expected, expected));
        }
    }
}

#[test]
fn the_busiest_name_is_the_innermost_one() {
    let edges = [begin(0, 0, 0), begin(100, 0, 1), end(900, 0, 1), end(1000, 0, 0)];
    let picture = overview(&edges, SpanFilter::default()).picture(10);
    let names: Vec<_> = picture.lines[0].columns.iter().map(|column| column.name).collect();
    assert_eq!((names[0], names[5], names[9]), (Some(0), Some(1), Some(0)));
    let outer = SpanFilter { depth: Some(0..1), ..SpanFilter::default() };
    let picture = overview(&edges, outer).picture(10);
    assert!(picture.lines[0].columns.iter().all(|column| column.name == Some(0)));
}

#[test]
fn a_time_range_cuts_spans_that_extend_beyond_it() {
    let edges = [begin(0, 0, 0), end(1000, 0, 0)];
    let time = Some((TimeBound::Native(200), TimeBound::Native(300)));
    let picture = overview(&edges, SpanFilter { time, ..SpanFilter::default() }).picture(10);
    assert_eq!((picture.from, picture.to, picture.lines[0].busy), (200, 300, 100));
}

#[test]
fn instants_are_marked_and_hostile_times_survived() {
    let edges = [
        edge(EdgeKind::Instant, 500, 0, 0),
        end(3, 0, 0),
        begin(u64::MAX, 0, 0),
        begin(0, 0, 0),
        end(u64::MAX, 0, 0),
        begin(0, 1, 0),
        end(u64::MAX, 1, 0),
    ];
    let picture = overview(&edges, SpanFilter::default()).picture(10);
    assert!(picture.lines[0].columns[0].has_instant);
    assert!(picture.lines[1].columns.iter().all(|column| column.busy > 0.9), "{picture:?}");
    assert_eq!(overview(&[], SpanFilter::default()).picture(0).lines, []);
}

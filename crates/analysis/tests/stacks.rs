//! Tables of call stacks, sorted runs of them and flame graphs, against maps from entire paths.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::flame::{DEEPER, DEPTH_MAX, FlameGraph, Side, StackWeights, Weight};
use anytrace_analysis::pass::Pass;
use anytrace_analysis::stack_runs::{Merged, StackRuns, StackSums};
use anytrace_analysis::stacks::{ROOT, StackId, StackTable};
use anytrace_core::Kind;
use anytrace_core::span::{Edge, EdgeKind, TimeUnit};
use common::{Forest, Made, NANOSECONDS, Random, edge, play};

/// Paths as programs have them: steps to a callee and back.
fn walk(seed: u64, names: u64, steps: usize) -> Vec<Vec<u32>> {
    let mut random = Random(seed);
    let mut path: Vec<u32> = Vec::new();
    let mut all = Vec::new();
    for _ in 0..steps {
        if path.is_empty() || (path.len() < 40 && random.below(2) == 0) {
            path.push(random.below(names) as u32);
        } else {
            path.pop();
        }
        if !path.is_empty() {
            all.push(path.clone());
        }
    }
    all
}

fn intern(table: &mut StackTable, path: &[u32]) -> StackId {
    path.iter().fold(ROOT, |parent, name| table.intern(parent, *name))
}

#[test]
fn each_path_has_one_number_and_each_number_one_path() {
    for (seed, names) in [(1, 2), (2, 5), (3, 200)] {
        let mut table = StackTable::default();
        let mut known: HashMap<Vec<u32>, StackId> = HashMap::new();
        for path in walk(seed, names, 4000) {
            let id = intern(&mut table, &path);
            assert_eq!(*known.entry(path.clone()).or_insert(id), id);
            assert_eq!(table.path(id), path);
            assert_eq!((table.depth(id), table.name(id)), (path.len(), *path.last().unwrap()));
        }
        let prefixes: BTreeSet<&[u32]> = known.keys().flat_map(|path| (1..=path.len()).map(|to| &path[..to])).collect();
        assert_eq!(table.len(), prefixes.len());
        for id in 0..table.len() as u32 {
            // What other parts of the toolkit rely on: callers come first.
            assert!(table.parent(id) == ROOT || table.parent(id) < id);
        }
    }
}

#[test]
fn numbers_are_those_of_first_appearance() {
    let mut table = StackTable::default();
    let mut seen: Vec<Vec<u32>> = Vec::new();
    for path in walk(4, 9, 2000) {
        for to in 1..=path.len() {
            if !seen.contains(&path[..to].to_vec()) {
                seen.push(path[..to].to_vec());
            }
        }
        let id = intern(&mut table, &path);
        assert_eq!(seen[id as usize], path);
    }
}

#[test]
fn merged_tables_have_the_paths_of_both() {
    let (a, b) = (walk(5, 6, 900), walk(6, 6, 900));
    let (mut first, mut second) = (StackTable::default(), StackTable::default());
    a.iter().for_each(|path| {
        intern(&mut first, path);
    });
    b.iter().for_each(|path| {
        intern(&mut second, path);
    });
    let before: Vec<Vec<u32>> = (0..first.len() as u32).map(|id| first.path(id)).collect();
    let numbers = first.merge(&second);
    assert_eq!(numbers.len(), second.len());
    for (theirs, ours) in (0..).zip(&numbers) {
        assert_eq!(first.path(*ours), second.path(theirs));
    }
    for (id, path) in (0..).zip(&before) {
        assert_eq!(first.path(id), *path, "numbers given earlier stay");
    }
    let length = first.len();
    assert_eq!(first.merge(&second), numbers, "merging again adds nothing");
    assert_eq!(first.len(), length);
}

#[test]
fn a_full_table_returns_callers_and_counts_what_it_folds() {
    for limit in [0, 1, 7, 60] {
        let mut table = StackTable::with_limit(limit);
        let mut folded = 0;
        for path in walk(7, 5, 600) {
            let id = intern(&mut table, &path);
            let found = table.path(id);
            assert!(found.len() <= path.len());
            folded += (path.len() - found.len()) as u64;
            // Frames without room are left out; those with room keep their order.
            let mut rest = path.iter();
            assert!(found.iter().all(|name| rest.any(|other| other == name)), "{found:?} of {path:?}");
        }
        assert_eq!((table.len(), table.folded()), (limit as usize, folded));
    }
}

#[test]
fn a_cleared_table_begins_at_0() {
    let mut table = StackTable::default();
    walk(8, 50, 800).iter().for_each(|path| {
        intern(&mut table, path);
    });
    table.clear();
    assert!(table.is_empty() && table.path(3).is_empty());
    let path = [9, 9, 1];
    assert_eq!((intern(&mut table, &path), table.path(2)), (2, path.to_vec()));
}

fn sums(random: &mut Random) -> StackSums {
    match random.below(5) {
        0 => StackSums::default(),
        1 => {
            let sum = random.below(1 << 40);
            StackSums { leaf_count: 1, leaf_sum: sum, count: 1, sum, self_sum: sum }
        }
        2 => StackSums { leaf_count: 0, leaf_sum: 0, count: 1, sum: random.below(1 << 20), self_sum: random.below(99) },
        _ => {
            let [leaf_count, leaf_sum, count, sum, self_sum] = std::array::from_fn(|_| random.below(1 << 30));
            StackSums { leaf_count, leaf_sum, count, sum, self_sum }
        }
    }
}

/// Sums by path, in the order of paths.
type ByPath = BTreeMap<Vec<u32>, StackSums>;

fn read(runs: &StackRuns, root: Option<u32>) -> (Vec<Vec<u32>>, ByPath) {
    let (mut order, mut by_path, mut path) = (Vec::new(), ByPath::new(), Vec::new());
    runs.for_each(root, &mut |merged: &Merged| {
        path.truncate(merged.depth as usize);
        assert_eq!(path.len(), merged.depth as usize, "a callee comes right after its caller");
        path.push(merged.name);
        order.push(path.clone());
        assert!(by_path.insert(path.clone(), merged.sums).is_none(), "each stack comes once");
        Ok(())
    })
    .unwrap();
    (order, by_path)
}

#[test]
fn runs_add_up_to_one_map_of_paths() {
    for (seed, tables) in [(10, 1), (11, 3), (12, 40)] {
        let mut random = Random(seed);
        let mut runs = StackRuns::new(None);
        let mut expected: BTreeMap<u32, ByPath> = BTreeMap::new();
        for number in 0..tables {
            let mut table = StackTable::default();
            walk(seed * 100 + number, 6, 400).iter().for_each(|path| {
                intern(&mut table, path);
            });
            let sums: Vec<StackSums> = (0..table.len()).map(|_| sums(&mut random)).collect();
            runs.add(&table, &sums).unwrap();
            for (id, sums) in (0..).zip(&sums) {
                let path = table.path(id);
                if path.len() > 1 {
                    let below = expected.entry(path[0]).or_default();
                    below.entry(path[1..].to_vec()).or_default().add(sums);
                }
            }
        }
        for (root, expected) in expected {
            let (order, found) = read(&runs, Some(root));
            assert_eq!(found, expected, "below {root}");
            assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "callees by number, callers first");
        }
        assert!(read(&runs, Some(77)).1.is_empty());
    }
}

#[test]
fn many_small_runs_of_a_root_are_joined_without_loss() {
    let mut runs = StackRuns::new(None);
    let mut expected = ByPath::new();
    for number in 0..1100_u32 {
        let mut table = StackTable::default();
        let path = [0, number % 7, number % 3];
        intern(&mut table, &path);
        let one = StackSums { leaf_count: 1, leaf_sum: 5, count: 1, sum: 5, self_sum: 5 };
        runs.add(&table, &[StackSums::default(), StackSums::default(), one]).unwrap();
        expected.entry(vec![path[1]]).or_default();
        expected.entry(path[1..].to_vec()).or_default().add(&one);
    }
    assert_eq!(read(&runs, Some(0)).1, expected);
}

#[test]
fn absorbed_runs_count_as_if_they_had_been_added() {
    let mut all = StackRuns::new(None);
    let mut parts = [StackRuns::new(None), StackRuns::new(None)];
    for number in 0..6 {
        let mut table = StackTable::default();
        walk(300 + number, 4, 200).iter().for_each(|path| {
            intern(&mut table, path);
        });
        let mut random = Random(number);
        let sums: Vec<StackSums> = (0..table.len()).map(|_| sums(&mut random)).collect();
        all.add(&table, &sums).unwrap();
        parts[number as usize % 2].add(&table, &sums).unwrap();
    }
    let [mut first, second] = parts;
    first.absorb(second, |root| root);
    for root in [None, Some(0), Some(1), Some(2), Some(3)] {
        assert_eq!(read(&first, root).1, read(&all, root).1);
    }
}

#[test]
fn what_a_visitor_returns_ends_the_visit() {
    let mut runs = StackRuns::new(None);
    let mut table = StackTable::default();
    walk(20, 4, 300).iter().for_each(|path| {
        intern(&mut table, path);
    });
    runs.add(&table, &[]).unwrap();
    let mut visited = 0;
    let ended = runs.for_each(None, &mut |_| {
        visited += 1;
        if visited == 3 { Err(io::Error::other("enough")) } else { Ok(()) }
    });
    assert_eq!((ended.unwrap_err().to_string().as_str(), visited), ("enough", 3));
}

fn add(
    graph: &mut FlameGraph,
    side: Side,
    by: Weight,
    edges: &[Edge],
    unit: TimeUnit,
) -> Result<(), anytrace_core::Error> {
    let mut weights = StackWeights::new(by);
    let mut pass = Pass::new(SpanFilter::default(), true, vec![&mut weights]);
    play(edges, 100, unit, &mut pass);
    let done = pass.finish();
    graph.add(side, weights, done.stacks.unwrap(), &done.directory)
}

/// Own weights by path of names, of each side.
fn visited(graph: &FlameGraph, least: u64) -> Vec<(Vec<String>, [u64; 2])> {
    let mut all = Vec::new();
    graph
        .visit(least, &mut |path, own| {
            let names = path.iter().map(|name| String::from_utf8_lossy(graph.name(*name)).into_owned());
            all.push((names.collect(), own));
            Ok(())
        })
        .unwrap();
    all
}

fn by_path(spans: &[Made], weigh: impl Fn(&Made) -> u64) -> BTreeMap<Vec<String>, u64> {
    let mut all: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for span in spans {
        *all.entry(span.path.iter().map(|name| format!("f{name}")).collect()).or_default() += weigh(span);
    }
    all.retain(|_, weight| *weight > 0);
    all
}

#[test]
fn both_sides_of_a_flame_graph_have_the_weights_of_their_traces() {
    let (a, b) = (Forest::grow(70, 2, 4, 150), Forest::grow(71, 3, 6, 150));
    for by in [Weight::Time, Weight::Count] {
        let mut graph = FlameGraph::default();
        add(&mut graph, Side::Base, by, &a.mixed(1), NANOSECONDS).unwrap();
        add(&mut graph, Side::Shown, by, &b.mixed(1), NANOSECONDS).unwrap();
        let weigh = |span: &Made| if by == Weight::Time { span.own } else { 1 };
        let (base, shown) = (by_path(&a.spans, weigh), by_path(&b.spans, weigh));
        let found = visited(&graph, 0);
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "callers before callees, siblings by name");
        let paths: BTreeSet<&Vec<String>> = base.keys().chain(shown.keys()).collect();
        assert_eq!(found.len(), paths.len());
        for (path, own) in &found {
            let of = |side: &BTreeMap<Vec<String>, u64>| side.get(path).copied().unwrap_or(0);
            assert_eq!(*own, [of(&base), of(&shown)], "{path:?}");
        }
        assert_eq!(graph.total(Side::Base), base.values().map(|weight| u128::from(*weight)).sum());
        assert_eq!(graph.total(Side::Shown), shown.values().map(|weight| u128::from(*weight)).sum());
    }
}

#[test]
fn several_traces_on_one_side_add_up() {
    let (a, b) = (Forest::grow(72, 2, 3, 100), Forest::grow(73, 1, 5, 100));
    let mut graph = FlameGraph::default();
    for forest in [&a, &b, &a] {
        add(&mut graph, Side::Shown, Weight::Time, &forest.mixed(2), NANOSECONDS).unwrap();
    }
    let spans: Vec<Made> = [&a, &b, &a].iter().flat_map(|forest| forest.spans.clone()).collect();
    let expected = by_path(&spans, |span| span.own);
    let found: BTreeMap<_, _> = visited(&graph, 0).into_iter().map(|(path, own)| (path, own[1])).collect();
    assert_eq!(found, expected);
}

#[test]
fn light_stacks_give_their_weight_to_their_callers() {
    let forest = Forest::grow(74, 2, 4, 200);
    let mut graph = FlameGraph::default();
    add(&mut graph, Side::Shown, Weight::Time, &forest.mixed(1), NANOSECONDS).unwrap();
    let own = by_path(&forest.spans, |span| span.own);
    let inclusive =
        |path: &[String]| -> u64 { own.iter().filter(|(of, _)| of.starts_with(path)).map(|(_, w)| w).sum() };
    for least in [1, 20, 100, 400, 1_000_000] {
        let mut expected: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for (path, weight) in &own {
            // The innermost frame that weighs enough; above a light frame none of its callees can.
            let kept = (1..=path.len()).rev().find(|to| inclusive(&path[..*to]) >= least);
            if let Some(to) = kept {
                *expected.entry(path[..to].to_vec()).or_default() += weight;
            }
        }
        let found: BTreeMap<_, _> = visited(&graph, least).into_iter().map(|(path, own)| (path, own[1])).collect();
        assert_eq!(found, expected, "at least {least}");
    }
}

#[test]
fn stacks_beyond_the_limit_keep_their_weight_in_one_frame() {
    let deep = DEPTH_MAX as u64 + 40;
    let mut edges: Vec<Edge> = (0..deep).map(|time| edge(EdgeKind::Begin, time, 0, 0)).collect();
    edges.extend((0..deep).map(|at| edge(EdgeKind::End, deep + at, 0, 0)));
    let mut graph = FlameGraph::default();
    add(&mut graph, Side::Shown, Weight::Count, &edges, NANOSECONDS).unwrap();
    let found = visited(&graph, 0);
    assert_eq!(graph.total(Side::Shown), u128::from(deep));
    let (last, own) = found.last().unwrap();
    assert_eq!((last.len(), last.last().unwrap().as_bytes(), own[1]), (DEPTH_MAX + 1, DEEPER, 40));
}

#[test]
fn times_without_a_common_unit_are_refused_and_counts_are_not() {
    let edges = Forest::grow(75, 1, 3, 20).mixed(1);
    let ticks = TimeUnit::Ticks { per_second: None };
    let mut graph = FlameGraph::default();
    assert_eq!(graph.word(), None);
    add(&mut graph, Side::Base, Weight::Time, &edges, NANOSECONDS).unwrap();
    let error = add(&mut graph, Side::Shown, Weight::Time, &edges, ticks).unwrap_err();
    assert_eq!((error.kind(), graph.word()), (Kind::Usage, Some("ns")));
    let mut graph = FlameGraph::default();
    add(&mut graph, Side::Base, Weight::Count, &edges, NANOSECONDS).unwrap();
    add(&mut graph, Side::Shown, Weight::Count, &edges, ticks).unwrap();
    assert_eq!(graph.total(Side::Base), graph.total(Side::Shown));
}

#[test]
fn ticks_of_a_known_length_are_weighed_as_nanoseconds() {
    let forest = Forest::grow(76, 2, 3, 60);
    let mut graph = FlameGraph::default();
    let unit = TimeUnit::Ticks { per_second: Some(500_000_000) };
    add(&mut graph, Side::Shown, Weight::Time, &forest.mixed(1), unit).unwrap();
    let expected = by_path(&forest.spans, |span| span.own * 2);
    let found: BTreeMap<_, _> = visited(&graph, 0).into_iter().map(|(path, own)| (path, own[1])).collect();
    assert_eq!(found, expected);
}

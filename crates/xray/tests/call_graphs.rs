//! Call graphs as they are printed, their rules of pairing, and two of them side by side, against slow obvious counts.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::threshold::Threshold;
use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_export::cells::Cells;
use anytrace_xray::tools::graph::{CallGraph, CallStats, Pairing, graph};
use anytrace_xray::tools::graph_diff::GraphDiff;
use anytrace_xray::tools::{GraphReport, GraphView, Stat};
use common::run::{Parts, Random, Run};
use common::slow::What;
use serde_json::Value;

const FREQUENCY: u64 = 1_000_000_000;

/// Functions whose names are hard to print; the others have none.
const NAMES: [(u32, &str); 4] = [
    (1, "operator|(A{1}, \"x\", <y> & 'z')"),
    (2, "a,b\\c"),
    (3, "a very long name that is cut after forty of its characters"),
    (4, "=ä\u{1f980}"),
];

fn name(id: u32) -> String {
    NAMES.iter().find(|(known, _)| *known == id).map_or_else(|| format!("#{id}"), |(_, name)| (*name).to_owned())
}

/// The YAML of a run, with names.
fn named(run: &Run, name: &dyn Fn(u32) -> String) -> Vec<u8> {
    let mut text = String::from_utf8(run.yaml(3, 0, 1)).unwrap();
    for id in 0..10 {
        let name = name(id).replace('\\', "\\\\").replace('"', "\\\"");
        text = text.replace(&format!("function: '{id}'"), &format!("function: \"{name}\""));
    }
    text.into_bytes()
}

fn calls(bytes: &[u8], pairing: Pairing, threads: usize) -> CallGraph {
    let open = OpenOptions { threads, ..OpenOptions::default() };
    graph(Input::from_bytes("x", bytes.to_vec()), &open, pairing, &mut Collect::default()).unwrap()
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Lengths of calls by caller (0 for none) and callee, and what fits nothing.
#[derive(Default)]
struct Slow {
    lengths: BTreeMap<(u32, u32), Vec<u64>>,
    entered: BTreeSet<u32>,
    orphans: u64,
    deduced: u64,
    unfinished: u64,
}

/// Counts a run. With `has_processes`, equal thread numbers of several processes are several threads; with `deduces`,
/// an exit ends the calls inside its own.
fn slow(run: &Run, has_processes: bool, deduces: bool) -> Slow {
    let mut found = Slow::default();
    let mut open: BTreeMap<(u32, u32), Vec<(u32, u64)>> = BTreeMap::new();
    let mut all = run.all();
    all.sort_by_key(|what| what.tsc);
    for What { thread, process, tsc, kind, id, .. } in all {
        let stack = open.entry((if has_processes { process } else { 0 }, thread)).or_default();
        if kind.starts_with("function-enter") {
            found.entered.insert(id);
            stack.push((id, tsc));
            continue;
        }
        let place = stack.iter().rposition(|(open, _)| *open == id);
        match place.filter(|place| deduces || place + 1 == stack.len()) {
            None => found.orphans += 1,
            Some(place) => {
                found.deduced += (stack.len() - place - 1) as u64;
                while stack.len() > place {
                    let (callee, entered) = stack.pop().unwrap();
                    let caller = stack.last().map_or(0, |(caller, _)| *caller);
                    found.lengths.entry((caller, callee)).or_default().push(tsc - entered);
                }
            }
        }
    }
    found.unfinished = open.values().map(Vec::len).sum::<usize>() as u64;
    found
}

fn stats(mut lengths: Vec<u64>) -> CallStats {
    lengths.sort_unstable();
    let (n, at) = (lengths.len(), |place: usize| lengths.get(place).copied().unwrap_or_default());
    CallStats {
        count: n as u64,
        min: at(0),
        median: at(n / 2),
        p90: at(n * 9 / 10),
        p99: at(n * 99 / 100),
        max: at(n.saturating_sub(1)),
        sum: lengths.iter().map(|length| u128::from(*length)).sum(),
    }
}

impl Slow {
    fn edges(&self) -> BTreeMap<(u32, u32), CallStats> {
        self.lengths.iter().map(|(ends, lengths)| (*ends, stats(lengths.clone()))).collect()
    }

    fn functions(&self) -> BTreeMap<u32, CallStats> {
        let of = |id: u32| {
            let all = self.lengths.iter().filter(move |((_, callee), _)| *callee == id);
            stats(all.flat_map(|(_, lengths)| lengths.clone()).collect())
        };
        self.entered.iter().map(|id| (*id, of(*id))).collect()
    }
}

fn run(seed: u64) -> Run {
    Run::make(seed, Parts { events: false, long_steps: seed.is_multiple_of(2), ..Parts::of_basic(3) }, false)
}

fn in_seconds(ticks: u64) -> f64 {
    ticks as f64 / FREQUENCY as f64
}

#[test]
fn every_rule_of_pairing_counts_as_a_slow_list_does() {
    for seed in 0..150 {
        let run = run(seed);
        let bytes = run.fdr(5, false, 0);
        for (pairing, has_processes, deduces) in [
            (Pairing::Right, true, true),
            (Pairing::Compat { keep_going: true, deduce: true }, false, true),
            (Pairing::Compat { keep_going: true, deduce: false }, false, false),
        ] {
            let expected = slow(&run, has_processes, deduces);
            for threads in [1, 3] {
                let found = calls(&bytes, pairing, threads);
                let edges: BTreeMap<_, _> =
                    found.edges.iter().map(|edge| ((edge.caller, edge.callee), edge.stats)).collect();
                assert_eq!(edges, expected.edges(), "seed {seed}, {pairing:?}");
                assert_eq!(edges.len(), found.edges.len());
                let functions: BTreeMap<_, _> =
                    found.vertices.iter().map(|vertex| (vertex.function, vertex.stats)).collect();
                assert_eq!(functions, expected.functions(), "seed {seed}, {pairing:?}");
                let odd = found.oddities;
                let expected = (expected.orphans, expected.deduced, expected.unfinished);
                assert_eq!((odd.orphans, odd.deduced, odd.unfinished), expected, "seed {seed}, {pairing:?}");
                assert_eq!(found.failure, None);
            }
        }
    }
}

#[test]
fn without_keep_going_the_first_exit_of_nothing_is_a_failure() {
    for seed in 0..100 {
        let run = run(seed);
        let bytes = run.basic(3, false, seed);
        for (deduce, failure) in [(true, "No matching Entry record in stack"), (false, "No matching ENTRY record")] {
            let found = calls(&bytes, Pairing::Compat { keep_going: false, deduce }, 1).failure;
            assert_eq!(found, (slow(&run, false, deduce).orphans > 0).then_some(failure), "seed {seed}");
        }
    }
}

fn assert_seconds(found: &Value, ticks: u64) {
    let (found, wanted) = (found.as_f64().unwrap(), in_seconds(ticks));
    assert!((found - wanted).abs() <= wanted * 1e-12, "{found}, {wanted}");
}

fn assert_numbers(found: &Value, expected: &CallStats) {
    let CallStats { count, min, median, p90, p99, max, sum } = *expected;
    assert_eq!(found["count"], count);
    for (key, ticks) in [("min", min), ("med", median), ("90p", p90), ("99p", p99), ("max", max)] {
        assert_seconds(&found[key], ticks);
    }
    assert_seconds(&found["sum"], u64::try_from(sum).unwrap());
}

#[test]
fn json_has_every_function_and_call() {
    for seed in 0..40 {
        let run = run(seed);
        let (found, expected) = (calls(&named(&run, &name), Pairing::Right, 2), slow(&run, true, true));
        let json: Value = serde_json::from_str(&text(|out| GraphReport::new(&found, None).json(out))).unwrap();
        assert_eq!((&json["version"], &json["unit"]), (&1.into(), &"seconds".into()));
        let functions = json["functions"].as_array().unwrap();
        assert_eq!(functions.len(), expected.entered.len());
        for (found, (id, stats)) in functions.iter().zip(expected.functions()) {
            assert_eq!((&found["id"], &found["name"]), (&id.into(), &name(id).into()));
            assert_numbers(found, &stats);
        }
        let calls = json["calls"].as_array().unwrap();
        assert_eq!(calls.len(), expected.lengths.len());
        for (found, ((caller, callee), stats)) in calls.iter().zip(expected.edges()) {
            let caller_name = if caller == 0 { Value::Null } else { name(caller).into() };
            assert_eq!((&found["callee"], &found["callee_name"]), (&callee.into(), &name(callee).into()));
            assert_eq!(found["caller_name"], caller_name);
            assert_numbers(found, &stats);
        }
    }
}

/// Cells of a line of CSV, quotes removed.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

#[test]
fn csv_has_a_line_for_each_call() {
    // Doubled quotes would be lost on the simple reader of cells above.
    let name = |id: u32| name(id).replace('"', "");
    for seed in 0..40 {
        let run = run(seed);
        let found = calls(&named(&run, &name), Pairing::Right, 2);
        let csv = text(|out| GraphReport::new(&found, None).csv(Cells::Raw, out));
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some("caller_id,caller,callee_id,callee,count,min,med,90p,99p,max,sum"));
        for (line, ((caller, callee), stats)) in lines.by_ref().zip(slow(&run, true, true).edges()) {
            let cells = cells(line);
            let of_caller =
                if caller == 0 { [String::new(), String::new()] } else { [caller.to_string(), name(caller)] };
            assert_eq!(cells[..2], of_caller, "{line}");
            assert_eq!(cells[2..5], [callee.to_string(), name(callee), stats.count.to_string()], "{line}");
            let ticks = [stats.min, stats.median, stats.p90, stats.p99, stats.max, stats.sum as u64];
            for (cell, ticks) in cells[5..].iter().zip(ticks) {
                let (number, seconds): (f64, f64) = (cell.parse().unwrap(), in_seconds(ticks));
                assert!((number - seconds).abs() <= seconds * 1e-6, "{line}: {number}, {seconds}");
            }
        }
        assert_eq!(lines.next(), None);
    }
}

#[test]
fn drawings_have_every_vertex_and_edge_once_with_the_statistic_asked_for() {
    for seed in 0..20 {
        let run = run(seed);
        let (found, expected) = (calls(&named(&run, &name), Pairing::Right, 1), slow(&run, true, true));
        for (n, (stat, _)) in Stat::ALL.into_iter().enumerate() {
            let color = Stat::ALL[(n + 3) % 7].0;
            let view = GraphView { edge_label: stat, vertex_label: stat, edge_color: color, vertex_color: color };
            let dot = text(|out| GraphReport::new(&found, None).dot(&view, out));
            let edges: Vec<_> = dot.lines().filter(|line| line.contains(" -> F")).collect();
            let vertices: Vec<_> =
                dot.lines().filter(|line| line.starts_with('F') && !line.contains(" -> F")).collect();
            assert_eq!((edges.len(), vertices.len()), (expected.lengths.len(), expected.entered.len()));
            for ((caller, callee), stats) in expected.edges() {
                let start = format!("F{caller} -> F{callee} [label=\"");
                let line = edges.iter().find(|line| line.starts_with(&start)).unwrap();
                let label: f64 = line[start.len()..].split('"').next().unwrap().parse().unwrap();
                let ticks = match stat {
                    Stat::Count => stats.count,
                    Stat::Min => stats.min,
                    Stat::Med => stats.median,
                    Stat::P90 => stats.p90,
                    Stat::P99 => stats.p99,
                    Stat::Max => stats.max,
                    _ => stats.sum as u64,
                };
                let wanted = if stat == Stat::Count { ticks as f64 } else { in_seconds(ticks) };
                assert!((label - wanted).abs() <= wanted * 1e-6, "{line}: {wanted}");
                let color = line.split("color=\"#").nth(1).unwrap().split('"').next().unwrap();
                assert!(color.len() == 6 && color.chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            }
            // In labels with fields, what delimits fields is escaped.
            for line in vertices {
                let label = line.split("label=\"").nth(1).unwrap().rsplit_once("\" color=").unwrap().0;
                let plain = label.replace("\\\\", "").replace("\\{", "").replace("\\}", "").replace("\\|", "");
                assert!(plain.starts_with('{') && plain.ends_with('}'), "{line}");
                assert_eq!(plain.matches(['{', '}', '|']).count(), 3, "{line}");
                assert!(!plain.contains(['<', '>', '"']), "{line}");
            }
        }
    }
}

/// Functions that share names, one of which is what another is called to distinguish it.
fn shared(id: u32) -> String {
    ["", "f", "g", "f", "f (2)", "g", "f", "f (3)", "h"]
        .get(id as usize)
        .map_or_else(|| format!("#{id}"), |n| (*n).into())
}

#[test]
fn no_function_is_lost_to_another_of_the_same_name() {
    for seed in 0..60 {
        let run = run(seed);
        let found = calls(&named(&run, &shared), Pairing::Right, 1);
        let diff = GraphDiff::new([&found, &found], [None, None]);
        let expected = slow(&run, true, true);
        let names: BTreeSet<_> = diff.functions().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names.len(), expected.entered.len(), "seed {seed}: {names:?}");
        let mut counts: Vec<_> =
            diff.functions().map(|(_, sides)| sides[0].unwrap()).map(|s| (s.count, s.sum)).collect();
        let mut wanted: Vec<_> = expected.functions().values().map(|stats| (stats.count, stats.sum)).collect();
        counts.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(counts, wanted, "seed {seed}");
        assert_eq!(diff.calls().count(), expected.lengths.len(), "seed {seed}");
        for id in expected.entered {
            let is_first = (1..id).all(|before| shared(before) != shared(id));
            assert!(!is_first || names.contains(&shared(id)), "seed {seed}: {id} has a name of its own");
        }
    }
}

#[test]
fn calls_of_function_0_are_not_those_of_the_first_name() {
    let entry = |id: u32, kind: &str, tsc: u64| {
        format!(
            "  - {{ type: 0, func-id: {id}, function: '{id}', cpu: 1, thread: 2, kind: {kind}, tsc: {tsc}, data: '' }}\n"
        )
    };
    let mut yaml = String::from_utf8(Run { threads: vec![] }.yaml(3, 0, 0)).unwrap().replace("...\n", "");
    for (id, kind, tsc) in
        [(5, "function-enter", 1), (5, "function-exit", 9), (0, "function-enter", 20), (0, "function-exit", 50)]
    {
        yaml += &entry(id, kind, tsc);
    }
    let found = calls(format!("{yaml}...\n").as_bytes(), Pairing::Right, 1);
    let diff = GraphDiff::new([&found, &found], [None, None]);
    let sums: Vec<_> = diff.calls().map(|(_, callee, sides)| (callee.to_owned(), sides[0].unwrap().sum)).collect();
    assert_eq!(sums, [("#0".to_owned(), 30), ("#5".to_owned(), 8)]);
}

#[test]
fn two_graphs_are_paired_by_name_and_changes_are_relative() {
    let mut random = Random(5);
    for seed in 0..60 {
        let runs = [run(seed), run(seed + 1000)];
        let graphs = [0, 1].map(|n| calls(&named(&runs[n], &name), Pairing::Right, 1));
        let slow = [0, 1].map(|n| slow(&runs[n], true, true));
        let diff = GraphDiff::new([&graphs[0], &graphs[1]], [None, None]);
        let mut functions: BTreeMap<String, [Option<CallStats>; 2]> = BTreeMap::new();
        let mut edges: BTreeMap<(Option<String>, String), [Option<CallStats>; 2]> = BTreeMap::new();
        for (side, slow) in slow.iter().enumerate() {
            for (id, stats) in slow.functions() {
                functions.entry(name(id)).or_default()[side] = Some(stats);
            }
            for ((caller, callee), stats) in slow.edges() {
                let caller = (caller != 0).then(|| name(caller));
                edges.entry((caller, name(callee))).or_default()[side] = Some(stats);
            }
        }
        let found: Vec<_> = diff.functions().map(|(name, sides)| (name.to_owned(), *sides)).collect();
        assert_eq!(found, functions.clone().into_iter().collect::<Vec<_>>(), "seed {seed}");
        let found: Vec<_> = diff.calls().map(|(a, b, sides)| ((a.map(str::to_owned), b.to_owned()), *sides)).collect();
        assert_eq!(found, edges.clone().into_iter().collect::<Vec<_>>(), "seed {seed}");

        let (percent, least) = (random.below(100) as f64 + 0.37, random.below(4));
        let threshold = Threshold { statistic: Stat::Max, percent };
        let exceeds = |sides: &[Option<CallStats>; 2]| match sides {
            [Some(a), Some(b)] => {
                // Without division: b is more than a and so many hundredths of it.
                let is_more = b.max > a.max && b.max as f64 * 100.0 > a.max as f64 * (100.0 + percent);
                is_more && a.count.max(b.count) >= least.max(1)
            }
            _ => false,
        };
        let call =
            |ends: &(Option<String>, String)| format!("call {} -> {}", ends.0.as_deref().unwrap_or("F0"), ends.1);
        let of_functions =
            functions.iter().filter(|(_, sides)| exceeds(sides)).map(|(name, _)| format!("function {name}"));
        let expected: Vec<_> =
            of_functions.chain(edges.iter().filter(|(_, sides)| exceeds(sides)).map(|(ends, _)| call(ends))).collect();
        let breaches = diff.breaches(&[threshold], least);
        assert_eq!(breaches.iter().map(|breach| breach.what.clone()).collect::<Vec<_>>(), expected, "seed {seed}");

        let json: Value = serde_json::from_str(&text(|out| diff.json(&breaches, out))).unwrap();
        assert_eq!(json["failures"].as_array().unwrap().len(), expected.len());
        for (found, (name, sides)) in json["functions"].as_array().unwrap().iter().zip(&functions) {
            let state = match sides {
                [Some(_), Some(_)] => "both",
                [Some(_), None] => "gone",
                _ => "new",
            };
            assert_eq!((&found["name"], &found["state"]), (&name.as_str().into(), &state.into()));
            for (key, side) in [("a", &sides[0]), ("b", &sides[1])] {
                match side {
                    Some(stats) => assert_numbers(&found[key], stats),
                    None => assert!(found[key].is_null()),
                }
            }
        }
        let csv = text(|out| diff.csv(Cells::Raw, out));
        assert_eq!(csv.lines().count(), 1 + functions.len() + edges.len());
        let dot = text(|out| diff.dot(&GraphView::default(), 40, out));
        assert_eq!(dot.lines().filter(|line| line.contains(" -> F")).count(), edges.len());
    }
}

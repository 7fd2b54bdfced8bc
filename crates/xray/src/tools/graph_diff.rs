//! Two call graphs side by side, functions matched by name: which calls became slower, faster, more or fewer, and which
//! are new or gone.

use anytrace_analysis::threshold::Threshold;
use anytrace_core::hash::{Map, Set};
use anytrace_core::span::Symbols;

use super::graph::{CallGraph, CallStats, ROOT};
use super::graph_report::Stat;

/// The root's name in drawings.
pub(crate) const ROOT_NAME: &str = "F0";

/// A function or call in both graphs; `None` if a graph does not have it.
pub type Sides = [Option<CallStats>; 2];

/// Two graphs by name.
#[derive(Debug, Clone, Default)]
pub struct GraphDiff {
    /// All names, ascending, each once.
    names: Vec<String>,
    /// Functions, one a name; a name without any is that of a caller which no trace has as a function.
    functions: Vec<Sides>,
    /// Calls by caller (`None` for outermost calls) and callee, as numbers of names, ascending.
    calls: Vec<(Ends, Sides)>,
    /// Ticks a second of both; 0 where unknown.
    pub cycle_frequencies: [u64; 2],
}

/// Caller and callee of a call, as numbers of names: in the same order as the names.
type Ends = (Option<usize>, usize);

impl GraphDiff {
    /// Matches two graphs. Functions of one trace that share a name are distinguished by a number after it, in order of
    /// their ids.
    pub fn new(graphs: [&CallGraph; 2], symbols: [Option<&dyn Symbols>; 2]) -> Self {
        let mut named: Vec<(String, usize, u32)> = Vec::new();
        for (side, (graph, symbols)) in graphs.into_iter().zip(symbols).enumerate() {
            named.extend(names(graph, symbols).into_iter().map(|(name, id)| (name, side, id)));
        }
        // Each name is compared and moved once, and what follows works with numbers: there may be millions of edges.
        named.sort_unstable();
        let mut diff = Self { cycle_frequencies: graphs.map(|graph| graph.cycle_frequency), ..Self::default() };
        let mut numbers: [Map<u32, usize>; 2] = [Map::default(), Map::default()];
        for (name, side, id) in named {
            if diff.names.last() != Some(&name) {
                diff.names.push(name);
            }
            if let Some(numbers) = numbers.get_mut(side) {
                numbers.insert(id, diff.names.len() - 1);
            }
        }
        diff.functions.resize(diff.names.len(), Sides::default());
        let mut calls: Vec<(Ends, usize, CallStats)> = Vec::new();
        for (side, (graph, numbers)) in graphs.into_iter().zip(&numbers).enumerate() {
            let number = |id: u32| numbers.get(&id).copied().unwrap_or_default();
            for vertex in &graph.vertices {
                if let Some(sides) = diff.functions.get_mut(number(vertex.function)) {
                    sides[side] = Some(vertex.stats);
                }
            }
            calls.extend(graph.edges.iter().map(|edge| {
                let caller = (edge.caller != ROOT).then(|| number(edge.caller));
                ((caller, number(edge.callee)), side, edge.stats)
            }));
        }
        calls.sort_by_key(|(ends, ..)| *ends);
        for (ends, side, stats) in calls {
            if diff.calls.last().is_none_or(|(last, _)| *last != ends) {
                diff.calls.push((ends, Sides::default()));
            }
            if let Some((_, sides)) = diff.calls.last_mut() {
                sides[side] = Some(stats);
            }
        }
        diff
    }

    /// Functions by name, ascending.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &Sides)> {
        let all = self.names.iter().zip(&self.functions);
        all.filter(|(_, sides)| sides.iter().any(Option::is_some)).map(|(name, sides)| (name.as_str(), sides))
    }

    /// Calls by names of caller (`None` for outermost calls) and callee, ascending.
    pub fn calls(&self) -> impl Iterator<Item = (Option<&str>, &str, &Sides)> {
        let name = |number: usize| self.names.get(number).map_or("", String::as_str);
        self.calls.iter().map(move |((caller, callee), sides)| (caller.map(name), name(*callee), sides))
    }

    /// Relative change of a statistic from the first to the second: 0.5 is half as much again. `None` where a side is
    /// missing; infinite where nothing became something.
    pub fn change(&self, sides: &Sides, stat: Stat) -> Option<f64> {
        let [Some(before), Some(after)] = sides else { return None };
        let [before, after] = [stat.of(before, self.cycle_frequencies[0]), stat.of(after, self.cycle_frequencies[1])];
        Some(if before == after { 0.0 } else { after / before - 1.0 })
    }

    /// Functions and calls that exceed a threshold, functions first, by name.
    pub fn breaches(&self, thresholds: &[Threshold<Stat>], count_min: u64) -> Vec<Breach> {
        if thresholds.is_empty() {
            return Vec::new();
        }
        let functions = self.functions().map(|(name, sides)| (format!("function {name}"), sides));
        let calls = self
            .calls()
            .map(|(caller, callee, sides)| (format!("call {} -> {callee}", caller.unwrap_or(ROOT_NAME)), sides));
        let mut found = Vec::new();
        for (what, sides) in functions.chain(calls) {
            if !sides.iter().flatten().any(|stats| stats.count >= count_min.max(1)) {
                continue;
            }
            for threshold in thresholds {
                if let Some(change) = self.change(sides, threshold.statistic)
                    && change > threshold.percent / 100.0
                {
                    found.push(Breach { what: what.clone(), threshold: *threshold, change });
                }
            }
        }
        found
    }
}

/// Names of a graph's functions, all different, and of what only its edges name.
fn names(graph: &CallGraph, symbols: Option<&dyn Symbols>) -> Vec<(String, u32)> {
    let mut functions: Vec<u32> = graph.vertices.iter().map(|vertex| vertex.function).collect();
    functions.sort_unstable();
    // As a caller, 0 is the root; as a callee it is a function of that id.
    let callers = graph.edges.iter().map(|edge| edge.caller).filter(|id| *id != ROOT);
    let ends = callers.chain(graph.edges.iter().map(|edge| edge.callee));
    let mut others: Vec<u32> =
        ends.filter(|id| functions.binary_search(id).is_err()).collect::<Set<u32>>().into_iter().collect();
    others.sort_unstable();
    let name = |id: u32| (graph.names.of(id, symbols), id);
    let mut names: Vec<_> = functions.into_iter().map(name).collect();
    // Of equal names the lowest id is first.
    names.sort_unstable();
    number_equal(&mut names);
    names.extend(others.into_iter().map(name));
    names
}

/// Puts numbers behind names that are not the first of their kind; no number makes a name that another function has.
fn number_equal(names: &mut [(String, u32)]) {
    let is_same = |pair: &[(String, u32)]| matches!(pair, [(before, _), (this, _)] if before == this);
    if !names.windows(2).any(is_same) {
        return;
    }
    let taken: Set<String> = names.iter().map(|(name, _)| name.clone()).collect();
    let (mut plain, mut times) = (String::new(), 1_u32);
    for (name, _) in names {
        if *name != plain {
            (plain, times) = (name.clone(), 1);
            continue;
        }
        // The names of one kind differ by their numbers, those of different kinds by what precedes the number.
        *name = loop {
            times += 1;
            let numbered = format!("{plain} ({times})");
            if !taken.contains(&numbered) {
                break numbered;
            }
        };
    }
}

/// A function or call that grew by more than its threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// `function NAME` or `call NAME -> NAME`.
    pub what: String,
    /// The threshold that it exceeds.
    pub threshold: Threshold<Stat>,
    /// By how much it changed; infinite if it grew from zero.
    pub change: f64,
}

#[cfg(test)]
mod tests {
    use super::super::graph::{CallEdge, Vertex};
    use super::*;

    fn function<'a>(diff: &'a GraphDiff, name: &str) -> &'a Sides {
        diff.functions().find(|(one, _)| *one == name).unwrap().1
    }

    fn graph(calls: &[(u32, u32, u64, u128)]) -> CallGraph {
        let mut graph = CallGraph { cycle_frequency: 10, ..CallGraph::default() };
        for &(caller, callee, count, sum) in calls {
            let stats = CallStats { count, sum, ..CallStats::default() };
            graph.edges.push(CallEdge { caller, callee, stats });
            graph.vertices.push(Vertex { function: callee, stats });
        }
        graph
    }

    #[test]
    fn growth_beyond_a_threshold_is_listed_except_for_rare_calls() {
        let (a, b) = (graph(&[(0, 1, 5, 100), (1, 2, 1, 10)]), graph(&[(0, 1, 5, 120), (1, 2, 1, 30), (1, 3, 9, 9)]));
        let diff = GraphDiff::new([&a, &b], [None, None]);
        let threshold = Threshold { statistic: Stat::Sum, percent: 10.0 };
        let found: Vec<String> = diff.breaches(&[threshold], 2).into_iter().map(|breach| breach.what).collect();
        assert_eq!(found, ["function #1", "call F0 -> #1"]);
        assert_eq!(diff.breaches(&[threshold], 0).len(), 4);
        assert_eq!(diff.breaches(&[Threshold { statistic: Stat::Count, percent: 0.0 }], 0), []);
        assert_eq!(function(&diff, "#3").map(|side| side.is_some()), [false, true]);
        let calls: Vec<_> = diff.calls().map(|(caller, callee, sides)| (caller, callee, sides[0].is_some())).collect();
        assert_eq!(calls, [(None, "#1", true), (Some("#1"), "#2", true), (Some("#1"), "#3", false)]);
    }

    #[test]
    fn nothing_to_something_is_without_end_and_nothing_to_nothing_no_change() {
        let (a, b) = (graph(&[(0, 1, 1, 0), (0, 2, 1, 0)]), graph(&[(0, 1, 1, 0), (0, 2, 1, 5)]));
        let diff = GraphDiff::new([&a, &b], [None, None]);
        let change = |name: &str| diff.change(function(&diff, name), Stat::Sum);
        assert_eq!((change("#1"), change("#2")), (Some(0.0), Some(f64::INFINITY)));
    }

    struct Same;

    impl Symbols for Same {
        fn symbol(&self, _id: u64) -> Option<(&str, Option<&anytrace_core::span::Location>)> {
            Some(("f", None))
        }
    }

    #[test]
    fn functions_of_one_name_stay_apart() {
        let a = graph(&[(0, 9, 2, 2), (0, 4, 1, 1), (0, 12, 3, 3)]);
        let diff = GraphDiff::new([&a, &a], [Some(&Same), Some(&Same)]);
        let found: Vec<_> = diff.functions().map(|(name, sides)| (name, sides[1].map(|stats| stats.count))).collect();
        assert_eq!(found, [("f", Some(1)), ("f (2)", Some(2)), ("f (3)", Some(3))]);
    }

    #[test]
    fn a_caller_that_never_ended_has_a_name_and_is_no_function() {
        let mut a = graph(&[(7, 2, 1, 1)]);
        a.vertices.retain(|vertex| vertex.function == 2);
        let diff = GraphDiff::new([&a, &a], [None, None]);
        assert_eq!(diff.functions().map(|(name, _)| name).collect::<Vec<_>>(), ["#2"]);
        assert_eq!(diff.calls().map(|(caller, ..)| caller).collect::<Vec<_>>(), [Some("#7")]);
    }
}

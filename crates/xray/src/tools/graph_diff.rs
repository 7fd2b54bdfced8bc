//! Two call graphs side by side, functions matched by name: which calls became slower, faster, more or fewer, and which
//! are new or gone.

use std::collections::BTreeMap;

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
    /// Functions by name.
    pub functions: BTreeMap<String, Sides>,
    /// Calls by names of caller (`None` for outermost calls) and callee.
    pub calls: BTreeMap<(Option<String>, String), Sides>,
    /// Ticks a second of both; 0 where unknown.
    pub cycle_frequencies: [u64; 2],
}

impl GraphDiff {
    /// Matches two graphs. Functions of one trace that share a name are distinguished by a number after it, in order of
    /// their ids.
    pub fn new(graphs: [&CallGraph; 2], symbols: [Option<&dyn Symbols>; 2]) -> Self {
        let mut diff = Self { cycle_frequencies: graphs.map(|graph| graph.cycle_frequency), ..Self::default() };
        for (side, (graph, symbols)) in graphs.into_iter().zip(symbols).enumerate() {
            let names = unique_names(graph, symbols);
            let name = |id: u32| names.get(&id).cloned().unwrap_or_else(|| graph.names.of(id, symbols));
            for vertex in &graph.vertices {
                let sides = diff.functions.entry(name(vertex.function)).or_default();
                sides[side] = Some(vertex.stats);
            }
            for edge in &graph.edges {
                let caller = (edge.caller != ROOT).then(|| name(edge.caller));
                let sides = diff.calls.entry((caller, name(edge.callee))).or_default();
                sides[side] = Some(edge.stats);
            }
        }
        diff
    }

    /// Relative change of a statistic from the first to the second: 0.5 means half as much again. `None` if a side is
    /// missing; infinite if the first is zero and the second is not.
    pub fn change(&self, sides: &Sides, stat: Stat) -> Option<f64> {
        let [Some(before), Some(after)] = sides else { return None };
        let [before, after] = [stat.of(before, self.cycle_frequencies[0]), stat.of(after, self.cycle_frequencies[1])];
        Some(if before == after { 0.0 } else { after / before - 1.0 })
    }

    /// Functions and calls that exceed a threshold, functions first, by name.
    pub fn breaches(&self, thresholds: &[Threshold], count_min: u64) -> Vec<Breach> {
        let functions = self.functions.iter().map(|(name, sides)| (format!("function {name}"), sides));
        let calls = self.calls.iter().map(|((caller, callee), sides)| {
            (format!("call {} -> {callee}", caller.as_deref().unwrap_or(ROOT_NAME)), sides)
        });
        let mut found = Vec::new();
        for (what, sides) in functions.chain(calls) {
            if !sides.iter().flatten().any(|stats| stats.count >= count_min.max(1)) {
                continue;
            }
            for threshold in thresholds {
                if let Some(change) = self.change(sides, threshold.stat)
                    && change > threshold.change_max
                {
                    found.push(Breach { what: what.clone(), threshold: *threshold, change });
                }
            }
        }
        found
    }
}

/// Names of a graph's functions, all different.
fn unique_names(graph: &CallGraph, symbols: Option<&dyn Symbols>) -> BTreeMap<u32, String> {
    let mut ids: Vec<u32> = graph.vertices.iter().map(|vertex| vertex.function).collect();
    ids.sort_unstable();
    let mut met: BTreeMap<String, u32> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for id in ids {
        let name = graph.names.of(id, symbols);
        let times = met.entry(name.clone()).or_default();
        *times += 1;
        names.insert(id, if *times == 1 { name } else { format!("{name} ({times})") });
    }
    names
}

/// How much a statistic may grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// The statistic.
    pub stat: Stat,
    /// Relative: 0.1 is ten per cent.
    pub change_max: f64,
}

/// A function or call that grew by more than its threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// `function NAME` or `call NAME -> NAME`.
    pub what: String,
    /// The threshold that it exceeds.
    pub threshold: Threshold,
    /// By how much it changed; infinite if it grew from zero.
    pub change: f64,
}

#[cfg(test)]
mod tests {
    use super::super::graph::{CallEdge, Vertex};
    use super::*;

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
        let threshold = Threshold { stat: Stat::Sum, change_max: 0.1 };
        let found: Vec<String> = diff.breaches(&[threshold], 2).into_iter().map(|breach| breach.what).collect();
        assert_eq!(found, ["function #1", "call F0 -> #1"]);
        assert_eq!(diff.breaches(&[threshold], 0).len(), 4);
        assert_eq!(diff.breaches(&[Threshold { stat: Stat::Count, change_max: 0.0 }], 0), []);
        assert_eq!(diff.functions["#3"].map(|side| side.is_some()), [false, true]);
    }

    #[test]
    fn nothing_to_something_is_without_end_and_nothing_to_nothing_no_change() {
        let (a, b) = (graph(&[(0, 1, 1, 0), (0, 2, 1, 0)]), graph(&[(0, 1, 1, 0), (0, 2, 1, 5)]));
        let diff = GraphDiff::new([&a, &b], [None, None]);
        let change = |name: &str| diff.change(&diff.functions[name], Stat::Sum);
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
        let a = graph(&[(0, 4, 1, 1), (0, 9, 2, 2)]);
        let diff = GraphDiff::new([&a, &a], [Some(&Same), Some(&Same)]);
        assert_eq!(diff.functions.keys().collect::<Vec<_>>(), ["f", "f (2)"]);
        assert_eq!(diff.functions["f (2)"][1].map(|stats| stats.count), Some(2));
    }
}

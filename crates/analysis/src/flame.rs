//! Weights of call stacks, of one trace or several, or of two that are compared.

use std::collections::HashMap;

use anytrace_core::Error;
use anytrace_core::span::{Span, TimeUnit};

use crate::directory::Directory;
use crate::pass::{About, Engine};
use crate::stacks::{ROOT, StackId, StackTable};

/// Most frames of a stack. What is deeper weighs for the frame [`DEEPER`] on top: each of a million calls in each
/// other would have a stack of its own.
pub const DEPTH_MAX: usize = 1024;

/// Name of the frame that stands for all deeper ones.
pub const DEEPER: &[u8] = b"[deeper]";

/// What a stack weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The time in it and in nothing it called.
    Time,
    /// How often it was called.
    Count,
}

/// The engine: own weights by stack number of one pass.
#[derive(Debug)]
pub struct StackWeights {
    by: Weight,
    weights: Vec<u64>,
    /// Weight of spans whose stack is not in the table.
    rootless: u64,
}

impl StackWeights {
    /// Weighs stacks so.
    pub fn new(by: Weight) -> Self {
        Self { by, weights: Vec::new(), rootless: 0 }
    }

    /// The weights, by stack number; stacks behind the last that weighs anything are not there.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }
}

impl Engine for StackWeights {
    fn spans(&mut self, spans: &[Span], _about: About<'_>) {
        for span in spans {
            let weight = match self.by {
                Weight::Time => span.self_time,
                Weight::Count => 1,
            };
            if span.stack == ROOT {
                self.rootless = self.rootless.saturating_add(weight);
                continue;
            }
            let stack = span.stack as usize;
            if stack >= self.weights.len() {
                self.weights.resize(stack + 1, 0);
            }
            self.weights[stack] = self.weights[stack].saturating_add(weight);
        }
    }
}

/// Which side of a comparison a trace is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is compared with.
    Base,
    /// What is shown.
    Shown,
}

/// Own weights of stacks on both sides.
type Both = [u64; 2];

/// Stacks of several traces, joined by name.
#[derive(Debug, Default)]
pub struct FlameGraph {
    names: Vec<Vec<u8>>,
    name_numbers: HashMap<Vec<u8>, u32>,
    stacks: StackTable,
    weights: Vec<Both>,
    rootless: Both,
    word: Option<&'static str>,
}

impl FlameGraph {
    /// Takes the stacks of one pass in. Times become nanoseconds where the trace's unit is of known length.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] where times of this trace and of those before it have no common unit.
    pub fn add(
        &mut self,
        side: Side,
        weights: &StackWeights,
        stacks: &StackTable,
        directory: &Directory,
    ) -> Result<(), Error> {
        let unit = directory.source().unit;
        let word = match (weights.by, unit.to_ns(1)) {
            (Weight::Count, _) => "calls",
            (Weight::Time, Some(_)) => "ns",
            (Weight::Time, None) => unit.word(),
        };
        if self.word.is_some_and(|before| before != word) {
            let before = self.word.unwrap_or_default();
            return Err(Error::usage(format!(
                "one trace counts in {before}, another in {word}: they have no common weight; --by count has"
            )));
        }
        self.word = Some(word);
        let scaled = |weight: u64| match weights.by {
            Weight::Time => scale(unit, weight),
            Weight::Count => weight,
        };
        // Our number of each of its stacks, and how many frames it has.
        let mut ours: Vec<(StackId, usize)> = Vec::with_capacity(stacks.len());
        let names: Vec<u32> = (0..u32::try_from(directory.name_count()).unwrap_or(u32::MAX))
            .map(|name| self.name_number(directory.name(name)))
            .collect();
        for stack in 0..u32::try_from(stacks.len()).unwrap_or(ROOT) {
            // A parent always has a smaller number than its children.
            let (parent, depth) = ours.get(stacks.parent(stack) as usize).copied().unwrap_or((ROOT, 0));
            let own = if depth > DEPTH_MAX {
                parent
            } else if depth == DEPTH_MAX {
                let deeper = self.name_number(DEEPER);
                self.stacks.intern(parent, deeper)
            } else {
                let name = names.get(stacks.name(stack) as usize).copied();
                let name = name.unwrap_or_else(|| self.name_number(b""));
                self.stacks.intern(parent, name)
            };
            ours.push((own, depth + 1));
            let weight = weights.weights.get(stack as usize).copied().unwrap_or_default();
            self.weigh(own, side, scaled(weight));
        }
        self.weigh(ROOT, side, scaled(weights.rootless));
        Ok(())
    }

    /// What weights count: `ns`, `tick`, `record` or `calls`; `None` before the first trace.
    pub fn word(&self) -> Option<&'static str> {
        self.word
    }

    /// A name by its number in paths.
    pub fn name(&self, number: u32) -> &[u8] {
        self.names.get(number as usize).map_or(&[], Vec::as_slice)
    }

    /// Sum of all weights of a side.
    pub fn total(&self, side: Side) -> u128 {
        let own = self.weights.iter().chain([&self.rootless]);
        own.map(|both| u128::from(both[side as usize])).sum()
    }

    /// Number of different stacks.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// Calls of stacks that found no room in the table: they weigh for their callers.
    pub fn folded(&self) -> u64 {
        self.stacks.folded()
    }

    /// Visits every stack that weighs something, callers before what they called, siblings by name: its path from the
    /// outermost frame, its own weight on the base's and the shown side. A stack that weighs less than `least` with all
    /// it called is left out, and its weight is its caller's.
    pub fn visit(&self, least: u64, visit: &mut dyn FnMut(&[u32], Both) -> std::io::Result<()>) -> std::io::Result<()> {
        let order = self.in_order();
        let (own, is_shown) = self.pruned(least);
        let mut path: Vec<u32> = Vec::new();
        let mut todo: Vec<(StackId, usize)> = order.of(ROOT).iter().rev().map(|&stack| (stack, 0)).collect();
        while let Some((stack, depth)) = todo.pop() {
            if !is_shown[stack as usize] {
                continue;
            }
            path.truncate(depth);
            path.push(self.stacks.name(stack));
            if own[stack as usize] != [0, 0] {
                visit(&path, own[stack as usize])?;
            }
            todo.extend(order.of(stack).iter().rev().map(|&child| (child, depth + 1)));
        }
        Ok(())
    }

    /// Own weights where light stacks weigh for their callers, and which stacks are not light.
    fn pruned(&self, least: u64) -> (Vec<Both>, Vec<bool>) {
        let mut own = self.weights.clone();
        own.resize(self.stacks.len(), [0, 0]);
        let mut whole: Vec<u64> = own.iter().map(|both| both[0].saturating_add(both[1])).collect();
        let mut is_shown = vec![true; own.len()];
        // Children have greater numbers than their parents, so each is whole before its parent asks.
        for stack in (0..own.len()).rev() {
            let parent = self.stacks.parent(u32::try_from(stack).unwrap_or(ROOT)) as usize;
            let weight = whole[stack];
            if let Some(sum) = whole.get_mut(parent) {
                *sum = sum.saturating_add(weight);
            }
            is_shown[stack] = weight >= least;
            if weight < least
                && let Some(caller) = own.get(parent).copied()
            {
                let light = own[stack];
                own[parent] = [0, 1].map(|side| caller[side].saturating_add(light[side]));
            }
        }
        (own, is_shown)
    }

    fn in_order(&self) -> Children {
        let mut by_name: Vec<u32> = (0..u32::try_from(self.names.len()).unwrap_or(u32::MAX)).collect();
        by_name.sort_unstable_by_key(|&name| self.name(name));
        let mut rank = vec![0_u32; self.names.len()];
        (0..).zip(&by_name).for_each(|(place, &name)| rank[name as usize] = place);
        let mut all: Vec<StackId> = (0..u32::try_from(self.stacks.len()).unwrap_or(ROOT)).collect();
        // The root is the greatest number, and comes last.
        all.sort_unstable_by_key(|&stack| (self.stacks.parent(stack), rank[self.stacks.name(stack) as usize]));
        let mut starts = vec![0_usize; self.stacks.len() + 1];
        let mut at = 0;
        for (parent, start) in starts.iter_mut().enumerate() {
            *start = at;
            while all.get(at).is_some_and(|&stack| self.stacks.parent(stack) as usize == parent) {
                at += 1;
            }
        }
        Children { all, starts }
    }

    fn name_number(&mut self, name: &[u8]) -> u32 {
        if let Some(&number) = self.name_numbers.get(name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_vec());
        self.name_numbers.insert(name.to_vec(), number);
        number
    }

    fn weigh(&mut self, stack: StackId, side: Side, weight: u64) {
        let both = if stack == ROOT {
            &mut self.rootless
        } else {
            if stack as usize >= self.weights.len() {
                self.weights.resize(stack as usize + 1, [0, 0]);
            }
            &mut self.weights[stack as usize]
        };
        both[side as usize] = both[side as usize].saturating_add(weight);
    }
}

fn scale(unit: TimeUnit, weight: u64) -> u64 {
    match unit.to_ns(1) {
        Some(_) => unit.to_ns(weight).unwrap_or(u64::MAX),
        None => weight,
    }
}

/// Stacks by caller, siblings by name.
struct Children {
    all: Vec<StackId>,
    /// Where the children of each stack begin; the last is where the root's do.
    starts: Vec<usize>,
}

impl Children {
    fn of(&self, parent: StackId) -> &[StackId] {
        let at = (parent as usize).min(self.starts.len() - 1);
        let end = self.starts.get(at + 1).copied().unwrap_or(self.all.len());
        &self.all[self.starts[at]..end]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anytrace_core::span::Edge;

    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, begin, end, obvious, play, random_edges};

    fn add(graph: &mut FlameGraph, side: Side, edges: &[Edge], by: Weight, unit: TimeUnit) -> Result<(), Error> {
        let mut weights = StackWeights::new(by);
        let mut pass = Pass::new(SpanFilter::default(), true, vec![&mut weights]);
        play(edges, unit, &mut pass);
        let done = pass.finish();
        graph.add(side, &weights, &done.stacks.unwrap(), &done.directory)
    }

    fn lines(graph: &FlameGraph, least: u64) -> Vec<(Vec<String>, Both)> {
        let mut lines = Vec::new();
        let mut visit = |path: &[u32], own: Both| {
            let names = path.iter().map(|&name| String::from_utf8(graph.name(name).to_vec()).unwrap());
            lines.push((names.collect(), own));
            Ok(())
        };
        graph.visit(least, &mut visit).unwrap();
        lines
    }

    #[test]
    fn weights_are_those_of_the_obvious_version_on_both_sides() {
        for seed in 1..20 {
            for by in [Weight::Time, Weight::Count] {
                let mut graph = FlameGraph::default();
                let mut slow: BTreeMap<Vec<String>, Both> = BTreeMap::new();
                for (turn, side) in [(0, Side::Base), (1, Side::Shown), (2, Side::Shown)] {
                    let edges = random_edges(&mut Random(seed * 10 + turn), 2, 3, 150);
                    add(&mut graph, side, &edges, by, TimeUnit::Nanoseconds).unwrap();
                    for span in obvious(&edges) {
                        let path = span.path.iter().map(|name| format!("f{name}")).collect();
                        let weight = if by == Weight::Time { span.self_time } else { 1 };
                        slow.entry(path).or_default()[side as usize] += weight;
                    }
                }
                slow.retain(|_, both| *both != [0, 0]);
                // A map's order is that of siblings by name, callers first.
                assert_eq!(lines(&graph, 0), slow.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn light_stacks_weigh_for_their_callers() {
        let edges = [begin(0, 0, 0), begin(1, 0, 1), begin(2, 0, 2), end(3, 0, 2), end(4, 0, 1), end(99, 0, 0)];
        let mut graph = FlameGraph::default();
        add(&mut graph, Side::Shown, &edges, Weight::Time, TimeUnit::Nanoseconds).unwrap();
        assert_eq!(lines(&graph, 0).len(), 3);
        assert_eq!(lines(&graph, 10), [(vec!["f0".to_owned()], [0, 99])]);
        assert_eq!(graph.total(Side::Shown), 99);
    }

    #[test]
    fn ticks_become_nanoseconds_and_unlike_units_are_refused() {
        let edges = [begin(0, 0, 0), end(10, 0, 0)];
        let mut graph = FlameGraph::default();
        let ticks = |per_second| TimeUnit::Ticks { per_second };
        add(&mut graph, Side::Shown, &edges, Weight::Time, ticks(Some(2_000_000_000))).unwrap();
        add(&mut graph, Side::Shown, &edges, Weight::Time, TimeUnit::Nanoseconds).unwrap();
        assert_eq!((graph.total(Side::Shown), graph.word()), (15, Some("ns")));
        let error = add(&mut graph, Side::Shown, &edges, Weight::Time, ticks(None)).unwrap_err();
        assert_eq!(error.kind(), anytrace_core::Kind::Usage);
    }

    #[test]
    fn what_is_too_deep_weighs_for_one_frame() {
        let depth = DEPTH_MAX as u64 + 500;
        let begins = (0..depth).map(|time| begin(time, 0, 0));
        let edges: Vec<Edge> = begins.chain((depth..2 * depth).map(|time| end(time, 0, 0))).collect();
        let mut graph = FlameGraph::default();
        add(&mut graph, Side::Shown, &edges, Weight::Count, TimeUnit::Nanoseconds).unwrap();
        let lines = lines(&graph, 0);
        assert_eq!(lines.len(), DEPTH_MAX + 1);
        let (path, own) = lines.last().unwrap();
        assert_eq!((path.len(), path.last().unwrap().as_str(), *own), (DEPTH_MAX + 1, "[deeper]", [0, 500]));
    }

    #[test]
    fn an_empty_graph_has_no_lines() {
        assert!(lines(&FlameGraph::default(), 0).is_empty());
    }
}

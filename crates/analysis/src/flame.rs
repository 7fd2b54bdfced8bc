//! Weights of call stacks, of one trace or several, or of two that are compared.

use std::collections::HashMap;

use anytrace_core::Error;
use anytrace_core::span::{Span, TimeUnit};

use crate::directory::Directory;
use crate::pass::{About, Additive, Engine, Numbers};
use crate::stacks::{ROOT, StackId, StackTable};

/// Most frames of a stack. The weight of deeper frames goes to the frame [`DEEPER`] on top: otherwise each of a million
/// nested calls would have a stack of its own.
pub const DEPTH_MAX: usize = 1024;

/// Name of the frame that represents all deeper ones.
pub const DEEPER: &[u8] = b"[deeper]";

/// The weight of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The time in the stack itself, without the functions it called.
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

    /// The weights, by stack number. Ends with the last stack that has a weight.
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

impl Additive for StackWeights {
    fn join(&mut self, other: Self, numbers: &Numbers) {
        self.rootless = self.rootless.saturating_add(other.rootless);
        for (stack, weight) in (0..).zip(other.weights) {
            let stack = numbers.stack(stack);
            if stack == ROOT {
                self.rootless = self.rootless.saturating_add(weight);
                continue;
            }
            let stack = stack as usize;
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
    /// The trace compared with.
    Base,
    /// The trace shown.
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
    /// Own weights by side and stack; a side without weight is empty.
    weights: [Vec<u64>; 2],
    rootless: Both,
    word: Option<&'static str>,
}

impl FlameGraph {
    /// Adds the stacks of one pass. Times become nanoseconds where the length of the trace's unit is known.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] where times of this trace and of those before it have no common unit.
    pub fn add(
        &mut self,
        side: Side,
        weights: StackWeights,
        stacks: StackTable,
        directory: &Directory,
    ) -> Result<(), Error> {
        let unit = directory.source().unit;
        let word = match (weights.by, unit.to_ns(1)) {
            (Weight::Count, _) => "calls",
            (Weight::Time, Some(_)) => "ns",
            (Weight::Time, None) => unit.word(),
        };
        // Nothing was added yet: a refused trace leaves the graph as it was.
        if self.word.is_some_and(|before| before != word) {
            let before = self.word.unwrap_or_default();
            return Err(Error::usage(format!(
                "one trace counts in {before}, another in {word}: they have no common weight; use --by count"
            )));
        }
        self.word = Some(word);
        let StackWeights { by, mut weights, mut rootless } = weights;
        if by == Weight::Time {
            weights.iter_mut().chain([&mut rootless]).for_each(|weight| *weight = scale(unit, *weight));
        }
        let slot = &mut self.rootless[side as usize];
        *slot = slot.saturating_add(rootless);
        // Traces number their names on their own; stacks are joined by text.
        let names: Vec<u32> = (0..u32::try_from(directory.name_count()).unwrap_or(u32::MAX))
            .map(|name| self.name_number(directory.name(name)))
            .collect();
        let are_numbered_alike = (0..).zip(&names).all(|(theirs, &ours)| theirs == ours);
        // Names must not only be distinct but have the same numbers, since the stacks hold numbers. An empty table of
        // ours says that no earlier trace had stacks.
        if self.stacks.is_empty() && are_numbered_alike && depth_max(&stacks) <= DEPTH_MAX {
            // The first trace's stacks are used directly, which saves the time and memory of a copy.
            self.stacks = stacks;
            self.weights[side as usize] = weights;
        } else {
            self.join(side, &weights, &stacks, &names);
        }
        Ok(())
    }

    fn join(&mut self, side: Side, weights: &[u64], stacks: &StackTable, names: &[u32]) {
        // Our number of each of its stacks, and how many frames it has.
        let mut ours: Vec<(StackId, usize)> = Vec::with_capacity(stacks.len());
        for stack in 0..u32::try_from(stacks.len()).unwrap_or(ROOT) {
            // A parent always has a smaller number than its children.
            let (parent, depth) = ours.get(stacks.parent(stack) as usize).copied().unwrap_or((ROOT, 0));
            // The parent is already the frame for all deeper ones: it stands for this one, too.
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
            if let Some(&weight) = weights.get(stack as usize).filter(|weight| **weight > 0) {
                self.weigh(own, side, weight);
            }
        }
    }

    /// The unit of the weights: `ns`, `tick`, `record` or `calls`; `None` before the first trace.
    pub fn word(&self) -> Option<&'static str> {
        self.word
    }

    /// A name by its number in paths.
    pub fn name(&self, number: u32) -> &[u8] {
        self.names.get(number as usize).map_or(&[], Vec::as_slice)
    }

    /// All names, in order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(Vec::as_slice)
    }

    /// Sum of all weights of a side.
    pub fn total(&self, side: Side) -> u128 {
        let own = self.weights[side as usize].iter().map(|&weight| u128::from(weight));
        own.sum::<u128>() + u128::from(self.rootless[side as usize])
    }

    /// Number of different stacks.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// Calls of stacks without room in the table: they count for their callers.
    pub fn folded(&self) -> u64 {
        self.stacks.folded()
    }

    /// Visits every stack with a weight, callers before callees, siblings by name: its path from the outermost frame,
    /// its own weight on the base's and the shown side. A stack that weighs less than `least` together with everything
    /// it called is left out, and its weight goes to its caller.
    pub fn visit(&self, least: u64, visit: &mut dyn FnMut(&[u32], Both) -> std::io::Result<()>) -> std::io::Result<()> {
        let order = self.in_order();
        let pruned = (least > 0).then(|| self.pruned(least));
        let is_shown = |stack: StackId| pruned.as_ref().is_none_or(|pruned| pruned.is_shown[stack as usize]);
        let sides = pruned.as_ref().map_or(&self.weights, |pruned| &pruned.own);
        let own = |stack: StackId| [0, 1].map(|side: usize| sides[side].get(stack as usize).copied().unwrap_or(0));
        let mut path: Vec<u32> = Vec::new();
        let mut todo: Vec<(StackId, usize)> = order.of(ROOT).iter().rev().map(|&stack| (stack, 0)).collect();
        while let Some((stack, depth)) = todo.pop() {
            if !is_shown(stack) {
                continue;
            }
            path.truncate(depth);
            path.push(self.stacks.name(stack));
            let own = own(stack);
            if own != [0, 0] {
                visit(&path, own)?;
            }
            // A list of work instead of recursion: stacks may be a thousand frames deep. Reversed, because the last one
            // is visited first.
            todo.extend(order.of(stack).iter().rev().map(|&child| (child, depth + 1)));
        }
        Ok(())
    }

    fn pruned(&self, least: u64) -> Pruned {
        let mut own = self.weights.clone();
        own.iter_mut().for_each(|side| side.resize(self.stacks.len(), 0));
        let mut sums: Vec<u64> = own[0].iter().zip(&own[1]).map(|(a, b)| a.saturating_add(*b)).collect();
        let mut is_shown = vec![true; sums.len()];
        // Children have greater numbers than their parents, so each sum is complete before its parent is reached.
        for stack in (0..sums.len()).rev() {
            let parent = self.stacks.parent(u32::try_from(stack).unwrap_or(ROOT)) as usize;
            let weight = sums[stack];
            is_shown[stack] = weight >= least;
            // Outermost stacks that weigh too little are dropped.
            if let Some(sum) = sums.get_mut(parent) {
                *sum = sum.saturating_add(weight);
                if weight < least {
                    for side in &mut own {
                        side[parent] = side[parent].saturating_add(side[stack]);
                    }
                }
            }
        }
        Pruned { own, is_shown }
    }

    fn in_order(&self) -> Children {
        let mut by_name: Vec<u32> = (0..u32::try_from(self.names.len()).unwrap_or(u32::MAX)).collect();
        // Siblings are compared by rank, so that each name is compared as text O(log n) times in all, not once per
        // stack.
        by_name.sort_unstable_by_key(|&name| self.name(name));
        let mut rank = vec![0_u32; self.names.len()];
        (0..).zip(&by_name).for_each(|(place, &name)| rank[name as usize] = place);
        // Groups stacks by caller with a counting sort; those of the root are last.
        let count = self.stacks.len();
        let place = |stack: StackId| (self.stacks.parent(stack) as usize).min(count);
        let ids = || 0..u32::try_from(count).unwrap_or(ROOT);
        let mut ends = vec![0_u32; count + 2];
        ids().for_each(|stack| ends[place(stack) + 1] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut all: Vec<StackId> = vec![0; count];
        for stack in ids() {
            let next = &mut ends[place(stack)];
            all[*next as usize] = stack;
            *next += 1;
        }
        let mut start = 0;
        for &end in ends.iter().take(count + 1) {
            let siblings = &mut all[start..end as usize];
            if siblings.len() > 1 {
                // Siblings have different names, so an unstable sort has one result.
                siblings.sort_unstable_by_key(|&stack| rank[self.stacks.name(stack) as usize]);
            }
            start = end as usize;
        }
        Children { all, ends }
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
        let own = &mut self.weights[side as usize];
        // A table with room for no stack folds everything into the root.
        let slot = if stack == ROOT {
            &mut self.rootless[side as usize]
        } else {
            if stack as usize >= own.len() {
                own.resize(stack as usize + 1, 0);
            }
            &mut own[stack as usize]
        };
        *slot = slot.saturating_add(weight);
    }
}

/// Own weights after those of light stacks went to their callers, and which stacks are not light.
struct Pruned {
    own: [Vec<u64>; 2],
    is_shown: Vec<bool>,
}

/// Frames of the deepest stack.
fn depth_max(stacks: &StackTable) -> usize {
    let mut depths: Vec<u32> = Vec::with_capacity(stacks.len());
    for stack in 0..u32::try_from(stacks.len()).unwrap_or(ROOT) {
        let caller = depths.get(stacks.parent(stack) as usize).copied().unwrap_or(0);
        depths.push(caller.saturating_add(1));
    }
    depths.into_iter().max().unwrap_or(0) as usize
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
    /// Where the children of each stack end; the last but one is where the root's do.
    ends: Vec<u32>,
}

impl Children {
    fn of(&self, parent: StackId) -> &[StackId] {
        let at = (parent as usize).min(self.ends.len() - 2);
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.all[start..self.ends[at] as usize]
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
        graph.add(side, weights, done.stacks.unwrap(), &done.directory)
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
    fn frames_that_are_too_deep_count_as_one_frame() {
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

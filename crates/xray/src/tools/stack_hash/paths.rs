//! Second pass: counts the stacks on a few paths, and only follows all others.

use std::collections::{BTreeMap, HashMap};

use anytrace_analysis::stack_runs::StackSums;
use anytrace_core::Error;

use super::machine::{Call, Key, Machine, Watch};
use crate::lanes::ordered::Pieces;
use crate::tools::stack_profile::DEPTH_MAX;
use crate::tools::stack_tops::Frame;

/// A call on none of the paths.
const NONE: u32 = u32::MAX;

/// A stack on a path.
#[derive(Debug, Clone)]
struct Node {
    function: u32,
    sums: StackSums,
    /// Number of the first moment it was entered at.
    ordinal: u64,
    /// Stacks one call longer, in order of that call's function.
    longer: Vec<(u32, u32)>,
}

/// Some stacks, and all their prefixes.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    nodes: Vec<Node>,
    roots: HashMap<Key, u32>,
}

impl Paths {
    /// The tree of some stacks.
    pub(super) fn new<'a>(stacks: impl Iterator<Item = (Key, &'a [u32])>) -> Self {
        let mut paths = Self::default();
        let mut longer: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for (key, functions) in stacks {
            let next = paths.nodes.len() as u32;
            let mut at = *paths.roots.entry(key).or_insert(next);
            if at == next {
                paths.add(0);
            }
            for &function in functions.iter().take(DEPTH_MAX) {
                let next = paths.nodes.len() as u32;
                at = *longer.entry((at, function)).or_insert(next);
                if at == next {
                    paths.add(function);
                }
            }
        }
        for ((outer, function), node) in longer {
            if let Some(outer) = paths.nodes.get_mut(outer as usize) {
                outer.longer.push((function, node));
            }
        }
        paths
    }

    fn add(&mut self, function: u32) {
        self.nodes.push(Node { function, sums: StackSums::default(), ordinal: u64::MAX, longer: Vec::new() });
    }

    /// Counts them in all threads of a trace.
    ///
    /// # Errors
    /// Any error of reading the pieces.
    pub(super) fn count(mut self, pieces: &Pieces<'_>, threads: usize) -> Result<Self, Error> {
        for part in pieces.parallel(threads, || Machine::new(self.clone()))? {
            for (own, more) in self.nodes.iter_mut().zip(part.watch.nodes) {
                own.sums.add(&more.sums);
                own.ordinal = own.ordinal.min(more.ordinal);
            }
        }
        Ok(self)
    }

    /// The frames of a stack, outermost first.
    pub(super) fn frames(&self, key: Key, functions: &[u32]) -> Vec<Frame> {
        let mut at = self.root(key);
        let mut frame = |&function: &u32| {
            at = self.longer(at, function);
            let node = self.nodes.get(at as usize)?;
            Some(Frame { function: node.function, sums: node.sums, ordinal: node.ordinal })
        };
        functions.iter().take(DEPTH_MAX).map_while(&mut frame).collect()
    }

    #[inline]
    fn longer(&self, outer: u32, function: u32) -> u32 {
        let Some(node) = self.nodes.get(outer as usize) else { return NONE };
        let found = node.longer.binary_search_by_key(&function, |&(function, _)| function).ok();
        found.and_then(|at| node.longer.get(at)).map_or(NONE, |&(_, node)| node)
    }
}

impl Watch for Paths {
    type Mark = u32;

    fn root(&self, key: Key) -> u32 {
        self.roots.get(&key).copied().unwrap_or(NONE)
    }

    #[inline(always)]
    fn entered(&mut self, outer: u32, function: u32, ordinal: u64) -> u32 {
        if outer == NONE {
            return NONE;
        }
        let node = self.longer(outer, function);
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.ordinal = node.ordinal.min(ordinal);
        }
        node
    }

    #[inline(always)]
    fn left(&mut self, _outer: &[Call<u32>], call: &Call<u32>, ticks: u64, is_leaf: bool) {
        if call.mark == NONE {
            return;
        }
        if let Some(node) = self.nodes.get_mut(call.mark as usize) {
            let (leaf_count, leaf_sum) = if is_leaf { (1, ticks) } else { (0, 0) };
            node.sums.add(&StackSums { leaf_count, leaf_sum, count: 1, sum: ticks, self_sum: 0 });
        }
    }
}

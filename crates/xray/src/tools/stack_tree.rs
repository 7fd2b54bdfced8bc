//! The stacks of a profile as trees in the order in which the peer lists them, by thread or summed over threads.

use anytrace_analysis::stack_runs::StackSums;
use anytrace_analysis::stacks::{ROOT, StackId};

use super::bucket_order::{bucket_order, id_hash};
use super::stack_profile::StackProfile;

/// A stack in a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    pub(crate) function: u32,
    /// `None` for outermost calls.
    pub(crate) parent: Option<u32>,
    pub(crate) children: Vec<u32>,
    pub(crate) sums: StackSums,
}

/// Process and thread with their outermost calls; `None` for all threads together.
pub(crate) type Roots = (Option<(u32, u32)>, Vec<u32>);

/// Stacks as trees.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) groups: Vec<Roots>,
}

impl Tree {
    /// The trees of each thread, threads in the peer's order. If their numbers collide, the order is by process and
    /// number, or with `is_compat` by first appearance.
    pub(crate) fn of(profile: &StackProfile, is_compat: bool) -> Self {
        let table = &profile.table;
        let count = u32::try_from(table.len()).unwrap_or(ROOT);
        let mut nodes = vec![Node::default(); table.len()];
        let mut roots: Vec<Vec<u32>> = vec![Vec::new(); profile.threads.len()];
        let is_thread = |id: StackId| table.parent(id) == ROOT;
        for id in (0..count).filter(|&id| !is_thread(id)) {
            let parent = table.parent(id);
            let outer = (!is_thread(parent)).then_some(parent);
            let siblings = match outer {
                Some(outer) => nodes.get_mut(outer as usize).map(|node| &mut node.children),
                None => roots.get_mut(table.name(parent) as usize),
            };
            if let Some(siblings) = siblings {
                siblings.push(id);
            }
            if let Some(node) = nodes.get_mut(id as usize) {
                let sums = profile.sums.get(id as usize).copied().unwrap_or_default();
                (node.function, node.parent, node.sums) = (table.name(id), outer, sums);
            }
        }
        let mut threads: Vec<_> = profile.threads.iter().copied().zip(roots).filter(|(_, r)| !r.is_empty()).collect();
        threads.sort_by_key(|(key, roots)| if is_compat { (roots.first().copied().unwrap_or(ROOT), 0) } else { *key });
        let hashes: Vec<u32> = threads.iter().map(|((_, thread), _)| id_hash(*thread)).collect();
        let mut threads: Vec<_> = threads.into_iter().map(Some).collect();
        let groups = bucket_order(&hashes)
            .into_iter()
            .filter_map(|n| threads.get_mut(n).and_then(Option::take))
            .map(|(key, roots)| (Some(key), roots))
            .collect();
        Self { nodes, groups }
    }

    /// Sums the threads' trees. With `is_compat`, callers of stacks that only one thread has are shown with that
    /// thread's counts, as the peer prints them, and not with the counts of all threads.
    pub(crate) fn aggregate(&mut self, is_compat: bool) {
        let mut merged: Vec<u32> = Vec::new();
        for (_, roots) in std::mem::take(&mut self.groups) {
            for root in roots {
                let function = self.function(root);
                match merged.iter().position(|&other| self.function(other) == function) {
                    Some(at) => {
                        // A tree that was added to moves to the end.
                        let other = merged.remove(at);
                        let both = self.merge(other, root, is_compat);
                        merged.push(both);
                    }
                    None => merged.push(root),
                }
            }
        }
        self.groups = vec![(None, merged)];
    }

    /// Sums two trees of one function; returns the root of the sum.
    fn merge(&mut self, left: u32, right: u32, is_compat: bool) -> u32 {
        let root = self.pair(left, right, None);
        let mut work = vec![(left, right, root)];
        while let Some((left, right, both)) = work.pop() {
            let (lefts, rights) = (self.children(left), self.children(right));
            let hashes: Vec<u32> = lefts.iter().map(|&n| id_hash(self.function(n))).collect();
            let by_function: std::collections::HashMap<u32, u32> =
                lefts.iter().map(|&n| (self.function(n), n)).collect();
            let mut taken = std::collections::HashSet::new();
            let mut children = Vec::with_capacity(lefts.len().max(rights.len()));
            for inner in rights {
                let function = self.function(inner);
                if let Some(&twin) = by_function.get(&function) {
                    let sum = self.pair(twin, inner, Some(both));
                    taken.insert(twin);
                    children.push(sum);
                    work.push((twin, inner, sum));
                } else {
                    children.push(inner);
                }
            }
            let rest = bucket_order(&hashes).into_iter().filter_map(|n| lefts.get(n).copied());
            children.extend(rest.filter(|n| !taken.contains(n)));
            if !is_compat {
                for &child in &children {
                    if let Some(node) = self.nodes.get_mut(child as usize) {
                        node.parent = Some(both);
                    }
                }
            }
            if let Some(node) = self.nodes.get_mut(both as usize) {
                node.children = children;
            }
        }
        root
    }

    fn pair(&mut self, left: u32, right: u32, parent: Option<u32>) -> u32 {
        let sums_of = |n: u32| self.nodes.get(n as usize).map_or_else(StackSums::default, |node| node.sums);
        let mut sums = sums_of(left);
        sums.add(&sums_of(right));
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { function: self.function(left), parent, children: Vec::new(), sums });
        id
    }

    fn children(&self, node: u32) -> Vec<u32> {
        self.nodes.get(node as usize).map_or_else(Vec::new, |node| node.children.clone())
    }

    pub(crate) fn function(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(0, |node| node.function)
    }

    /// The node itself and its callers, innermost first.
    pub(crate) fn ancestors(&self, node: u32) -> impl Iterator<Item = &Node> {
        let node = self.nodes.get(node as usize);
        std::iter::successors(node, |node| node.parent.and_then(|parent| self.nodes.get(parent as usize)))
    }

    /// Every node below the roots, callers first; of the calls of one caller the last to appear comes first, as the
    /// peer does.
    pub(crate) fn walk<'t>(&'t self, roots: &'t [u32]) -> impl Iterator<Item = (u32, &'t Node)> {
        let mut work: Vec<u32> = Vec::new();
        let mut roots = roots.iter();
        std::iter::from_fn(move || {
            let id = work.pop().or_else(|| roots.next().copied())?;
            let node = self.nodes.get(id as usize)?;
            work.extend(&node.children);
            Some((id, node))
        })
    }
}

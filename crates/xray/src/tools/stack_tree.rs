//! Adding up stacks: of several threads, or of one thread in several traces. Orders are those the peer lists them in.

use std::collections::{HashMap, HashSet};

use anytrace_analysis::stacks::{ROOT, StackId};

use super::bucket_order::{bucket_order, id_hash};
use super::stack::StackProfile;

/// Process and thread with their outermost calls in order of appearance; `None` stands for all threads together.
pub(crate) type Roots = (Option<(u32, u32)>, Vec<StackId>);

impl StackProfile {
    /// The threads that have calls, in the peer's order. Where their numbers collide it goes by process and number, or
    /// with `is_compat` by first appearance.
    pub(crate) fn by_thread(&self, is_compat: bool) -> Vec<Roots> {
        let mut threads: Vec<Roots> =
            self.threads.iter().map(|(key, node)| (Some(*key), self.calls_of(*node))).collect();
        threads.retain(|(_, roots)| !roots.is_empty());
        threads.sort_by_key(|(key, roots)| {
            let first = roots.first().copied().unwrap_or(ROOT);
            if is_compat { (Some((first, 0)), first) } else { (*key, first) }
        });
        let hashes: Vec<u32> = threads.iter().map(|(key, _)| id_hash(key.unwrap_or_default().1)).collect();
        let mut threads: Vec<_> = threads.into_iter().map(Some).collect();
        bucket_order(&hashes).into_iter().filter_map(|n| threads.get_mut(n).and_then(Option::take)).collect()
    }

    /// All threads added up. With `is_compat` callers of stacks that only one thread has stand with that thread's
    /// counts, as the peer prints them, and not with all threads'.
    pub(crate) fn aggregate(&mut self, is_compat: bool) -> Vec<Roots> {
        let all = self.add_node(ROOT, 0);
        let mut merged: Vec<StackId> = Vec::new();
        for (_, roots) in self.by_thread(is_compat) {
            for root in roots {
                let function = self.forest.name(root);
                match merged.iter().position(|&other| self.forest.name(other) == function) {
                    Some(at) => {
                        // What was added to goes behind the others.
                        let other = merged.remove(at);
                        let both = self.pair_up(other, root, all, is_compat);
                        merged.push(both);
                    }
                    None => merged.push(root),
                }
            }
        }
        vec![(None, merged)]
    }

    /// What is called from a stack, in order of appearance.
    fn calls_of(&self, stack: StackId) -> Vec<StackId> {
        let mut calls: Vec<StackId> = self.forest.children(stack).collect();
        calls.reverse();
        calls
    }

    /// Adds two trees up, of one function or thread each; answers with the root of the sum, a call of `parent`.
    pub(crate) fn pair_up(&mut self, left: StackId, right: StackId, parent: StackId, is_compat: bool) -> StackId {
        let root = self.pair(left, right, parent);
        let mut work = vec![(left, right, root)];
        while let Some((left, right, both)) = work.pop() {
            let (lefts, rights) = (self.calls_of(left), self.calls_of(right));
            let hashes: Vec<u32> = lefts.iter().map(|&id| id_hash(self.forest.name(id))).collect();
            let by_function: HashMap<u32, StackId> = lefts.iter().map(|&id| (self.forest.name(id), id)).collect();
            let mut taken = HashSet::new();
            let mut children = Vec::with_capacity(lefts.len().max(rights.len()));
            for inner in rights {
                if let Some(&twin) = by_function.get(&self.forest.name(inner)) {
                    let sum = self.pair(twin, inner, both);
                    taken.insert(twin);
                    children.push(sum);
                    work.push((twin, inner, sum));
                } else {
                    children.push(inner);
                }
            }
            let rest = bucket_order(&hashes).into_iter().filter_map(|n| lefts.get(n).copied());
            children.extend(rest.filter(|id| !taken.contains(id)));
            if !is_compat {
                children.iter().for_each(|&child| self.forest.set_parent(child, both));
            }
            self.forest.set_children(both, &children);
        }
        root
    }

    fn pair(&mut self, left: StackId, right: StackId, parent: StackId) -> StackId {
        let mut sums = self.sums_of(left);
        sums.add(&self.sums_of(right));
        let id = self.add_node(parent, self.forest.name(left));
        if let Some(own) = self.sums.get_mut(id as usize) {
            *own = sums;
        }
        let open = [left, right].iter().filter_map(|id| self.open_inner.get(id)).sum::<u64>();
        if open > 0 {
            self.open_inner.insert(id, open);
        }
        id
    }

    fn add_node(&mut self, parent: StackId, function: u32) -> StackId {
        let id = self.forest.add(parent, function);
        self.sums.resize(self.forest.len(), Default::default());
        id
    }
}

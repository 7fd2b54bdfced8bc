//! A trie of call stacks: each stack is a number, made of its caller's stack and one more name.
//!
//! ```
//! use anytrace_analysis::stacks::{ROOT, StackTable};
//!
//! let mut stacks = StackTable::default();
//! let main = stacks.intern(ROOT, 7);
//! let inner = stacks.intern(main, 9);
//! assert_eq!(stacks.intern(main, 9), inner);
//! assert_eq!((stacks.parent(inner), stacks.name(inner)), (main, 9));
//! assert_eq!(stacks.path(inner), [7, 9]);
//! ```

use anytrace_core::hash::Key;

/// Number of a stack, from 0 in order of first appearance; [`ROOT`] is the empty stack.
pub type StackId = u32;

/// The empty stack.
pub const ROOT: StackId = u32::MAX;

/// Most stacks in a table by default: about 100 MB.
pub const STACKS_MAX: u32 = 4 << 20;

/// One stack.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: StackId,
    name: u32,
    /// The child that was asked for last: calls repeat.
    recent: StackId,
    /// Whether it has more than one child. An only child is in no slot: `recent` suffices to find it, and most stacks
    /// of programs whose calls vary have one child or none.
    has_many: bool,
}

/// The stacks of a trace. Ids do not depend on hashing: the first asked for is 0, the next 1.
///
/// Memory is bounded: a full table returns the caller's stack in place of a new one, and counts it.
#[derive(Debug)]
pub struct StackTable {
    nodes: Vec<Node>,
    /// Open addressing: ids plus one, 0 is free. A power of two long, at most three quarters full.
    slots: Vec<u32>,
    in_slots: usize,
    key: Key,
    recent_root: StackId,
    has_many_roots: bool,
    stacks_max: u32,
    folded: u64,
}

impl Default for StackTable {
    fn default() -> Self {
        Self::with_limit(STACKS_MAX)
    }
}

impl StackTable {
    /// An empty table for at most this many stacks.
    pub fn with_limit(stacks_max: u32) -> Self {
        let stacks_max = stacks_max.min(ROOT - 1);
        Self {
            nodes: Vec::new(),
            slots: vec![0; 64],
            in_slots: 0,
            key: Key::new(),
            recent_root: ROOT,
            has_many_roots: false,
            stacks_max,
            folded: 0,
        }
    }

    /// The stack of `name` called from `parent`; added if new. A full table returns `parent`.
    #[inline]
    pub fn intern(&mut self, parent: StackId, name: u32) -> StackId {
        // An out-of-range parent is the root. The recent child answers most calls without hashing, because loops call
        // the same function again.
        let recent = match self.nodes.get(parent as usize) {
            Some(node) => node.recent,
            None => self.recent_root,
        };
        match self.nodes.get(recent as usize) {
            Some(node) if node.name == name && node.parent == parent => recent,
            _ => self.find_or_add(parent, name),
        }
    }

    /// The caller's stack; [`ROOT`] for outermost frames and for ids that are not stacks.
    #[inline]
    pub fn parent(&self, stack: StackId) -> StackId {
        self.nodes.get(stack as usize).map_or(ROOT, |node| node.parent)
    }

    /// The innermost name; 0 for [`ROOT`].
    #[inline]
    pub fn name(&self, stack: StackId) -> u32 {
        self.nodes.get(stack as usize).map_or(0, |node| node.name)
    }

    /// Its only child, if it has just one.
    #[inline]
    pub(crate) fn only_child(&self, stack: StackId) -> Option<StackId> {
        self.nodes.get(stack as usize).filter(|node| !node.has_many && node.recent != ROOT).map(|node| node.recent)
    }

    /// True when it has several children.
    #[inline]
    pub(crate) fn has_many(&self, stack: StackId) -> bool {
        self.nodes.get(stack as usize).is_some_and(|node| node.has_many)
    }

    /// How many frames.
    pub fn depth(&self, stack: StackId) -> usize {
        self.ancestors(stack).count()
    }

    /// The stack itself and its callers, innermost first.
    pub fn ancestors(&self, stack: StackId) -> impl Iterator<Item = StackId> + '_ {
        let known = |id: StackId| ((id as usize) < self.nodes.len()).then_some(id);
        std::iter::successors(known(stack), move |&id| known(self.parent(id)))
    }

    /// The names, outermost first.
    pub fn path(&self, stack: StackId) -> Vec<u32> {
        let mut path: Vec<u32> = self.ancestors(stack).map(|id| self.name(id)).collect();
        path.reverse();
        path
    }

    /// How many stacks there are; ids are below it.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How often a full table returned the caller's stack.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Removes all stacks; keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        // The slots keep their length: the next stacks are probably about as many.
        self.slots.fill(0);
        self.in_slots = 0;
        self.recent_root = ROOT;
        self.has_many_roots = false;
    }

    /// Adds the stacks of another table and returns, for each of them, its id in this one.
    pub fn merge(&mut self, other: &Self) -> Vec<StackId> {
        self.merge_named(other, |name| name)
    }

    /// As [`Self::merge`], where the other table's names have other numbers here.
    pub fn merge_named(&mut self, other: &Self, number: impl Fn(u32) -> u32) -> Vec<StackId> {
        let mut ours: Vec<StackId> = Vec::with_capacity(other.len());
        for node in &other.nodes {
            // A parent always has a smaller number than its children.
            let parent = ours.get(node.parent as usize).copied().unwrap_or(ROOT);
            ours.push(self.intern(parent, number(node.name)));
        }
        self.folded += other.folded;
        ours
    }

    fn find_or_add(&mut self, parent: StackId, name: u32) -> StackId {
        let (recent, has_many) = match self.nodes.get(parent as usize) {
            Some(node) => (node.recent, node.has_many),
            None => (self.recent_root, self.has_many_roots),
        };
        // An only child is in no slot, and `intern` has already compared it: only siblings can be found by hash.
        if has_many && let Some(id) = self.find(parent, name) {
            self.note_recent(parent, id);
            return id;
        }
        // The caller of a stack without room stands for it, so weights never get lost, only moved outward.
        if self.nodes.len() >= self.stacks_max as usize {
            self.folded += 1;
            return parent;
        }
        let id = u32::try_from(self.nodes.len()).expect("the limit is below 32 bits");
        self.nodes.push(Node { parent, name, recent: ROOT, has_many: false });
        self.note_recent(parent, id);
        if has_many {
            self.put(id);
        // The second child: from now on both must be found by hash.
        } else if recent != ROOT {
            match self.nodes.get_mut(parent as usize) {
                Some(node) => node.has_many = true,
                None => self.has_many_roots = true,
            }
            self.put(recent);
            self.put(id);
        }
        id
    }

    fn find(&self, parent: StackId, name: u32) -> Option<StackId> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(parent, name) & mask;
        // It ends: at least a quarter of the slots is free.
        while let Some(id) = self.slots[slot].checked_sub(1) {
            let node = self.nodes[id as usize];
            if node.name == name && node.parent == parent {
                return Some(id);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    /// Puts a stack that has siblings into a slot.
    fn put(&mut self, id: StackId) {
        // Growing before the insertion keeps the bound that `find` relies on.
        if (self.in_slots + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let node = self.nodes[id as usize];
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(node.parent, node.name) & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = id + 1;
        self.in_slots += 1;
    }

    fn note_recent(&mut self, parent: StackId, child: StackId) {
        match self.nodes.get_mut(parent as usize) {
            Some(node) => node.recent = child,
            None => self.recent_root = child,
        }
    }

    fn hash(&self, parent: StackId, name: u32) -> usize {
        // The key is secret: a trace cannot be made whose stacks all collide.
        self.key.hash(u64::from(parent) << 32 | u64::from(name)) as usize
    }

    fn grow(&mut self) {
        let length = self.slots.len() * 2;
        for id in std::mem::replace(&mut self.slots, vec![0; length]).into_iter().filter_map(|slot| slot.checked_sub(1))
        {
            let node = self.nodes[id as usize];
            let mut slot = self.hash(node.parent, node.name) & (length - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (length - 1);
            }
            self.slots[slot] = id + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A simple version: complete paths in a map.
    #[derive(Default)]
    struct Slow(HashMap<Vec<u32>, u32>);

    impl Slow {
        fn intern(&mut self, path: &[u32]) -> u32 {
            let next = u32::try_from(self.0.len()).unwrap();
            *self.0.entry(path.to_vec()).or_insert(next)
        }
    }

    fn random(state: &mut u64) -> u32 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as u32
    }

    #[test]
    fn ids_are_those_of_complete_paths_in_a_map() {
        let (mut table, mut slow, mut state) = (StackTable::default(), Slow::default(), 7);
        let (mut path, mut stack) = (Vec::new(), ROOT);
        for _ in 0..20_000 {
            if random(&mut state).is_multiple_of(3) {
                path.pop();
                stack = table.parent(stack);
            } else if path.len() < 12 {
                let name = random(&mut state) % 9;
                path.push(name);
                stack = table.intern(stack, name);
                assert_eq!(stack, slow.intern(&path));
            }
            assert_eq!(table.path(stack), path);
            assert_eq!(table.depth(stack), path.len());
        }
        assert_eq!((table.len(), table.folded()), (slow.0.len(), 0));
    }

    #[test]
    fn a_full_table_answers_with_the_caller() {
        let mut table = StackTable::with_limit(2);
        let a = table.intern(ROOT, 1);
        let b = table.intern(a, 2);
        assert_eq!((table.intern(b, 3), table.intern(ROOT, 4), table.intern(a, 2)), (b, ROOT, b));
        assert_eq!((table.len(), table.folded()), (2, 2));
    }

    #[test]
    fn a_merged_table_has_the_paths_of_both() {
        let (mut a, mut b) = (StackTable::default(), StackTable::default());
        let one = a.intern(ROOT, 1);
        a.intern(one, 2);
        let one = b.intern(ROOT, 1);
        let three = b.intern(one, 3);
        let other = b.intern(ROOT, 9);
        let ours = a.merge(&b);
        assert_eq!(a.len(), 4);
        for stack in [one, three, other] {
            assert_eq!(a.path(ours[stack as usize]), b.path(stack));
        }
    }

    #[test]
    fn a_cleared_table_counts_from_zero_again() {
        let mut table = StackTable::default();
        let one = table.intern(ROOT, 1);
        table.intern(one, 2);
        table.clear();
        assert!(table.is_empty());
        assert_eq!((table.intern(ROOT, 2), table.path(0)), (0, vec![2]));
    }

    #[test]
    fn an_id_that_is_not_a_stack_is_empty() {
        let table = StackTable::default();
        assert_eq!((table.parent(5), table.name(5), table.depth(5)), (ROOT, 0, 0));
        assert!(table.is_empty() && table.path(ROOT).is_empty());
    }
}

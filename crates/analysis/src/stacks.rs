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

use std::hash::{BuildHasher, RandomState};

/// Number of a stack, from 0 in order of first appearance; [`ROOT`] is the empty stack.
pub type StackId = u32;

/// The empty stack.
pub const ROOT: StackId = u32::MAX;

/// Most stacks a table holds by default: about 270 MB.
pub const STACKS_MAX: u32 = 1 << 24;

/// Children of one stack that are kept in a list; those of wider ones are hashed.
const LIST_MAX: usize = 16;

/// One stack. [`ROOT`] stands for none.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: StackId,
    name: u32,
    /// First of its list of children.
    first: StackId,
    /// Next in its parent's list.
    next: StackId,
}

/// The stacks of a trace. Ids do not depend on hashing: the first asked for is 0, the next 1.
///
/// Memory is bounded: a table that is full answers with the caller's stack in place of a new one, and counts it.
#[derive(Debug)]
pub struct StackTable {
    nodes: Vec<Node>,
    /// First of the list of outermost stacks.
    first_root: StackId,
    /// Children beyond [`LIST_MAX`] of one stack. Open addressing: ids plus one, 0 is free; a power of two long, at most
    /// three quarters full.
    slots: Vec<u32>,
    hashed: usize,
    /// Chosen anew by each program, so that no trace can be made whose stacks all collide.
    seed: u64,
    stacks_max: u32,
    folded: u64,
}

impl Default for StackTable {
    fn default() -> Self {
        Self::with_limit(STACKS_MAX)
    }
}

impl StackTable {
    /// An empty table that will hold at most so many stacks.
    pub fn with_limit(stacks_max: u32) -> Self {
        let seed = RandomState::new().hash_one(0_u8) | 1;
        let stacks_max = stacks_max.min(ROOT - 1);
        Self { nodes: Vec::new(), first_root: ROOT, slots: Vec::new(), hashed: 0, seed, stacks_max, folded: 0 }
    }

    /// The stack of `name` called from `parent`; made where it is new. A full table gives `parent`.
    #[inline]
    pub fn intern(&mut self, parent: StackId, name: u32) -> StackId {
        let first = match self.nodes.get(parent as usize) {
            Some(node) => node.first,
            None => self.first_root,
        };
        match self.nodes.get(first as usize) {
            Some(node) if node.name == name => first,
            _ => self.find_or_add(parent, name, first),
        }
    }

    /// The caller's stack; [`ROOT`] for outermost frames and for what is no stack.
    #[inline]
    pub fn parent(&self, stack: StackId) -> StackId {
        self.nodes.get(stack as usize).map_or(ROOT, |node| node.parent)
    }

    /// The innermost name; 0 for [`ROOT`].
    #[inline]
    pub fn name(&self, stack: StackId) -> u32 {
        self.nodes.get(stack as usize).map_or(0, |node| node.name)
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

    /// How often a full table answered with the caller's stack.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Takes the stacks of another table in and says which of ours each of its is.
    pub fn merge(&mut self, other: &Self) -> Vec<StackId> {
        let mut ours: Vec<StackId> = Vec::with_capacity(other.len());
        for node in &other.nodes {
            // A parent always has a smaller number than its children.
            let parent = ours.get(node.parent as usize).copied().unwrap_or(ROOT);
            ours.push(self.intern(parent, node.name));
        }
        self.folded += other.folded;
        ours
    }

    /// No more stacks come: the callers' lists are put in order. Ids stay.
    pub fn into_forest(self) -> Forest {
        let mut nodes = self.nodes;
        for node in &mut nodes {
            node.first = ROOT;
        }
        let mut first_root = ROOT;
        for id in 0..u32::try_from(nodes.len()).unwrap_or(ROOT) {
            let Some(parent) = nodes.get(id as usize).map(|node| node.parent) else { break };
            let first = nodes.get_mut(parent as usize).map_or(&mut first_root, |node| &mut node.first);
            let next = std::mem::replace(first, id);
            if let Some(node) = nodes.get_mut(id as usize) {
                node.next = next;
            }
        }
        Forest { nodes, first_root }
    }

    fn first_mut(&mut self, parent: StackId) -> &mut StackId {
        match self.nodes.get_mut(parent as usize) {
            Some(node) => &mut node.first,
            None => &mut self.first_root,
        }
    }

    /// Looks through the list of children, of which the first is not it; what is found comes to the front, as calls
    /// repeat.
    fn find_or_add(&mut self, parent: StackId, name: u32, first: StackId) -> StackId {
        let (mut before, mut hops) = (first, 0);
        while let Some(node) = self.nodes.get(before as usize) {
            hops += 1;
            let at = node.next;
            let Some(found) = self.nodes.get_mut(at as usize) else { break };
            if found.name == name {
                let next = std::mem::replace(&mut found.next, first);
                if let Some(node) = self.nodes.get_mut(before as usize) {
                    node.next = next;
                }
                *self.first_mut(parent) = at;
                return at;
            }
            before = at;
        }
        if hops >= LIST_MAX {
            return self.find_or_add_hashed(parent, name);
        }
        let Some(id) = self.add(parent, name, first) else { return parent };
        *self.first_mut(parent) = id;
        id
    }

    fn add(&mut self, parent: StackId, name: u32, next: StackId) -> Option<StackId> {
        let id = u32::try_from(self.nodes.len()).ok().filter(|&id| id < self.stacks_max);
        if id.is_none() {
            self.folded += 1;
        }
        self.nodes.extend(id.map(|_| Node { parent, name, first: ROOT, next }));
        id
    }

    #[cold]
    fn find_or_add_hashed(&mut self, parent: StackId, name: u32) -> StackId {
        if (self.hashed + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(parent, name) & mask;
        while let Some(id) = self.slots[slot].checked_sub(1) {
            let node = self.nodes[id as usize];
            if node.name == name && node.parent == parent {
                return id;
            }
            slot = (slot + 1) & mask;
        }
        let Some(id) = self.add(parent, name, ROOT) else { return parent };
        self.slots[slot] = id + 1;
        self.hashed += 1;
        id
    }

    fn hash(&self, parent: StackId, name: u32) -> usize {
        let key = u64::from(parent) << 32 | u64::from(name);
        let product = u128::from(key ^ self.seed) * u128::from(self.seed.rotate_left(32) | 1);
        ((product >> 64) as u64 ^ product as u64) as usize
    }

    fn grow(&mut self) {
        let mask = (self.slots.len() * 2).max(64) - 1;
        let old = std::mem::replace(&mut self.slots, vec![0; mask + 1]);
        for slot in old {
            let Some(id) = slot.checked_sub(1) else { continue };
            let node = self.nodes[id as usize];
            let mut at = self.hash(node.parent, node.name) & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

/// Stacks that can be walked from callers to calls, and rearranged.
///
/// ```
/// use anytrace_analysis::stacks::{ROOT, StackTable};
///
/// let mut stacks = StackTable::default();
/// let main = stacks.intern(ROOT, 7);
/// stacks.intern(main, 8);
/// stacks.intern(main, 9);
/// let forest = stacks.into_forest();
/// let names: Vec<u32> = forest.walk(main).map(|id| forest.name(id)).collect();
/// assert_eq!(names, [7, 9, 8]);
/// ```
#[derive(Debug, Clone)]
pub struct Forest {
    nodes: Vec<Node>,
    first_root: StackId,
}

impl Default for Forest {
    fn default() -> Self {
        Self { nodes: Vec::new(), first_root: ROOT }
    }
}

impl Forest {
    /// The caller's stack; [`ROOT`] for outermost frames and for what is no stack.
    #[inline]
    pub fn parent(&self, stack: StackId) -> StackId {
        self.nodes.get(stack as usize).map_or(ROOT, |node| node.parent)
    }

    /// The innermost name; 0 for [`ROOT`].
    #[inline]
    pub fn name(&self, stack: StackId) -> u32 {
        self.nodes.get(stack as usize).map_or(0, |node| node.name)
    }

    /// How many stacks there are; ids are below it.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The stacks called from one ([`ROOT`]: the outermost), the last to appear first.
    pub fn children(&self, parent: StackId) -> impl Iterator<Item = StackId> + '_ {
        let first = self.nodes.get(parent as usize).map_or(self.first_root, |node| node.first);
        let known = |id: StackId| ((id as usize) < self.nodes.len()).then_some(id);
        std::iter::successors(known(first), move |&id| known(self.nodes[id as usize].next))
    }

    /// The stack itself and its callers, innermost first.
    pub fn ancestors(&self, stack: StackId) -> impl Iterator<Item = StackId> + '_ {
        let known = |id: StackId| ((id as usize) < self.nodes.len()).then_some(id);
        std::iter::successors(known(stack), move |&id| known(self.parent(id)))
    }

    /// The stack itself and all below it, callers first; of the calls of one caller the last to appear comes first.
    pub fn walk(&self, stack: StackId) -> impl Iterator<Item = StackId> + '_ {
        let mut work = vec![stack];
        std::iter::from_fn(move || {
            let (id, node) = loop {
                let id = work.pop()?;
                if let Some(node) = self.nodes.get(id as usize) {
                    break (id, node);
                }
            };
            if id != stack {
                work.push(node.next);
            }
            work.push(node.first);
            Some(id)
        })
    }

    /// Adds a stack outside all lists.
    pub fn add(&mut self, parent: StackId, name: u32) -> StackId {
        let id = u32::try_from(self.nodes.len()).unwrap_or(ROOT);
        self.nodes.push(Node { parent, name, first: ROOT, next: ROOT });
        id
    }

    /// Says whose call a stack is.
    pub fn set_parent(&mut self, stack: StackId, parent: StackId) {
        if let Some(node) = self.nodes.get_mut(stack as usize) {
            node.parent = parent;
        }
    }

    /// Says what is called from a stack ([`ROOT`]: what is outermost), in order of appearance. Each stack may be in one
    /// list only; parents are not changed.
    pub fn set_children(&mut self, parent: StackId, children: &[StackId]) {
        let mut next = ROOT;
        for &child in children {
            if let Some(node) = self.nodes.get_mut(child as usize) {
                node.next = std::mem::replace(&mut next, child);
            }
        }
        match self.nodes.get_mut(parent as usize) {
            Some(node) => node.first = next,
            None => self.first_root = next,
        }
    }

    /// Puts another forest behind this one: its ids grow by the number that is returned.
    pub fn append(&mut self, other: Self) -> u32 {
        let offset = u32::try_from(self.nodes.len()).unwrap_or(ROOT);
        let moved = |id: StackId| if id == ROOT { ROOT } else { id.saturating_add(offset) };
        let roots: Vec<StackId> = other.children(ROOT).map(moved).collect();
        self.nodes.extend(other.nodes.into_iter().map(|node| Node {
            parent: moved(node.parent),
            name: node.name,
            first: moved(node.first),
            next: moved(node.next),
        }));
        let mut all: Vec<StackId> = self.children(ROOT).collect();
        all.reverse();
        all.extend(roots.into_iter().rev());
        self.set_children(ROOT, &all);
        offset
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The obvious version: whole paths in a map.
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
    fn ids_are_those_of_whole_paths_in_a_map() {
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
    fn wide_stacks_are_found_again() {
        let (mut table, mut slow) = (StackTable::default(), Slow::default());
        let mut state = 3;
        for _ in 0..20_000 {
            let (outer, inner) = (random(&mut state) % 40, random(&mut state) % 300);
            let stack = table.intern(ROOT, outer);
            assert_eq!(stack, slow.intern(&[outer]));
            assert_eq!(table.intern(stack, inner), slow.intern(&[outer, inner]));
        }
        let forest = table.into_forest();
        let mut walked: Vec<u32> = forest.children(ROOT).flat_map(|root| forest.walk(root)).collect();
        walked.sort_unstable();
        assert_eq!(walked, (0..u32::try_from(slow.0.len()).unwrap()).collect::<Vec<_>>());
    }

    #[test]
    fn an_appended_forest_keeps_its_paths() {
        let made = |names: [u32; 3]| {
            let mut table = StackTable::default();
            let outer = table.intern(ROOT, names[0]);
            table.intern(outer, names[1]);
            table.intern(outer, names[2]);
            table.into_forest()
        };
        let mut forest = made([1, 2, 3]);
        assert_eq!(forest.append(made([4, 5, 6])), 3);
        let names: Vec<u32> =
            forest.children(ROOT).flat_map(|root| forest.walk(root)).map(|id| forest.name(id)).collect();
        assert_eq!(names, [4, 6, 5, 1, 3, 2]);
        assert_eq!((forest.parent(5), forest.parent(3), forest.len()), (3, ROOT, 6));
    }

    #[test]
    fn what_is_no_stack_is_empty() {
        let table = StackTable::default();
        assert_eq!((table.parent(5), table.name(5), table.depth(5)), (ROOT, 0, 0));
        assert!(table.is_empty() && table.path(ROOT).is_empty());
    }
}

//! Many ways, in the order of their last use (LRU) or of their fill (FIFO): a hash of lines and a list for each set.

use anytrace_core::hash::Map;

use super::{DIRTY, PREFETCHED, StoredLine};
use crate::cache::config::Geometry;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    entry: u64,
    newer: u32,
    older: u32,
}

/// Ends of a set's list, and how long it is.
#[derive(Debug, Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    lines: usize,
}

/// The lines.
#[derive(Debug, Clone)]
pub(in crate::cache) struct Linked {
    ways: usize,
    by_use: bool,
    places: Map<u64, u32>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    sets: Vec<Ends>,
}

impl Linked {
    pub(super) fn new(geometry: &Geometry, by_use: bool) -> Self {
        Self {
            ways: geometry.ways,
            by_use,
            places: Map::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            sets: vec![Ends { newest: NONE, oldest: NONE, lines: 0 }; geometry.sets],
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &u64> {
        self.places.values().filter_map(|at| self.nodes.get(*at as usize)).map(|node| &node.entry)
    }

    pub(super) fn touch(&mut self, set: usize, line: u64, flags: u8) -> Option<u8> {
        let at = *self.places.get(&line)?;
        let node = self.nodes.get_mut(at as usize)?;
        let had = StoredLine::of(node.entry).flags;
        node.entry = StoredLine { line, flags: had & !PREFETCHED | flags }.entry();
        // The newest line is touched again most often, and is already where it belongs.
        if self.by_use && self.sets.get(set)?.newest != at {
            self.unlink(set, at);
            self.link(set, at);
        }
        Some(had)
    }

    pub(super) fn probe(&self, line: u64) -> Option<u8> {
        let at = *self.places.get(&line)?;
        Some(StoredLine::of(self.nodes.get(at as usize)?.entry).flags)
    }

    pub(super) fn remove(&mut self, set: usize, line: u64) -> Option<u8> {
        let at = self.places.remove(&line)?;
        self.unlink(set, at);
        self.free.push(at);
        Some(StoredLine::of(self.nodes.get(at as usize)?.entry).flags)
    }

    pub(super) fn clean(&mut self, line: u64) {
        let node = self.places.get(&line).and_then(|at| self.nodes.get_mut(*at as usize));
        if let Some(node) = node {
            node.entry &= !u64::from(DIRTY);
        }
    }

    pub(super) fn insert(&mut self, set: usize, stored: StoredLine) -> Option<StoredLine> {
        let ends = *self.sets.get(set)?;
        let mut victim = None;
        if ends.lines >= self.ways {
            let gone = StoredLine::of(self.nodes.get(ends.oldest as usize)?.entry);
            // Its node is free then, and is used again at once for the new line.
            self.remove(set, gone.line);
            victim = Some(gone);
        }
        let node = Node { entry: stored.entry(), newer: NONE, older: NONE };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("a level's lines are limited")
            }
        };
        *self.nodes.get_mut(at as usize)? = node;
        self.places.insert(stored.line, at);
        self.link(set, at);
        victim
    }

    fn link(&mut self, set: usize, at: u32) {
        let Some(ends) = self.sets.get_mut(set) else { return };
        // `link` and `unlink` keep three things in step: both directions of the list, its ends, and its length.
        let second = ends.newest;
        ends.newest = at;
        ends.lines += 1;
        if second == NONE {
            ends.oldest = at;
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            (node.newer, node.older) = (NONE, second);
        }
        if let Some(node) = self.nodes.get_mut(second as usize) {
            node.newer = at;
        }
    }

    fn unlink(&mut self, set: usize, at: u32) {
        let Some(Node { newer, older, .. }) = self.nodes.get(at as usize).copied() else { return };
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.end(set, |ends| ends.newest = older),
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.end(set, |ends| ends.oldest = newer),
        }
        self.end(set, |ends| ends.lines -= 1);
    }

    fn end(&mut self, set: usize, change: impl FnOnce(&mut Ends)) {
        if let Some(ends) = self.sets.get_mut(set) {
            change(ends);
        }
    }
}

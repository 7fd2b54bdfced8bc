//! Which nodes are needed, going backwards through the calls.

use std::collections::HashMap;

use crate::tools::gltrim::nodes::{Node, Nodes};

/// Most pieces of a buffer that are distinguished; with more of them, more calls stay than necessary.
const PIECES_MAX: usize = 4096;

/// Most pieces of all buffers together.
const ALL_PIECES_MAX: usize = 1 << 20;

/// Readers are remembered as a call and its function packed into one number; the bits for the call.
const CALL_BITS: u32 = 40;

pub(super) fn pack(call: u64, function: u32) -> u64 {
    call & ((1 << CALL_BITS) - 1) | u64::from(function.min(0xff_ffff)) << CALL_BITS
}

pub(super) fn unpack(reader: u64) -> (u64, u32) {
    (reader & ((1 << CALL_BITS) - 1), (reader >> CALL_BITS) as u32)
}

/// When a node was last read and overwritten, in steps backwards. Zero is never.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    read: u32,
    killed: u32,
    /// When anything below it was read.
    below: u32,
    /// The call that read it, and the one that read something below it.
    reader: u64,
    reader_below: u64,
}

/// The pieces of a buffer's content that are needed.
#[derive(Debug, Default)]
struct Pieces {
    /// When all of it was read.
    since: u32,
    /// Start and end, ordered and disjoint.
    pieces: Vec<(u64, u64)>,
}

/// What is needed at a point between two calls.
#[derive(Debug)]
pub(super) struct Live<'n> {
    nodes: &'n Nodes,
    times: Vec<Times>,
    now: u32,
    buffers: HashMap<Node, Pieces>,
    pieces: usize,
}

impl<'n> Live<'n> {
    pub(super) fn new(nodes: &'n Nodes) -> Self {
        Self { nodes, times: vec![Times::default(); nodes.len()], now: 0, buffers: HashMap::new(), pieces: 0 }
    }

    /// A call is kept: what it overwrites and reads comes next, in this order.
    pub(super) fn step(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    #[inline]
    fn at(&self, node: Node) -> Times {
        self.times.get(node as usize).copied().unwrap_or_default()
    }

    /// When the node, a node above it or a node below it was read and not overwritten since, and by which call.
    fn read_at(&self, node: Node, counts_below: bool) -> Option<(u32, u64)> {
        let mut times = self.at(node);
        let (mut read, mut reader, mut killed) = (times.read, times.reader, times.killed);
        // Changing a node changes its parts, so a reader of a part needs the call, too.
        if counts_below && times.below > read {
            (read, reader) = (times.below, times.reader_below);
        }
        let mut node = node;
        while let Some(parent) = self.nodes.parent(node) {
            node = parent;
            times = self.at(node);
            if times.read > read {
                (read, reader) = (times.read, times.reader);
            }
            // What overwrites a node above overwrites this one with it; a reader above reads it.
            killed = killed.max(times.killed);
        }
        // A call that overwrites and reads something needs its earlier value.
        (read > 0 && read >= killed).then_some((read, reader))
    }

    /// The call that needs the node or a part of it, if there is one.
    #[inline]
    pub(super) fn reader(&self, node: Node) -> Option<u64> {
        self.read_at(node, true).map(|(_, reader)| reader)
    }

    /// The call that needs any of these bytes.
    pub(super) fn range_reader(&self, node: Node, start: u64, length: u64) -> Option<u64> {
        if length == 0 {
            return None;
        }
        let (read, reader) = self.read_at(node, true)?;
        let Some(known) = self.buffers.get(&node).filter(|known| known.since >= read) else { return Some(reader) };
        let end = start.saturating_add(length);
        let at = known.pieces.partition_point(|piece| piece.1 <= start);
        known.pieces.get(at).is_some_and(|piece| piece.0 < end).then_some(reader)
    }

    #[inline]
    pub(super) fn read(&mut self, node: Node, reader: u64) {
        let now = self.now;
        if let Some(times) = self.times.get_mut(node as usize) {
            // A call may read a node several times; the walk to the root is needed once.
            if times.read == now {
                return;
            }
            (times.read, times.reader) = (now, reader);
        }
        let mut node = node;
        while let Some(parent) = self.nodes.parent(node) {
            node = parent;
            if let Some(times) = self.times.get_mut(node as usize) {
                (times.below, times.reader_below) = (now, reader);
            }
        }
    }

    #[inline]
    pub(super) fn kill(&mut self, node: Node) {
        if let Some(times) = self.times.get_mut(node as usize) {
            times.killed = self.now;
        }
        if let Some(known) = self.buffers.remove(&node) {
            self.pieces -= known.pieces.len();
        }
    }

    /// These bytes are overwritten.
    pub(super) fn kill_range(&mut self, node: Node, start: u64, length: u64) {
        let Some((read, _)) = self.read_at(node, true) else { return };
        if self.pieces > ALL_PIECES_MAX && !self.buffers.contains_key(&node) {
            return;
        }
        let known = self.buffers.entry(node).or_default();
        self.pieces -= known.pieces.len();
        // Something read all of it since: every byte is needed again.
        if known.since < read {
            known.pieces.clear();
            known.pieces.push((0, u64::MAX));
        }
        known.since = self.now;
        let end = start.saturating_add(length);
        let from = known.pieces.partition_point(|piece| piece.1 <= start);
        let to = known.pieces.partition_point(|piece| piece.0 < end);
        // With too many pieces bytes stay needed that are not: too many calls are kept, never too few.
        if from < to && known.pieces.len() < PIECES_MAX {
            let left = known.pieces.get(from).map(|piece| (piece.0, start)).filter(|piece| piece.0 < piece.1);
            let right = known.pieces.get(to - 1).map(|piece| (end, piece.1)).filter(|piece| piece.0 < piece.1);
            known.pieces.splice(from..to, left.into_iter().chain(right));
        }
        self.pieces += known.pieces.len();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tools::gltrim::nodes::Label;

    /// A root, two children, and two children of the first.
    fn tree() -> (Nodes, [Node; 5]) {
        let mut nodes = Nodes::default();
        let root = nodes.root(Label::Client);
        let (a, b) = (nodes.child(root, 1, Label::Client), nodes.child(root, 2, Label::Client));
        let (c, d) = (nodes.child(a, 1, Label::Client), nodes.child(a, 2, Label::Client));
        (nodes, [root, a, b, c, d])
    }

    #[test]
    fn a_read_node_is_needed_with_all_below_until_overwritten() {
        let (nodes, [root, a, b, c, d]) = tree();
        let mut live = Live::new(&nodes);
        assert_eq!(live.reader(root), None);
        live.step();
        live.read(a, 7);
        assert_eq!([root, a, b, c, d].map(|node| live.reader(node)), [Some(7), Some(7), None, Some(7), Some(7)]);
        live.step();
        live.kill(c);
        assert_eq!([a, c, d].map(|node| live.reader(node)), [Some(7), None, Some(7)]);
        live.kill(root);
        live.read(b, 6);
        assert_eq!([root, a, b, c].map(|node| live.reader(node)), [Some(6), None, Some(6), None]);
    }

    proptest! {
        /// Tracking single bytes is the slow way to the same result.
        #[test]
        fn pieces_are_what_single_bytes_say(steps in proptest::collection::vec((0..3_u8, 0..40_u64, 0..20_u64), 0..60)) {
            let (nodes, [root, a, ..]) = tree();
            let mut live = Live::new(&nodes);
            let mut bytes = [false; 80];
            for (what, start, length) in steps {
                live.step();
                match what {
                    0 if length > 16 => {
                        live.read(root, 1);
                        bytes = [true; 80];
                    }
                    0 if length < 2 => {
                        live.kill(a);
                        bytes = [false; 80];
                    }
                    1 => {
                        live.kill_range(a, start, length);
                        bytes[start as usize..(start + length) as usize].fill(false);
                    }
                    _ => {
                        let expected = bytes[start as usize..(start + length) as usize].iter().any(|byte| *byte);
                        prop_assert_eq!(live.range_reader(a, start, length).is_some(), expected && length > 0);
                    }
                }
            }
        }
    }
}

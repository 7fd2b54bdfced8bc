//! The things that calls read and write: nodes of a forest, such as "the content of texture 5, level 0".
//!
//! Reading or overwriting a node reads or overwrites everything below it.

use std::collections::HashMap;
use std::sync::OnceLock;

use anytrace_core::Error;
use anytrace_core::hash::Key;

/// A node by number.
pub(super) type Node = u32;

/// Most nodes.
const NODES_MAX: usize = 1 << 23;

/// What a node represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// All state of a context that `glPushAttrib` may save.
    Context(u32),
    /// State set since a `glPushAttrib`.
    Level,
    /// The existence of a `glPushAttrib`, `glPushMatrix` or similar.
    Pushed,
    /// State that a function of the table sets.
    State(u16),
    /// A binding, by the kind of object.
    Binding(&'static str),
    /// A matrix.
    Matrix,
    /// The definition of an object: its number.
    Object(u32),
    /// The content of an object: its number.
    Content(u32),
    /// The existence of an object.
    Birth,
    /// A name being free.
    Freed,
    /// Sizes and formats.
    Storage,
    /// A level or face of a texture.
    Image(u32),
    /// Levels generated from the first.
    Mipmaps,
    /// A part of an image.
    Area,
    /// A parameter of an object.
    Parameter,
    /// Shaders of a program, and its settings before it is linked.
    Code,
    /// A uniform at a location.
    Uniform(i64),
    /// Where a uniform or block is.
    Location(i64),
    /// An attachment of a framebuffer.
    Attachment,
    /// The colors of a framebuffer, its depths, its stencil, its accumulation buffer.
    Plane(&'static str),
    /// A vertex array's attribute.
    Attribute,
    /// The mapping of a buffer.
    Map,
    /// A window having been shown, and so having its size.
    Shown,
    /// The size of a window, from the largest viewport so far.
    WindowSize,
    /// The current context of a thread: the thread.
    Current(u64),
    /// The thread on which a context is current.
    Holder,
    /// The layout of pixels in memory.
    PixelStore,
    /// Other client state.
    Client,
}

/// All nodes so far.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    parents: Vec<Node>,
    labels: Vec<Label>,
    children: HashMap<(Node, u64), Node>,
    is_full: bool,
}

impl Nodes {
    /// A new tree. If there is no room, the first node represents everything, without any distinction.
    pub(super) fn root(&mut self, label: Label) -> Node {
        self.add(None, label)
    }

    fn add(&mut self, parent: Option<Node>, label: Label) -> Node {
        if self.parents.len() >= NODES_MAX {
            self.is_full = true;
            return 0;
        }
        let node = self.parents.len() as Node;
        self.parents.push(parent.unwrap_or(node));
        self.labels.push(label);
        node
    }

    /// The child with this key, created if it is new.
    #[inline]
    pub(super) fn child(&mut self, parent: Node, key: u64, label: Label) -> Node {
        if let Some(child) = self.children.get(&(parent, key)) {
            return *child;
        }
        let child = self.add(Some(parent), label);
        self.children.insert((parent, key), child);
        child
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// The node above; `None` for roots.
    #[inline]
    pub(super) fn parent(&self, node: Node) -> Option<Node> {
        self.parents.get(node as usize).copied().filter(|parent| *parent != node)
    }

    pub(super) fn label(&self, node: Node) -> Label {
        self.labels.get(node as usize).copied().unwrap_or(Label::Client)
    }

    /// Fails if there were too many.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_full {
            return Err(Error::limit(format!("the trace has more than {NODES_MAX} objects, their parts and states")));
        }
        Ok(())
    }
}

/// Hashes several numbers to one. Nodes are identified by it alone, so the hash is keyed: no trace can be constructed
/// in which two different states collide.
#[inline]
pub(super) fn key(parts: &[u64]) -> u64 {
    static KEY: OnceLock<Key> = OnceLock::new();
    let key = KEY.get_or_init(Key::new);
    parts.iter().fold(parts.len() as u64, |hash, part| key.hash_pair(hash, *part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_again_and_roots_have_no_parent() {
        let mut nodes = Nodes::default();
        let root = nodes.root(Label::Context(0));
        let child = nodes.child(root, 7, Label::Map);
        assert_eq!(
            (nodes.child(root, 7, Label::Map), nodes.parent(child), nodes.parent(root)),
            (child, Some(root), None)
        );
        assert_ne!(nodes.child(child, 7, Label::Map), child);
        assert_eq!((nodes.len(), nodes.label(child), nodes.check().is_ok()), (3, Label::Map, true));
    }

    #[test]
    fn the_order_of_parts_matters() {
        assert_ne!(key(&[1, 2]), key(&[2, 1]));
        assert_ne!(key(&[0]), key(&[0, 0]));
    }
}

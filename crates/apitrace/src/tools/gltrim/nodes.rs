//! What calls read and write: nodes of a forest, such as "the content of texture 5, level 0".
//!
//! Reading or overwriting a node is reading or overwriting all below it.

use std::collections::HashMap;
use std::sync::OnceLock;

use anytrace_core::Error;
use anytrace_core::hash::Key;

/// A node by number.
pub(super) type Node = u32;

/// Most nodes told apart.
const NODES_MAX: usize = 1 << 23;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// All state of a context that `glPushAttrib` may save.
    Context(u32),
    /// State set since a `glPushAttrib`.
    Level,
    /// That a `glPushAttrib`, `glPushMatrix` or their like stands.
    Pushed,
    /// State that a function of the table sets.
    State(u16),
    /// What is bound, by the kind of object.
    Binding(&'static str),
    /// A matrix.
    Matrix,
    /// What an object is made of: an object's number.
    Object(u32),
    /// What is stored in an object: an object's number.
    Content(u32),
    /// That an object exists.
    Birth,
    /// That a name is free again.
    Freed,
    /// Sizes and formats.
    Storage,
    /// A level or face of a texture.
    Image(u32),
    /// Levels made of the first.
    Mipmaps,
    /// A part of an image.
    Area,
    /// A parameter of an object.
    Parameter,
    /// Shaders of a program, and what is said of it before it is linked.
    Code,
    /// A uniform at a location.
    Uniform(i64),
    /// Where a uniform or block is.
    Location(i64),
    /// What is attached to a framebuffer.
    Attachment,
    /// The colours of a framebuffer, its depths, its stencil, its accumulation buffer.
    Plane(&'static str),
    /// A vertex array's attribute.
    Attribute,
    /// That a buffer is mapped.
    Map,
    /// That a window was shown, and so has its size.
    Shown,
    /// How large a window is, from the largest viewport so far.
    WindowSize,
    /// The context that a thread has: the thread.
    Current(u64),
    /// The thread that has a context.
    Holder,
    /// How pixels lie in memory.
    PixelStore,
    /// Other state of the program's side.
    Client,
}

/// All nodes met so far.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    parents: Vec<Node>,
    labels: Vec<Label>,
    children: HashMap<(Node, u64), Node>,
    is_full: bool,
}

impl Nodes {
    /// A new tree. Where there is no room any more the first node stands for all: nothing is told apart then.
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

    /// The child of that key, made when it is new.
    #[inline]
    pub(super) fn child(&mut self, parent: Node, key: u64, label: Label) -> Node {
        if let Some(child) = self.children.get(&(parent, key)) {
            return *child;
        }
        let child = self.add(Some(parent), label);
        self.children.insert((parent, key), child);
        child
    }

    /// How many there are.
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

    /// Fails when there were too many to tell apart.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_full {
            return Err(Error::limit(format!("the trace has more than {NODES_MAX} objects, parts of them and states")));
        }
        Ok(())
    }
}

/// One number for several. Nodes are known by it alone, so it is keyed: no trace can be made in which two different
/// states pass for one.
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

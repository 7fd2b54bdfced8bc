//! A context: its state, bindings and stacks.

use std::collections::HashMap;

use crate::tools::gltrim::list_commands::ListBuild;
use crate::tools::gltrim::nodes::{Label, Node, Nodes};
use crate::tools::gltrim::objects::Id;

/// The masks that determine how much a clear overwrites and what drawing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) has_scissor: bool,
    pub(super) has_discard: bool,
    pub(super) tests_depth: bool,
    pub(super) tests_stencil: bool,
    pub(super) is_color_complete: bool,
    pub(super) is_depth_complete: bool,
    pub(super) is_stencil_complete: bool,
}

/// State since a `glPushAttrib`, and what it saved.
pub(super) struct Level {
    pub(super) node: Node,
    pub(super) pushed: Node,
    pub(super) groups: u32,
    pub(super) call: u64,
    pub(super) is_forced: bool,
    pub(super) masks: Masks,
    pub(super) unit: u32,
    pub(super) mode: u32,
    pub(super) textures: Vec<((u32, u32), Id)>,
}

/// A matrix on its stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) matrix: Node,
    pub(super) pushed: Node,
    pub(super) call: u64,
    pub(super) is_forced: bool,
}

/// A context.
pub(super) struct ContextState {
    pub(super) levels: Vec<Level>,
    pub(super) client: Node,
    pub(super) pixels: Node,
    pub(super) client_stack: Vec<(u64, bool, Node)>,
    pub(super) groups: Vec<(u64, bool)>,
    pub(super) masks: Masks,
    pub(super) unit: u32,
    pub(super) client_unit: u32,
    pub(super) mode: u32,
    /// By mode and, for textures, unit.
    pub(super) stacks: HashMap<(u32, u32), Vec<Entry>>,
    pub(super) textures: HashMap<(u32, u32), Id>,
    /// Textures with name 0 that were ever used.
    pub(super) nameless: Vec<Id>,
    pub(super) samplers: HashMap<u32, Id>,
    pub(super) buffers: HashMap<u32, Id>,
    pub(super) indexed: HashMap<(u32, u32), Id>,
    pub(super) images: HashMap<u32, (Id, bool)>,
    pub(super) assembly: HashMap<u32, Id>,
    pub(super) queries: HashMap<(u32, u32), (Id, u64, bool)>,
    pub(super) program: Option<Id>,
    pub(super) pipeline: Option<Id>,
    pub(super) array: Id,
    pub(super) draw: Option<Id>,
    pub(super) read: Option<Id>,
    pub(super) renderbuffer: Option<Id>,
    pub(super) feedback: Option<(u64, bool)>,
    pub(super) conditional: Option<(u64, bool, Id)>,
    /// The framebuffer of the window.
    pub(super) window: Id,
    pub(super) read_window: Id,
    pub(super) is_primitive: bool,
    /// The primitive has a vertex.
    pub(super) has_vertex: bool,
    pub(super) list: Option<ListBuild>,
    /// The set of what drawing reads and writes, with the version and block it was made in.
    pub(super) set: Option<(u64, usize, u32)>,
    /// The context as an object of the window system, and whether it is current on a thread.
    pub(super) made: Node,
    pub(super) holder: Node,
}

impl ContextState {
    pub(super) fn of(nodes: &mut Nodes, ctx: u32, window: Id, array: Id) -> Self {
        let (node, pushed) = (nodes.root(Label::Context(ctx)), nodes.root(Label::Pushed));
        let masks = Masks {
            has_scissor: false,
            has_discard: false,
            tests_depth: false,
            tests_stencil: false,
            is_color_complete: true,
            is_depth_complete: true,
            is_stencil_complete: true,
        };
        let base = Level {
            node,
            pushed,
            groups: 0,
            call: 0,
            is_forced: false,
            masks,
            unit: 0,
            mode: 0x1700,
            textures: Vec::new(),
        };
        Self {
            levels: vec![base],
            client: nodes.root(Label::Client),
            pixels: nodes.root(Label::PixelStore),
            client_stack: Vec::new(),
            groups: Vec::new(),
            masks,
            unit: 0,
            client_unit: 0,
            mode: 0x1700,
            stacks: HashMap::new(),
            textures: HashMap::new(),
            nameless: Vec::new(),
            samplers: HashMap::new(),
            buffers: HashMap::new(),
            indexed: HashMap::new(),
            images: HashMap::new(),
            assembly: HashMap::new(),
            queries: HashMap::new(),
            program: None,
            pipeline: None,
            array,
            draw: None,
            read: None,
            renderbuffer: None,
            feedback: None,
            conditional: None,
            window,
            read_window: window,
            is_primitive: false,
            has_vertex: false,
            list: None,
            set: None,
            made: nodes.root(Label::Holder),
            holder: nodes.root(Label::Holder),
        }
    }
}

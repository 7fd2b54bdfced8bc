//! Tracks bindings from call to call, and what each call does to the nodes.
//!
//! For everything that only replaying would show (which texture a shader samples, whether a draw covers all earlier
//! content) the worst case is assumed. So too many calls may stay, but never too few.

use std::collections::HashMap;

use anytrace_core::Error;

use crate::tools::gl::contexts::Contexts;
use crate::tools::gl::kind::{Kind, Scope};
use crate::tools::gl::values::Values;
use crate::tools::gltrim::context_state::ContextState;
use crate::tools::gltrim::list_commands::List;
use crate::tools::gltrim::log::{Effect, Log, Record};
use crate::tools::gltrim::nodes::{Label, Node, Nodes};
use crate::tools::gltrim::objects::{Id, Object};
use crate::tools::gltrim::rules::Rule;

/// Names of the objects that binding 0 selects: above all real ones.
const DEFAULT_NAMES: u64 = 1 << 40;

/// The current call.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) call: u64,
    pub(super) thread: u64,
    /// Slot of its function.
    pub(super) function: u32,
    /// It stays in any case.
    pub(super) is_forced: bool,
    /// It belongs to a frame whose picture is needed.
    pub(super) is_target: bool,
    /// No call of such a frame came before.
    pub(super) is_early: bool,
    /// The nesting depth of display lists.
    pub(super) depth: u8,
}

/// Everything that is followed.
pub(super) struct Model {
    pub(super) nodes: Nodes,
    pub(super) log: Log,
    pub(super) contexts: Contexts,
    pub(super) objects: Vec<Object>,
    pub(super) rules: Vec<Rule>,
    states: Vec<ContextState>,
    /// Represents all contexts beyond the limit.
    spare: ContextState,
    pub(super) names: HashMap<(Kind, u32, u64), Id>,
    freed: HashMap<(Kind, u32, u64), Node>,
    pub(super) windows: HashMap<u64, Id>,
    current: HashMap<u64, (Node, u64)>,
    /// Mapped memory: the buffer by its first address.
    pub(super) regions: std::collections::BTreeMap<u64, (u64, Id)>,
    pub(super) lists: HashMap<Id, List>,
    pub(super) list_bytes: usize,
    pub(super) list_steps: u64,
    /// The value of `glListBase`, by context.
    pub(super) list_bases: HashMap<u32, u64>,
    /// The nodes for windows having been shown, by window, and whether they were.
    pub(super) shown: HashMap<Id, (Node, bool)>,
    /// The size of each window in a replay so far.
    pub(super) window_sizes: HashMap<Id, (i64, i64)>,
    /// The vertex array with name 0, by context.
    pub(super) arrays: HashMap<u32, Id>,
    /// The effects of the current call.
    pub(super) record: Record,
    pub(super) ctx: u32,
    /// Incremented when anything is bound.
    pub(super) version: u64,
    /// All functions that set state stay.
    pub(super) keeps_states: bool,
    /// Calls of unknown functions, by slot of their function.
    pub(super) unknown: HashMap<u32, u64>,
    scratch: Vec<Effect>,
}

impl Model {
    pub(super) fn new(has_threads: bool, keeps_states: bool) -> Self {
        let mut nodes = Nodes::default();
        // Beyond the limit, this one represents all of them.
        nodes.root(Label::Client);
        let spare = ContextState::of(&mut nodes, 0, 0, 0);
        Self {
            nodes,
            log: Log::new(),
            contexts: Contexts::new(has_threads),
            objects: Vec::new(),
            rules: Vec::new(),
            states: Vec::new(),
            spare,
            names: HashMap::new(),
            freed: HashMap::new(),
            windows: HashMap::new(),
            current: HashMap::new(),
            regions: std::collections::BTreeMap::new(),
            lists: HashMap::new(),
            list_bytes: 0,
            list_steps: 0,
            list_bases: HashMap::new(),
            shown: HashMap::new(),
            window_sizes: HashMap::new(),
            arrays: HashMap::new(),
            record: Record::default(),
            ctx: 0,
            version: 1,
            keeps_states,
            unknown: HashMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Follows a call and records its effects.
    pub(super) fn call(&mut self, rule: Rule, values: &Values<'_>, at: At, enter: &[u8]) -> Result<(), Error> {
        self.record.effects.clear();
        self.record.set = None;
        self.ctx = self.contexts.current(at.thread);
        if rule != Rule::Nothing {
            // Every call depends on which context is current on its thread.
            let (current, _) = self.current(at.thread);
            if !self.compile(rule, at, enter) {
                self.apply(rule, values, at);
            }
            if at.is_forced || !self.record.effects.is_empty() || self.record.set.is_some() {
                self.effect(Effect::Read(current));
            }
        }
        if self.record.effects.is_empty() && !at.is_forced {
            return Ok(());
        }
        (self.record.call, self.record.thread, self.record.function) = (at.call, at.thread, at.function);
        self.log.add(&self.record)
    }

    /// The node for the current context of a thread.
    pub(super) fn current(&mut self, thread: u64) -> (Node, u64) {
        if let Some(known) = self.current.get(&thread) {
            return *known;
        }
        let node = self.nodes.root(Label::Current(thread));
        self.current.insert(thread, (node, 0));
        (node, 0)
    }

    #[inline]
    pub(super) fn effect(&mut self, effect: Effect) {
        self.record.effects.push(effect);
    }

    #[inline]
    pub(super) fn reads(&mut self, node: Node) {
        self.record.effects.push(Effect::Read(node));
    }

    #[inline]
    pub(super) fn writes(&mut self, node: Node) {
        self.record.effects.push(Effect::Write(node));
    }

    #[inline]
    pub(super) fn kills(&mut self, node: Node) {
        self.record.effects.push(Effect::Kill(node));
    }

    /// Records that a binding changed.
    #[inline]
    pub(super) fn touch(&mut self) {
        self.version += 1;
    }

    /// The state of the current context.
    #[inline]
    pub(super) fn state(&mut self) -> &mut ContextState {
        let at = self.ctx as usize;
        while self.states.len() <= at {
            self.add_state();
        }
        self.states.get_mut(at).unwrap_or(&mut self.spare)
    }

    fn add_state(&mut self) {
        let ctx = self.states.len() as u32;
        let window = self.window(u64::from(ctx) | DEFAULT_NAMES);
        let array = self.add_object(Kind::VertexArray, 0);
        let state = ContextState::of(&mut self.nodes, ctx, window, array);
        self.states.push(state);
    }

    /// The framebuffer of a window.
    pub(super) fn window(&mut self, handle: u64) -> Id {
        if let Some(known) = self.windows.get(&handle) {
            return *known;
        }
        let id = self.add_object(Kind::Framebuffer, 0);
        self.windows.insert(handle, id);
        id
    }

    pub(super) fn object(&self, id: Id) -> Option<&Object> {
        self.objects.get(id as usize)
    }

    pub(super) fn object_mut(&mut self, id: Id) -> Option<&mut Object> {
        self.objects.get_mut(id as usize)
    }

    pub(super) fn made(&self, id: Id) -> Node {
        self.object(id).map_or(0, |object| object.made)
    }

    pub(super) fn content(&self, id: Id) -> Node {
        self.object(id).map_or(0, |object| object.content)
    }

    pub(super) fn birth(&mut self, id: Id) -> Node {
        let made = self.made(id);
        self.nodes.child(made, 0, Label::Birth)
    }

    pub(super) fn add_object(&mut self, kind: Kind, name: u64) -> Id {
        let id = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        // Two trees: a call may define an object anew without what is stored in it, and the other way around.
        let (made, content) = (self.nodes.root(Label::Object(id)), self.nodes.root(Label::Content(id)));
        self.objects.push(Object {
            kind,
            name,
            made,
            content,
            links: Vec::new(),
            attached: Vec::new(),
            drawn: Vec::new(),
            sizes: Vec::new(),
            has_stencil: false,
            map: None,
        });
        id
    }

    fn slot(&self, kind: Kind, scope: Scope, name: u64) -> (Kind, u32, u64) {
        let space = match scope {
            Scope::Group => self.contexts.get(self.ctx).group,
            // The highest bit keeps contexts apart from groups of contexts with the same number.
            Scope::Context => self.ctx | 1 << 31,
        };
        (kind.namespace(), space, name)
    }

    /// The object with a name; `None` for 0. If no call made it, the current call does.
    pub(super) fn named(&mut self, kind: Kind, scope: Scope, name: u64) -> Option<Id> {
        if name == 0 {
            return None;
        }
        let slot = self.slot(kind, scope, name);
        if let Some(id) = self.names.get(&slot) {
            return Some(*id);
        }
        // Programs mix framebuffers of the extension, which are shared, with those of core OpenGL.
        let other = if scope == Scope::Group { Scope::Context } else { Scope::Group };
        let elsewhere = self.slot(kind, other, name);
        if let Some(id) = self.names.get(&elsewhere).filter(|_| kind == Kind::Framebuffer) {
            return Some(*id);
        }
        let id = self.add_object(kind, name);
        self.names.insert(slot, id);
        if let Some(freed) = self.freed.get(&slot).copied() {
            self.reads(freed);
        }
        let birth = self.birth(id);
        self.kills(birth);
        Some(id)
    }

    /// An object of a kind, in its usual scope.
    pub(super) fn find(&mut self, kind: Kind, name: Option<u64>) -> Option<Id> {
        self.named(kind, kind.scope(), name?)
    }

    /// The object that binding 0 selects.
    pub(super) fn nameless(&mut self, kind: Kind, target: u32) -> Id {
        let slot = (kind, self.ctx | 1 << 31, DEFAULT_NAMES | u64::from(target));
        if let Some(id) = self.names.get(&slot) {
            return *id;
        }
        let id = self.add_object(kind, 0);
        self.names.insert(slot, id);
        if kind == Kind::Texture {
            self.state().nameless.push(id);
            self.touch();
        }
        id
    }

    /// Creates an object by the current call.
    pub(super) fn make(&mut self, kind: Kind, scope: Scope, name: u64) -> Id {
        let id = self.add_object(kind, name);
        let slot = self.slot(kind, scope, name);
        self.names.insert(slot, id);
        let made = self.made(id);
        self.kills(made);
        id
    }

    /// Deletes an object by the current call: its name becomes free, and its bindings are removed.
    pub(super) fn delete(&mut self, kind: Kind, scope: Scope, name: u64) -> Option<Id> {
        let slot = self.slot(kind, scope, name);
        let id = self.names.remove(&slot)?;
        let freed = match self.freed.get(&slot) {
            Some(freed) => *freed,
            None => {
                let freed = self.nodes.root(Label::Freed);
                self.freed.insert(slot, freed);
                freed
            }
        };
        // Whoever makes an object of this name next needs the name to be free.
        self.kills(freed);
        let birth = self.birth(id);
        self.reads(birth);
        Some(id)
    }

    pub(super) fn take_scratch(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.scratch)
    }

    pub(super) fn give_scratch(&mut self, mut effects: Vec<Effect>) {
        effects.clear();
        self.scratch = effects;
    }
}

/// Keys of state without a row in the table.
pub(super) const UNIT: u64 = 1 << 32;

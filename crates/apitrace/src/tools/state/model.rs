//! What is known about contexts and objects at a call.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::tools::gl::kind::Kind;
use crate::tools::state::matrices::Stack;
use crate::tools::state::ops::Op;
use crate::tools::state::value::Val;

/// A value and the call that set it last.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: Val,
    /// The call; `None` for initial values.
    pub call: Option<u64>,
}

impl Setting {
    pub(super) fn new(value: Val, call: u64) -> Self {
        Self { value, call: Some(call) }
    }
}

/// The name of a setting, and which one if there are several.
pub type Key = (Rc<str>, Option<u32>);

/// An object at a binding point.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// Its kind.
    pub kind: Kind,
    /// Its name; 0 for none.
    pub name: u64,
    /// The call that bound it.
    pub call: u64,
    /// More that was said: offset and size of buffers, level and format of images.
    pub more: Vec<(Rc<str>, Val)>,
}

/// What is known about a context.
#[derive(Debug, Clone, Default)]
pub struct ContextState {
    /// Parameters by the names `glGet` has for them, enables among them.
    pub parameters: BTreeMap<Key, Setting>,
    /// Bindings, by target, with the texture unit or index if there are several.
    pub bindings: BTreeMap<Key, Binding>,
    /// The vertex array object 0, which core contexts do not have.
    pub vertex_array: VertexArray,
    /// Stacks of matrices by `GL_MODELVIEW` and so on, textures' with their unit.
    pub matrices: BTreeMap<Key, Stack>,
    /// Descriptions of what is not known.
    pub unknown: Vec<String>,
    pub(super) attributes: Vec<Saved>,
    pub(super) compiling: Option<Compiling>,
}

/// Parameters that `glPushAttrib` saved.
#[derive(Debug, Clone)]
pub(super) struct Saved {
    pub(super) mask: u32,
    pub(super) parameters: BTreeMap<Key, Setting>,
    pub(super) bindings: BTreeMap<Key, Binding>,
}

/// A display list that is being made.
#[derive(Debug, Clone)]
pub(super) struct Compiling {
    pub(super) name: u64,
    pub(super) executes: bool,
    pub(super) calls: Vec<Rc<Kept>>,
}

/// A call of a display list.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) op: Op,
    /// Slot of the function.
    pub(super) function: u32,
    /// Details of the call's enter event.
    pub(super) enter: Rc<Text>,
}

/// Arrays of vertices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VertexArray {
    /// Attributes by index; those of the fixed pipeline by name.
    pub attributes: BTreeMap<Key, Attribute>,
    /// Buffers at binding points of `glBindVertexBuffer`: name, offset, stride, divisor.
    pub buffers: BTreeMap<u64, BTreeMap<Rc<str>, Setting>>,
    /// The buffer of indexes.
    pub elements: Option<Setting>,
}

/// An array of one attribute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attribute {
    /// Whether it is enabled, as far as a call said so.
    pub enabled: Option<Setting>,
    /// Size, type, stride, pointer, buffer and so on.
    pub format: BTreeMap<Rc<str>, Val>,
    /// The call that set the format.
    pub call: Option<u64>,
}

/// An object that is there.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// The call that made it.
    pub call: u64,
    /// The function of that call.
    pub function: Rc<str>,
    /// Its label, of `glObjectLabel`.
    pub label: Option<Val>,
    /// The call that deleted it, if it remains because it is attached.
    pub deleted: Option<u64>,
    /// Plain properties: target, size, usage, type, format; and parameters set.
    pub properties: BTreeMap<Rc<str>, Setting>,
    /// Details of its kind.
    pub detail: Detail,
}

/// Details of a kind of object, besides properties.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// Images of a texture, by target and level.
    Texture(BTreeMap<(Rc<str>, i64), Level>),
    /// Attachments of a framebuffer, by attachment point.
    Framebuffer(BTreeMap<Rc<str>, Attachment>),
    /// Source of a shader.
    Shader(Source),
    /// A program.
    Program(Box<Program>),
    /// A vertex array.
    VertexArray(Box<VertexArray>),
    /// Calls of a display list.
    List(List),
}

/// The calls of a display list, as far as they matter.
#[derive(Debug, Clone, Default)]
pub struct List(pub(super) Rc<Vec<Rc<Kept>>>);

/// Source of a shader.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The text; `None` when no call gave it or there was no room for it.
    pub text: Option<Rc<Text>>,
    /// The call that gave it.
    pub call: Option<u64>,
    /// It was too much to be kept; its length in bytes.
    pub left_out_bytes: Option<u64>,
    /// How many programs the shader is attached to.
    pub(super) holders: u32,
}

/// A text whose bytes count as long as it is kept.
#[derive(Debug)]
pub struct Text {
    bytes: Box<[u8]>,
    budget: Rc<Budget>,
}

impl Text {
    /// Its bytes, of any encoding.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.budget.text_bytes.set(self.budget.text_bytes.get().saturating_sub(self.bytes.len()));
    }
}

/// What all tables use so far, to keep it below the limits.
#[derive(Debug, Default)]
pub(super) struct Budget {
    entries: Cell<usize>,
    text_bytes: Cell<usize>,
    is_short: Cell<bool>,
}

/// Most entries of all tables, about 150 bytes each.
const ENTRIES_MAX: usize = 1 << 20;

/// Most bytes of sources and display lists.
const TEXT_BYTES_MAX: usize = 64 << 20;

impl Budget {
    /// Sets an entry; adds a new one only if there is room.
    pub(super) fn put<K: Ord, V>(&self, table: &mut BTreeMap<K, V>, key: K, value: V) {
        if let Some(place) = table.get_mut(&key) {
            *place = value;
        } else if self.takes() {
            table.insert(key, value);
        }
    }

    /// Returns true, and counts one more entry, if there is room.
    pub(super) fn takes(&self) -> bool {
        let has_room = self.entries.get() < ENTRIES_MAX;
        if has_room {
            self.entries.set(self.entries.get() + 1);
        } else {
            self.is_short.set(true);
        }
        has_room
    }

    /// Records that something is omitted.
    pub(super) fn leave_out(&self) {
        self.is_short.set(true);
    }

    /// Gives room back.
    pub(super) fn free(&self, entries: usize) {
        self.entries.set(self.entries.get().saturating_sub(entries));
    }

    /// Keeps a text if there is room.
    pub(super) fn text(self: &Rc<Self>, bytes: Vec<u8>) -> Option<Rc<Text>> {
        if self.text_bytes.get().saturating_add(bytes.len()) > TEXT_BYTES_MAX {
            self.is_short.set(true);
            return None;
        }
        self.text_bytes.set(self.text_bytes.get() + bytes.len());
        Some(Rc::new(Text { bytes: bytes.into(), budget: Rc::clone(self) }))
    }

    /// True when something was left out.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.get()
    }
}

/// An image of a texture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Level {
    /// Internal format, width, height, depth, format, type and so on.
    pub format: BTreeMap<Rc<str>, Val>,
    /// The call that gave it its size.
    pub call: u64,
    /// Bytes the calls gave for it since; a part counts as often as it is given.
    pub given_bytes: u64,
    /// The call that changed its content last, if another.
    pub changed: Option<u64>,
}

/// What is attached to a framebuffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// Texture or renderbuffer.
    pub kind: Kind,
    /// Its name.
    pub name: u64,
    /// Level, layer and target.
    pub more: Vec<(Rc<str>, Val)>,
    /// The call that attached it.
    pub call: u64,
}

/// A program.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Names of shaders attached and the calls that did so.
    pub shaders: BTreeMap<u64, u64>,
    /// The shaders it runs: those attached when it was linked, with their types and sources.
    pub linked: Vec<Linked>,
    /// The call that linked it last.
    pub link: Option<u64>,
    /// Uniforms by location.
    pub uniforms: BTreeMap<i64, Setting>,
    /// Names of locations, as far as the program queried them.
    pub locations: BTreeMap<i64, Rc<str>>,
    /// Binding points of uniform blocks by index, and names of blocks, as far as the program queried them.
    pub blocks: BTreeMap<i64, Setting>,
    /// Names of blocks.
    pub block_names: BTreeMap<i64, Rc<str>>,
    /// Indexes given to attributes by name, before linking.
    pub attributes: BTreeMap<Rc<str>, Setting>,
}

/// A shader as it was when its program was linked.
#[derive(Debug, Clone)]
pub struct Linked {
    /// Its name.
    pub name: u64,
    /// Its type, as `GL_VERTEX_SHADER`.
    pub kind: Val,
    /// Its source.
    pub source: Source,
}

impl Object {
    /// How many entries its tables have.
    pub(super) fn entries(&self) -> usize {
        let detail = match &self.detail {
            Detail::None | Detail::Shader(_) => 0,
            Detail::List(list) => list.count(),
            Detail::Texture(levels) => levels.len(),
            Detail::Framebuffer(attachments) => attachments.len(),
            Detail::Program(program) => {
                let Program { shaders, uniforms, locations, blocks, block_names, attributes, .. } = &**program;
                shaders.len() + uniforms.len() + locations.len() + blocks.len() + block_names.len() + attributes.len()
            }
            Detail::VertexArray(array) => array.attributes.len() + array.buffers.len(),
        };
        detail + self.properties.len()
    }
}

impl List {
    /// How many calls are kept.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Detail {
    /// What an object of a kind starts with.
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Texture => Self::Texture(BTreeMap::new()),
            Kind::Framebuffer => Self::Framebuffer(BTreeMap::new()),
            Kind::Shader => Self::Shader(Source::default()),
            Kind::Program => Self::Program(Box::default()),
            Kind::VertexArray => Self::VertexArray(Box::default()),
            Kind::List => Self::List(List::default()),
            _ => Self::None,
        }
    }
}

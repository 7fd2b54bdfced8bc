//! Buffers: their sizes, what is stored in them, mappings.

use crate::lanes::wire::Value;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::gltrim::log::Effect;
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::nodes::{Label, Node, key};
use crate::tools::gltrim::objects::{Id, Mapped};
use crate::tools::gltrim::rules::Rule;

pub(super) const ELEMENTS: u32 = 0x8893;
pub(super) const PIXEL_PACK: u32 = 0x88eb;
pub(super) const PIXEL_UNPACK: u32 = 0x88ec;
pub(super) const INDIRECT: u32 = 0x8f3f;
pub(super) const DISPATCH_INDIRECT: u32 = 0x90ee;
pub(super) const PARAMETERS: u32 = 0x80ee;
pub(super) const FEEDBACK: u32 = 0x8c8e;
pub(super) const SHADER_STORAGE: u32 = 0x90d2;
pub(super) const ATOMIC: u32 = 0x92c0;
const BUFFER: u64 = 3 << 32;

/// The link of a vertex array to its index buffer.
pub(super) const INDEX_LINK: u32 = u32::MAX;

impl Model {
    /// The key of a target's binding.
    pub(super) fn buffer_key(target: u32) -> u64 {
        key(&[BUFFER, u64::from(target)])
    }

    /// The buffer that a call refers to. If it is the bound one, the binding is read too.
    fn buffer(&mut self, values: &Values<'_>, index: usize, is_named: bool) -> Option<Id> {
        if is_named {
            let id = self.find(Kind::Buffer, values.name(index))?;
            let birth = self.birth(id);
            self.reads(birth);
            return Some(id);
        }
        self.bound_buffer(values.integer(index)? as u32)
    }

    /// The object bound to a target; marks the binding as read.
    pub(super) fn bound_buffer(&mut self, target: u32) -> Option<Id> {
        if target == ELEMENTS {
            let array = self.state().array;
            let made = self.made(array);
            let node = self.nodes.child(made, u64::from(INDEX_LINK), Label::Binding("buffer"));
            self.reads(node);
            self.read_state(ARRAY_KEY, Label::Binding("vertex array"));
            return self.object(array)?.links.iter().find(|(place, _)| *place == INDEX_LINK).map(|(_, id)| *id);
        }
        self.read_state(Self::buffer_key(target), Label::Binding("buffer"));
        self.state().buffers.get(&target).copied()
    }

    pub(super) fn storage(&mut self, id: Id) -> Node {
        let made = self.made(id);
        self.nodes.child(made, 1, Label::Storage)
    }

    pub(super) fn buffer_data(&mut self, values: &Values<'_>, is_named: bool) {
        let Some(id) = self.buffer(values, 0, is_named) else { return };
        let size = values.integer(1).unwrap_or(0).max(0) as u64;
        if let Some(object) = self.object_mut(id) {
            object.sizes = vec![(0, [size, 0, 0])];
        }
        let (storage, content) = (self.storage(id), self.content(id));
        self.kills(storage);
        self.kills(content);
    }

    pub(super) fn buffer_part(&mut self, values: &Values<'_>, is_named: bool) {
        let Some(id) = self.buffer(values, 0, is_named) else { return };
        let number = |index: usize| values.integer(index).unwrap_or(0).max(0) as u64;
        self.set_range(id, number(1), number(2), true);
    }

    /// Sets bytes of a buffer, all or some of them.
    fn set_range(&mut self, id: Id, start: u64, length: u64, is_entire: bool) {
        let content = self.content(id);
        self.effect(if is_entire {
            Effect::Range(content, start, length)
        } else {
            Effect::Touch(content, start, length)
        });
        let storage = self.storage(id);
        self.reads(storage);
    }

    pub(super) fn buffer_copy(&mut self, values: &Values<'_>, is_named: bool) {
        let (Some(from), Some(to)) = (self.buffer(values, 0, is_named), self.buffer(values, 1, is_named)) else {
            return;
        };
        let number = |index: usize| values.integer(index).unwrap_or(0).max(0) as u64;
        self.set_range(to, number(3), number(4), true);
        let (content, storage) = (self.content(from), self.storage(from));
        self.reads(content);
        self.reads(storage);
    }

    pub(super) fn buffer_clear(&mut self, values: &Values<'_>, is_named: bool, is_part: bool) {
        let Some(id) = self.buffer(values, 0, is_named) else { return };
        if is_part {
            let number = |index: usize| values.integer(index).unwrap_or(0).max(0) as u64;
            return self.set_range(id, number(2), number(3), true);
        }
        let (content, storage) = (self.content(id), self.storage(id));
        self.kills(content);
        self.reads(storage);
    }

    /// The node for the mapping of a buffer.
    fn map_node(&mut self, id: Id) -> Node {
        let marks = self.state().levels.first().map_or(0, |level| level.pushed);
        self.nodes.child(marks, key(&[5, u64::from(id)]), Label::Map)
    }

    pub(super) fn map(&mut self, values: &Values<'_>, is_named: bool, is_range: bool, at: At) {
        let Some(id) = self.buffer(values, 0, is_named) else { return };
        let Some(address) = values.returned_name().filter(|address| *address != 0) else { return };
        let number = |index: usize| values.integer(index).unwrap_or(0).max(0) as u64;
        let size = self.object(id).and_then(|object| object.sizes.first()).map_or(0, |(_, size)| size[0]);
        let (offset, length) = if is_range { (number(1), number(2)) } else { (0, size) };
        self.regions.insert(address, (address.saturating_add(length), id));
        let is_forced = at.is_forced;
        if let Some(object) = self.object_mut(id) {
            object.map = Some(Mapped { call: at.call, address, offset, written: None, is_forced });
        }
        let (node, storage) = (self.map_node(id), self.storage(id));
        self.kills(node);
        self.reads(storage);
        self.effect(Effect::Open);
    }

    /// The program writes to mapped memory.
    pub(super) fn memcpy(&mut self, values: &Values<'_>) {
        let (Some(to), Some(length)) = (values.name(0), values.name(2)) else { return self.effect(Effect::Always) };
        // Mappings do not overlap, so the one that begins last before the address is the only one that can contain it.
        let region = self.regions.range(..=to).next_back().map(|(_, region)| *region);
        let Some((_, id)) = region.filter(|(end, _)| to < *end) else {
            // Unknown memory: pointers to it may be anywhere.
            return self.effect(Effect::Always);
        };
        let Some(mapped) = self.object_mut(id).and_then(|object| object.map.as_mut()) else { return };
        let start = mapped.offset.saturating_add(to.wrapping_sub(mapped.address));
        let end = start.saturating_add(length);
        // One range around all writes: it may keep too many calls, but never too few.
        let (from, until) = mapped.written.unwrap_or((start, end));
        mapped.written = Some((from.min(start), until.max(end)));
        self.set_range(id, start, length, true);
        let node = self.map_node(id);
        self.reads(node);
    }

    pub(super) fn flush(&mut self, values: &Values<'_>, is_named: bool) {
        let Some(id) = self.buffer(values, 0, is_named) else { return };
        let number = |index: usize| values.integer(index).unwrap_or(0).max(0) as u64;
        let offset = self.object(id).and_then(|object| object.map).map_or(0, |mapped| mapped.offset);
        self.set_range(id, offset.saturating_add(number(1)), number(2), false);
        let node = self.map_node(id);
        self.reads(node);
    }

    pub(super) fn unmap(&mut self, values: &Values<'_>, is_named: bool) {
        let Some(id) = self.buffer(values, 0, is_named) else { return };
        let Some(mapped) = self.object_mut(id).and_then(|object| object.map.take()) else { return };
        self.regions.remove(&mapped.address);
        if let Some((start, end)) = mapped.written {
            self.set_range(id, start, end - start, false);
            let node = self.map_node(id);
            self.reads(node);
        }
        self.close(mapped.call, mapped.is_forced);
    }

    /// `glBindBufferBase` and similar: an indexed binding point, and the target itself.
    pub(super) fn bind_indexed(&mut self, values: &Values<'_>) {
        let (target, index) = (values.integer(0).unwrap_or(0) as u32, values.integer(1).unwrap_or(0) as u32);
        let id = self.find(Kind::Buffer, values.name(2));
        self.bind_buffer_at(target, index, id);
        self.bind_buffer(target, id);
    }

    fn bind_buffer_at(&mut self, target: u32, index: u32, id: Option<Id>) {
        let state = self.state();
        match id {
            Some(id) => state.indexed.insert((target, index), id),
            None => state.indexed.remove(&(target, index)),
        };
        self.kill_state(0, key(&[BUFFER, u64::from(target), u64::from(index)]), Label::Binding("buffer"));
        self.read_birth(id);
        self.touch();
    }

    pub(super) fn bind_buffer(&mut self, target: u32, id: Option<Id>) {
        if target == ELEMENTS {
            let array = self.state().array;
            return self.link_buffer(array, INDEX_LINK, id);
        }
        let state = self.state();
        match id {
            Some(id) => state.buffers.insert(target, id),
            None => state.buffers.remove(&target),
        };
        self.kill_state(0, Self::buffer_key(target), Label::Binding("buffer"));
        self.read_birth(id);
        if matches!(target, INDIRECT | DISPATCH_INDIRECT | PARAMETERS) {
            self.touch();
        }
    }

    /// Links a buffer to a vertex array.
    pub(super) fn link_buffer(&mut self, array: Id, place: u32, id: Option<Id>) {
        if let Some(object) = self.object_mut(array) {
            object.links.retain(|(known, _)| *known != place);
            object.links.extend(id.map(|id| (place, id)));
        }
        let made = self.made(array);
        let node = self.nodes.child(made, u64::from(place), Label::Binding("buffer"));
        self.kills(node);
        self.read_birth(id);
        self.read_state(ARRAY_KEY, Label::Binding("vertex array"));
        self.touch();
    }

    /// An object is bound, so the call that made it must come before.
    pub(super) fn read_birth(&mut self, id: Option<Id>) {
        if let Some(id) = id {
            let birth = self.birth(id);
            self.reads(birth);
        }
    }

    /// Binds several binding points at once.
    pub(super) fn bind_many(&mut self, what: &'static str, values: &Values<'_>) {
        let (first, names) = match what {
            "buffers" => (1, 3),
            _ => (0, 2),
        };
        let start = values.integer(first).unwrap_or(0) as u32;
        let count = values.integer(first + 1).unwrap_or(0).clamp(0, 4096) as u32;
        let mut elements = values.array(names);
        for place in (start..=u32::MAX).take(count as usize) {
            let name = elements.next().and_then(|mut wire| match wire.value() {
                Value::Unsigned(name) => Some(name),
                _ => None,
            });
            match what {
                "buffers" => {
                    let id = self.find(Kind::Buffer, name);
                    self.bind_buffer_at(values.integer(0).unwrap_or(0) as u32, place, id);
                }
                "textures" => {
                    let id = self.find(Kind::Texture, name);
                    self.bind_unit(place, id);
                }
                "samplers" => {
                    let id = self.find(Kind::Sampler, name);
                    self.bind_sampler(place, id);
                }
                "images" => {
                    let id = self.find(Kind::Texture, name);
                    self.bind_image(place, id, true);
                }
                _ => {
                    let (array, id) = (self.state().array, self.find(Kind::Buffer, name));
                    self.link_buffer(array, VERTEX_LINK | place, id);
                }
            }
        }
    }

    pub(super) fn vertex_buffer(&mut self, values: &Values<'_>, is_named: bool) {
        let first = usize::from(is_named);
        let array = if is_named { self.find(Kind::VertexArray, values.name(0)) } else { None };
        let array = array.unwrap_or(self.state().array);
        let place = values.integer(first).unwrap_or(0) as u32;
        let id = self.find(Kind::Buffer, values.name(first + 1));
        self.link_buffer(array, VERTEX_LINK | place, id);
    }

    pub(super) fn element_buffer(&mut self, values: &Values<'_>) {
        let array = self.find(Kind::VertexArray, values.name(0)).unwrap_or(self.state().array);
        let id = self.find(Kind::Buffer, values.name(1));
        self.link_buffer(array, INDEX_LINK, id);
    }

    /// Attributes of a vertex array: their formats, and whether they are enabled.
    pub(super) fn attribute(&mut self, rule: Rule, values: &Values<'_>, function: u32, name: &[u8]) {
        let Rule::Attribute { is_named } = rule else { return };
        let first = usize::from(is_named);
        let array = if is_named { self.find(Kind::VertexArray, values.name(0)) } else { None };
        let array = array.unwrap_or(self.state().array);
        let index = values.integer(first).unwrap_or(0) as u64;
        // Switching an attribute on and off is one state; every other function is a separate one.
        let is_switch = name.windows(12).any(|part| part == b"VertexAttrib")
            && (name.starts_with(b"glEnable") || name.starts_with(b"glDisable"))
            || name.starts_with(b"glEnableVertexArrayAttrib")
            || name.starts_with(b"glDisableVertexArrayAttrib");
        let is_pointer = name.windows(7).any(|part| part == b"Pointer");
        let kind = if is_switch {
            1
        } else if is_pointer {
            2
        } else {
            3 + u64::from(function)
        };
        let made = self.made(array);
        let node = self.nodes.child(made, key(&[6, kind, index]), Label::Attribute);
        self.kills(node);
        self.read_state(ARRAY_KEY, Label::Binding("vertex array"));
        if is_pointer {
            self.take_pointer(array, index as u32);
        }
    }

    /// Arrays of the fixed pipeline.
    pub(super) fn array_pointer(&mut self, function: u32, name: &[u8]) {
        let array = self.state().array;
        let unit = if name.starts_with(b"glTexCoord") { u64::from(self.state().client_unit) } else { 0 };
        let made = self.made(array);
        let node = self.nodes.child(made, key(&[7, u64::from(function), unit]), Label::Attribute);
        self.kills(node);
        self.read_state(ARRAY_KEY, Label::Binding("vertex array"));
        self.take_pointer(array, POINTER_LINK | function.wrapping_shl(4) | unit as u32 & 15);
        self.read_client_unit();
    }

    /// Links the bound buffer to an attribute.
    fn take_pointer(&mut self, array: Id, place: u32) {
        let id = self.bound_buffer(ARRAY);
        let Some(object) = self.object_mut(array) else { return };
        let known = object.links.iter().find(|(known, _)| *known == place).map(|(_, id)| *id);
        // Programs set the same pointers for every draw: without a change, the set of the last draw stays valid.
        if known != id {
            object.links.retain(|(known, _)| *known != place);
            object.links.extend(id.map(|id| (place, id)));
            self.touch();
        }
    }

    pub(super) fn client_state(&mut self, values: &Values<'_>) {
        let capability = values.integer(0).unwrap_or(0) as u64;
        let (array, unit) = (self.state().array, u64::from(self.state().client_unit));
        let made = self.made(array);
        // 0x8078 is the array of texture coordinates; each unit has one.
        let unit = if capability == 0x8078 { unit } else { 0 };
        let node = self.nodes.child(
            made,
            key(&[8, capability, unit, values.integer(1).unwrap_or(0) as u64]),
            Label::Attribute,
        );
        self.kills(node);
        self.read_state(ARRAY_KEY, Label::Binding("vertex array"));
        self.read_client_unit();
        self.keep_state();
    }

    fn read_client_unit(&mut self) {
        let client = self.state().client;
        let node = self.nodes.child(client, 0, Label::Binding("texture unit"));
        self.reads(node);
    }

    pub(super) fn client_unit(&mut self, values: &Values<'_>) {
        self.state().client_unit = (values.integer(0).unwrap_or(0) - 0x84c0).clamp(0, 1 << 16) as u32;
        let client = self.state().client;
        let node = self.nodes.child(client, 0, Label::Binding("texture unit"));
        self.kills(node);
        self.keep_state();
    }

    pub(super) fn pixel_store(&mut self, values: &Values<'_>) {
        let pixels = self.state().pixels;
        let node = self.nodes.child(pixels, values.integer(0).unwrap_or(0) as u64, Label::PixelStore);
        self.kills(node);
        self.keep_state();
    }

    /// Pixels come from the program or from a buffer.
    pub(super) fn read_unpack(&mut self) {
        let pixels = self.state().pixels;
        self.reads(pixels);
        if let Some(id) = self.bound_buffer(PIXEL_UNPACK) {
            let (content, storage) = (self.content(id), self.storage(id));
            self.reads(content);
            self.reads(storage);
        }
    }
}

const ARRAY: u32 = 0x8892;
pub(super) const ARRAY_KEY: u64 = 9 << 32;
const VERTEX_LINK: u32 = 1 << 30;
const POINTER_LINK: u32 = 1 << 29;

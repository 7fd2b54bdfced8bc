//! OpenGL state that is set by value.

use super::store::Key;
use super::{Arguments, Place, StateTracker, Verdict};
use crate::lanes::dictionary::Dictionary;
use crate::tools::gl::commands::effects::{Act, Depends, Family, Form, ObjectKind, Setter};

/// Most elements of a uniform array that are followed.
const ELEMENTS_MAX: u64 = 1024;

/// Enumerants.
pub(super) mod gl {
    pub(in super::super) const ARRAY_BUFFER: u64 = 0x8892;
    pub(in super::super) const ELEMENT_ARRAY_BUFFER: u64 = 0x8893;
    pub(in super::super) const BLEND: u64 = 0x0be2;
    pub(in super::super) const SCISSOR_TEST: u64 = 0x0c11;
    pub(in super::super) const FRONT: u64 = 0x404;
    pub(in super::super) const BACK: u64 = 0x405;
    pub(in super::super) const FRONT_AND_BACK: u64 = 0x408;
    pub(in super::super) const FRAMEBUFFER: u64 = 0x8d40;
    pub(in super::super) const READ_FRAMEBUFFER: u64 = 0x8ca8;
    pub(in super::super) const DRAW_FRAMEBUFFER: u64 = 0x8ca9;
    pub(in super::super) const COMPILE: u64 = 0x1300;

    /// Capabilities of a texture unit.
    pub(in super::super) fn is_of_unit(capability: u64) -> bool {
        matches!(capability, 0x0de0 | 0x0de1 | 0x806f | 0x8513 | 0x84f5 | 0x0c60..=0x0c63)
    }
}

/// Slots of fixed state that the table does not name.
const ACTIVE_TEXTURE: u8 = 200;
const VERTEX_ARRAY: u8 = 201;

impl StateTracker {
    /// Applies what a call sets. Returns `None` if that is unknown.
    #[inline]
    pub(super) fn set(&mut self, act: Act, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        match act {
            Act::Set(setter) => self.set_by_table(&setter, at, of, dictionary),
            Act::Capability(is_on) => self.capability(is_on, at, of, dictionary),
            Act::Faced { slot, has_face } => self.faced(slot, has_face, at, of, dictionary),
            Act::ActiveTexture => {
                let unit = of.number(0, dictionary)?;
                self.contexts.get_mut(at)?.unit = unit;
                self.value.push(unit);
                Some(self.store(at, Place::of(Family::Fixed, Key::new(Family::Fixed, ACTIVE_TEXTURE))))
            }
            Act::BindTexture => {
                let (target, texture) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
                let key = self.binding_key(at, target)?;
                self.name(at, Family::TextureBinding, key, ObjectKind::Texture, texture)
            }
            Act::TextureParameter => self.texture_parameter(at, of, dictionary),
            Act::BindBuffer => {
                let (target, buffer) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
                self.bind_buffer(at, target, buffer)
            }
            Act::BindIndexed => self.bind_indexed(at, of, dictionary),
            Act::BindFramebuffer => self.bind_framebuffer(at, of, dictionary),
            Act::BindVertexArray => {
                let array = of.number(0, dictionary)?;
                self.contexts.get_mut(at)?.vertex_array = array;
                self.name(at, Family::Fixed, Key::new(Family::Fixed, VERTEX_ARRAY), ObjectKind::VertexArray, array)
            }
            Act::UseProgram => {
                let program = of.number(0, dictionary)?;
                self.contexts.get_mut(at)?.program = (program != 0).then_some(program);
                self.name(at, Family::Program, Key::new(Family::Program, 0), ObjectKind::Program, program)
            }
            Act::Uniform { has_program, has_count, kind } => {
                self.uniform((has_program, has_count, kind), at, of, dictionary)
            }
            _ => Some(Verdict::Nothing),
        }
    }

    /// Sets the state at a place to the name of an object.
    #[inline]
    fn name(&mut self, at: usize, family: Family, key: Key, kind: ObjectKind, name: u64) -> Option<Verdict> {
        self.value.push(name);
        Some(self.store(at, Place { named: Some((kind, name)), ..Place::of(family, key) }))
    }

    /// The key of a target's texture binding.
    fn binding_key(&self, at: usize, target: u64) -> Option<Key> {
        Some(Key::new(Family::TextureBinding, 0).with(self.contexts.get(at)?.unit).with(target))
    }

    #[inline]
    fn set_by_table(
        &mut self,
        setter: &Setter,
        at: usize,
        of: &Arguments<'_>,
        dictionary: &Dictionary,
    ) -> Option<Verdict> {
        let &Setter { family, slot, keys, depends, form, mark, unsettles, names } = setter;
        let context = self.contexts.get(at)?;
        let (mut key, mut object, mut named) = (Key::new(family, slot), None, None);
        match depends {
            Depends::Nothing => {}
            Depends::Unit => key = key.with(context.unit),
            Depends::VertexArray | Depends::VertexArrayAndBuffer => {
                key = key.with(context.vertex_array);
                object = Some((ObjectKind::VertexArray, context.vertex_array));
            }
            Depends::Object(kind) => object = Some((kind, of.number(0, dictionary)?)),
        }
        for argument in 0..keys {
            key = key.with(of.number(argument, dictionary)?);
        }
        if let Some(family) = unsettles {
            self.unsettle(at, family);
        }
        self.value.extend(mark.map(u64::from));
        for _ in 0..if form == Form::Twice { 2 } else { 1 } {
            if !of.push_from(&mut self.value, keys, dictionary) {
                return Some(self.lose(at, key));
            }
        }
        if self.value.is_empty() {
            return None;
        }
        if depends == Depends::VertexArrayAndBuffer {
            // An array without a buffer, or with an unknown one, is not compared.
            let bound = Key::new(Family::BufferBinding, 0).with(gl::ARRAY_BUFFER);
            let Some(buffer) = self.name_at(at, Family::BufferBinding, bound, ObjectKind::Buffer) else {
                return Some(self.lose(at, key));
            };
            self.value.push(buffer);
            named = Some((ObjectKind::Buffer, buffer));
        }
        if let Some(kind) = names {
            named = of.number(keys, dictionary).map(|name| (kind, name));
        }
        Some(self.store(at, Place { family, key, object, named }))
    }

    #[inline]
    fn capability(&mut self, is_on: bool, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let capability = of.number(0, dictionary)?;
        let family = match capability {
            gl::BLEND | gl::SCISSOR_TEST => {
                self.unsettle(at, Family::CapabilityOfOne);
                Family::CapabilityOfAll
            }
            _ => Family::Capability,
        };
        let mut key = Key::new(family, 0).with(capability);
        if gl::is_of_unit(capability) {
            key = key.with(self.contexts.get(at)?.unit);
        }
        self.value.push(u64::from(is_on));
        Some(self.store(at, Place::of(family, key)))
    }

    fn faced(
        &mut self,
        slot: u8,
        has_face: bool,
        at: usize,
        of: &Arguments<'_>,
        dictionary: &Dictionary,
    ) -> Option<Verdict> {
        let face = if has_face { of.number(0, dictionary)? } else { gl::FRONT_AND_BACK };
        let faces: &[u64] = match face {
            gl::FRONT => &[gl::FRONT],
            gl::BACK => &[gl::BACK],
            gl::FRONT_AND_BACK => &[gl::FRONT, gl::BACK],
            _ => return None,
        };
        if !of.push_from(&mut self.value, u8::from(has_face), dictionary) || self.value.is_empty() {
            return None;
        }
        let mut verdict = Verdict::Same;
        for face in faces {
            let key = Key::new(Family::Faced, slot).with(*face);
            verdict = verdict.and(self.store(at, Place::of(Family::Faced, key)));
        }
        Some(verdict)
    }

    fn texture_parameter(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, parameter) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        let texture = self.name_at(at, Family::TextureBinding, self.binding_key(at, target)?, ObjectKind::Texture)?;
        // There is one unnamed texture for each target. Drivers differ on whether contexts share it (Mesa's do), so it
        // is treated as possibly shared.
        let object = if texture == 0 { (ObjectKind::DefaultTexture, target) } else { (ObjectKind::Texture, texture) };
        let key = Key::new(Family::TextureParameter, u8::from(texture == 0)).with(object.1).with(parameter);
        if !of.push_from(&mut self.value, 2, dictionary) || self.value.is_empty() {
            return None;
        }
        Some(self.store(at, Place { object: Some(object), ..Place::of(Family::TextureParameter, key) }))
    }

    #[inline]
    fn bind_buffer(&mut self, at: usize, target: u64, buffer: u64) -> Option<Verdict> {
        if target != gl::ELEMENT_ARRAY_BUFFER {
            let key = Key::new(Family::BufferBinding, 0).with(target);
            return self.name(at, Family::BufferBinding, key, ObjectKind::Buffer, buffer);
        }
        // It belongs to the vertex array.
        let array = self.contexts.get(at)?.vertex_array;
        let key = Key::new(Family::BufferBinding, 1).with(array);
        self.value.push(buffer);
        let (object, named) = (Some((ObjectKind::VertexArray, array)), Some((ObjectKind::Buffer, buffer)));
        Some(self.store(at, Place { family: Family::BufferBinding, key, object, named }))
    }

    /// Binds to a numbered binding point, and to the target itself.
    fn bind_indexed(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, index) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        let buffer = of.number(2, dictionary)?;
        let general = self.bind_buffer(at, target, buffer)?;
        self.value.clear();
        let key = Key::new(Family::IndexedBuffer, 0).with(target).with(index);
        if !of.push_from(&mut self.value, 2, dictionary) {
            return Some(self.lose(at, key));
        }
        let named = Some((ObjectKind::Buffer, buffer));
        let own = self.store(at, Place { named, ..Place::of(Family::IndexedBuffer, key) });
        Some(general.and(own))
    }

    fn bind_framebuffer(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, framebuffer) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        let slots: &[u8] = match target {
            gl::FRAMEBUFFER => &[0, 1],
            gl::DRAW_FRAMEBUFFER => &[0],
            gl::READ_FRAMEBUFFER => &[1],
            _ => return None,
        };
        self.value.push(framebuffer);
        let named = Some((ObjectKind::Framebuffer, framebuffer));
        let mut verdict = Verdict::Same;
        for slot in slots {
            let key = Key::new(Family::Framebuffer, *slot);
            verdict = verdict.and(self.store(at, Place { named, ..Place::of(Family::Framebuffer, key) }));
        }
        Some(verdict)
    }

    /// Each element of a uniform array is a separate uniform.
    fn uniform(
        &mut self,
        (has_program, has_count, kind): (bool, bool, u16),
        at: usize,
        of: &Arguments<'_>,
        dictionary: &Dictionary,
    ) -> Option<Verdict> {
        let first = u8::from(has_program);
        let program = if has_program { of.number(0, dictionary)? } else { self.contexts.get(at)?.program? };
        let location = of.number(first, dictionary)? as u32;
        if location == u32::MAX {
            // It is specified to have no effect.
            return Some(Verdict::New);
        }
        let count = if has_count { of.number(first + 1, dictionary)? } else { 1 };
        // For matrices, a word for their order precedes the numbers.
        let is_matrix = kind & 1 << 6 != 0;
        let order = if is_matrix { of.number(first + 2, dictionary)? } else { 0 };
        let from = first + 1 + u8::from(has_count) + u8::from(is_matrix);
        let mut elements = std::mem::take(&mut self.elements);
        elements.clear();
        let is_known = match has_count {
            true => of.push_flat(&mut elements, from, dictionary),
            false => of.push_from(&mut elements, from, dictionary),
        };
        let count = usize::try_from(count.min(ELEMENTS_MAX + 1)).unwrap_or(0);
        let fits = is_known && count as u64 <= ELEMENTS_MAX && count > 0 && elements.len().is_multiple_of(count);
        let mut verdict = Verdict::Same;
        if fits && !elements.is_empty() {
            let shape = u64::from(kind) << 8 | order;
            for (n, element) in (0..).zip(elements.chunks(elements.len() / count)) {
                self.value.clear();
                self.value.push(shape);
                self.value.extend_from_slice(element);
                let key = Key::new(Family::Uniform, 0).with(program).with(location.wrapping_add(n).into());
                let object = Some((ObjectKind::Program, program));
                verdict = verdict.and(self.store(at, Place { object, ..Place::of(Family::Uniform, key) }));
            }
        }
        let is_empty = elements.is_empty();
        self.elements = elements;
        (fits && !is_empty).then_some(verdict)
    }
}

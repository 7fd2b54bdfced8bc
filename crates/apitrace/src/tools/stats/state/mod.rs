//! Which calls set what is set already.
//!
//! What the calls of a trace say of the state is followed for each context; the current one is known by thread. Nothing
//! is assumed: a state is known only once a call has set it, and no more after a call whose effect is not followed.
//! So what is called redundant is redundant, while a call may be so and not be called it.
//!
//! Objects can be shared between contexts: what one context sets of an object makes what others have set of it unknown.

mod arguments;
mod contexts;
mod rules;

use std::collections::HashMap;

use crate::tools::calls::Call;
use crate::tools::dictionary::Dictionary;
pub(super) use arguments::Arguments;
use arguments::{number, numbers_of, push_values};
use contexts::Contexts;
pub(super) use rules::Role;
use rules::{Act, Depends, FAMILIES, Family, Form, Kind, Setter};

/// Most bytes for what is known of the state; beyond them all is forgotten.
const BYTES_MAX: usize = 6 << 20;

/// What a known state takes besides its bytes.
const ENTRY_BYTES: usize = 96;

/// Most objects that are told apart.
const OBJECTS_MAX: usize = 1 << 16;

/// Most elements of an array of uniforms that are followed.
const ELEMENTS_MAX: u64 = 1024;

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It sets no state that is followed.
    Nothing,
    /// It goes into a list and is not carried out.
    Recorded,
    /// It sets what was not set, or not known to be.
    New,
    /// It sets what is set already.
    Same,
    /// Nobody knows what it sets: no context, or nothing that can be compared.
    Unknown,
}

/// A state as it was set last.
#[derive(Debug)]
struct Entry {
    stamp: u64,
    value: Vec<u8>,
}

/// What is known of a context.
#[derive(Debug)]
struct Context {
    entries: HashMap<Vec<u8>, Entry>,
    /// What was set before is not known any more: of a family, and of all.
    families: [u64; FAMILIES],
    all: u64,
    /// The active texture unit; a number of our own where it is not known.
    unit: u64,
    vertex_array: u64,
    program: Option<u64>,
    is_recording: bool,
    /// Threads it is current on, and whether there is a handle for it.
    users: usize,
    has_handle: bool,
}

/// An object that several contexts may have.
#[derive(Debug, Clone, Copy)]
struct Object {
    /// The context that set something of it last.
    writer: usize,
    /// What was set of it before is not known any more.
    stamp: u64,
}

/// Numbers of our own for what is not known begin here: no program uses such names.
const OWN: u64 = 1 << 63;

/// Enumerants.
mod gl {
    pub(super) const ARRAY_BUFFER: u64 = 0x8892;
    pub(super) const ELEMENT_ARRAY_BUFFER: u64 = 0x8893;
    pub(super) const BLEND: u64 = 0x0be2;
    pub(super) const SCISSOR_TEST: u64 = 0x0c11;
    pub(super) const FRONT: u64 = 0x404;
    pub(super) const BACK: u64 = 0x405;
    pub(super) const FRONT_AND_BACK: u64 = 0x408;
    pub(super) const FRAMEBUFFER: u64 = 0x8d40;
    pub(super) const READ_FRAMEBUFFER: u64 = 0x8ca8;
    pub(super) const DRAW_FRAMEBUFFER: u64 = 0x8ca9;
    pub(super) const COMPILE: u64 = 0x1300;

    /// Capabilities of a texture unit.
    pub(super) fn is_of_unit(capability: u64) -> bool {
        matches!(capability, 0x0de0 | 0x0de1 | 0x806f | 0x8513 | 0x84f5 | 0x0c60..=0x0c63)
    }
}

/// Follows the state.
#[derive(Debug)]
pub(super) struct State {
    contexts: Contexts,
    objects: HashMap<(Kind, u64), Object>,
    /// Counts what is set; what is known carries the count of its time.
    now: u64,
    /// Nothing from before is known.
    floor: u64,
    /// As [`Context::families`], of all contexts.
    families: [u64; FAMILIES],
    bytes: usize,
    key: Vec<u8>,
    value: Vec<u8>,
    /// How often all was forgotten to save memory.
    pub(super) forgotten: u64,
}

/// A state that is being set: whose value is in [`State::value`] and whose key is in [`State::key`].
#[derive(Debug, Clone, Copy)]
struct Place {
    family: Family,
    /// The object whose state it is.
    object: Option<(Kind, u64)>,
    /// The object that is its value.
    named: Option<(Kind, u64)>,
}

impl Place {
    fn of(family: Family) -> Self {
        Self { family, object: None, named: None }
    }
}

/// Of several states that one call sets: the same only when all are.
fn both(a: Verdict, b: Verdict) -> Verdict {
    match (a, b) {
        (Verdict::Unknown, _) | (_, Verdict::Unknown) => Verdict::Unknown,
        (Verdict::Same, Verdict::Same) => Verdict::Same,
        _ => Verdict::New,
    }
}

impl State {
    /// `assumes_contexts`: a thread of which no current context is known has one of its own.
    pub(super) fn new(assumes_contexts: bool) -> Self {
        Self {
            contexts: Contexts::new(assumes_contexts),
            objects: HashMap::new(),
            now: 1,
            floor: 0,
            families: [0; FAMILIES],
            bytes: 0,
            key: Vec::new(),
            value: Vec::new(),
            forgotten: 0,
        }
    }

    /// Takes a call whose function acts. Calls come in the order of their leaves.
    pub(super) fn call(&mut self, role: Role, call: &Call<'_>, of: &Arguments<'_>, dictionary: &Dictionary) -> Verdict {
        let Some(act) = role.act else { return Verdict::Nothing };
        self.now += 1;
        match act {
            Act::MakeCurrent { at, is_zero_success } => {
                self.make_current(call, of, dictionary, at, is_zero_success);
                return Verdict::Nothing;
            }
            Act::DestroyContext(at) => {
                if let Some(handle) = of.number(at, dictionary) {
                    self.drop_context((false, handle));
                }
                return Verdict::Nothing;
            }
            Act::Device(..) | Act::DeviceUnsettle | Act::DeviceRelease | Act::BeginStateBlock | Act::EndStateBlock => {
                return self.device(act, of, dictionary);
            }
            _ => {}
        }
        let Some(at) = self.contexts.current(call.thread, self.now) else {
            // The names may be used again, whichever context that was.
            if matches!(act, Act::Delete(_) | Act::Renew(_)) {
                self.free(act, None, of, dictionary);
                return Verdict::Nothing;
            }
            return if role.sets_state { Verdict::Unknown } else { Verdict::Nothing };
        };
        let verdict = self.in_context(act, at, of, dictionary);
        // What the tracer made up, or what was never left, is nobody's to save.
        let counts = !of.is_fake && !call.is_incomplete;
        if verdict == Verdict::Same && !counts { Verdict::New } else { verdict }
    }

    /// True when calls of a thread go into a list.
    pub(super) fn is_recording(&self, thread: u64) -> bool {
        self.contexts.is_recording(thread)
    }

    fn in_context(&mut self, act: Act, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Verdict {
        let is_recording = self.contexts.get(at).is_some_and(|context| context.is_recording);
        match act {
            Act::EndList => {
                self.unsettle_all(at);
                return Verdict::Nothing;
            }
            Act::Delete(_) | Act::Renew(_) => {
                self.free(act, Some(at), of, dictionary);
                return Verdict::Nothing;
            }
            _ if is_recording => return Verdict::Recorded,
            _ => {}
        }
        let found = match act {
            Act::Set(setter) => self.set(setter, at, of, dictionary),
            Act::Capability(is_on) => self.capability(is_on, at, of, dictionary),
            Act::Faced { slot, has_face } => self.faced(slot, has_face, at, of, dictionary),
            Act::ActiveTexture => self.active_texture(at, of, dictionary),
            Act::BindTexture => self.bind_texture(at, of, dictionary),
            Act::TextureParameter => self.texture_parameter(at, of, dictionary),
            Act::BindBuffer => self.bind_buffer(at, of, dictionary),
            Act::BindIndexed => self.bind_indexed(at, of, dictionary),
            Act::BindFramebuffer => self.bind_framebuffer(at, of, dictionary),
            Act::BindVertexArray => self.bind_vertex_array(at, of, dictionary),
            Act::UseProgram => self.use_program(at, of, dictionary),
            Act::Uniform { has_program, has_count, kind } => {
                self.uniform(has_program, has_count, kind, at, of, dictionary)
            }
            Act::NewList => {
                let is_compiled = of.number(1, dictionary) == Some(gl::COMPILE);
                if let Some(context) = self.contexts.get_mut(at) {
                    context.is_recording = is_compiled;
                }
                return Verdict::Nothing;
            }
            Act::Unsettle(families) => {
                for family in families {
                    self.unsettle(at, *family);
                }
                return Verdict::Nothing;
            }
            Act::UnsettleAll => {
                self.unsettle_all(at);
                return Verdict::Nothing;
            }
            _ => return Verdict::Nothing,
        };
        // What is set but cannot be known leaves nothing known of its kind.
        found.unwrap_or_else(|| {
            self.unsettle_kind(act, at);
            Verdict::Unknown
        })
    }

    /// An argument that is needed is missing or of an odd type: what the call sets cannot be known.
    fn unsettle_kind(&mut self, act: Act, at: usize) {
        match act {
            Act::Set(setter) => {
                self.unsettle(at, setter.family);
                if let Depends::Object(_) = setter.depends {
                    self.unsettle_everywhere(setter.family);
                }
            }
            Act::TextureParameter => self.unsettle_everywhere(Family::TextureParameter),
            Act::Uniform { .. } => self.unsettle_everywhere(Family::Uniform),
            _ => self.unsettle_all(at),
        }
    }

    fn unsettle(&mut self, at: usize, family: Family) {
        let now = self.now;
        if let Some(stamp) = self.contexts.get_mut(at).and_then(|context| context.families.get_mut(family as usize)) {
            *stamp = now;
        }
    }

    fn unsettle_everywhere(&mut self, family: Family) {
        if let Some(stamp) = self.families.get_mut(family as usize) {
            *stamp = self.now;
        }
    }

    fn unsettle_all(&mut self, at: usize) {
        let now = self.now;
        if let Some(context) = self.contexts.get_mut(at) {
            (context.all, context.unit, context.vertex_array) = (now, OWN | now, OWN | now);
            (context.program, context.is_recording) = (None, false);
        }
    }

    /// When something of an object was set last by another context, or its name given anew.
    fn object_stamp(&self, object: Option<(Kind, u64)>) -> u64 {
        if self.objects.is_empty() {
            return 0;
        }
        object.and_then(|object| self.objects.get(&object)).map_or(0, |object| object.stamp)
    }

    /// Since when what is known of a place holds.
    fn since(&self, at: usize, place: Place) -> u64 {
        let family = place.family as usize;
        let everywhere = self.families.get(family).copied().unwrap_or(0).max(self.floor);
        let here = self
            .contexts
            .get(at)
            .map_or(0, |context| context.all.max(context.families.get(family).copied().unwrap_or(0)));
        everywhere.max(here).max(self.object_stamp(place.object)).max(self.object_stamp(place.named))
    }

    /// Sets what is at the key to the value.
    fn store(&mut self, at: usize, place: Place) -> Verdict {
        if let Some(object) = place.object {
            self.write_object(object, at);
        }
        let (now, since) = (self.now, self.since(at, place));
        let Some(context) = self.contexts.get_mut(at) else { return Verdict::Unknown };
        if let Some(entry) = context.entries.get_mut(&self.key) {
            let is_same = entry.stamp >= since && entry.value == self.value;
            entry.stamp = now;
            if is_same {
                return Verdict::Same;
            }
            self.bytes = (self.bytes + self.value.len()).saturating_sub(entry.value.len());
            entry.value.clear();
            entry.value.extend_from_slice(&self.value);
        } else {
            self.bytes += ENTRY_BYTES + self.key.len() + self.value.len();
            let value = self.value.clone();
            context.entries.insert(self.key.clone(), Entry { stamp: now, value });
        }
        if self.bytes > BYTES_MAX {
            self.forget();
        }
        Verdict::New
    }

    /// The key's value cannot be known.
    fn lose(&mut self, at: usize) -> Verdict {
        if let Some(entry) = self.contexts.get_mut(at).and_then(|context| context.entries.get_mut(&self.key)) {
            entry.stamp = 0;
        }
        Verdict::Unknown
    }

    #[cold]
    fn forget(&mut self) {
        self.contexts.forget();
        (self.bytes, self.floor) = (0, self.now);
        self.forgotten += 1;
    }

    /// Takes note of who sets something of an object.
    fn write_object(&mut self, object: (Kind, u64), writer: usize) {
        self.keep_objects_few();
        let now = self.now;
        let known = self.objects.entry(object).or_insert(Object { writer, stamp: 0 });
        if known.writer != writer {
            *known = Object { writer, stamp: now };
        }
    }

    fn renew_object(&mut self, object: (Kind, u64)) {
        self.keep_objects_few();
        let stamp = self.now;
        self.objects.entry(object).or_insert(Object { writer: usize::MAX, stamp }).stamp = stamp;
    }

    fn keep_objects_few(&mut self) {
        if self.objects.len() >= OBJECTS_MAX {
            self.objects.clear();
            self.floor = self.now;
        }
    }

    /// Names that are free again, or mean something new.
    fn free(&mut self, act: Act, at: Option<usize>, of: &Arguments<'_>, dictionary: &Dictionary) {
        let (kind, names) = match act {
            Act::Renew(kind) => (kind, of.number(0, dictionary).map(|name| vec![name])),
            Act::Delete(kind) => (kind, of.wire(1).and_then(|wire| numbers_of(wire, dictionary, OBJECTS_MAX as u64))),
            _ => return,
        };
        let Some(names) = names else {
            self.floor = self.now;
            return;
        };
        for name in names.into_iter().filter(|name| *name != 0) {
            self.renew_object((kind, name));
            if let Some(context) = at.and_then(|at| self.contexts.get_mut(at))
                && kind == Kind::VertexArray
                && context.vertex_array == name
            {
                context.vertex_array = 0;
            }
        }
    }

    fn begin_key(&mut self, family: Family, slot: u8) {
        self.key.clear();
        self.key.extend([family as u8, slot]);
        self.value.clear();
    }

    fn push_key(&mut self, number: u64) {
        self.key.extend_from_slice(&number.to_le_bytes());
    }

    fn push_number(&mut self, number: u64) {
        self.value.extend_from_slice(&number.to_le_bytes());
    }

    /// The name at a key, where it is known.
    fn name_at(&self, at: usize, key: &[u8], family: Family, kind: Kind) -> Option<u64> {
        let entry = self.contexts.get(at)?.entries.get(key)?;
        let name = u64::from_le_bytes(*entry.value.first_chunk::<8>()?);
        let place = Place { named: Some((kind, name)), ..Place::of(family) };
        (entry.stamp >= self.since(at, place)).then_some(name)
    }

    /// The buffer that is bound for vertices.
    fn array_buffer(&self, at: usize) -> Option<u64> {
        let mut key = vec![Family::BufferBinding as u8, 0];
        key.extend_from_slice(&gl::ARRAY_BUFFER.to_le_bytes());
        self.name_at(at, &key, Family::BufferBinding, Kind::Buffer)
    }

    fn set(&mut self, setter: Setter, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let Setter { family, slot, keys, depends, form, mark, unsettles, names } = setter;
        let context = self.contexts.get(at)?;
        let (unit, vertex_array) = (context.unit, context.vertex_array);
        let mut place = Place::of(family);
        self.begin_key(family, slot);
        match depends {
            Depends::Nothing => {}
            Depends::Unit => self.push_key(unit),
            Depends::VertexArray | Depends::VertexArrayAndBuffer => {
                self.push_key(vertex_array);
                place.object = Some((Kind::VertexArray, vertex_array));
            }
            Depends::Object(kind) => place.object = Some((kind, of.number(0, dictionary)?)),
        }
        for key in 0..keys {
            self.push_key(of.number(key, dictionary)?);
        }
        if let Some(family) = unsettles {
            self.unsettle(at, family);
        }
        if let Some(mark) = mark {
            self.value.push(u8::from(mark));
        }
        for _ in 0..if form == Form::Twice { 2 } else { 1 } {
            if !push_values(&mut self.value, of, usize::from(keys), dictionary) {
                return Some(self.lose(at));
            }
        }
        if depends == Depends::VertexArrayAndBuffer {
            let Some(buffer) = self.array_buffer(at) else { return Some(self.lose(at)) };
            self.push_number(buffer);
            place.named = Some((Kind::Buffer, buffer));
        }
        if let Some((argument, kind)) = names {
            place.named = of.number(argument, dictionary).map(|name| (kind, name));
        }
        Some(self.store(at, place))
    }

    fn capability(&mut self, is_on: bool, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let capability = of.number(0, dictionary)?;
        let unit = self.contexts.get(at)?.unit;
        let family = match capability {
            gl::BLEND | gl::SCISSOR_TEST => {
                self.unsettle(at, Family::CapabilityOfOne);
                Family::CapabilityOfAll
            }
            _ => Family::Capability,
        };
        self.begin_key(family, 0);
        self.push_key(capability);
        if gl::is_of_unit(capability) {
            self.push_key(unit);
        }
        self.value.push(u8::from(is_on));
        Some(self.store(at, Place::of(family)))
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
        let mut verdict = Verdict::Same;
        for face in faces {
            self.begin_key(Family::Faced, slot);
            self.push_key(*face);
            if !push_values(&mut self.value, of, usize::from(has_face), dictionary) {
                return None;
            }
            verdict = both(verdict, self.store(at, Place::of(Family::Faced)));
        }
        Some(verdict)
    }

    fn active_texture(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let unit = of.number(0, dictionary)?;
        self.contexts.get_mut(at)?.unit = unit;
        self.begin_key(Family::Fixed, 200);
        self.push_number(unit);
        Some(self.store(at, Place::of(Family::Fixed)))
    }

    fn bind_texture(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, texture) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        let unit = self.contexts.get(at)?.unit;
        self.begin_key(Family::TextureBinding, 0);
        self.push_key(unit);
        self.push_key(target);
        self.push_number(texture);
        let named = Some((Kind::Texture, texture));
        Some(self.store(at, Place { named, ..Place::of(Family::TextureBinding) }))
    }

    fn texture_parameter(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, name) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        self.begin_key(Family::TextureBinding, 0);
        self.push_key(self.contexts.get(at)?.unit);
        self.push_key(target);
        let texture = self.name_at(at, &self.key, Family::TextureBinding, Kind::Texture)?;
        // The texture without a name is one for each target.
        self.begin_key(Family::TextureParameter, u8::from(texture == 0));
        self.push_key(if texture == 0 { target } else { texture });
        self.push_key(name);
        if !push_values(&mut self.value, of, 2, dictionary) {
            return Some(self.lose(at));
        }
        let object = (texture != 0).then_some((Kind::Texture, texture));
        Some(self.store(at, Place { object, ..Place::of(Family::TextureParameter) }))
    }

    fn bind_buffer(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, buffer) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        Some(self.store_buffer(at, target, buffer))
    }

    fn store_buffer(&mut self, at: usize, target: u64, buffer: u64) -> Verdict {
        let mut place = Place { named: Some((Kind::Buffer, buffer)), ..Place::of(Family::BufferBinding) };
        if target == gl::ELEMENT_ARRAY_BUFFER {
            // It belongs to the vertex array.
            let vertex_array = self.contexts.get(at).map_or(0, |context| context.vertex_array);
            self.begin_key(Family::BufferBinding, 1);
            self.push_key(vertex_array);
            place.object = Some((Kind::VertexArray, vertex_array));
        } else {
            self.begin_key(Family::BufferBinding, 0);
            self.push_key(target);
        }
        self.push_number(buffer);
        self.store(at, place)
    }

    fn bind_indexed(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let target = of.number(0, dictionary)?;
        let (index, buffer) = (of.number(1, dictionary)?, of.number(2, dictionary)?);
        let general = self.store_buffer(at, target, buffer);
        self.begin_key(Family::IndexedBuffer, 0);
        self.push_key(target);
        self.push_key(index);
        if !push_values(&mut self.value, of, 2, dictionary) {
            return Some(self.lose(at));
        }
        let named = Some((Kind::Buffer, buffer));
        let own = self.store(at, Place { named, ..Place::of(Family::IndexedBuffer) });
        Some(both(general, own))
    }

    fn bind_framebuffer(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let (target, framebuffer) = (of.number(0, dictionary)?, of.number(1, dictionary)?);
        let slots: &[u8] = match target {
            gl::FRAMEBUFFER => &[0, 1],
            gl::DRAW_FRAMEBUFFER => &[0],
            gl::READ_FRAMEBUFFER => &[1],
            _ => return None,
        };
        let mut verdict = Verdict::Same;
        for slot in slots {
            self.begin_key(Family::Framebuffer, *slot);
            self.push_number(framebuffer);
            let named = Some((Kind::Framebuffer, framebuffer));
            verdict = both(verdict, self.store(at, Place { named, ..Place::of(Family::Framebuffer) }));
        }
        Some(verdict)
    }

    fn bind_vertex_array(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let vertex_array = of.number(0, dictionary)?;
        self.contexts.get_mut(at)?.vertex_array = vertex_array;
        self.begin_key(Family::Fixed, 201);
        self.push_number(vertex_array);
        let named = Some((Kind::VertexArray, vertex_array));
        Some(self.store(at, Place { named, ..Place::of(Family::Fixed) }))
    }

    fn use_program(&mut self, at: usize, of: &Arguments<'_>, dictionary: &Dictionary) -> Option<Verdict> {
        let program = of.number(0, dictionary)?;
        self.contexts.get_mut(at)?.program = (program != 0).then_some(program);
        self.begin_key(Family::Program, 0);
        self.push_number(program);
        let named = Some((Kind::Program, program));
        Some(self.store(at, Place { named, ..Place::of(Family::Program) }))
    }

    /// Each element of an array of uniforms is a uniform of its own.
    fn uniform(
        &mut self,
        has_program: bool,
        has_count: bool,
        kind: u16,
        at: usize,
        of: &Arguments<'_>,
        dictionary: &Dictionary,
    ) -> Option<Verdict> {
        let first = u8::from(has_program);
        let program = if has_program { of.number(0, dictionary)? } else { self.contexts.get(at)?.program? };
        let location = of.number(first, dictionary)?;
        if location as i32 == -1 {
            return Some(Verdict::New);
        }
        let count = if has_count { of.number(first + 1, dictionary)? } else { 1 };
        if count > ELEMENTS_MAX {
            return None;
        }
        let mut values = Vec::new();
        let skipped = usize::from(first) + 1 + usize::from(has_count);
        // Matrices have a word on their order in front of the numbers.
        let order = match kind & 1 << 6 != 0 {
            true => of.number(first + 2, dictionary)?,
            false => 0,
        };
        let from = skipped + usize::from(kind & 1 << 6 != 0);
        let numbers = if has_count {
            arguments::push_flat(&mut values, of.wire(u8::try_from(from).ok()?)?, dictionary)
        } else {
            push_values(&mut values, of, from, dictionary)
        };
        let count = usize::try_from(count).ok()?;
        if !numbers || count == 0 || !values.len().is_multiple_of(count) {
            return None;
        }
        let mut verdict = Verdict::Same;
        for (n, element) in (0..).zip(values.chunks(values.len() / count)) {
            self.begin_key(Family::Uniform, 0);
            self.push_key(program);
            self.push_key((location as u32).wrapping_add(n).into());
            self.push_number(u64::from(kind) << 8 | order);
            self.value.extend_from_slice(element);
            let object = Some((Kind::Program, program));
            verdict = both(verdict, self.store(at, Place { object, ..Place::of(Family::Uniform) }));
        }
        Some(verdict)
    }

    fn make_current(
        &mut self,
        call: &Call<'_>,
        of: &Arguments<'_>,
        dictionary: &Dictionary,
        at: u8,
        is_zero_success: bool,
    ) {
        let returned = of.returned.and_then(|wire| number(wire, dictionary));
        let handle = of.number(at, dictionary);
        let (Some(returned), Some(handle), false) = (returned, handle, call.is_incomplete) else {
            self.contexts.lose_current(call.thread);
            return;
        };
        // What failed changed nothing.
        if (returned == 0) == is_zero_success {
            self.contexts.make_current(call.thread, handle, self.now);
        }
    }

    fn drop_context(&mut self, handle: (bool, u64)) {
        // What stays of it in memory is counted still; that errs on the safe side.
        self.contexts.destroy(handle);
    }

    /// Calls of Direct3D devices: the device is argument 0.
    fn device(&mut self, act: Act, of: &Arguments<'_>, dictionary: &Dictionary) -> Verdict {
        if act == Act::DeviceUnsettle {
            self.floor = self.now;
            return Verdict::Nothing;
        }
        let Some(device) = of.number(0, dictionary).filter(|device| *device != 0) else { return Verdict::Unknown };
        if act == Act::DeviceRelease {
            if of.returned.and_then(|wire| number(wire, dictionary)) == Some(0) {
                self.drop_context((true, device));
            }
            return Verdict::Nothing;
        }
        let Some(at) = self.contexts.of_device(device, self.now) else { return Verdict::Unknown };
        match act {
            Act::BeginStateBlock => {
                if let Some(context) = self.contexts.get_mut(at) {
                    context.is_recording = true;
                }
                Verdict::Nothing
            }
            Act::EndStateBlock => {
                self.unsettle_all(at);
                Verdict::Nothing
            }
            Act::Device(..) if self.contexts.get(at).is_some_and(|context| context.is_recording) => Verdict::Recorded,
            Act::Device(slot, keys) => {
                self.begin_key(Family::Direct3D, slot);
                for key in 1..=keys {
                    let Some(number) = of.number(key, dictionary) else {
                        self.unsettle(at, Family::Direct3D);
                        return Verdict::Unknown;
                    };
                    self.push_key(number);
                }
                if !push_values(&mut self.value, of, usize::from(keys) + 1, dictionary) {
                    return self.lose(at);
                }
                self.store(at, Place::of(Family::Direct3D))
            }
            _ => Verdict::Nothing,
        }
    }
}

//! Textures, samplers and renderbuffers: their images, what is stored in them, parameters.

use crate::tools::gl::attribute_groups::TEXTURE;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::gltrim::model::Model;
use crate::tools::gltrim::nodes::{Label, Node, key};
use crate::tools::gltrim::objects::Id;
use crate::tools::gltrim::rules::{Texture, Way};

const CUBE: u32 = 0x8513;
const TEXTURE_0: i64 = 0x84c0;
const BASE_LEVEL: i64 = 0x813c;
const BINDING: u64 = 10 << 32;

/// Bits for the face in an image's key.
const FACE_BITS: u32 = 3;

/// A target, and the face of a cube as 1 to 6; `None` for proxies, which store nothing.
pub(super) fn target(target: u32) -> Option<(u32, u32)> {
    match target {
        0x8063 | 0x8064 | 0x8070 | 0x84f7 | 0x851b | 0x8c19 | 0x8c1b | 0x900b | 0x9101 | 0x9103 => None,
        0x8515..=0x851a => Some((CUBE, target - 0x8514)),
        _ => Some((target, 0)),
    }
}

/// True for formats with a stencil.
fn has_stencil(format: i64) -> bool {
    matches!(format, 0x84f9 | 0x88f0 | 0x8cad | 0x1901 | 0x8d46..=0x8d49)
}

impl Model {
    pub(super) fn active_texture(&mut self, values: &Values<'_>) {
        self.state().unit = (values.integer(0).unwrap_or(TEXTURE_0) - TEXTURE_0).clamp(0, 1 << 16) as u32;
        self.kill_state(TEXTURE, key(&[super::model::UNIT]), Label::Binding("texture unit"));
        self.keep_state();
    }

    fn binding_key(unit: u32, target: u32) -> u64 {
        key(&[BINDING, u64::from(unit), u64::from(target)])
    }

    pub(super) fn bind_texture(&mut self, unit: u32, target_number: u32, id: Option<Id>) {
        let state = self.state();
        match id {
            Some(id) => state.textures.insert((unit, target_number), id),
            None => state.textures.remove(&(unit, target_number)),
        };
        self.kill_state(TEXTURE, Self::binding_key(unit, target_number), Label::Binding("texture"));
        self.read_birth(id);
        self.touch();
    }

    /// A unit takes a texture, whatever its target; nothing unbinds all targets.
    pub(super) fn bind_unit(&mut self, unit: u32, id: Option<Id>) {
        match id {
            Some(id) => {
                self.state().textures.insert((unit, 0), id);
            }
            None => self.state().textures.retain(|place, _| place.0 != unit),
        }
        self.kill_state(TEXTURE, Self::binding_key(unit, 0), Label::Binding("texture"));
        self.read_birth(id);
        self.touch();
    }

    pub(super) fn bind_sampler(&mut self, unit: u32, id: Option<Id>) {
        let state = self.state();
        match id {
            Some(id) => state.samplers.insert(unit, id),
            None => state.samplers.remove(&unit),
        };
        self.kill_state(0, key(&[11 << 32, u64::from(unit)]), Label::Binding("sampler"));
        self.read_birth(id);
        self.touch();
    }

    pub(super) fn bind_image(&mut self, unit: u32, id: Option<Id>, writes: bool) {
        let state = self.state();
        match id {
            Some(id) => state.images.insert(unit, (id, writes)),
            None => state.images.remove(&unit),
        };
        self.kill_state(0, key(&[12 << 32, u64::from(unit)]), Label::Binding("image"));
        self.read_birth(id);
        self.touch();
    }

    /// The texture that a call refers to, the target's face, and how many arguments precede the level.
    fn texture(&mut self, way: Way, values: &Values<'_>) -> Option<(Id, u32, usize)> {
        match way {
            Way::Named => {
                let id = self.find(Kind::Texture, values.name(0))?;
                self.read_birth(Some(id));
                Some((id, 0, 1))
            }
            Way::NamedTarget => {
                let (_, face) = target(values.integer(1)? as u32)?;
                let id = self.find(Kind::Texture, values.name(0))?;
                self.read_birth(Some(id));
                Some((id, face, 2))
            }
            Way::Bound => {
                let (number, face) = target(values.integer(0)? as u32)?;
                let unit = self.state().unit;
                self.read_unit();
                Some((self.bound_texture(unit, number), face, 1))
            }
            Way::Unit => {
                let (number, face) = target(values.integer(1)? as u32)?;
                let unit = (values.integer(0)? - TEXTURE_0).clamp(0, 1 << 16) as u32;
                Some((self.bound_texture(unit, number), face, 2))
            }
        }
    }

    fn bound_texture(&mut self, unit: u32, number: u32) -> Id {
        self.read_state(Self::binding_key(unit, number), Label::Binding("texture"));
        self.read_state(Self::binding_key(unit, 0), Label::Binding("texture"));
        match self.state().textures.get(&(unit, number)) {
            Some(id) => *id,
            None => self.nameless(Kind::Texture, number),
        }
    }

    /// The node of an image. Levels above the first are separate, because they may be generated from it.
    pub(super) fn image(&mut self, root: Node, level: u32, face: u32) -> Node {
        let parent = if level == 0 {
            self.nodes.child(root, 1, Label::Image(0))
        } else {
            let mipmaps = self.nodes.child(root, 2, Label::Mipmaps);
            self.nodes.child(mipmaps, u64::from(level), Label::Image(level))
        };
        if face == 0 { parent } else { self.nodes.child(parent, u64::from(face), Label::Image(level)) }
    }

    /// A function of textures.
    pub(super) fn texture_call(&mut self, function: Texture, way: Way, values: &Values<'_>) {
        let Some((id, face, first)) = self.texture(way, values) else { return };
        let number = |index: usize| values.integer(index).unwrap_or(0).max(0) as u64;
        let level = values.integer(first).unwrap_or(0).clamp(0, 64) as u32;
        let (storage, content) = (self.storage(id), self.content(id));
        match function {
            Texture::Image(dimensions) => {
                let size = [0, 1, 2].map(|at| if at < dimensions { number(first + 2 + at) } else { 1 });
                self.new_image(id, level, face, size, number(first + 1) as i64);
                self.read_unpack();
            }
            Texture::Samples(dimensions) => {
                let size = [0, 1, 2].map(|at| if at < dimensions { number(first + 2 + at) } else { 1 });
                self.new_image(id, 0, face, size, number(first + 1) as i64);
            }
            Texture::Part(dimensions) => {
                let from = [0, 1, 2].map(|at| if at < dimensions { number(first + 1 + at) } else { 0 });
                let size = [0, 1, 2].map(|at| if at < dimensions { number(first + 1 + dimensions + at) } else { 1 });
                self.part(id, level, face, from, size);
                self.read_unpack();
            }
            Texture::Copy { dimensions, is_part } => {
                if is_part {
                    let from = [0, 1, 2].map(|at| if at < dimensions { number(first + 1 + at) } else { 0 });
                    let size_at = first + 1 + dimensions + 2;
                    let size = [number(size_at), if dimensions > 1 { number(size_at + 1) } else { 1 }, 1];
                    self.part(id, level, face, from, size);
                } else {
                    let size = [number(first + 4), if dimensions > 1 { number(first + 5) } else { 1 }, 1];
                    self.new_image(id, level, face, size, number(first + 1) as i64);
                }
                self.read_framebuffer();
            }
            Texture::Storage(_) => {
                let format = number(first + 1) as i64;
                let size = [0, 1, 2].map(|at| values.integer(first + 2 + at).map_or(1, |size| size.max(0) as u64));
                if let Some(object) = self.object_mut(id) {
                    object.sizes.clear();
                    object.sizes.push((0, size));
                    object.has_stencil = has_stencil(format);
                }
                self.kills(storage);
                self.kills(content);
            }
            Texture::Mipmaps => self.mipmaps(id, storage, content),
            Texture::Parameter => {
                let made = self.made(id);
                let name = values.integer(first).unwrap_or(0);
                if name == BASE_LEVEL
                    && let Some(object) = self.object_mut(id)
                {
                    object.drawn = vec![1];
                }
                let node = self.nodes.child(made, key(&[13, name as u64]), Label::Parameter);
                self.kills(node);
                self.keep_state();
            }
            Texture::Buffer => {
                let buffer = self.find(Kind::Buffer, values.name(first + 1));
                if let Some(object) = self.object_mut(id) {
                    object.links = buffer.map(|buffer| (0, buffer)).into_iter().collect();
                }
                self.kills(storage);
                self.read_birth(buffer);
                self.touch();
            }
            Texture::Clear => {
                let node = self.image(content, level, 0);
                // With sizes it is a part.
                if values.argument(5).is_some() {
                    self.writes(node)
                } else {
                    self.kills(node)
                }
                self.reads(storage);
            }
        }
    }

    fn new_image(&mut self, id: Id, level: u32, face: u32, size: [u64; 3], format: i64) {
        let (storage, content) = (self.storage(id), self.content(id));
        let (storage, content) = (self.image(storage, level, face), self.image(content, level, face));
        self.kills(storage);
        self.kills(content);
        if let Some(object) = self.object_mut(id) {
            let place = level << FACE_BITS | face;
            object.sizes.retain(|(known, _)| *known != place);
            object.sizes.push((place, size));
            object.has_stencil = has_stencil(format);
        }
    }

    fn part(&mut self, id: Id, level: u32, face: u32, from: [u64; 3], size: [u64; 3]) {
        let place = level << FACE_BITS | face;
        let known = self.object(id).and_then(|object| object.sizes.iter().find(|(known, _)| *known == place));
        let is_all = from == [0; 3] && known.is_some_and(|(_, known)| *known == size);
        let (storage, content) = (self.storage(id), self.content(id));
        let (storage, image) = (self.image(storage, level, face), self.image(content, level, face));
        let node = if is_all {
            image
        } else {
            let parts = [14, from[0], from[1], from[2], size[0], size[1], size[2]];
            self.nodes.child(image, key(&parts), Label::Area)
        };
        self.kills(node);
        self.reads(storage);
    }

    /// All levels are made of the first, unless another is said to be the base.
    fn mipmaps(&mut self, id: Id, storage: Node, content: Node) {
        let has_base = self.object(id).is_some_and(|object| !object.drawn.is_empty());
        if has_base {
            self.writes(content);
            self.reads(content);
        } else {
            let mipmaps = self.nodes.child(content, 2, Label::Mipmaps);
            let base = self.nodes.child(content, 1, Label::Image(0));
            self.kills(mipmaps);
            self.reads(base);
        }
        let images = self.nodes.child(storage, 3, Label::Mipmaps);
        self.kills(images);
        let base = self.nodes.child(storage, 1, Label::Image(0));
        self.reads(base);
    }

    /// `glCopyImageSubData`.
    pub(super) fn copy_image(&mut self, values: &Values<'_>) {
        let mut of = |name: usize| {
            let kind = if values.integer(name + 1) == Some(0x8d41) { Kind::Renderbuffer } else { Kind::Texture };
            self.find(kind, values.name(name))
        };
        let (from, to) = (of(0), of(6));
        if let Some(to) = to {
            let (content, made) = (self.content(to), self.made(to));
            let image = self.image(content, values.integer(8).unwrap_or(0).clamp(0, 64) as u32, 0);
            self.writes(image);
            self.reads(made);
        }
        if let Some(from) = from {
            let (content, made) = (self.content(from), self.made(from));
            self.reads(content);
            self.reads(made);
        }
    }

    /// A view is the texture it looks at.
    pub(super) fn view(&mut self, values: &Values<'_>) {
        let (view, of) = (self.find(Kind::Texture, values.name(0)), self.find(Kind::Texture, values.name(2)));
        let (Some(view), Some(of)) = (view, of) else { return };
        let storage = self.storage(view);
        self.kills(storage);
        let made = self.made(of);
        self.reads(made);
        let content = self.content(of);
        let sizes = self.object(of).map(|object| object.sizes.clone()).unwrap_or_default();
        if let Some(object) = self.object_mut(view) {
            object.content = content;
            object.sizes = sizes;
            object.links.push((1, of));
        }
        self.touch();
    }

    pub(super) fn sampler(&mut self, values: &Values<'_>) {
        let Some(id) = self.find(Kind::Sampler, values.name(0)) else { return };
        let made = self.made(id);
        let node = self.nodes.child(made, key(&[13, values.integer(1).unwrap_or(0) as u64]), Label::Parameter);
        self.kills(node);
        self.read_birth(Some(id));
    }

    pub(super) fn render_storage(&mut self, values: &Values<'_>, is_named: bool, has_samples: bool) {
        let id = if is_named { self.find(Kind::Renderbuffer, values.name(0)) } else { self.state().renderbuffer };
        if !is_named {
            self.read_state(RENDERBUFFER_KEY, Label::Binding("renderbuffer"));
        }
        let Some(id) = id else { return };
        self.read_birth(Some(id));
        let format = values.integer(1 + usize::from(has_samples)).unwrap_or(0);
        if let Some(object) = self.object_mut(id) {
            object.has_stencil = has_stencil(format);
        }
        let (storage, content) = (self.storage(id), self.content(id));
        self.kills(storage);
        self.kills(content);
    }
}

pub(super) const RENDERBUFFER_KEY: u64 = 15 << 32;

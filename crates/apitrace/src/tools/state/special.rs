//! Functions that need individual treatment: enables, faces, images, buffers, framebuffers.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::lanes::wire::Value;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;
use crate::tools::state::machine::{At, Machine, numbers, value};
use crate::tools::state::model::{Attachment, Binding, Detail, Key, Level, Object, Setting};
use crate::tools::state::ops::{Special, Way};
use crate::tools::state::value::Val;

/// Levels of a texture that storage is made for; real ones have fewer.
const LEVELS_MAX: i64 = 32;

/// Objects bound at once that are looked at.
const BOUND_MAX: usize = 1024;

impl Machine {
    pub(super) fn special(&mut self, special: Special, at: At<'_>, values: &Values<'_>) {
        let context = at.context;
        match special {
            Special::Enable(is_on, index) => self.enable(is_on, index, at, values),
            Special::ClientState(is_on) => {
                let key = self.client_key(values, context);
                self.set(context, key, Val::truth(is_on), at.number);
            }
            Special::PolygonMode => self.polygon_mode(at, values),
            Special::StencilFuncSeparate => self.faces(&["FUNC", "REF", "VALUE_MASK"], at, values),
            Special::StencilOpSeparate => self.faces(&["FAIL", "PASS_DEPTH_FAIL", "PASS_DEPTH_PASS"], at, values),
            Special::StencilMaskSeparate => self.faces(&["WRITEMASK"], at, values),
            Special::Current(name, count, scale) => {
                let mut parts: Vec<f64> =
                    numbers(values, 0).into_iter().take(count).map(|part| part / f64::from(scale)).collect();
                if parts.len() == 3 {
                    parts.push(1.0);
                }
                let parts = parts.into_iter().map(|part| Val::Float(part as f32)).collect();
                self.set(context, (name.into(), None), Val::List(parts), at.number);
            }
            Special::PixelStore => {
                if let (Some(name), Some(given)) = (value(values, 0), value(values, 1)) {
                    self.set(context, (name.to_key().into(), None), given, at.number);
                }
            }
            Special::DrawBuffer => {
                let given = value(values, 0).map(|given| vec![given]);
                self.draw_buffers(None, given.unwrap_or_default(), at);
            }
            Special::DrawBuffers(way) => {
                let (framebuffer, list) =
                    if way == Way::Named { (values.name(0), values.array(2)) } else { (None, values.array(1)) };
                let given = list.take(64).map(|mut wire| Val::read(&mut wire, values.dictionary())).collect();
                self.draw_buffers(framebuffer, given, at);
            }
            Special::ReadBuffer => {
                let framebuffer = self.bound(context, "GL_READ_FRAMEBUFFER", None).unwrap_or(0);
                if let Some(given) = value(values, 0) {
                    self.framebuffer_setting(framebuffer, "GL_READ_BUFFER", given, at);
                }
            }
            Special::PushAttributes => self.push_attributes(at, values),
            Special::PopAttributes => self.pop_attributes(at),
            Special::EndList => self.end_list(at),
            Special::ObjectLabel => self.label_object(at, values),
            Special::Interleaved => {
                self.unknown(context, format!("arrays set by glInterleavedArrays at call {}", at.number))
            }
            _ => {
                if !self.special_image(special, at, values) && !self.special_program(special, at, values) {
                    self.special_array(special, at, values);
                }
            }
        }
    }

    fn special_image(&mut self, special: Special, at: At<'_>, values: &Values<'_>) -> bool {
        match special {
            Special::BufferData(way) => self.buffer_data(way, at, values),
            Special::BufferSubData(way) => {
                let given = blob_bytes(values, 3);
                if let Some(object) = self.buffer(way, 0, at, values) {
                    let setting = Setting::new(Val::Bytes(given), at.number);
                    self.put_property(object, "last_part", setting, at);
                }
            }
            Special::CopyBuffer => {
                if let Some(object) = self.buffer(Way::Bound, 1, at, values) {
                    let size = value(values, 4).unwrap_or(Val::Null);
                    self.put_property(object, "last_copy_to", Setting::new(size, at.number), at);
                }
            }
            Special::TexImage(sizes) => {
                // target, level, internal format, sizes, border, format, type, pixels
                let sizes = usize::from(sizes);
                self.tex_image(2..6 + sizes, 6 + sizes, at, values);
            }
            Special::CompressedTexImage(sizes) => {
                self.tex_image(2..4 + usize::from(sizes), 5 + usize::from(sizes), at, values)
            }
            Special::CopyTexImage(sizes) => self.tex_image(2..6 + usize::from(sizes), 99, at, values),
            Special::TexSubImage(sizes, way) => self.tex_part(usize::from(sizes), way, at, values),
            Special::TexStorage(sizes, way) => self.tex_storage(usize::from(sizes), way, at, values),
            Special::TexMultisample(sizes) => {
                if let Some((name, target)) = self.texture(Way::Bound, at, values) {
                    let format = at.named(values, 1..4 + usize::from(sizes)).into_iter().collect();
                    self.put_level(name, (target, 0), format, 0, at);
                }
            }
            Special::TexBuffer(way) => {
                if let Some((name, _)) = self.texture(way, at, values) {
                    let object = (Kind::Texture, name);
                    for (label, given) in at.named(values, 1..3) {
                        self.put_property(object, &label, Setting::new(given, at.number), at);
                    }
                }
            }
            Special::GenerateMipmap(way) => {
                if let Some((name, _)) = self.texture(way, at, values) {
                    let setting = Setting::new(Val::truth(true), at.number);
                    self.put_property((Kind::Texture, name), "mipmaps_generated", setting, at);
                }
            }
            Special::TexParameter(way) => {
                if let Some((name, _)) = self.texture(way, at, values) {
                    self.put_parameter((Kind::Texture, name), at, values);
                }
            }
            Special::SamplerParameter => {
                if let Some(name) = values.name(0) {
                    self.put_parameter((Kind::Sampler, name), at, values);
                }
            }
            _ => return self.special_target(special, at, values) || self.special_binding(special, at, values),
        }
        true
    }

    /// Renderbuffers and framebuffer attachments.
    fn special_target(&mut self, special: Special, at: At<'_>, values: &Values<'_>) -> bool {
        match special {
            Special::RenderbufferStorage(way, is_multisampled) => {
                let name = match way {
                    Way::Named => values.name(0),
                    Way::Bound => self.bound(at.context, "GL_RENDERBUFFER", None),
                };
                for (label, given) in at.named(values, 1..4 + usize::from(is_multisampled)) {
                    let setting = Setting::new(given, at.number);
                    self.put_property((Kind::Renderbuffer, name.unwrap_or(0)), &label, setting, at);
                }
            }
            Special::FramebufferTexture(way, target, texture, layer) => {
                let name = values.name(texture).unwrap_or(0);
                let more = [target, Some(texture + 1), layer].into_iter().flatten();
                let more = more.filter_map(|index| Some((at.label(index), value(values, index)?))).collect();
                self.attach_to_framebuffer(way, (Kind::Texture, name), more, at, values);
            }
            Special::FramebufferRenderbuffer(way) => {
                let name = values.name(3).unwrap_or(0);
                self.attach_to_framebuffer(way, (Kind::Renderbuffer, name), Vec::new(), at, values);
            }
            _ => return false,
        }
        true
    }

    /// Bindings by unit or index, several at once too.
    fn special_binding(&mut self, special: Special, at: At<'_>, values: &Values<'_>) -> bool {
        let index = |argument| values.integer(argument).and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let number = at.number;
        let of = |kind, name| Binding { kind, name, call: number, more: Vec::new() };
        let target = || value(values, 0).unwrap_or(Val::Null).to_key();
        match special {
            Special::BindSampler => {
                let binding = of(Kind::Sampler, values.name(1).unwrap_or(0));
                self.put_binding(at.context, ("GL_SAMPLER".into(), Some(index(0))), binding);
            }
            Special::BindTextureUnit => self.bind_to_unit(values.name(1).unwrap_or(0), index(0), at),
            Special::BindImage => {
                let binding =
                    Binding { more: at.named(values, 2..7), ..of(Kind::Texture, values.name(1).unwrap_or(0)) };
                self.put_binding(at.context, ("GL_IMAGE".into(), Some(index(0))), binding);
            }
            Special::BindSamplers | Special::BindTextures => {
                let names: Vec<u64> = values.integers(2).take(BOUND_MAX).map(|name| name as u64).collect();
                for place in 0..index(1).min(BOUND_MAX as u32) {
                    let name = names.get(place as usize).copied().unwrap_or(0);
                    let unit = index(0).saturating_add(place);
                    if special == Special::BindTextures {
                        self.bind_to_unit(name, unit, at);
                    } else {
                        self.put_binding(at.context, ("GL_SAMPLER".into(), Some(unit)), of(Kind::Sampler, name));
                    }
                }
            }
            Special::BindBuffersBase | Special::BindBuffersRange => {
                let names: Vec<u64> = values.integers(3).take(BOUND_MAX).map(|name| name as u64).collect();
                for place in 0..index(2).min(BOUND_MAX as u32) {
                    let name = names.get(place as usize).copied().unwrap_or(0);
                    let more = [4, 5].into_iter().filter_map(|argument| {
                        let given = values.integers(argument).nth(place as usize)?;
                        Some((at.label(argument), Val::Int(given)))
                    });
                    let binding = Binding { more: more.collect(), ..of(Kind::Buffer, name) };
                    let key = (target().into(), Some(index(1).saturating_add(place)));
                    self.put_binding(at.context, key, binding);
                }
            }
            _ => return false,
        }
        true
    }

    /// A texture is bound to its own target; 0 removes all bindings of the unit.
    fn bind_to_unit(&mut self, name: u64, unit: u32, at: At<'_>) {
        let binding = Binding { kind: Kind::Texture, name, call: at.number, more: Vec::new() };
        if name == 0 {
            let state = self.state(at.context);
            let of_unit =
                state.bindings.iter_mut().filter(|(key, one)| key.1 == Some(unit) && one.kind == Kind::Texture);
            of_unit.for_each(|(_, one)| *one = binding.clone());
            return;
        }
        let object = self.objects.get(Kind::Texture, name, at.context, &self.contexts);
        let target = object.and_then(|object| object.properties.get("target")).map(|setting| setting.value.to_key());
        if let Some(target) = target {
            self.put_binding(at.context, (target.into(), Some(unit)), binding);
        }
    }

    fn enable(&mut self, is_on: bool, index: Option<usize>, at: At<'_>, values: &Values<'_>) {
        let Some(capability) = value(values, 0) else { return };
        let name: Rc<str> = capability.to_key().into();
        // These belong to the active texture unit.
        let of_unit = name.starts_with("GL_TEXTURE_")
            && ["1D", "2D", "3D", "CUBE_MAP", "RECTANGLE", "GEN_S", "GEN_T", "GEN_R", "GEN_Q", "RECTANGLE_ARB"]
                .iter()
                .any(|end| name.strip_prefix("GL_TEXTURE_") == Some(*end));
        let index = match index {
            Some(argument) => values.integer(argument).and_then(|index| u32::try_from(index).ok()),
            None if of_unit => Some(self.unit(at.context, "GL_ACTIVE_TEXTURE")),
            None => None,
        };
        self.set(at.context, (name, index), Val::truth(is_on), at.number);
    }

    pub(super) fn client_key(&mut self, values: &Values<'_>, context: u32) -> Key {
        let name = value(values, 0).map(|name| name.to_key()).unwrap_or_default();
        let unit = (name == "GL_TEXTURE_COORD_ARRAY").then(|| self.unit(context, "GL_CLIENT_ACTIVE_TEXTURE"));
        (name.into(), unit)
    }

    fn polygon_mode(&mut self, at: At<'_>, values: &Values<'_>) {
        let (Some(face), Some(mode)) = (values.integer(0), value(values, 1)) else { return };
        let key: Key = ("GL_POLYGON_MODE".into(), None);
        let mut modes = match self.state(at.context).parameters.get(&key).map(|setting| &setting.value) {
            Some(Val::List(modes)) if modes.len() == 2 => modes.clone(),
            _ => vec![Val::name("GL_FILL"); 2],
        };
        let (first, last) = (matches!(face, 0x404 | 0x408), matches!(face, 0x405 | 0x408));
        for (place, is_meant) in modes.iter_mut().zip([first, last]) {
            if is_meant {
                *place = mode.clone();
            }
        }
        self.set(at.context, key, Val::List(modes), at.number);
    }

    /// Parameters that the front and the back have apart.
    fn faces(&mut self, names: &[&str], at: At<'_>, values: &Values<'_>) {
        let face = values.integer(0).unwrap_or(0x408);
        for (place, name) in names.iter().enumerate() {
            let Some(given) = value(values, place + 1) else { continue };
            if matches!(face, 0x404 | 0x408) {
                self.set(at.context, (format!("GL_STENCIL_{name}").into(), None), given.clone(), at.number);
            }
            if matches!(face, 0x405 | 0x408) {
                self.set(at.context, (format!("GL_STENCIL_BACK_{name}").into(), None), given, at.number);
            }
        }
    }

    fn draw_buffers(&mut self, framebuffer: Option<u64>, given: Vec<Val>, at: At<'_>) {
        let bound = self.bound(at.context, "GL_DRAW_FRAMEBUFFER", None).unwrap_or(0);
        let framebuffer = framebuffer.unwrap_or(bound);
        for (place, one) in given.into_iter().enumerate() {
            self.framebuffer_setting(framebuffer, &format!("GL_DRAW_BUFFER{place}"), one, at);
        }
    }

    /// The framebuffer 0 is the context's own.
    fn framebuffer_setting(&mut self, framebuffer: u64, name: &str, given: Val, at: At<'_>) {
        if framebuffer == 0 {
            self.set(at.context, (name.into(), None), given, at.number);
        } else {
            self.put_property((Kind::Framebuffer, framebuffer), name, Setting::new(given, at.number), at);
        }
    }

    fn label_object(&mut self, at: At<'_>, values: &Values<'_>) {
        let (Some(space), Some(name)) = (values.integer(0), values.name(1)) else { return };
        let kind = match space {
            0x82e0 | 0x9151 => Kind::Buffer,
            0x82e1 | 0x8b48 => Kind::Shader,
            0x82e2 | 0x8b40 => Kind::Program,
            0x8074 | 0x9154 => Kind::VertexArray,
            0x82e3 | 0x9153 => Kind::Query,
            0x82e4 | 0x8a4f => Kind::Pipeline,
            0x8e22 => Kind::TransformFeedback,
            0x82e6 => Kind::Sampler,
            0x1702 => Kind::Texture,
            0x8d41 => Kind::Renderbuffer,
            0x8d40 => Kind::Framebuffer,
            _ => return,
        };
        // The label is the last argument that is a string.
        let label = (2..5).filter_map(|index| value(values, index)).rfind(|value| matches!(value, Val::Text(_)));
        if let Some(object) = self.object_mut((kind, name), at) {
            object.label = label;
        }
    }

    pub(super) fn object_mut(&mut self, (kind, name): (Kind, u64), at: At<'_>) -> Option<&mut Object> {
        self.objects.get_mut(kind, name, at.context, &self.contexts)
    }

    pub(super) fn put_property(&mut self, of: (Kind, u64), name: &str, setting: Setting, at: At<'_>) {
        let budget = Rc::clone(&self.budget);
        if let Some(object) = self.object_mut(of, at) {
            budget.put(&mut object.properties, name.into(), setting);
        }
    }

    /// A parameter named by the second argument.
    fn put_parameter(&mut self, of: (Kind, u64), at: At<'_>, values: &Values<'_>) {
        if let (Some(name), Some(given)) = (value(values, 1), value(values, 2)) {
            self.put_property(of, &name.to_key(), Setting::new(given, at.number), at);
        }
    }

    /// The buffer that a call is about.
    fn buffer(&mut self, way: Way, argument: usize, at: At<'_>, values: &Values<'_>) -> Option<(Kind, u64)> {
        if way == Way::Named {
            return Some((Kind::Buffer, values.name(argument)?));
        }
        let name = if values.integer(argument) == Some(0x8893) {
            match self.vertex_array(at.context, None)?.elements.as_ref()?.value {
                Val::Int(name) => name as u64,
                _ => return None,
            }
        } else {
            let target = value(values, argument)?.to_key();
            self.bound(at.context, &target, None)?
        };
        Some((Kind::Buffer, name))
    }

    fn buffer_data(&mut self, way: Way, at: At<'_>, values: &Values<'_>) {
        let Some(object) = self.buffer(way, 0, at, values) else { return };
        for (label, given) in at.named(values, 1..4) {
            // The data are shown by their size.
            let label = if &*label == "data" { "given" } else { &*label };
            self.put_property(object, label, Setting::new(given, at.number), at);
        }
    }

    /// The texture a call is about, and the target of its image.
    fn texture(&mut self, way: Way, at: At<'_>, values: &Values<'_>) -> Option<(u64, Rc<str>)> {
        if way == Way::Named {
            let name = values.name(0)?;
            let object = self.objects.get(Kind::Texture, name, at.context, &self.contexts)?;
            let target = object.properties.get("target").map_or_else(|| "?".to_owned(), |one| one.value.to_key());
            return Some((name, target.into()));
        }
        let image: Rc<str> = value(values, 0)?.to_key().into();
        if image.starts_with("GL_PROXY_") {
            return None;
        }
        let is_face = values.integer(0).is_some_and(|target| (0x8515..=0x851a).contains(&target));
        let target: Rc<str> = if is_face { "GL_TEXTURE_CUBE_MAP".into() } else { Rc::clone(&image) };
        let unit = self.unit(at.context, "GL_ACTIVE_TEXTURE");
        let name = self.bound(at.context, &target, Some(unit)).filter(|name| *name != 0)?;
        Some((name, image))
    }

    fn tex_image(&mut self, described: std::ops::Range<usize>, data: usize, at: At<'_>, values: &Values<'_>) {
        let Some((name, target)) = self.texture(Way::Bound, at, values) else { return };
        let format = at.named(values, described).into_iter().collect();
        let level = values.integer(1).unwrap_or(0);
        self.put_level(name, (target, level), format, blob_bytes(values, data), at);
    }

    fn put_level(&mut self, name: u64, key: (Rc<str>, i64), format: BTreeMap<Rc<str>, Val>, given: u64, at: At<'_>) {
        let budget = Rc::clone(&self.budget);
        let Some(object) = self.object_mut((Kind::Texture, name), at) else { return };
        if let Detail::Texture(levels) = &mut object.detail {
            let level = Level { format, call: at.number, given_bytes: given, changed: None };
            budget.put(levels, key, level);
        }
    }

    fn tex_part(&mut self, sizes: usize, way: Way, at: At<'_>, values: &Values<'_>) {
        let Some((name, target)) = self.texture(way, at, values) else { return };
        let level = values.integer(1).unwrap_or(0);
        // target, level, offsets, sizes, format, type or size, pixels
        let given = blob_bytes(values, 4 + 2 * sizes);
        let number = at.number;
        let Some(object) = self.object_mut((Kind::Texture, name), at) else { return };
        if let Detail::Texture(levels) = &mut object.detail
            && let Some(level) = levels.get_mut(&(target, level))
        {
            level.changed = Some(number);
            level.given_bytes = level.given_bytes.saturating_add(given);
        }
    }

    fn tex_storage(&mut self, sizes: usize, way: Way, at: At<'_>, values: &Values<'_>) {
        let Some((name, target)) = self.texture(way, at, values) else { return };
        let is_array = target.ends_with("_ARRAY");
        for level in 0..values.integer(1).unwrap_or(0).clamp(0, LEVELS_MAX) {
            let mut format: BTreeMap<Rc<str>, Val> = at.named(values, 2..3).into_iter().collect();
            for place in 0..sizes {
                let size = values.integer(3 + place).unwrap_or(0);
                // Layers do not shrink.
                let is_layers = is_array && place + 1 == sizes;
                let size = if is_layers { size } else { (size >> level).max(1) };
                format.insert(at.label(3 + place), Val::Int(size));
            }
            self.put_level(name, (Rc::clone(&target), level), format, 0, at);
        }
    }

    fn attach_to_framebuffer(
        &mut self,
        way: Way,
        (kind, name): (Kind, u64),
        more: Vec<(Rc<str>, Val)>,
        at: At<'_>,
        values: &Values<'_>,
    ) {
        let framebuffer = match (way, values.integer(0)) {
            (Way::Named, _) => values.name(0),
            (Way::Bound, Some(0x8ca8)) => self.bound(at.context, "GL_READ_FRAMEBUFFER", None),
            (Way::Bound, _) => self.bound(at.context, "GL_DRAW_FRAMEBUFFER", None),
        };
        let Some(point) = value(values, 1) else { return };
        let budget = Rc::clone(&self.budget);
        let Some(object) = self.object_mut((Kind::Framebuffer, framebuffer.unwrap_or(0)), at) else { return };
        if let Detail::Framebuffer(attachments) = &mut object.detail {
            let point: Rc<str> = point.to_key().into();
            if name == 0 {
                attachments.remove(&point);
            } else {
                budget.put(attachments, point, Attachment { kind, name, more, call: at.number });
            }
        }
    }
}

/// The number of bytes in an argument.
fn blob_bytes(values: &Values<'_>, argument: usize) -> u64 {
    match values.argument(argument).map(|mut wire| wire.value()) {
        Some(Value::Blob(bytes, _)) => bytes,
        _ => 0,
    }
}

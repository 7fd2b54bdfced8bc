//! What is bound and enabled: materials, lights, vertex arrays, buffers, textures, framebuffers.

use serde_json::{Map, Value};

use super::ask::{Ask, Getters, name_of};
use super::images::image;
use super::table::{
    ATTACHMENT, ATTRIBUTE, BUFFER, BUFFER_TARGETS, LEVEL, LIGHT, MATERIAL, TEXTURE, TEXTURE_TARGETS, rows,
};

/// Parameters of most functions are asked for by integers alone.
const fn by(integers: &'static str, floats: &'static str) -> Getters {
    Getters { flags: None, integers, floats }
}

/// Most bytes of a texture's level that is shown.
const LEVEL_BYTES_MAX: usize = 256 << 20;

impl Ask<'_> {
    fn state(&self, name: u32) -> u32 {
        self.gl.state(name) as u32
    }

    /// Materials and the lights that are on.
    pub(super) fn lights(&self, into: &mut Map<String, Value>) {
        for (name, face) in [("GL_FRONT", 0x404_u64), ("GL_BACK", 0x405)] {
            let found = self.table(by("glGetMaterialiv", "glGetMaterialfv"), &[face], MATERIAL);
            if !found.is_empty() {
                into.insert(name.to_owned(), found.into());
            }
        }
        // GL_MAX_LIGHTS; GL_LIGHT0.
        for number in 0..self.state(0x0d31).min(32) {
            let light = u64::from(0x4000 + number);
            if self.call("glIsEnabled", &[light]).is_some_and(|is_on| is_on & 0xff != 0) {
                let found = self.table(by("glGetLightiv", "glGetLightfv"), &[light], LIGHT);
                into.insert(format!("GL_LIGHT{number}"), found.into());
            }
        }
        self.gl.clear_errors();
    }

    /// Vertex attributes of the current vertex array.
    pub(super) fn attributes(&self, into: &mut Map<String, Value>) {
        // GL_MAX_VERTEX_ATTRIBS.
        for number in 0..self.state(0x8869).min(64) {
            let by = by("glGetVertexAttribiv", "glGetVertexAttribfv");
            let mut found = self.table(by, &[u64::from(number)], ATTRIBUTE);
            if found.is_empty() {
                continue;
            }
            let mut address = [0_u64; 2];
            // GL_VERTEX_ATTRIB_ARRAY_POINTER.
            let about = [u64::from(number), 0x8645, address.as_mut_ptr() as u64];
            if self.call("glGetVertexAttribPointerv", &about).is_some() {
                found.insert("GL_VERTEX_ATTRIB_ARRAY_POINTER".to_owned(), Value::from(address[0]));
            }
            into.insert(format!("GL_VERTEX_ATTRIB_ARRAY{number}"), found.into());
        }
    }

    /// The buffers that are bound.
    pub(super) fn buffers(&self, into: &mut Map<String, Value>) {
        for (name, target, binding) in BUFFER_TARGETS {
            let mut found = Map::new();
            if self.state(binding) != 0 {
                let by = by("glGetBufferParameteriv", "glGetBufferParameteriv");
                found = self.table(by, &[u64::from(target)], BUFFER);
            }
            into.insert(name.to_owned(), found.into());
        }
        self.gl.clear_errors();
    }

    /// What is bound to each texture unit, and pictures of it.
    pub(super) fn textures(&self, into: &mut Map<String, Value>, pictures: &mut Map<String, Value>) {
        // GL_ACTIVE_TEXTURE; GL_MAX_COMBINED_TEXTURE_IMAGE_UNITS.
        let (before, units) = (self.state(0x84e0), self.state(0x8b4d).clamp(1, 256));
        for unit in 0..units {
            self.call("glActiveTexture", &[u64::from(0x84c0 + unit)]);
            let mut found = Map::new();
            for (name, target, binding_name, binding) in TEXTURE_TARGETS {
                self.gl.clear_errors();
                let bound = self.state(binding);
                if self.gl.error() != 0 {
                    continue;
                }
                found.insert(binding_name.to_owned(), Value::from(bound));
                if bound != 0 {
                    found.insert(name.to_owned(), self.texture(target).into());
                    self.levels(unit, name, target, pictures);
                }
            }
            let sampler = self.integers("glGetIntegerv", &[0x8919], 1).and_then(|found| found.first().copied());
            if let Some(sampler) = sampler {
                found.insert("GL_SAMPLER_BINDING".to_owned(), Value::from(sampler));
            }
            into.insert(format!("GL_TEXTURE{unit}"), found.into());
        }
        self.call("glActiveTexture", &[u64::from(before)]);
        self.gl.clear_errors();
    }

    fn texture(&self, target: u32) -> Map<String, Value> {
        let mut found = self.table(by("glGetTexParameteriv", "glGetTexParameterfv"), &[u64::from(target)], TEXTURE);
        let face = u64::from(face(target, 0));
        let by = by("glGetTexLevelParameteriv", "glGetTexLevelParameterfv");
        found.append(&mut self.table(by, &[face, 0], LEVEL));
        found
    }

    /// Pictures of all levels of what is bound to a target of the active unit.
    fn levels(&self, unit: u32, name: &str, target: u32, pictures: &mut Map<String, Value>) {
        let faces = if target == 0x8513 { 6 } else { 1 };
        let of = |face: u64, level: u64, number: u64| {
            let found = self.integers("glGetTexLevelParameteriv", &[face, level, number], 1)?;
            usize::try_from(found.first().copied()?).ok()
        };
        for number in 0..faces {
            let to = face(target, number);
            let shown = if faces == 1 { Value::from(name) } else { name_of(to) };
            let shown = shown.as_str().unwrap_or(name).to_owned();
            let to = u64::from(to);
            for level in 0..32_u64 {
                // Width, height, depth; bits of depth.
                let (width, height) = (of(to, level, 0x1000).unwrap_or(0), of(to, level, 0x1001).unwrap_or(0));
                let depth = of(to, level, 0x8071).unwrap_or(1).max(1);
                if width == 0 || height == 0 {
                    break;
                }
                let is_depth = of(to, level, 0x884a).unwrap_or(0) > 0;
                let (format, channels) = if is_depth { (0x1902_u64, 1) } else { (0x1908, 4) };
                let length = width.saturating_mul(height).saturating_mul(depth).saturating_mul(channels);
                if length > LEVEL_BYTES_MAX {
                    continue;
                }
                let mut pixels = vec![0_u8; length];
                self.gl.clear_errors();
                let about = [to, level, format, 0x1401, pixels.as_mut_ptr() as u64];
                if self.call("glGetTexImage", &about).is_none() || self.gl.error() != 0 {
                    break;
                }
                let stored = self.integers("glGetTexLevelParameteriv", &[to, level, 0x1003], 1);
                let stored = stored.and_then(|found| found.first().copied()).unwrap_or(0) as u32;
                let picture = image((width, height, depth), channels, pixels, &name_of(stored));
                pictures.insert(format!("GL_TEXTURE{unit}, {shown}, level = {level}"), picture);
            }
        }
    }

    /// Attachments of the framebuffer objects that are bound.
    pub(super) fn framebuffers(&self, into: &mut Map<String, Value>) {
        for (name, target, binding) in
            [("GL_DRAW_FRAMEBUFFER", 0x8ca9_u32, 0x8ca6), ("GL_READ_FRAMEBUFFER", 0x8ca8, 0x8caa)]
        {
            if self.state(binding) == 0 {
                continue;
            }
            // GL_MAX_COLOR_ATTACHMENTS.
            let colors = (0..self.state(0x8cdf).clamp(1, 16))
                .map(|number| (format!("GL_COLOR_ATTACHMENT{number}"), 0x8ce0 + number));
            let others = [("GL_DEPTH_ATTACHMENT", 0x8d00), ("GL_STENCIL_ATTACHMENT", 0x8d20)]
                .map(|(name, at)| (name.to_owned(), at));
            let mut found = Map::new();
            for (attached, at) in colors.chain(others) {
                if self.gl.attachment(target, at, 0x8cd0) != 0 {
                    let by = by("glGetFramebufferAttachmentParameteriv", "glGetFramebufferAttachmentParameteriv");
                    let about = [u64::from(target), u64::from(at)];
                    found.insert(attached, self.table(by, &about, ATTACHMENT).into());
                }
            }
            into.insert(name.to_owned(), found.into());
        }
        self.gl.clear_errors();
    }

    /// All parameters of `glGet`.
    pub(super) fn parameters(&self) -> Map<String, Value> {
        let by = Getters { flags: Some("glGetBooleanv"), integers: "glGetIntegerv", floats: "glGetFloatv" };
        rows(super::table::PARAMETERS).filter_map(|of| Some((of.name.to_owned(), self.value(by, &[], of)?))).collect()
    }
}

/// The target of a face of a cube map; the target itself where it has none.
fn face(target: u32, number: u32) -> u32 {
    if target == 0x8513 { 0x8515 + number } else { target }
}

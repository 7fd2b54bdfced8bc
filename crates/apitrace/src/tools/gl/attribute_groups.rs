//! The attribute groups that `glPushAttrib` saves, and those of `glEnable`'s capabilities (OpenGL 2.1, tables 6.5 ff.,
//! and later extensions).

pub(crate) const CURRENT: u32 = 0x1;
pub(crate) const POINT: u32 = 0x2;
pub(crate) const LINE: u32 = 0x4;
pub(crate) const POLYGON: u32 = 0x8;
pub(crate) const STIPPLE: u32 = 0x10;
pub(crate) const PIXEL: u32 = 0x20;
pub(crate) const LIGHTING: u32 = 0x40;
pub(crate) const FOG: u32 = 0x80;
pub(crate) const DEPTH: u32 = 0x100;
pub(crate) const ACCUM: u32 = 0x200;
pub(crate) const STENCIL: u32 = 0x400;
pub(crate) const VIEWPORT: u32 = 0x800;
pub(crate) const TRANSFORM: u32 = 0x1000;
pub(crate) const ENABLE: u32 = 0x2000;
pub(crate) const COLOR: u32 = 0x4000;
pub(crate) const HINT: u32 = 0x8000;
pub(crate) const EVAL: u32 = 0x1_0000;
pub(crate) const LIST: u32 = 0x2_0000;
pub(crate) const TEXTURE: u32 = 0x4_0000;
pub(crate) const SCISSOR: u32 = 0x8_0000;
pub(crate) const MULTISAMPLE: u32 = 0x2000_0000;

/// Capabilities: number, name, and the group that saves them besides [`ENABLE`]. Sorted by number.
const CAPABILITIES: &[(u32, &str, u32)] = &[
    (0x0b10, "GL_POINT_SMOOTH", POINT),
    (0x0b20, "GL_LINE_SMOOTH", LINE),
    (0x0b24, "GL_LINE_STIPPLE", LINE),
    (0x0b41, "GL_POLYGON_SMOOTH", POLYGON),
    (0x0b42, "GL_POLYGON_STIPPLE", POLYGON),
    (0x0b44, "GL_CULL_FACE", POLYGON),
    (0x0b50, "GL_LIGHTING", LIGHTING),
    (0x0b57, "GL_COLOR_MATERIAL", LIGHTING),
    (0x0b60, "GL_FOG", FOG),
    (0x0b71, "GL_DEPTH_TEST", DEPTH),
    (0x0b90, "GL_STENCIL_TEST", STENCIL),
    (0x0ba1, "GL_NORMALIZE", TRANSFORM),
    (0x0bc0, "GL_ALPHA_TEST", COLOR),
    (0x0bd0, "GL_DITHER", COLOR),
    (0x0be2, "GL_BLEND", COLOR),
    (0x0bf1, "GL_INDEX_LOGIC_OP", COLOR),
    (0x0bf2, "GL_COLOR_LOGIC_OP", COLOR),
    (0x0c11, "GL_SCISSOR_TEST", SCISSOR),
    (0x0c60, "GL_TEXTURE_GEN_S", TEXTURE),
    (0x0c61, "GL_TEXTURE_GEN_T", TEXTURE),
    (0x0c62, "GL_TEXTURE_GEN_R", TEXTURE),
    (0x0c63, "GL_TEXTURE_GEN_Q", TEXTURE),
    (0x0d80, "GL_AUTO_NORMAL", EVAL),
    (0x0de0, "GL_TEXTURE_1D", TEXTURE),
    (0x0de1, "GL_TEXTURE_2D", TEXTURE),
    (0x2a01, "GL_POLYGON_OFFSET_POINT", POLYGON),
    (0x2a02, "GL_POLYGON_OFFSET_LINE", POLYGON),
    (0x8037, "GL_POLYGON_OFFSET_FILL", POLYGON),
    (0x803a, "GL_RESCALE_NORMAL", TRANSFORM),
    (0x806f, "GL_TEXTURE_3D", TEXTURE),
    (0x809d, "GL_MULTISAMPLE", MULTISAMPLE),
    (0x809e, "GL_SAMPLE_ALPHA_TO_COVERAGE", MULTISAMPLE),
    (0x809f, "GL_SAMPLE_ALPHA_TO_ONE", MULTISAMPLE),
    (0x80a0, "GL_SAMPLE_COVERAGE", MULTISAMPLE),
    (0x8458, "GL_COLOR_SUM", FOG),
    (0x84f5, "GL_TEXTURE_RECTANGLE", TEXTURE),
    (0x8513, "GL_TEXTURE_CUBE_MAP", TEXTURE),
    (0x8642, "GL_PROGRAM_POINT_SIZE", 0),
    (0x8643, "GL_VERTEX_PROGRAM_TWO_SIDE", LIGHTING),
    (0x864f, "GL_DEPTH_CLAMP", TRANSFORM),
    (0x884f, "GL_TEXTURE_CUBE_MAP_SEAMLESS", TEXTURE),
    (0x8861, "GL_POINT_SPRITE", POINT),
    (0x8890, "GL_DEPTH_BOUNDS_TEST_EXT", DEPTH),
    (0x8910, "GL_STENCIL_TEST_TWO_SIDE_EXT", STENCIL),
    (0x8c36, "GL_SAMPLE_SHADING", MULTISAMPLE),
    (0x8c89, "GL_RASTERIZER_DISCARD", 0),
    (0x8db9, "GL_FRAMEBUFFER_SRGB", COLOR),
    (0x8e51, "GL_SAMPLE_MASK", MULTISAMPLE),
];

/// Numbered capabilities: the first and the last number, prefixes of their names, the group.
const NUMBERED: &[(u32, u32, &[&str], u32)] = &[
    (0x0d90, 0x0d98, &["GL_MAP1_"], EVAL),
    (0x0db0, 0x0db8, &["GL_MAP2_"], EVAL),
    (0x3000, 0x3007, &["GL_CLIP_PLANE", "GL_CLIP_DISTANCE"], TRANSFORM),
    (0x4000, 0x4007, &["GL_LIGHT"], LIGHTING),
];

/// The groups that save a capability.
pub(crate) fn of_capability(number: u32) -> u32 {
    let one = CAPABILITIES.binary_search_by_key(&number, |row| row.0).ok().and_then(|at| CAPABILITIES.get(at));
    let own = one.map(|row| row.2).or_else(|| {
        let many = NUMBERED.iter().find(|(first, last, ..)| (*first..=*last).contains(&number));
        many.map(|row| row.3)
    });
    ENABLE | own.unwrap_or(0)
}

/// The same by name; `None` if the name is unknown.
pub(crate) fn of_capability_named(name: &str) -> Option<u32> {
    let one = CAPABILITIES.iter().find(|(_, known, _)| *known == name).map(|row| row.2);
    let own = one.or_else(|| {
        let is_of = |start: &&str| {
            let rest = name.strip_prefix(*start);
            // `GL_LIGHT0`, but neither `GL_LIGHT_MODEL_AMBIENT` nor `GL_LIGHT0 GL_AMBIENT`.
            rest.is_some_and(|rest| start.ends_with('_') || rest.parse::<u8>().is_ok())
        };
        NUMBERED.iter().find(|(_, _, starts, _)| starts.iter().any(is_of)).map(|row| row.3)
    });
    own.map(|own| ENABLE | own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_sorted_and_found_by_number_and_by_name() {
        assert!(CAPABILITIES.is_sorted_by(|a, b| a.0 < b.0));
        for (number, name, group) in CAPABILITIES {
            assert_eq!((of_capability(*number), of_capability_named(name)), (ENABLE | group, Some(ENABLE | group)));
        }
        for (number, name, group) in [
            (0x4003, "GL_LIGHT3", LIGHTING),
            (0x3007, "GL_CLIP_DISTANCE7", TRANSFORM),
            (0x3000, "GL_CLIP_PLANE0", TRANSFORM),
            (0x0db7, "GL_MAP2_VERTEX_3", EVAL),
        ] {
            assert_eq!((of_capability(number), of_capability_named(name)), (ENABLE | group, Some(ENABLE | group)));
        }
    }

    #[test]
    fn unknown_capabilities_are_saved_like_all_others() {
        assert_eq!(of_capability(0xffff), ENABLE);
        for name in ["GL_LIGHT_MODEL_AMBIENT", "GL_LIGHT0 GL_AMBIENT", "GL_VIEWPORT", "GL_CLIP_ORIGIN", ""] {
            assert_eq!(of_capability_named(name), None, "{name}");
        }
    }
}

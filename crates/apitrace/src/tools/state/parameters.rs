//! The initial values of parameters, by the names `glGet` has for them (OpenGL 4.6 compatibility profile, chapter 23),
//! and the groups of `glPushAttrib` that save them.

use crate::tools::gl::attribute_groups::{
    ACCUM, COLOR, CURRENT, DEPTH, FOG, HINT, LIGHTING, LINE, LIST, MULTISAMPLE, PIXEL, POINT, POLYGON, SCISSOR,
    STENCIL, TEXTURE, TRANSFORM, VIEWPORT, of_capability_named,
};

/// A value a parameter has before any call sets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Initial {
    /// An enumeration's name.
    Name(&'static str),
    /// The same name several times.
    Names(&'static str, usize),
    /// A number.
    Number(f64),
    /// Several numbers.
    Numbers(&'static [f64]),
}

use Initial::{Name, Names, Number, Numbers};

#[rustfmt::skip]
pub(super) const INITIAL: &[(&str, Initial)] = &[
    ("GL_COLOR_CLEAR_VALUE", Numbers(&[0.0, 0.0, 0.0, 0.0])),
    ("GL_DEPTH_CLEAR_VALUE", Number(1.0)),
    ("GL_STENCIL_CLEAR_VALUE", Number(0.0)),
    ("GL_DEPTH_FUNC", Name("GL_LESS")),
    ("GL_DEPTH_WRITEMASK", Name("GL_TRUE")),
    ("GL_DEPTH_RANGE", Numbers(&[0.0, 1.0])),
    ("GL_BLEND_SRC_RGB", Name("GL_ONE")),
    ("GL_BLEND_DST_RGB", Name("GL_ZERO")),
    ("GL_BLEND_SRC_ALPHA", Name("GL_ONE")),
    ("GL_BLEND_DST_ALPHA", Name("GL_ZERO")),
    ("GL_BLEND_EQUATION", Name("GL_FUNC_ADD")),
    ("GL_BLEND_EQUATION_ALPHA", Name("GL_FUNC_ADD")),
    ("GL_BLEND_COLOR", Numbers(&[0.0, 0.0, 0.0, 0.0])),
    ("GL_COLOR_WRITEMASK", Names("GL_TRUE", 4)),
    ("GL_CULL_FACE_MODE", Name("GL_BACK")),
    ("GL_FRONT_FACE", Name("GL_CCW")),
    ("GL_POLYGON_MODE", Names("GL_FILL", 2)),
    ("GL_POLYGON_OFFSET_FACTOR", Number(0.0)),
    ("GL_POLYGON_OFFSET_UNITS", Number(0.0)),
    ("GL_LINE_WIDTH", Number(1.0)),
    ("GL_POINT_SIZE", Number(1.0)),
    ("GL_LOGIC_OP_MODE", Name("GL_COPY")),
    ("GL_STENCIL_FUNC", Name("GL_ALWAYS")),
    ("GL_STENCIL_REF", Number(0.0)),
    ("GL_STENCIL_FAIL", Name("GL_KEEP")),
    ("GL_STENCIL_PASS_DEPTH_FAIL", Name("GL_KEEP")),
    ("GL_STENCIL_PASS_DEPTH_PASS", Name("GL_KEEP")),
    ("GL_STENCIL_BACK_FUNC", Name("GL_ALWAYS")),
    ("GL_STENCIL_BACK_REF", Number(0.0)),
    ("GL_STENCIL_BACK_FAIL", Name("GL_KEEP")),
    ("GL_STENCIL_BACK_PASS_DEPTH_FAIL", Name("GL_KEEP")),
    ("GL_STENCIL_BACK_PASS_DEPTH_PASS", Name("GL_KEEP")),
    ("GL_SAMPLE_COVERAGE_VALUE", Number(1.0)),
    ("GL_UNPACK_ALIGNMENT", Number(4.0)),
    ("GL_UNPACK_ROW_LENGTH", Number(0.0)),
    ("GL_UNPACK_SKIP_ROWS", Number(0.0)),
    ("GL_UNPACK_SKIP_PIXELS", Number(0.0)),
    ("GL_PACK_ALIGNMENT", Number(4.0)),
    ("GL_PACK_ROW_LENGTH", Number(0.0)),
    ("GL_ACTIVE_TEXTURE", Name("GL_TEXTURE0")),
    ("GL_BLEND", Name("GL_FALSE")),
    ("GL_CULL_FACE", Name("GL_FALSE")),
    ("GL_DEPTH_TEST", Name("GL_FALSE")),
    ("GL_DITHER", Name("GL_TRUE")),
    ("GL_SCISSOR_TEST", Name("GL_FALSE")),
    ("GL_STENCIL_TEST", Name("GL_FALSE")),
    ("GL_POLYGON_OFFSET_FILL", Name("GL_FALSE")),
    ("GL_SAMPLE_ALPHA_TO_COVERAGE", Name("GL_FALSE")),
    ("GL_SAMPLE_COVERAGE", Name("GL_FALSE")),
];

/// The bits of `glPushAttrib` that save a parameter; none where it is not known.
pub(super) fn attribute_bits(name: &str) -> u32 {
    if let Some(groups) = of_capability_named(name) {
        return groups;
    }
    let is_one = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    let mut bits = 0;
    let mut add = |bit: u32, names: &[&str]| bits |= if is_one(names) { bit } else { 0 };
    add(CURRENT, &["GL_CURRENT_", "GL_EDGE_FLAG"]);
    add(POINT, &["GL_POINT_"]);
    add(LINE, &["GL_LINE_"]);
    add(POLYGON, &["GL_CULL_FACE", "GL_FRONT_FACE", "GL_POLYGON_MODE", "GL_POLYGON_OFFSET", "GL_POLYGON_S"]);
    add(PIXEL, &["GL_MAP_", "GL_INDEX_SHIFT", "GL_INDEX_OFFSET", "GL_ZOOM_", "GL_RED_", "GL_GREEN_", "GL_BLUE_"]);
    add(PIXEL, &["GL_ALPHA_SCALE", "GL_ALPHA_BIAS", "GL_DEPTH_SCALE", "GL_DEPTH_BIAS", "GL_READ_BUFFER"]);
    add(
        LIGHTING,
        &[
            "GL_PROVOKING_VERTEX",
            "GL_LIGHT",
            "GL_COLOR_MATERIAL",
            "GL_SHADE_MODEL",
            "GL_FRONT ",
            "GL_BACK ",
            "GL_FRONT_AND_BACK ",
        ],
    );
    add(FOG, &["GL_FOG"]);
    add(DEPTH, &["GL_DEPTH_FUNC", "GL_DEPTH_TEST", "GL_DEPTH_CLEAR", "GL_DEPTH_WRITEMASK", "GL_DEPTH_BOUNDS"]);
    add(ACCUM, &["GL_ACCUM_CLEAR"]);
    add(STENCIL, &["GL_STENCIL_"]);
    add(VIEWPORT, &["GL_VIEWPORT", "GL_DEPTH_RANGE"]);
    add(TRANSFORM, &["GL_MATRIX_MODE", "GL_NORMALIZE", "GL_RESCALE_NORMAL", "GL_CLIP_", "GL_TRANSFORM"]);
    add(COLOR, &["GL_BLEND", "GL_ALPHA_TEST", "GL_LOGIC_OP", "GL_COLOR_LOGIC_OP", "GL_INDEX_LOGIC_OP", "GL_DITHER"]);
    add(COLOR, &["GL_COLOR_WRITEMASK", "GL_COLOR_CLEAR", "GL_INDEX_CLEAR", "GL_INDEX_WRITEMASK", "GL_DRAW_BUFFER"]);
    add(HINT, &["GL_PERSPECTIVE_CORRECTION_HINT", "GL_POINT_SMOOTH_HINT", "GL_LINE_SMOOTH_HINT"]);
    add(HINT, &["GL_POLYGON_SMOOTH_HINT", "GL_FOG_HINT", "GL_GENERATE_MIPMAP_HINT", "GL_TEXTURE_COMPRESSION_HINT"]);
    add(LIST, &["GL_LIST_BASE"]);
    add(TEXTURE, &["GL_ACTIVE_TEXTURE", "GL_TEXTURE_", "GL_S ", "GL_T ", "GL_R ", "GL_Q ", "GL_POINT_SPRITE"]);
    add(SCISSOR, &["GL_SCISSOR"]);
    add(MULTISAMPLE, &["GL_MULTISAMPLE", "GL_SAMPLE_", "GL_MIN_SAMPLE_"]);
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::gl::commands::COMMANDS;
    use crate::tools::gl::commands::effects::Of;

    #[test]
    fn every_initial_value_has_one_name() {
        let mut initial: Vec<_> = INITIAL.iter().map(|(name, _)| name).collect();
        initial.sort_unstable();
        initial.dedup();
        assert_eq!(initial.len(), INITIAL.len());
    }

    /// The table of commands says which groups save what a command sets.
    #[test]
    fn parameters_are_saved_with_the_commands_that_set_them() {
        let mut count = 0;
        for command in COMMANDS.iter().filter(|command| command.sets_only) {
            for (of, _) in command.parameters().flatten() {
                if let Of::Named(parameter) | Of::Indexed(parameter) = of {
                    assert_eq!(attribute_bits(parameter), command.groups, "{} {parameter}", command.stem);
                    count += 1;
                }
            }
        }
        assert!(count > 50, "{count}");
    }

    #[test]
    fn attributes_are_saved_by_their_groups() {
        assert_eq!(attribute_bits("GL_BLEND_SRC_RGB"), 0x4000);
        assert_eq!(attribute_bits("GL_SCISSOR_TEST"), 0x8_2000);
        assert_eq!(attribute_bits("GL_UNPACK_ALIGNMENT"), 0);
    }
}

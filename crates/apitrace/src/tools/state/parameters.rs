//! Which function sets which parameter, by the names `glGet` has for them, and their initial values (OpenGL 4.6
//! compatibility profile, chapter 23).

use crate::tools::gl::attribute_groups::{
    ACCUM, COLOR, CURRENT, DEPTH, FOG, HINT, LIGHTING, LINE, LIST, MULTISAMPLE, PIXEL, POINT, POLYGON, SCISSOR,
    STENCIL, TEXTURE, TRANSFORM, VIEWPORT, of_capability_named,
};

/// Where the value of a parameter is in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// An argument.
    One(usize),
    /// Several arguments in a row.
    List(usize, usize),
}

/// Which parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// This one.
    Named(&'static str),
    /// The one of that name with the index of the first argument.
    Indexed(&'static str),
    /// The one that the first argument names.
    First,
    /// The one that the second argument names, of the object or target that the first names.
    FirstSecond,
    /// As the one before, of the active texture unit.
    UnitFirstSecond,
}

/// A parameter that a function sets, and where from.
pub(super) type Setter = (Of, Source);

use Of::{First, FirstSecond, Indexed, Named, UnitFirstSecond};
use Source::{List, One};

/// The parameters a function sets, by its name without suffix.
pub(super) fn setters(stem: &str) -> Option<&'static [Setter]> {
    SETTERS.iter().find(|(names, _)| names.contains(&stem)).map(|(_, setters)| *setters)
}

#[rustfmt::skip]
const SETTERS: &[(&[&str], &[Setter])] = &[
    (&["glViewport"], &[(Named("GL_VIEWPORT"), List(0, 4))]),
    (&["glViewportIndexedf"], &[(Indexed("GL_VIEWPORT"), List(1, 4))]),
    (&["glViewportIndexedfv"], &[(Indexed("GL_VIEWPORT"), One(1))]),
    (&["glScissor"], &[(Named("GL_SCISSOR_BOX"), List(0, 4))]),
    (&["glScissorIndexed"], &[(Indexed("GL_SCISSOR_BOX"), List(1, 4))]),
    (&["glScissorIndexedv"], &[(Indexed("GL_SCISSOR_BOX"), One(1))]),
    (&["glClearColor"], &[(Named("GL_COLOR_CLEAR_VALUE"), List(0, 4))]),
    (&["glClearDepth", "glClearDepthf"], &[(Named("GL_DEPTH_CLEAR_VALUE"), One(0))]),
    (&["glClearStencil"], &[(Named("GL_STENCIL_CLEAR_VALUE"), One(0))]),
    (&["glClearIndex"], &[(Named("GL_INDEX_CLEAR_VALUE"), One(0))]),
    (&["glClearAccum"], &[(Named("GL_ACCUM_CLEAR_VALUE"), List(0, 4))]),
    (&["glDepthFunc"], &[(Named("GL_DEPTH_FUNC"), One(0))]),
    (&["glDepthMask"], &[(Named("GL_DEPTH_WRITEMASK"), One(0))]),
    (&["glDepthRange", "glDepthRangef"], &[(Named("GL_DEPTH_RANGE"), List(0, 2))]),
    (&["glDepthRangeIndexed", "glDepthRangeIndexedf"], &[(Indexed("GL_DEPTH_RANGE"), List(1, 2))]),
    (&["glDepthBounds", "glDepthBoundsd"], &[(Named("GL_DEPTH_BOUNDS_EXT"), List(0, 2))]),
    (&["glBlendFunc"], &[
        (Named("GL_BLEND_SRC"), One(0)), (Named("GL_BLEND_DST"), One(1)),
        (Named("GL_BLEND_SRC_RGB"), One(0)), (Named("GL_BLEND_DST_RGB"), One(1)),
        (Named("GL_BLEND_SRC_ALPHA"), One(0)), (Named("GL_BLEND_DST_ALPHA"), One(1)),
    ]),
    (&["glBlendFuncSeparate"], &[
        (Named("GL_BLEND_SRC"), One(0)), (Named("GL_BLEND_DST"), One(1)),
        (Named("GL_BLEND_SRC_RGB"), One(0)), (Named("GL_BLEND_DST_RGB"), One(1)),
        (Named("GL_BLEND_SRC_ALPHA"), One(2)), (Named("GL_BLEND_DST_ALPHA"), One(3)),
    ]),
    (&["glBlendFunci"], &[
        (Indexed("GL_BLEND_SRC_RGB"), One(1)), (Indexed("GL_BLEND_DST_RGB"), One(2)),
        (Indexed("GL_BLEND_SRC_ALPHA"), One(1)), (Indexed("GL_BLEND_DST_ALPHA"), One(2)),
    ]),
    (&["glBlendFuncSeparatei"], &[
        (Indexed("GL_BLEND_SRC_RGB"), One(1)), (Indexed("GL_BLEND_DST_RGB"), One(2)),
        (Indexed("GL_BLEND_SRC_ALPHA"), One(3)), (Indexed("GL_BLEND_DST_ALPHA"), One(4)),
    ]),
    (&["glBlendEquation"], &[(Named("GL_BLEND_EQUATION"), One(0)), (Named("GL_BLEND_EQUATION_ALPHA"), One(0))]),
    (&["glBlendEquationSeparate"],
     &[(Named("GL_BLEND_EQUATION"), One(0)), (Named("GL_BLEND_EQUATION_ALPHA"), One(1))]),
    (&["glBlendEquationi"],
     &[(Indexed("GL_BLEND_EQUATION"), One(1)), (Indexed("GL_BLEND_EQUATION_ALPHA"), One(1))]),
    (&["glBlendEquationSeparatei"],
     &[(Indexed("GL_BLEND_EQUATION"), One(1)), (Indexed("GL_BLEND_EQUATION_ALPHA"), One(2))]),
    (&["glBlendColor"], &[(Named("GL_BLEND_COLOR"), List(0, 4))]),
    (&["glColorMask"], &[(Named("GL_COLOR_WRITEMASK"), List(0, 4))]),
    (&["glColorMaski", "glColorMaskIndexed"], &[(Indexed("GL_COLOR_WRITEMASK"), List(1, 4))]),
    (&["glIndexMask"], &[(Named("GL_INDEX_WRITEMASK"), One(0))]),
    (&["glCullFace"], &[(Named("GL_CULL_FACE_MODE"), One(0))]),
    (&["glFrontFace"], &[(Named("GL_FRONT_FACE"), One(0))]),
    (&["glPolygonOffset"], &[(Named("GL_POLYGON_OFFSET_FACTOR"), One(0)), (Named("GL_POLYGON_OFFSET_UNITS"), One(1))]),
    (&["glPolygonOffsetClamp"], &[
        (Named("GL_POLYGON_OFFSET_FACTOR"), One(0)), (Named("GL_POLYGON_OFFSET_UNITS"), One(1)),
        (Named("GL_POLYGON_OFFSET_CLAMP"), One(2)),
    ]),
    (&["glLineWidth"], &[(Named("GL_LINE_WIDTH"), One(0))]),
    (&["glLineStipple"], &[(Named("GL_LINE_STIPPLE_REPEAT"), One(0)), (Named("GL_LINE_STIPPLE_PATTERN"), One(1))]),
    (&["glPointSize"], &[(Named("GL_POINT_SIZE"), One(0))]),
    (&["glShadeModel"], &[(Named("GL_SHADE_MODEL"), One(0))]),
    (&["glLogicOp"], &[(Named("GL_LOGIC_OP_MODE"), One(0))]),
    (&["glStencilFunc"], &[
        (Named("GL_STENCIL_FUNC"), One(0)), (Named("GL_STENCIL_REF"), One(1)), (Named("GL_STENCIL_VALUE_MASK"), One(2)),
        (Named("GL_STENCIL_BACK_FUNC"), One(0)), (Named("GL_STENCIL_BACK_REF"), One(1)),
        (Named("GL_STENCIL_BACK_VALUE_MASK"), One(2)),
    ]),
    (&["glStencilOp"], &[
        (Named("GL_STENCIL_FAIL"), One(0)), (Named("GL_STENCIL_PASS_DEPTH_FAIL"), One(1)),
        (Named("GL_STENCIL_PASS_DEPTH_PASS"), One(2)),
        (Named("GL_STENCIL_BACK_FAIL"), One(0)), (Named("GL_STENCIL_BACK_PASS_DEPTH_FAIL"), One(1)),
        (Named("GL_STENCIL_BACK_PASS_DEPTH_PASS"), One(2)),
    ]),
    (&["glStencilMask"], &[(Named("GL_STENCIL_WRITEMASK"), One(0)), (Named("GL_STENCIL_BACK_WRITEMASK"), One(0))]),
    (&["glAlphaFunc", "glAlphaFuncx"], &[(Named("GL_ALPHA_TEST_FUNC"), One(0)), (Named("GL_ALPHA_TEST_REF"), One(1))]),
    (&["glSampleCoverage"],
     &[(Named("GL_SAMPLE_COVERAGE_VALUE"), One(0)), (Named("GL_SAMPLE_COVERAGE_INVERT"), One(1))]),
    (&["glSampleMaski"], &[(Indexed("GL_SAMPLE_MASK_VALUE"), One(1))]),
    (&["glMinSampleShading"], &[(Named("GL_MIN_SAMPLE_SHADING_VALUE"), One(0))]),
    (&["glProvokingVertex"], &[(Named("GL_PROVOKING_VERTEX"), One(0))]),
    (&["glPrimitiveRestartIndex"], &[(Named("GL_PRIMITIVE_RESTART_INDEX"), One(0))]),
    (&["glClipControl"], &[(Named("GL_CLIP_ORIGIN"), One(0)), (Named("GL_CLIP_DEPTH_MODE"), One(1))]),
    (&["glActiveTexture"], &[(Named("GL_ACTIVE_TEXTURE"), One(0))]),
    (&["glClientActiveTexture"], &[(Named("GL_CLIENT_ACTIVE_TEXTURE"), One(0))]),
    (&["glMatrixMode"], &[(Named("GL_MATRIX_MODE"), One(0))]),
    (&["glListBase"], &[(Named("GL_LIST_BASE"), One(0))]),
    (&["glRenderMode"], &[(Named("GL_RENDER_MODE"), One(0))]),
    (&["glColorMaterial"], &[(Named("GL_COLOR_MATERIAL_FACE"), One(0)), (Named("GL_COLOR_MATERIAL_PARAMETER"), One(1))]),
    (&["glPixelZoom"], &[(Named("GL_ZOOM_X"), One(0)), (Named("GL_ZOOM_Y"), One(1))]),
    (&["glEdgeFlag"], &[(Named("GL_EDGE_FLAG"), One(0))]),
    (&["glNormal3f", "glNormal3d", "glNormal3i", "glNormal3s", "glNormal3b"], &[(Named("GL_CURRENT_NORMAL"), List(0, 3))]),
    (&["glNormal3fv", "glNormal3dv"], &[(Named("GL_CURRENT_NORMAL"), One(0))]),
    (&["glFogCoordf", "glFogCoordd"], &[(Named("GL_CURRENT_FOG_COORD"), One(0))]),
    (&["glHint", "glPixelTransferi", "glPixelTransferf", "glPointParameterf",
       "glPointParameterfv", "glPointParameteri", "glPointParameteriv", "glFogf", "glFogfv", "glFogi", "glFogiv",
       "glFogx", "glLightModelf", "glLightModelfv", "glLightModeli", "glLightModeliv", "glPatchParameteri",
       "glPatchParameterfv", "glClampColor"], &[(First, One(1))]),
    (&["glLightf", "glLightfv", "glLighti", "glLightiv", "glMaterialf", "glMaterialfv", "glMateriali", "glMaterialiv"],
     &[(FirstSecond, One(2))]),
    (&["glTexEnvf", "glTexEnvfv", "glTexEnvi", "glTexEnviv", "glTexGenf", "glTexGenfv", "glTexGend", "glTexGendv",
       "glTexGeni", "glTexGeniv"], &[(UnitFirstSecond, One(2))]),
    (&["glClipPlane", "glClipPlanef"], &[(First, One(1))]),
];

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

/// Functions without `gl`, and the groups that save what they set of parameters with a name.
#[cfg(test)]
pub(in crate::tools) fn saving_groups() -> impl Iterator<Item = (&'static str, u32)> {
    SETTERS.iter().flat_map(|(names, setters)| names.iter().map(move |name| (*name, *setters))).flat_map(
        |(name, setters)| {
            let named = setters.iter().filter_map(|(of, _)| match of {
                Named(parameter) | Indexed(parameter) => Some(*parameter),
                First | FirstSecond | UnitFirstSecond => None,
            });
            named.map(move |parameter| (name.trim_start_matches("gl"), attribute_bits(parameter)))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_unique_and_every_initial_value_has_one_name() {
        let mut names: Vec<_> = SETTERS.iter().flat_map(|(names, _)| names.iter()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let mut initial: Vec<_> = INITIAL.iter().map(|(name, _)| name).collect();
        initial.sort_unstable();
        initial.dedup();
        assert_eq!(initial.len(), INITIAL.len());
    }

    #[test]
    fn attributes_are_saved_by_their_groups() {
        assert_eq!(attribute_bits("GL_BLEND_SRC_RGB"), 0x4000);
        assert_eq!(attribute_bits("GL_SCISSOR_TEST"), 0x8_2000);
        assert_eq!(attribute_bits("GL_UNPACK_ALIGNMENT"), 0);
    }
}

//! The table of commands.

use super::Command;
use super::effects::Depends::{self, Object, Unit, VertexArray, VertexArrayAndBuffer};
use super::effects::Family::{
    self, ArrayPointer, BlendOfAll, BlendOfOne, BlockBinding, BufferBinding, CapabilityOfAll, CapabilityOfOne,
    ClientArray, ColorMaskOfAll, ColorMaskOfOne, Framebuffer, ImageBinding, IndexedBuffer, Program, SamplerBinding,
    SamplerParameter, TextureBinding, TextureEnvironment, ViewportOfAll, ViewportOfOne,
};
use super::effects::Form::{self, Plain, Twice};
use super::effects::Of::{First, FirstSecond, Indexed, Named, UnitFirstSecond};
use super::effects::Source::{List, One};
use super::effects::{Act, ObjectKind, On, Parameter, Setter};
use crate::tools::gl::attribute_groups::{
    ACCUM, COLOR, CURRENT, DEPTH, ENABLE, EVAL, FOG, HINT, LIGHTING, LINE, LIST, MULTISAMPLE, PIXEL, POINT, POLYGON,
    SCISSOR, STENCIL, STIPPLE, TEXTURE, TRANSFORM, VIEWPORT,
};

/// A command of which not all effects are state that it sets.
const fn command(stem: &'static str, selectors: u8) -> Command {
    Command { stem, selectors, sets_only: false, groups: 0, on: On::Nothing, act: None, parameters: &[] }
}

/// A command that sets state and does nothing else.
const fn state(stem: &'static str, selectors: u8, groups: u32) -> Command {
    Command { sets_only: true, groups, ..command(stem, selectors) }
}

impl Command {
    const fn on(self, on: On) -> Self {
        Self { on, ..self }
    }

    /// What the commands with these types do to state that is compared.
    const fn act(self, types: &'static [&'static str], act: Act) -> Self {
        let act = match act {
            Act::Set(setter) => Act::Set(Setter { keys: self.selectors, ..setter }),
            other => other,
        };
        Self { act: Some((types, act)), ..self }
    }

    /// The parameters that the commands with these types set.
    const fn sets(self, parameters: &'static [(&'static [&'static str], &'static [Parameter])]) -> Self {
        Self { parameters, ..self }
    }
}

/// The name is that of the stem.
const PLAIN: &[&str] = &[""];

/// One number or an array of them.
const NUMBERS: &[&str] = &["f", "fv", "i", "iv"];

const FIRST: &[Parameter] = &[(First, One(1))];
const FIRST_SECOND: &[Parameter] = &[(FirstSecond, One(2))];
const UNIT_FIRST_SECOND: &[Parameter] = &[(UnitFirstSecond, One(2))];

const fn set(family: Family, slot: u8) -> Setter {
    let (depends, form) = (Depends::Nothing, Form::Plain);
    Setter { family, slot, keys: 0, depends, form, mark: None, unsettles: None, names: None }
}

const fn fixed(slot: u8) -> Act {
    Act::Set(set(Family::Fixed, slot))
}

/// State that is set both for all and one by one: one way makes what the other set unknown.
const fn either(family: Family, slot: u8, form: Form, other: Family) -> Act {
    Act::Set(Setter { form, unsettles: Some(other), ..set(family, slot) })
}

const fn bind(family: Family, slot: u8, kind: ObjectKind) -> Act {
    Act::Set(Setter { names: Some(kind), ..set(family, slot) })
}

const fn on(depends: Depends, setter: Setter) -> Act {
    Act::Set(Setter { depends, ..setter })
}

const fn switch(depends: Depends, setter: Setter, mark: bool) -> Act {
    Act::Set(Setter { depends, mark: Some(mark), ..setter })
}

const fn unsettling(setter: Setter, other: Family) -> Setter {
    Setter { unsettles: Some(other), ..setter }
}

const fn sampler_parameter() -> Act {
    on(Object(ObjectKind::Sampler), set(SamplerParameter, 0))
}

const fn texture_parameter() -> Act {
    on(Object(ObjectKind::Texture), set(Family::TextureParameter, 0))
}

/// Sorted by stem.
#[rustfmt::skip]
pub(crate) const COMMANDS: &[Command] = &[
    state("ActiveStencilFace", 0, STENCIL),
    command("ActiveTexture", 0).act(PLAIN, Act::ActiveTexture)
        .sets(&[(PLAIN, &[(Named("GL_ACTIVE_TEXTURE"), One(0))])]),
    state("AlphaFunc", 0, COLOR).act(PLAIN, fixed(0))
        .sets(&[(&["", "x"], &[(Named("GL_ALPHA_TEST_FUNC"), One(0)), (Named("GL_ALPHA_TEST_REF"), One(1))])]),
    command("BindBuffer", 0).act(PLAIN, Act::BindBuffer),
    command("BindBufferBase", 0).act(PLAIN, Act::BindIndexed),
    command("BindBufferRange", 0).act(PLAIN, Act::BindIndexed),
    command("BindBuffersBase", 0).act(PLAIN, Act::Unsettle(&[IndexedBuffer])),
    command("BindBuffersRange", 0).act(PLAIN, Act::Unsettle(&[IndexedBuffer])),
    command("BindFramebuffer", 0).act(PLAIN, Act::BindFramebuffer),
    command("BindImageTexture", 1).act(PLAIN, bind(ImageBinding, 0, ObjectKind::Texture)),
    command("BindImageTextures", 0).act(PLAIN, Act::Unsettle(&[ImageBinding])),
    command("BindProgram", 1).act(PLAIN, fixed(1)),
    command("BindProgramPipeline", 0).act(PLAIN, bind(Program, 1, ObjectKind::Pipeline)),
    command("BindRenderbuffer", 1).act(PLAIN, bind(Framebuffer, 2, ObjectKind::Renderbuffer)),
    command("BindSampler", 1).act(PLAIN, bind(SamplerBinding, 0, ObjectKind::Sampler)),
    command("BindSamplers", 0).act(PLAIN, Act::Unsettle(&[SamplerBinding])),
    command("BindTexture", 0).act(PLAIN, Act::BindTexture),
    command("BindTextureUnit", 0).act(PLAIN, Act::Unsettle(&[TextureBinding])),
    command("BindTextures", 0).act(PLAIN, Act::Unsettle(&[TextureBinding])),
    command("BindTransformFeedback", 0).act(PLAIN, Act::Unsettle(&[BufferBinding, IndexedBuffer])),
    command("BindVertexArray", 0).act(PLAIN, Act::BindVertexArray),
    command("BindVertexBuffer", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    command("BindVertexBuffers", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    state("BlendBarrier", 0, 0),
    state("BlendColor", 0, COLOR).act(PLAIN, fixed(2)).sets(&[(PLAIN, &[(Named("GL_BLEND_COLOR"), List(0, 4))])]),
    state("BlendEquation", 0, COLOR).act(PLAIN, either(BlendOfAll, 0, Twice, BlendOfOne))
        .sets(&[(PLAIN, &[(Named("GL_BLEND_EQUATION"), One(0)), (Named("GL_BLEND_EQUATION_ALPHA"), One(0))])]),
    state("BlendEquationIndexed", 1, COLOR),
    state("BlendEquationSeparate", 0, COLOR).act(PLAIN, either(BlendOfAll, 0, Plain, BlendOfOne))
        .sets(&[(PLAIN, &[(Named("GL_BLEND_EQUATION"), One(0)), (Named("GL_BLEND_EQUATION_ALPHA"), One(1))])]),
    state("BlendEquationSeparateIndexed", 1, COLOR),
    state("BlendEquationSeparatei", 1, COLOR).act(PLAIN, either(BlendOfOne, 0, Plain, BlendOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_BLEND_EQUATION"), One(1)), (Indexed("GL_BLEND_EQUATION_ALPHA"), One(2))])]),
    state("BlendEquationi", 1, COLOR).act(PLAIN, either(BlendOfOne, 0, Twice, BlendOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_BLEND_EQUATION"), One(1)), (Indexed("GL_BLEND_EQUATION_ALPHA"), One(1))])]),
    state("BlendFunc", 0, COLOR).act(PLAIN, either(BlendOfAll, 1, Twice, BlendOfOne))
        .sets(&[(PLAIN, &[(Named("GL_BLEND_SRC"), One(0)), (Named("GL_BLEND_DST"), One(1)),
            (Named("GL_BLEND_SRC_RGB"), One(0)), (Named("GL_BLEND_DST_RGB"), One(1)),
            (Named("GL_BLEND_SRC_ALPHA"), One(0)), (Named("GL_BLEND_DST_ALPHA"), One(1))])]),
    state("BlendFuncIndexed", 1, COLOR),
    state("BlendFuncSeparate", 0, COLOR).act(PLAIN, either(BlendOfAll, 1, Plain, BlendOfOne))
        .sets(&[(PLAIN, &[(Named("GL_BLEND_SRC"), One(0)), (Named("GL_BLEND_DST"), One(1)),
            (Named("GL_BLEND_SRC_RGB"), One(0)), (Named("GL_BLEND_DST_RGB"), One(1)),
            (Named("GL_BLEND_SRC_ALPHA"), One(2)), (Named("GL_BLEND_DST_ALPHA"), One(3))])]),
    state("BlendFuncSeparateIndexed", 1, COLOR),
    state("BlendFuncSeparatei", 1, COLOR).act(PLAIN, either(BlendOfOne, 1, Plain, BlendOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_BLEND_SRC_RGB"), One(1)), (Indexed("GL_BLEND_DST_RGB"), One(2)),
            (Indexed("GL_BLEND_SRC_ALPHA"), One(3)), (Indexed("GL_BLEND_DST_ALPHA"), One(4))])]),
    state("BlendFunci", 1, COLOR).act(PLAIN, either(BlendOfOne, 1, Twice, BlendOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_BLEND_SRC_RGB"), One(1)), (Indexed("GL_BLEND_DST_RGB"), One(2)),
            (Indexed("GL_BLEND_SRC_ALPHA"), One(1)), (Indexed("GL_BLEND_DST_ALPHA"), One(2))])]),
    state("BlendParameter", 1, COLOR),
    command("CallList", 0).act(PLAIN, Act::UnsettleAll),
    command("CallLists", 0).act(PLAIN, Act::UnsettleAll),
    state("ClampColor", 1, COLOR | ENABLE).sets(&[(PLAIN, FIRST)]),
    state("ClearAccum", 0, ACCUM).act(PLAIN, fixed(3))
        .sets(&[(PLAIN, &[(Named("GL_ACCUM_CLEAR_VALUE"), List(0, 4))])]),
    state("ClearColor", 0, COLOR).act(PLAIN, fixed(4))
        .sets(&[(PLAIN, &[(Named("GL_COLOR_CLEAR_VALUE"), List(0, 4))])]),
    state("ClearDepth", 0, DEPTH).act(&["", "f"], fixed(5))
        .sets(&[(&["", "f"], &[(Named("GL_DEPTH_CLEAR_VALUE"), One(0))])]),
    state("ClearIndex", 0, COLOR).sets(&[(PLAIN, &[(Named("GL_INDEX_CLEAR_VALUE"), One(0))])]),
    state("ClearStencil", 0, STENCIL).act(PLAIN, fixed(6))
        .sets(&[(PLAIN, &[(Named("GL_STENCIL_CLEAR_VALUE"), One(0))])]),
    command("ClientActiveTexture", 0).act(PLAIN, fixed(7))
        .sets(&[(PLAIN, &[(Named("GL_CLIENT_ACTIVE_TEXTURE"), One(0))])]),
    command("ClientAttribDefault", 0).act(PLAIN, Act::UnsettleAll),
    state("ClipControl", 0, TRANSFORM).act(PLAIN, fixed(8))
        .sets(&[(PLAIN, &[(Named("GL_CLIP_ORIGIN"), One(0)), (Named("GL_CLIP_DEPTH_MODE"), One(1))])]),
    state("ClipPlane", 1, TRANSFORM).on(On::ModelView).sets(&[(&["", "f"], FIRST)]),
    state("Color", 0, CURRENT),
    state("ColorMask", 0, COLOR).act(PLAIN, either(ColorMaskOfAll, 0, Plain, ColorMaskOfOne))
        .sets(&[(PLAIN, &[(Named("GL_COLOR_WRITEMASK"), List(0, 4))])]),
    state("ColorMaskIndexed", 1, COLOR).act(PLAIN, either(ColorMaskOfOne, 0, Plain, ColorMaskOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_COLOR_WRITEMASK"), List(1, 4))])]),
    state("ColorMaski", 1, COLOR).act(PLAIN, either(ColorMaskOfOne, 0, Plain, ColorMaskOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_COLOR_WRITEMASK"), List(1, 4))])]),
    state("ColorMaterial", 0, LIGHTING)
        .sets(&[(PLAIN, &[(Named("GL_COLOR_MATERIAL_FACE"), One(0)),
            (Named("GL_COLOR_MATERIAL_PARAMETER"), One(1))])]),
    state("ColorP", 0, CURRENT),
    state("CombinerInput", 4, TEXTURE),
    state("CombinerOutput", 2, TEXTURE),
    state("CombinerParameter", 1, TEXTURE),
    state("CombinerStageParameter", 2, TEXTURE),
    state("ConservativeRasterParameter", 1, 0),
    state("CoverageModulation", 0, 0),
    state("CullFace", 0, POLYGON).act(PLAIN, fixed(9)).sets(&[(PLAIN, &[(Named("GL_CULL_FACE_MODE"), One(0))])]),
    state("DepthBounds", 0, DEPTH).sets(&[(&["", "d"], &[(Named("GL_DEPTH_BOUNDS_EXT"), List(0, 2))])]),
    state("DepthFunc", 0, DEPTH).act(PLAIN, fixed(10)).sets(&[(PLAIN, &[(Named("GL_DEPTH_FUNC"), One(0))])]),
    state("DepthMask", 0, DEPTH).act(PLAIN, fixed(11)).sets(&[(PLAIN, &[(Named("GL_DEPTH_WRITEMASK"), One(0))])]),
    state("DepthRange", 0, VIEWPORT).act(&["", "f"], either(ViewportOfAll, 0, Plain, ViewportOfOne))
        .sets(&[(&["", "f"], &[(Named("GL_DEPTH_RANGE"), List(0, 2))])]),
    state("DepthRangeArray", 2, VIEWPORT).act(&["v"], Act::Unsettle(&[ViewportOfAll, ViewportOfOne])),
    state("DepthRangeIndexed", 1, VIEWPORT).act(PLAIN, either(ViewportOfOne, 0, Plain, ViewportOfAll))
        .sets(&[(&["", "f"], &[(Indexed("GL_DEPTH_RANGE"), List(1, 2))])]),
    state("Disable", 1, ENABLE).act(PLAIN, Act::Capability(false)),
    command("DisableClientState", 1).act(PLAIN, switch(VertexArray, set(ClientArray, 0), false)),
    state("DisableIndexed", 2, ENABLE)
        .act(PLAIN, switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0), CapabilityOfAll), false)),
    command("DisableVertexAttribArray", 1).act(PLAIN, switch(VertexArray, set(ClientArray, 1), false)),
    state("Disablei", 2, ENABLE)
        .act(PLAIN, switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0), CapabilityOfAll), false)),
    state("EdgeFlag", 0, CURRENT).sets(&[(PLAIN, &[(Named("GL_EDGE_FLAG"), One(0))])]),
    state("Enable", 1, ENABLE).act(PLAIN, Act::Capability(true)),
    command("EnableClientState", 1).act(PLAIN, switch(VertexArray, set(ClientArray, 0), true)),
    state("EnableIndexed", 2, ENABLE)
        .act(PLAIN, switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0), CapabilityOfAll), true)),
    command("EnableVertexAttribArray", 1).act(PLAIN, switch(VertexArray, set(ClientArray, 1), true)),
    state("Enablei", 2, ENABLE)
        .act(PLAIN, switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0), CapabilityOfAll), true)),
    command("EndList", 0).act(PLAIN, Act::EndList),
    state("FinalCombinerInput", 1, TEXTURE),
    state("Fog", 1, FOG).act(NUMBERS, fixed(12)).sets(&[(&["f", "fv", "i", "iv", "x"], FIRST)]),
    state("FogCoord", 0, CURRENT).sets(&[(&["f", "d"], &[(Named("GL_CURRENT_FOG_COORD"), One(0))])]),
    state("FramebufferFetchBarrier", 0, 0),
    state("FrontFace", 0, POLYGON).act(PLAIN, fixed(13)).sets(&[(PLAIN, &[(Named("GL_FRONT_FACE"), One(0))])]),
    state("Hint", 1, HINT).act(PLAIN, fixed(14)).sets(&[(PLAIN, FIRST)]),
    state("Index", 0, CURRENT),
    state("IndexMask", 0, COLOR).sets(&[(PLAIN, &[(Named("GL_INDEX_WRITEMASK"), One(0))])]),
    command("InterleavedArrays", 0).act(PLAIN, Act::Unsettle(&[ClientArray, ArrayPointer])),
    state("Light", 2, LIGHTING).on(On::ModelView).sets(&[(NUMBERS, FIRST_SECOND)]),
    state("LightModel", 1, LIGHTING).act(NUMBERS, fixed(15)).sets(&[(NUMBERS, FIRST)]),
    state("LineStipple", 0, LINE).act(PLAIN, fixed(16))
        .sets(&[(PLAIN, &[(Named("GL_LINE_STIPPLE_REPEAT"), One(0)), (Named("GL_LINE_STIPPLE_PATTERN"), One(1))])]),
    state("LineWidth", 0, LINE).act(PLAIN, fixed(17)).sets(&[(PLAIN, &[(Named("GL_LINE_WIDTH"), One(0))])]),
    command("LinkProgram", 0).act(PLAIN, Act::Renew(ObjectKind::Program)),
    state("ListBase", 0, LIST).sets(&[(PLAIN, &[(Named("GL_LIST_BASE"), One(0))])]),
    state("LogicOp", 0, COLOR).act(PLAIN, fixed(18)).sets(&[(PLAIN, &[(Named("GL_LOGIC_OP_MODE"), One(0))])]),
    state("Map", 1, EVAL),
    state("MapGrid", 0, EVAL),
    state("Material", 2, LIGHTING).sets(&[(NUMBERS, FIRST_SECOND)]),
    command("MatrixMode", 0).act(PLAIN, fixed(19)).sets(&[(PLAIN, &[(Named("GL_MATRIX_MODE"), One(0))])]),
    state("MaxShaderCompilerThreads", 0, 0),
    state("MinSampleShading", 0, MULTISAMPLE).act(PLAIN, fixed(20))
        .sets(&[(PLAIN, &[(Named("GL_MIN_SAMPLE_SHADING_VALUE"), One(0))])]),
    state("MultiTexCoord", 1, CURRENT),
    state("MultiTexCoordP", 1, CURRENT),
    state("MultiTexEnv", 3, TEXTURE),
    state("MultiTexGen", 3, TEXTURE).on(On::ModelView),
    command("NewList", 0).act(PLAIN, Act::NewList),
    state("Normal", 0, CURRENT)
        .sets(&[(&["3f", "3d", "3i", "3s", "3b"], &[(Named("GL_CURRENT_NORMAL"), List(0, 3))]),
            (&["3fv", "3dv"], &[(Named("GL_CURRENT_NORMAL"), One(0))])]),
    state("NormalP", 0, CURRENT),
    state("PatchParameter", 1, 0).act(&["i"], fixed(21)).sets(&[(&["i", "fv"], FIRST)]),
    state("PixelMap", 1, PIXEL),
    command("PixelStore", 1).act(&["f", "i"], fixed(22)),
    state("PixelTransfer", 1, PIXEL).sets(&[(&["i", "f"], FIRST)]),
    state("PixelTransformParameter", 2, PIXEL),
    state("PixelZoom", 0, PIXEL).act(PLAIN, fixed(23))
        .sets(&[(PLAIN, &[(Named("GL_ZOOM_X"), One(0)), (Named("GL_ZOOM_Y"), One(1))])]),
    state("PointParameter", 1, POINT).act(&["f", "i"], fixed(24)).sets(&[(NUMBERS, FIRST)]),
    state("PointSize", 0, POINT).act(PLAIN, fixed(25)).sets(&[(PLAIN, &[(Named("GL_POINT_SIZE"), One(0))])]),
    state("PolygonMode", 1, POLYGON).act(PLAIN, Act::Faced { slot: 0, has_face: true }),
    state("PolygonOffset", 0, POLYGON).act(PLAIN, fixed(26))
        .sets(&[(PLAIN, &[(Named("GL_POLYGON_OFFSET_FACTOR"), One(0)), (Named("GL_POLYGON_OFFSET_UNITS"), One(1))])]),
    state("PolygonOffsetClamp", 0, POLYGON)
        .sets(&[(PLAIN, &[(Named("GL_POLYGON_OFFSET_FACTOR"), One(0)), (Named("GL_POLYGON_OFFSET_UNITS"), One(1)),
            (Named("GL_POLYGON_OFFSET_CLAMP"), One(2))])]),
    state("PolygonStipple", 0, STIPPLE),
    command("PopAttrib", 0).act(PLAIN, Act::UnsettleAll),
    command("PopClientAttrib", 0).act(PLAIN, Act::UnsettleAll),
    state("PrimitiveBoundingBox", 0, 0),
    state("PrimitiveRestartIndex", 0, 0).act(PLAIN, fixed(27))
        .sets(&[(PLAIN, &[(Named("GL_PRIMITIVE_RESTART_INDEX"), One(0))])]),
    command("ProgramBinary", 0).act(PLAIN, Act::Renew(ObjectKind::Program)),
    state("ProgramEnvParameter", 2, 0),
    state("ProgramEnvParameters", 3, 0),
    state("ProvokingVertex", 0, LIGHTING).act(PLAIN, fixed(28))
        .sets(&[(PLAIN, &[(Named("GL_PROVOKING_VERTEX"), One(0))])]),
    command("PushClientAttribDefault", 0).act(PLAIN, Act::UnsettleAll),
    state("RasterPos", 0, CURRENT).on(On::Everything),
    state("RasterSamples", 0, MULTISAMPLE),
    command("RenderMode", 0).sets(&[(PLAIN, &[(Named("GL_RENDER_MODE"), One(0))])]),
    state("SampleCoverage", 0, MULTISAMPLE).act(PLAIN, fixed(29))
        .sets(&[(PLAIN, &[(Named("GL_SAMPLE_COVERAGE_VALUE"), One(0)),
            (Named("GL_SAMPLE_COVERAGE_INVERT"), One(1))])]),
    state("SampleMask", 0, MULTISAMPLE),
    state("SampleMaskIndexed", 1, MULTISAMPLE),
    state("SampleMaski", 1, MULTISAMPLE).act(PLAIN, fixed(30))
        .sets(&[(PLAIN, &[(Indexed("GL_SAMPLE_MASK_VALUE"), One(1))])]),
    state("SamplePattern", 0, MULTISAMPLE),
    command("SamplerParameter", 2).act(NUMBERS, sampler_parameter()),
    state("Scissor", 0, SCISSOR).act(PLAIN, either(ViewportOfAll, 1, Plain, ViewportOfOne))
        .sets(&[(PLAIN, &[(Named("GL_SCISSOR_BOX"), List(0, 4))])]),
    state("ScissorArray", 2, SCISSOR).act(&["v"], Act::Unsettle(&[ViewportOfAll, ViewportOfOne])),
    state("ScissorIndexed", 1, SCISSOR).act(&["", "v"], either(ViewportOfOne, 1, Plain, ViewportOfAll))
        .sets(&[(PLAIN, &[(Indexed("GL_SCISSOR_BOX"), List(1, 4))]),
            (&["v"], &[(Indexed("GL_SCISSOR_BOX"), One(1))])]),
    state("SecondaryColor", 0, CURRENT),
    state("SecondaryColorP", 0, CURRENT),
    state("ShadeModel", 0, LIGHTING).act(PLAIN, fixed(31)).sets(&[(PLAIN, &[(Named("GL_SHADE_MODEL"), One(0))])]),
    state("ShadingRate", 0, 0),
    state("StencilClearTag", 0, STENCIL),
    state("StencilFunc", 0, STENCIL).act(PLAIN, Act::Faced { slot: 1, has_face: false })
        .sets(&[(PLAIN, &[(Named("GL_STENCIL_FUNC"), One(0)), (Named("GL_STENCIL_REF"), One(1)),
            (Named("GL_STENCIL_VALUE_MASK"), One(2)), (Named("GL_STENCIL_BACK_FUNC"), One(0)),
            (Named("GL_STENCIL_BACK_REF"), One(1)), (Named("GL_STENCIL_BACK_VALUE_MASK"), One(2))])]),
    state("StencilFuncSeparate", 1, STENCIL).act(PLAIN, Act::Faced { slot: 1, has_face: true }),
    state("StencilMask", 0, STENCIL).act(PLAIN, Act::Faced { slot: 2, has_face: false })
        .sets(&[(PLAIN, &[(Named("GL_STENCIL_WRITEMASK"), One(0)), (Named("GL_STENCIL_BACK_WRITEMASK"), One(0))])]),
    state("StencilMaskSeparate", 1, STENCIL).act(PLAIN, Act::Faced { slot: 2, has_face: true }),
    state("StencilOp", 0, STENCIL).act(PLAIN, Act::Faced { slot: 3, has_face: false })
        .sets(&[(PLAIN, &[(Named("GL_STENCIL_FAIL"), One(0)), (Named("GL_STENCIL_PASS_DEPTH_FAIL"), One(1)),
            (Named("GL_STENCIL_PASS_DEPTH_PASS"), One(2)), (Named("GL_STENCIL_BACK_FAIL"), One(0)),
            (Named("GL_STENCIL_BACK_PASS_DEPTH_FAIL"), One(1)), (Named("GL_STENCIL_BACK_PASS_DEPTH_PASS"), One(2))])]),
    state("StencilOpSeparate", 1, STENCIL).act(PLAIN, Act::Faced { slot: 3, has_face: true }),
    state("TexCoord", 0, CURRENT),
    state("TexCoordP", 0, CURRENT),
    state("TexEnv", 2, TEXTURE).on(On::Unit).act(NUMBERS, on(Unit, set(TextureEnvironment, 0)))
        .sets(&[(NUMBERS, UNIT_FIRST_SECOND)]),
    state("TexGen", 2, TEXTURE).on(On::ModelView).sets(&[(&["f", "fv", "d", "dv", "i", "iv"], UNIT_FIRST_SECOND)]),
    command("TexParameter", 0).act(NUMBERS, Act::TextureParameter),
    command("TextureParameter", 2).act(NUMBERS, texture_parameter()),
    command("UniformBlockBinding", 2).act(PLAIN, on(Object(ObjectKind::Program), set(BlockBinding, 0))),
    command("UseProgram", 0).act(PLAIN, Act::UseProgram),
    command("UseProgramObject", 0).act(PLAIN, Act::UseProgram),
    state("VertexAttrib", 1, CURRENT),
    command("VertexAttribBinding", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    command("VertexAttribDivisor", 1).act(PLAIN, on(VertexArray, set(ArrayPointer, 1))),
    command("VertexAttribFormat", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    state("VertexAttribI", 1, CURRENT),
    command("VertexAttribIFormat", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    command("VertexAttribIPointer", 1).act(PLAIN, on(VertexArrayAndBuffer, set(ArrayPointer, 2))),
    state("VertexAttribL", 1, CURRENT),
    command("VertexAttribLFormat", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    state("VertexAttribP", 1, CURRENT),
    command("VertexAttribPointer", 1).act(PLAIN, on(VertexArrayAndBuffer, set(ArrayPointer, 0))),
    command("VertexBindingDivisor", 0).act(PLAIN, Act::Unsettle(&[ArrayPointer])),
    state("Viewport", 0, VIEWPORT).act(PLAIN, either(ViewportOfAll, 2, Plain, ViewportOfOne))
        .sets(&[(PLAIN, &[(Named("GL_VIEWPORT"), List(0, 4))])]),
    state("ViewportArray", 2, VIEWPORT).act(&["v"], Act::Unsettle(&[ViewportOfAll, ViewportOfOne])),
    state("ViewportIndexed", 1, VIEWPORT).act(&["f", "fv"], either(ViewportOfOne, 2, Plain, ViewportOfAll))
        .sets(&[(&["f"], &[(Indexed("GL_VIEWPORT"), List(1, 4))]), (&["fv"], &[(Indexed("GL_VIEWPORT"), One(1))])]),
    state("WindowPos", 0, CURRENT).on(On::Everything),
];

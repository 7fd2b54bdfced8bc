//! The tables of functions and their effects on the state.

use super::rules::Depends::{self, Object, Unit, VertexArray, VertexArrayAndBuffer};
use super::rules::Family::{
    self, ArrayPointer, BlendOfAll, BlendOfOne, BlockBinding, BufferBinding, CapabilityOfAll, CapabilityOfOne,
    ClientArray, ColorMaskOfAll, ColorMaskOfOne, Framebuffer, ImageBinding, IndexedBuffer, Program, SamplerBinding,
    SamplerParameter, TextureBinding, TextureEnvironment, ViewportOfAll, ViewportOfOne,
};
use super::rules::Form::{self, Plain, Twice};
use super::rules::{Act, ObjectKind, Setter};

const fn set(family: Family, slot: u8, keys: u8) -> Setter {
    let (depends, form) = (Depends::Nothing, Form::Plain);
    Setter { family, slot, keys, depends, form, mark: None, unsettles: None, names: None }
}

const fn fixed(slot: u8, keys: u8) -> Act {
    Act::Set(set(Family::Fixed, slot, keys))
}

const fn of_all(family: Family, slot: u8, form: Form, other: Family) -> Act {
    Act::Set(Setter { form, unsettles: Some(other), ..set(family, slot, 0) })
}

const fn of_one(family: Family, slot: u8, form: Form, other: Family) -> Act {
    Act::Set(Setter { form, unsettles: Some(other), ..set(family, slot, 1) })
}

const fn bind(family: Family, slot: u8, keys: u8, kind: ObjectKind) -> Act {
    Act::Set(Setter { names: Some((keys, kind)), ..set(family, slot, keys) })
}

const fn on(depends: Depends, setter: Setter) -> Act {
    Act::Set(Setter { depends, ..setter })
}

const fn switch(depends: Depends, setter: Setter, mark: bool) -> Act {
    Act::Set(Setter { depends, mark: Some(mark), ..setter })
}

const fn sampler_parameter() -> Act {
    on(Object(ObjectKind::Sampler), set(SamplerParameter, 0, 2))
}

const fn texture_parameter() -> Act {
    on(Object(ObjectKind::Texture), set(Family::TextureParameter, 0, 2))
}

/// OpenGL, without vendors' suffixes; sorted.
pub(super) const GL: &[(&str, Act)] = &[
    ("ActiveTexture", Act::ActiveTexture),
    ("AlphaFunc", fixed(0, 0)),
    ("BindBuffer", Act::BindBuffer),
    ("BindBufferBase", Act::BindIndexed),
    ("BindBufferRange", Act::BindIndexed),
    ("BindBuffersBase", Act::Unsettle(&[IndexedBuffer])),
    ("BindBuffersRange", Act::Unsettle(&[IndexedBuffer])),
    ("BindFramebuffer", Act::BindFramebuffer),
    ("BindImageTexture", bind(ImageBinding, 0, 1, ObjectKind::Texture)),
    ("BindImageTextures", Act::Unsettle(&[ImageBinding])),
    ("BindProgram", fixed(1, 1)),
    ("BindProgramPipeline", bind(Program, 1, 0, ObjectKind::Pipeline)),
    ("BindRenderbuffer", bind(Framebuffer, 2, 1, ObjectKind::Renderbuffer)),
    ("BindSampler", bind(SamplerBinding, 0, 1, ObjectKind::Sampler)),
    ("BindSamplers", Act::Unsettle(&[SamplerBinding])),
    ("BindTexture", Act::BindTexture),
    ("BindTextureUnit", Act::Unsettle(&[TextureBinding])),
    ("BindTextures", Act::Unsettle(&[TextureBinding])),
    ("BindTransformFeedback", Act::Unsettle(&[BufferBinding, IndexedBuffer])),
    ("BindVertexArray", Act::BindVertexArray),
    ("BindVertexBuffer", Act::Unsettle(&[ArrayPointer])),
    ("BindVertexBuffers", Act::Unsettle(&[ArrayPointer])),
    ("BlendColor", fixed(2, 0)),
    ("BlendEquation", of_all(BlendOfAll, 0, Twice, BlendOfOne)),
    ("BlendEquationSeparate", of_all(BlendOfAll, 0, Plain, BlendOfOne)),
    ("BlendEquationSeparatei", of_one(BlendOfOne, 0, Plain, BlendOfAll)),
    ("BlendEquationi", of_one(BlendOfOne, 0, Twice, BlendOfAll)),
    ("BlendFunc", of_all(BlendOfAll, 1, Twice, BlendOfOne)),
    ("BlendFuncSeparate", of_all(BlendOfAll, 1, Plain, BlendOfOne)),
    ("BlendFuncSeparatei", of_one(BlendOfOne, 1, Plain, BlendOfAll)),
    ("BlendFunci", of_one(BlendOfOne, 1, Twice, BlendOfAll)),
    ("CallList", Act::UnsettleAll),
    ("CallLists", Act::UnsettleAll),
    ("ClearAccum", fixed(3, 0)),
    ("ClearColor", fixed(4, 0)),
    ("ClearDepth", fixed(5, 0)),
    ("ClearDepthf", fixed(5, 0)),
    ("ClearStencil", fixed(6, 0)),
    ("ClientActiveTexture", fixed(7, 0)),
    ("ClientAttribDefault", Act::UnsettleAll),
    ("ClipControl", fixed(8, 0)),
    ("ColorMask", of_all(ColorMaskOfAll, 0, Plain, ColorMaskOfOne)),
    ("ColorMaskIndexed", of_one(ColorMaskOfOne, 0, Plain, ColorMaskOfAll)),
    ("ColorMaski", of_one(ColorMaskOfOne, 0, Plain, ColorMaskOfAll)),
    ("CullFace", fixed(9, 0)),
    ("DeleteBuffers", Act::Delete(ObjectKind::Buffer)),
    ("DeleteFramebuffers", Act::Delete(ObjectKind::Framebuffer)),
    ("DeleteObject", Act::Renew(ObjectKind::Program)),
    ("DeleteProgram", Act::Renew(ObjectKind::Program)),
    ("DeleteProgramPipelines", Act::Delete(ObjectKind::Pipeline)),
    ("DeletePrograms", Act::Unsettle(&[Family::Fixed])),
    ("DeleteRenderbuffers", Act::Delete(ObjectKind::Renderbuffer)),
    ("DeleteSamplers", Act::Delete(ObjectKind::Sampler)),
    ("DeleteTextures", Act::Delete(ObjectKind::Texture)),
    ("DeleteVertexArrays", Act::Delete(ObjectKind::VertexArray)),
    ("DepthFunc", fixed(10, 0)),
    ("DepthMask", fixed(11, 0)),
    ("DepthRange", of_all(ViewportOfAll, 0, Plain, ViewportOfOne)),
    ("DepthRangeArrayv", Act::Unsettle(&[ViewportOfAll, ViewportOfOne])),
    ("DepthRangeIndexed", of_one(ViewportOfOne, 0, Plain, ViewportOfAll)),
    ("DepthRangef", of_all(ViewportOfAll, 0, Plain, ViewportOfOne)),
    ("Disable", Act::Capability(false)),
    ("DisableClientState", switch(VertexArray, set(ClientArray, 0, 1), false)),
    ("DisableIndexed", switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0, 2), CapabilityOfAll), false)),
    ("DisableVertexAttribArray", switch(VertexArray, set(ClientArray, 1, 1), false)),
    ("Disablei", switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0, 2), CapabilityOfAll), false)),
    ("Enable", Act::Capability(true)),
    ("EnableClientState", switch(VertexArray, set(ClientArray, 0, 1), true)),
    ("EnableIndexed", switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0, 2), CapabilityOfAll), true)),
    ("EnableVertexAttribArray", switch(VertexArray, set(ClientArray, 1, 1), true)),
    ("Enablei", switch(Depends::Nothing, unsettling(set(CapabilityOfOne, 0, 2), CapabilityOfAll), true)),
    ("EndList", Act::EndList),
    ("Fogf", fixed(12, 1)),
    ("Fogfv", fixed(12, 1)),
    ("Fogi", fixed(12, 1)),
    ("Fogiv", fixed(12, 1)),
    ("FrontFace", fixed(13, 0)),
    ("Hint", fixed(14, 1)),
    ("InterleavedArrays", Act::Unsettle(&[ClientArray, ArrayPointer])),
    ("LightModelf", fixed(15, 1)),
    ("LightModelfv", fixed(15, 1)),
    ("LightModeli", fixed(15, 1)),
    ("LightModeliv", fixed(15, 1)),
    ("LineStipple", fixed(16, 0)),
    ("LineWidth", fixed(17, 0)),
    ("LinkProgram", Act::Renew(ObjectKind::Program)),
    ("LogicOp", fixed(18, 0)),
    ("MatrixMode", fixed(19, 0)),
    ("MinSampleShading", fixed(20, 0)),
    ("NewList", Act::NewList),
    ("PatchParameteri", fixed(21, 1)),
    ("PixelStoref", fixed(22, 1)),
    ("PixelStorei", fixed(22, 1)),
    ("PixelZoom", fixed(23, 0)),
    ("PointParameterf", fixed(24, 1)),
    ("PointParameteri", fixed(24, 1)),
    ("PointSize", fixed(25, 0)),
    ("PolygonMode", Act::Faced { slot: 0, has_face: true }),
    ("PolygonOffset", fixed(26, 0)),
    ("PopAttrib", Act::UnsettleAll),
    ("PopClientAttrib", Act::UnsettleAll),
    ("PrimitiveRestartIndex", fixed(27, 0)),
    ("ProgramBinary", Act::Renew(ObjectKind::Program)),
    ("ProvokingVertex", fixed(28, 0)),
    ("PushClientAttribDefault", Act::UnsettleAll),
    ("SampleCoverage", fixed(29, 0)),
    ("SampleMaski", fixed(30, 1)),
    ("SamplerParameterf", sampler_parameter()),
    ("SamplerParameterfv", sampler_parameter()),
    ("SamplerParameteri", sampler_parameter()),
    ("SamplerParameteriv", sampler_parameter()),
    ("Scissor", of_all(ViewportOfAll, 1, Plain, ViewportOfOne)),
    ("ScissorArrayv", Act::Unsettle(&[ViewportOfAll, ViewportOfOne])),
    ("ScissorIndexed", of_one(ViewportOfOne, 1, Plain, ViewportOfAll)),
    ("ScissorIndexedv", of_one(ViewportOfOne, 1, Plain, ViewportOfAll)),
    ("ShadeModel", fixed(31, 0)),
    ("StencilFunc", Act::Faced { slot: 1, has_face: false }),
    ("StencilFuncSeparate", Act::Faced { slot: 1, has_face: true }),
    ("StencilMask", Act::Faced { slot: 2, has_face: false }),
    ("StencilMaskSeparate", Act::Faced { slot: 2, has_face: true }),
    ("StencilOp", Act::Faced { slot: 3, has_face: false }),
    ("StencilOpSeparate", Act::Faced { slot: 3, has_face: true }),
    ("TexEnvf", on(Unit, set(TextureEnvironment, 0, 2))),
    ("TexEnvfv", on(Unit, set(TextureEnvironment, 0, 2))),
    ("TexEnvi", on(Unit, set(TextureEnvironment, 0, 2))),
    ("TexEnviv", on(Unit, set(TextureEnvironment, 0, 2))),
    ("TexParameterf", Act::TextureParameter),
    ("TexParameterfv", Act::TextureParameter),
    ("TexParameteri", Act::TextureParameter),
    ("TexParameteriv", Act::TextureParameter),
    ("TextureParameterf", texture_parameter()),
    ("TextureParameterfv", texture_parameter()),
    ("TextureParameteri", texture_parameter()),
    ("TextureParameteriv", texture_parameter()),
    ("UniformBlockBinding", on(Object(ObjectKind::Program), set(BlockBinding, 0, 2))),
    ("UseProgram", Act::UseProgram),
    ("UseProgramObject", Act::UseProgram),
    ("VertexAttribBinding", Act::Unsettle(&[ArrayPointer])),
    ("VertexAttribDivisor", on(VertexArray, set(ArrayPointer, 1, 1))),
    ("VertexAttribFormat", Act::Unsettle(&[ArrayPointer])),
    ("VertexAttribIFormat", Act::Unsettle(&[ArrayPointer])),
    ("VertexAttribIPointer", on(VertexArrayAndBuffer, set(ArrayPointer, 2, 1))),
    ("VertexAttribLFormat", Act::Unsettle(&[ArrayPointer])),
    ("VertexAttribPointer", on(VertexArrayAndBuffer, set(ArrayPointer, 0, 1))),
    ("VertexBindingDivisor", Act::Unsettle(&[ArrayPointer])),
    ("Viewport", of_all(ViewportOfAll, 2, Plain, ViewportOfOne)),
    ("ViewportArrayv", Act::Unsettle(&[ViewportOfAll, ViewportOfOne])),
    ("ViewportIndexedf", of_one(ViewportOfOne, 2, Plain, ViewportOfAll)),
    ("ViewportIndexedfv", of_one(ViewportOfOne, 2, Plain, ViewportOfAll)),
];

const fn unsettling(setter: Setter, other: Family) -> Setter {
    Setter { unsettles: Some(other), ..setter }
}

/// Functions of the window systems, by full name.
pub(super) const CONTEXTS: &[(&str, Act)] = &[
    ("CGLDestroyContext", Act::DestroyContext(0)),
    ("CGLSetCurrentContext", Act::MakeCurrent { at: 0, is_zero_success: true }),
    ("eglDestroyContext", Act::DestroyContext(1)),
    ("eglMakeCurrent", Act::MakeCurrent { at: 3, is_zero_success: false }),
    ("glXCopyContext", Act::UnsettleAll),
    ("glXDestroyContext", Act::DestroyContext(1)),
    ("glXMakeContextCurrent", Act::MakeCurrent { at: 3, is_zero_success: false }),
    ("glXMakeCurrent", Act::MakeCurrent { at: 2, is_zero_success: false }),
    ("glXMakeCurrentReadSGI", Act::MakeCurrent { at: 3, is_zero_success: false }),
    ("wglDeleteContext", Act::DestroyContext(0)),
    ("wglMakeContextCurrentARB", Act::MakeCurrent { at: 2, is_zero_success: false }),
    ("wglMakeContextCurrentEXT", Act::MakeCurrent { at: 2, is_zero_success: false }),
    ("wglMakeCurrent", Act::MakeCurrent { at: 1, is_zero_success: false }),
];

/// Methods of Direct3D devices and contexts: how many arguments after the device are the key.
pub(super) const DEVICE: &[(&str, u8)] = &[
    ("IASetInputLayout", 0),
    ("IASetPrimitiveTopology", 0),
    ("LightEnable", 1),
    ("OMSetBlendState", 0),
    ("OMSetDepthStencilState", 0),
    ("RSSetState", 0),
    ("SetFVF", 0),
    ("SetIndices", 0),
    ("SetMaterial", 0),
    ("SetPixelShader", 0),
    ("SetRenderState", 1),
    ("SetSamplerState", 2),
    ("SetStreamSource", 1),
    ("SetStreamSourceFreq", 1),
    ("SetTexture", 1),
    ("SetTextureStageState", 2),
    ("SetVertexDeclaration", 0),
    ("SetVertexShader", 0),
];

/// Prefixes of the names of functions that set state not in the table: matrices, lights, arrays, attachments.
pub(super) const OTHERS: &[&[u8]] = &[
    b"Bind",
    b"Blend",
    b"Clip",
    b"ColorMaterial",
    b"ColorPointer",
    b"CullParameter",
    b"DepthBounds",
    b"DisableVertexArray",
    b"DrawBuffer",
    b"EdgeFlagPointer",
    b"EnableVertexArray",
    b"Fog",
    b"FogCoordPointer",
    b"FramebufferRenderbuffer",
    b"FramebufferTexture",
    b"Frustum",
    b"IndexMask",
    b"IndexPointer",
    b"InterleavedArrays",
    b"Light",
    b"LoadIdentity",
    b"LoadMatrix",
    b"LoadTransposeMatrix",
    b"Material",
    b"Matrix",
    b"MultMatrix",
    b"MultTransposeMatrix",
    b"MultiTex",
    b"NamedFramebufferDrawBuffer",
    b"NamedFramebufferReadBuffer",
    b"NamedFramebufferRenderbuffer",
    b"NamedFramebufferTexture",
    b"NormalPointer",
    b"Ortho",
    b"PatchParameter",
    b"PixelMap",
    b"PixelTransfer",
    b"PointParameter",
    b"PolygonStipple",
    b"PopAttrib",
    b"PopClientAttrib",
    b"PopMatrix",
    b"PrimitiveBoundingBox",
    b"ProgramEnvParameter",
    b"ProgramLocalParameter",
    b"ProgramUniform",
    b"PushAttrib",
    b"PushClientAttrib",
    b"PushMatrix",
    b"ReadBuffer",
    b"Rotate",
    b"Sample",
    b"Scale",
    b"SecondaryColorPointer",
    b"ShaderStorageBlockBinding",
    b"StencilThenCover",
    b"TexCoordPointer",
    b"TexEnv",
    b"TexGen",
    b"TexParameter",
    b"TextureParameter",
    b"Translate",
    b"UniformHandle",
    b"UniformSubroutines",
    b"UseProgramStages",
    b"ActiveShaderProgram",
    b"VertexArray",
    b"VertexAttribBinding",
    b"VertexAttribDivisor",
    b"VertexAttribFormat",
    b"VertexAttribIFormat",
    b"VertexAttribLFormat",
    b"VertexAttribLPointer",
    b"VertexBindingDivisor",
    b"VertexPointer",
    b"ViewportArray",
    b"ScissorArray",
    b"DepthRangeArray",
    b"WeightPointer",
];

/// Prefixes among them that set no state.
pub(super) const NONE_OF_THEM: &[&[u8]] = &[
    b"BindAttribLocation",
    b"BindFragData",
    b"BlendBarrier",
    b"SamplePass",
    b"MultiTexCoord",
    b"MultiTexImage",
    b"MultiTexSubImage",
    b"Materialize",
];

//! What functions do to the state: a table of those that set it by value, and of those that change it otherwise.
//!
//! The table says by which arguments a state is known (its key) and what else the key depends on. A function that is
//! not in it changes no state that is followed here, or makes all of it unknown.

use crate::tools::flags::{CallFlags, call_flags};

/// Kinds of state. A kind is what can become unknown at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Family {
    Capability,
    /// Capabilities that can also be set for one draw buffer or viewport, whole and one by one.
    CapabilityOfAll,
    CapabilityOfOne,
    ClientArray,
    Fixed,
    BlendOfAll,
    BlendOfOne,
    ColorMaskOfAll,
    ColorMaskOfOne,
    ViewportOfAll,
    ViewportOfOne,
    Faced,
    TextureBinding,
    TextureParameter,
    TextureEnvironment,
    SamplerBinding,
    SamplerParameter,
    ImageBinding,
    BufferBinding,
    IndexedBuffer,
    ArrayPointer,
    Program,
    Uniform,
    BlockBinding,
    Framebuffer,
    Direct3D,
}

/// How many families there are.
pub(super) const FAMILIES: usize = Family::Direct3D as usize + 1;

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    Texture,
    Buffer,
    Framebuffer,
    Renderbuffer,
    Program,
    VertexArray,
    Sampler,
    Pipeline,
}

/// What the key of a state holds besides arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depends {
    Nothing,
    /// The active texture unit.
    Unit,
    /// The vertex array object.
    VertexArray,
    /// The vertex array object, and the buffer that is bound for vertices is part of the value.
    VertexArrayAndBuffer,
    /// The first argument is the name of such an object, which may be shared between contexts.
    Object(Kind),
}

/// How arguments make a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As they stand.
    Plain,
    /// What stands for colour stands for alpha too.
    Twice,
}

/// A state that is set by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setter {
    pub(super) family: Family,
    /// Tells states of one family apart.
    pub(super) slot: u8,
    /// So many arguments from the first are the key, the rest are the value.
    pub(super) keys: u8,
    pub(super) depends: Depends,
    pub(super) form: Form,
    /// Put in front of the value: enabled or not.
    pub(super) mark: Option<bool>,
    /// Set by the whole for all, or one by one: what becomes unknown of the other.
    pub(super) unsettles: Option<Family>,
    /// The argument that names an object of a kind: a new object of that name is another value.
    pub(super) names: Option<(u8, Kind)>,
}

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Set(Setter),
    /// `glEnable` and `glDisable`.
    Capability(bool),
    /// The face that is the first argument, or both where there is none.
    Faced {
        slot: u8,
        has_face: bool,
    },
    ActiveTexture,
    BindTexture,
    TextureParameter,
    BindBuffer,
    /// Binds to a numbered place, and to the target itself.
    BindIndexed,
    BindFramebuffer,
    BindVertexArray,
    UseProgram,
    /// A uniform. `has_count`: an array of so many; `has_program`: of the program that is the first argument.
    Uniform {
        has_program: bool,
        has_count: bool,
        kind: u16,
    },
    /// The names in an array, or one name, are free again, or mean something new.
    Delete(Kind),
    Renew(Kind),
    /// What is not known any more.
    Unsettle(&'static [Family]),
    UnsettleAll,
    /// The context that becomes current: which argument it is.
    MakeCurrent {
        at: u8,
        is_zero_success: bool,
    },
    DestroyContext(u8),
    /// Calls until the end of the list only go into it.
    NewList,
    EndList,
    /// Direct3D: the device is argument 0.
    Device(u8, u8),
    DeviceUnsettle,
    DeviceRelease,
    BeginStateBlock,
    EndStateBlock,
}

/// What a function is to the statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tools::stats) struct Role {
    pub(in crate::tools::stats) flags: CallFlags,
    /// It sets state, of the kind that is followed or not.
    pub(in crate::tools::stats) sets_state: bool,
    /// It only asks: what it hands over goes to the program.
    pub(in crate::tools::stats) asks: bool,
    pub(super) act: Option<Act>,
}

impl Role {
    pub(in crate::tools::stats) fn of(name: &[u8]) -> Self {
        let flags = call_flags(name);
        let act = act(name);
        let sets_state = matches!(
            act,
            Some(
                Act::Set(_)
                    | Act::Capability(_)
                    | Act::Faced { .. }
                    | Act::ActiveTexture
                    | Act::BindTexture
                    | Act::TextureParameter
                    | Act::BindBuffer
                    | Act::BindIndexed
                    | Act::BindFramebuffer
                    | Act::BindVertexArray
                    | Act::UseProgram
                    | Act::Uniform { .. }
                    | Act::Device(..)
            )
        ) || sets_otherwise(name);
        let asks = flags.has(CallFlags::NO_SIDE_EFFECTS) || name.starts_with(b"glGet") || name.starts_with(b"glRead");
        Self { flags, sets_state, asks, act }
    }

    /// True when the arguments are looked at.
    #[inline]
    pub(in crate::tools::stats) fn acts(&self) -> bool {
        self.act.is_some()
    }
}

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

const fn bind(family: Family, slot: u8, keys: u8, kind: Kind) -> Act {
    Act::Set(Setter { names: Some((keys, kind)), ..set(family, slot, keys) })
}

const fn on(depends: Depends, setter: Setter) -> Act {
    Act::Set(Setter { depends, ..setter })
}

const fn switch(depends: Depends, setter: Setter, mark: bool) -> Act {
    Act::Set(Setter { depends, mark: Some(mark), ..setter })
}

use Depends::{Object, Unit, VertexArray, VertexArrayAndBuffer};
use Family::{
    ArrayPointer, BlendOfAll, BlendOfOne, BlockBinding, BufferBinding, CapabilityOfAll, CapabilityOfOne, ClientArray,
    ColorMaskOfAll, ColorMaskOfOne, Framebuffer, ImageBinding, IndexedBuffer, Program, SamplerBinding,
    SamplerParameter, TextureBinding, TextureEnvironment, ViewportOfAll, ViewportOfOne,
};
use Form::{Plain, Twice};

const fn sampler_parameter() -> Act {
    on(Object(Kind::Sampler), set(SamplerParameter, 0, 2))
}

const fn texture_parameter() -> Act {
    on(Object(Kind::Texture), set(Family::TextureParameter, 0, 2))
}

/// OpenGL, without vendors' suffixes; sorted.
const GL: &[(&str, Act)] = &[
    ("ActiveTexture", Act::ActiveTexture),
    ("AlphaFunc", fixed(0, 0)),
    ("BindBuffer", Act::BindBuffer),
    ("BindBufferBase", Act::BindIndexed),
    ("BindBufferRange", Act::BindIndexed),
    ("BindBuffersBase", Act::Unsettle(&[IndexedBuffer])),
    ("BindBuffersRange", Act::Unsettle(&[IndexedBuffer])),
    ("BindFramebuffer", Act::BindFramebuffer),
    ("BindImageTexture", bind(ImageBinding, 0, 1, Kind::Texture)),
    ("BindImageTextures", Act::Unsettle(&[ImageBinding])),
    ("BindProgram", fixed(1, 1)),
    ("BindProgramPipeline", bind(Program, 1, 0, Kind::Pipeline)),
    ("BindRenderbuffer", bind(Framebuffer, 2, 1, Kind::Renderbuffer)),
    ("BindSampler", bind(SamplerBinding, 0, 1, Kind::Sampler)),
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
    ("DeleteBuffers", Act::Delete(Kind::Buffer)),
    ("DeleteFramebuffers", Act::Delete(Kind::Framebuffer)),
    ("DeleteObject", Act::Renew(Kind::Program)),
    ("DeleteProgram", Act::Renew(Kind::Program)),
    ("DeleteProgramPipelines", Act::Delete(Kind::Pipeline)),
    ("DeletePrograms", Act::Unsettle(&[Family::Fixed])),
    ("DeleteRenderbuffers", Act::Delete(Kind::Renderbuffer)),
    ("DeleteSamplers", Act::Delete(Kind::Sampler)),
    ("DeleteTextures", Act::Delete(Kind::Texture)),
    ("DeleteVertexArrays", Act::Delete(Kind::VertexArray)),
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
    ("LinkProgram", Act::Renew(Kind::Program)),
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
    ("ProgramBinary", Act::Renew(Kind::Program)),
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
    ("UniformBlockBinding", on(Object(Kind::Program), set(BlockBinding, 0, 2))),
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

/// Functions of the window systems, by whole name.
const CONTEXTS: &[(&str, Act)] = &[
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

/// Methods of Direct3D devices and contexts: how many arguments behind the device are the key.
const DEVICE: &[(&str, u8)] = &[
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

fn act(name: &[u8]) -> Option<Act> {
    if let Some(rest) = name.strip_prefix(b"gl").filter(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))
        && !rest.starts_with(b"X")
    {
        return gl_act(rest);
    }
    if let Ok(at) = CONTEXTS.binary_search_by(|(known, _)| known.as_bytes().cmp(name)) {
        return CONTEXTS.get(at).map(|(_, act)| *act);
    }
    let at = name.windows(2).position(|pair| pair == b"::")?;
    device_act(name.get(..at)?, name.get(at + 2..)?)
}

fn gl_act(name: &[u8]) -> Option<Act> {
    // The older forms of direct state access have other arguments than those that became part of OpenGL.
    let is_direct =
        [&b"Texture"[..], b"MultiTex", b"BindMultiTexture", b"CopyTexture"].iter().any(|stem| name.starts_with(stem));
    if name.ends_with(b"EXT") && is_direct {
        return Some(Act::UnsettleAll);
    }
    let base = without_suffix(name);
    if let Ok(at) = GL.binary_search_by(|(known, _)| known.as_bytes().cmp(base)) {
        return GL.get(at).map(|(_, act)| *act);
    }
    if let Some(uniform) = uniform(base) {
        return Some(uniform);
    }
    let is_harmless = [&b"BindAttribLocation"[..], b"BindFragData"].iter().any(|stem| base.starts_with(stem));
    let is_unknown = base.starts_with(b"Bind") && !is_harmless
        || [&b"StateCapture"[..], b"CallCommandList", b"DrawCommandsStates"].iter().any(|stem| base.starts_with(stem));
    is_unknown.then_some(Act::UnsettleAll)
}

/// The name without the suffix of an extension whose functions became part of OpenGL as they were.
fn without_suffix(name: &[u8]) -> &[u8] {
    let suffixes: [&[u8]; 7] = [b"ARB", b"EXT", b"OES", b"KHR", b"ANGLE", b"APPLE", b"ATI"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(*suffix)).unwrap_or(name)
}

/// `Uniform4fv`, `UniformMatrix3x4fv`, `ProgramUniform2i` and their like.
fn uniform(name: &[u8]) -> Option<Act> {
    let (rest, has_program) = match name.strip_prefix(b"ProgramUniform") {
        Some(rest) => (rest, true),
        None => (name.strip_prefix(b"Uniform")?, false),
    };
    let (what, is_matrix) = rest.strip_prefix(b"Matrix").map_or((rest, false), |rest| (rest, true));
    let (size, mut kind) = what.split_first().filter(|(size, _)| (b'1'..=b'4').contains(size))?;
    let mut width = *size;
    if is_matrix && let [b'x', more @ b'2'..=b'4', tail @ ..] = kind {
        (width, kind) = (*more, tail);
    }
    let (kind, has_count) = kind.strip_suffix(b"v").map_or((kind, false), |kind| (kind, true));
    let of = [&b"i"[..], b"f", b"ui", b"d", b"i64", b"ui64"].iter().position(|known| *known == kind)?;
    let shape = u16::from(is_matrix) << 6 | u16::from(size - b'0') << 3 | u16::from(width - b'0');
    Some(Act::Uniform { has_program, has_count, kind: (of as u16) << 8 | shape })
}

fn device_act(interface: &[u8], method: &[u8]) -> Option<Act> {
    let is_version =
        |stem: &[u8]| interface.strip_prefix(stem).is_some_and(|rest| rest.iter().all(u8::is_ascii_alphanumeric));
    if is_version(b"IDirect3DStateBlock") {
        return (method == b"Apply").then_some(Act::DeviceUnsettle);
    }
    let stems: [&[u8]; 4] = [b"IDirect3DDevice", b"ID3D10Device", b"ID3D11DeviceContext", b"ID3D11Device"];
    if !stems.iter().any(|stem| is_version(stem)) {
        return None;
    }
    match method {
        b"Reset"
        | b"ResetEx"
        | b"ClearState"
        | b"ExecuteCommandList"
        | b"FinishCommandList"
        | b"SwapDeviceContextState"
        | b"ApplyStateBlock"
        | b"ExecuteBuffer" => return Some(Act::DeviceUnsettle),
        b"Release" => return Some(Act::DeviceRelease),
        b"BeginStateBlock" => return Some(Act::BeginStateBlock),
        b"EndStateBlock" => return Some(Act::EndStateBlock),
        _ => {}
    }
    let at = DEVICE.binary_search_by(|(known, _)| known.as_bytes().cmp(method)).ok()?;
    let (_, keys) = DEVICE.get(at)?;
    Some(Act::Device(at as u8, *keys))
}

/// Beginnings of the names of functions that set state of other kinds than the table's: matrices, lights, arrays,
/// attachments.
const OTHERS: &[&[u8]] = &[
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

/// Beginnings of names among them that set none.
const NONE_OF_THEM: &[&[u8]] = &[
    b"BindAttribLocation",
    b"BindFragData",
    b"BlendBarrier",
    b"SamplePass",
    b"MultiTexCoord",
    b"MultiTexImage",
    b"MultiTexSubImage",
    b"Materialize",
];

fn sets_otherwise(name: &[u8]) -> bool {
    if let Some(rest) = name.strip_prefix(b"gl").filter(|rest| !rest.starts_with(b"X")) {
        let has = |stems: &[&[u8]]| stems.iter().any(|stem| rest.starts_with(stem));
        return has(OTHERS) && !has(NONE_OF_THEM);
    }
    let Some(at) = name.windows(2).position(|pair| pair == b"::") else { return false };
    let (interface, method) = (name.get(..at).unwrap_or_default(), name.get(at + 2..).unwrap_or_default());
    let is_device = interface.starts_with(b"IDirect3DDevice")
        || interface.starts_with(b"ID3D10Device")
        || interface.starts_with(b"ID3D11DeviceContext");
    let stage = method.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    // `SetTexture`, and the stages' `IASet…`, `VSSet…`: two letters before.
    is_device
        && (method.starts_with(b"Set") && !method.starts_with(b"SetPrivateData") && !method.starts_with(b"SetCursor")
            || stage == 3 && method.get(2..5) == Some(b"Set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(
            GL.is_sorted_by(|a, b| a.0 < b.0),
            "{:?}",
            GL.windows(2).find(|pair| pair[0].0 >= pair[1].0).map(|pair| pair[1].0)
        );
        assert!(CONTEXTS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(DEVICE.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn every_function_of_the_tables_exists() {
        let known = include_str!("../../../../corpus/callflags.tsv");
        // The list has functions with flags only; these have none, and are known to be no draws.
        for (name, _) in GL.iter().filter(|(name, _)| !name.starts_with("CallList")) {
            let role = Role::of(format!("gl{name}").as_bytes());
            assert!(!role.flags.has(CallFlags::RENDER.with(CallFlags::NO_SIDE_EFFECTS)), "{name}");
        }
        assert!(known.contains("glCallList"));
    }

    #[test]
    fn suffixes_are_of_no_matter_where_functions_are_the_same() {
        assert_eq!(act(b"glBindBufferARB"), Some(Act::BindBuffer));
        assert_eq!(act(b"glBindFramebufferEXT"), Some(Act::BindFramebuffer));
        assert_eq!(act(b"glUseProgramObjectARB"), Some(Act::UseProgram));
        assert_eq!(act(b"glTextureParameteriEXT"), Some(Act::UnsettleAll));
        assert_eq!(act(b"glBindSomethingNV"), Some(Act::UnsettleAll));
        assert_eq!(act(b"glBindAttribLocation"), None);
        assert_eq!((act(b"glVertex3f"), act(b"glXSwapBuffers"), act(b"malloc"), act(b"gl")), (None, None, None, None));
    }

    #[test]
    fn uniforms_are_told_apart_by_type_and_size() {
        let names = [
            "1i",
            "1f",
            "4f",
            "4ui",
            "2d",
            "Matrix2f",
            "Matrix4f",
            "Matrix2x3f",
            "Matrix3x2f",
            "1i64",
            "1ui64",
            "Matrix4d",
        ];
        let mut kinds = std::collections::BTreeSet::new();
        for name in names {
            let vector = act(format!("glUniform{name}v").as_bytes()).unwrap();
            let Act::Uniform { has_program: false, has_count: true, kind } = vector else {
                panic!("{name}: {vector:?}")
            };
            assert!(kinds.insert(kind), "{name}");
        }
        let single = |name: &[u8]| act(name).unwrap();
        let Act::Uniform { kind, has_count: false, .. } = single(b"glUniform4f") else { panic!("4f") };
        assert_eq!(single(b"glUniform4fvARB"), Act::Uniform { has_program: false, has_count: true, kind });
        assert_eq!(single(b"glProgramUniform4fv"), Act::Uniform { has_program: true, has_count: true, kind });
        assert!(act(b"glUniformSubroutinesuiv").is_none() && act(b"glUniform5f").is_none());
    }

    #[test]
    fn what_sets_state_is_told_from_what_does_not() {
        for name in [
            "glEnable",
            "glRotatef",
            "glUniform1i",
            "glFramebufferTexture2D",
            "glTexGenfv",
            "glVertexPointer",
            "ID3D11DeviceContext::VSSetShader",
            "IDirect3DDevice9::SetRenderState",
            "IDirect3DDevice9Ex::SetTransform",
            "glBindProgramPipeline",
            "glVertexAttribPointer",
            "glPushMatrix",
        ] {
            assert!(Role::of(name.as_bytes()).sets_state, "{name}");
        }
        for name in [
            "glClear",
            "glVertex3f",
            "glTexImage2D",
            "glXMakeCurrent",
            "glBindAttribLocation",
            "glGenTextures",
            "glMultiTexCoord2f",
            "ID3D11Device::CreateBuffer",
            "glDrawArrays",
            "glDeleteTextures",
            "glNewList",
            "glLinkProgram",
        ] {
            assert!(!Role::of(name.as_bytes()).sets_state, "{name}");
        }
    }
}

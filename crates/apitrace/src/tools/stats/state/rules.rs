//! How functions affect the state: the table of commands, and those that change it otherwise.
//!
//! The table defines which arguments identify a state (its key) and what else the key depends on. A function that is
//! not in it changes no state that is followed here, or makes all of it unknown.

use super::table::{DEVICE, NONE_OF_THEM, OTHERS};
use crate::lanes::flags::{CallFlags, call_flags};
use crate::tools::gl::commands;
use crate::tools::gl::commands::effects::{Act, Family, ObjectKind};
use crate::tools::gl::contexts::{ContextVerb, System, context_action};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::lifecycle::{Action, Verb, action, stem};

/// What the statistics need to know about a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tools::stats) struct Role {
    pub(in crate::tools::stats) flags: CallFlags,
    /// It sets state, whether followed or not.
    pub(in crate::tools::stats) sets_state: bool,
    /// It only queries: its data go to the program.
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

    /// True when the arguments are needed.
    #[inline]
    pub(in crate::tools::stats) fn acts(&self) -> bool {
        self.act.is_some()
    }
}

fn act(name: &[u8]) -> Option<Act> {
    if let Some(rest) = name.strip_prefix(b"gl").filter(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))
        && !rest.starts_with(b"X")
    {
        return gl_act(rest);
    }
    if name == b"glXCopyContext" {
        return Some(Act::UnsettleAll);
    }
    if let Some((system, verb)) = context_action(name) {
        return context_act(system, verb);
    }
    let at = name.windows(2).position(|pair| pair == b"::")?;
    device_act(name.get(..at)?, name.get(at + 2..)?)
}

fn gl_act(name: &[u8]) -> Option<Act> {
    // The older direct-state-access functions have different arguments than those that became part of OpenGL.
    let is_direct =
        [&b"Texture"[..], b"MultiTex", b"BindMultiTexture", b"CopyTexture"].iter().any(|stem| name.starts_with(stem));
    if name.ends_with(b"EXT") && is_direct {
        return Some(Act::UnsettleAll);
    }
    let base = without_suffix(name);
    if let Ok(base) = std::str::from_utf8(base)
        && let Some(act) = commands::act(base).or_else(|| object_act(base))
    {
        return Some(act);
    }
    if let Some(uniform) = uniform(base) {
        return Some(uniform);
    }
    let is_harmless = [&b"BindAttribLocation"[..], b"BindFragData"].iter().any(|stem| base.starts_with(stem));
    let is_unknown = base.starts_with(b"Bind") && !is_harmless
        || [&b"StateCapture"[..], b"CallCommandList", b"DrawCommandsStates"].iter().any(|stem| base.starts_with(stem));
    is_unknown.then_some(Act::UnsettleAll)
}

/// Deleting objects: their names become free.
fn object_act(base: &str) -> Option<Act> {
    let name = format!("gl{base}");
    // Further suffixes are those of other functions.
    let Action { kind, verb, .. } = action(name.as_bytes()).filter(|_| stem(&name) == name)?;
    match verb {
        Verb::DeleteMany { .. } if kind == Kind::AssemblyProgram => Some(Act::Unsettle(&[Family::Fixed])),
        Verb::DeleteMany { .. } => ObjectKind::of(kind).map(Act::Delete),
        Verb::Delete(_) if kind == Kind::Program => Some(Act::Renew(ObjectKind::Program)),
        _ => None,
    }
}

/// Functions of the window systems.
fn context_act(system: System, verb: ContextVerb) -> Option<Act> {
    let argument = |at: usize| u8::try_from(at).ok();
    match verb {
        ContextVerb::MakeCurrent(at) => {
            Some(Act::MakeCurrent { at: argument(at)?, is_zero_success: system == System::Cgl })
        }
        ContextVerb::Destroy(at) => argument(at).map(Act::DestroyContext),
        _ => None,
    }
}

/// The name without the suffix of an extension whose functions became part of OpenGL unchanged.
fn without_suffix(name: &[u8]) -> &[u8] {
    let suffixes: [&[u8]; 7] = [b"ARB", b"EXT", b"OES", b"KHR", b"ANGLE", b"APPLE", b"ATI"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(*suffix)).unwrap_or(name)
}

/// `Uniform4fv`, `UniformMatrix3x4fv`, `ProgramUniform2i` and similar.
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
        assert!(DEVICE.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn every_function_of_the_tables_exists() {
        let known = include_str!("../../../../corpus/callflags.tsv");
        // The list contains only functions with flags. These have none, and are known not to draw.
        for name in commands::acting_names().filter(|name| !name.starts_with("CallList")) {
            let role = Role::of(format!("gl{name}").as_bytes());
            assert!(role.act.is_some(), "{name}");
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
    fn names_that_become_free_are_those_of_deleted_objects() {
        for (name, expected) in [
            ("glDeleteTexturesEXT", Some(Act::Delete(ObjectKind::Texture))),
            ("glDeleteVertexArraysOES", Some(Act::Delete(ObjectKind::VertexArray))),
            ("glDeleteProgramPipelines", Some(Act::Delete(ObjectKind::Pipeline))),
            ("glDeleteProgram", Some(Act::Renew(ObjectKind::Program))),
            ("glDeleteObjectARB", Some(Act::Renew(ObjectKind::Program))),
            ("glDeleteProgramsARB", Some(Act::Unsettle(&[Family::Fixed]))),
            ("glDeleteProgramsNV", None),
            ("glDeleteQueries", None),
            ("glDeleteShader", None),
            ("glGenTextures", None),
        ] {
            assert_eq!(act(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn contexts_of_all_systems_are_followed() {
        let current = |at, is_zero_success| Some(Act::MakeCurrent { at, is_zero_success });
        for (name, expected) in [
            ("glXMakeCurrent", current(2, false)),
            ("eglMakeCurrent", current(3, false)),
            ("wglMakeContextCurrentARB", current(2, false)),
            ("CGLSetCurrentContext", current(0, true)),
            ("glXDestroyContext", Some(Act::DestroyContext(1))),
            ("glXFreeContextEXT", Some(Act::DestroyContext(1))),
            ("wglDeleteContext", Some(Act::DestroyContext(0))),
            ("glXCopyContext", Some(Act::UnsettleAll)),
            ("eglTerminate", None),
            ("glXCreateContext", None),
        ] {
            assert_eq!(act(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn uniforms_are_distinguished_by_type_and_size() {
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
    fn functions_that_set_state_are_recognized() {
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

//! How functions affect the state.

use crate::tools::gl::commands::{self, effects::Parameter};
use crate::tools::gl::contexts::{ContextVerb, System, context_action};
use crate::tools::gl::lifecycle::{Action, action, stem};
use crate::tools::state::matrices::{MatrixOp, matrix_op};

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Op {
    Context((System, ContextVerb)),
    Object(Action),
    Set(&'static [Parameter]),
    Matrix(MatrixOp),
    Special(Special),
}

/// Where the name of an object comes from: its own argument, or the binding of the target in the first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Bound,
    Named,
}

/// Functions that need individual treatment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    /// Enables (true) or disables; the argument of the index, if any.
    Enable(bool, Option<usize>),
    ClientState(bool),
    PolygonMode,
    StencilFuncSeparate,
    StencilOpSeparate,
    StencilMaskSeparate,
    Current(&'static str, usize, u8),
    DrawBuffer,
    DrawBuffers(Way),
    ReadBuffer,
    PushAttributes,
    PopAttributes,
    EndList,
    CallList,
    CallLists,
    BufferData(Way),
    BufferSubData(Way),
    CopyBuffer,
    /// The number of sizes, and of arguments before the level.
    TexImage(u8),
    TexSubImage(u8, Way),
    CopyTexImage(u8),
    CompressedTexImage(u8),
    TexStorage(u8, Way),
    TexMultisample(u8),
    TexBuffer(Way),
    GenerateMipmap(Way),
    TexParameter(Way),
    SamplerParameter,
    RenderbufferStorage(Way, bool),
    /// Arguments of attachment, texture target, texture, level and layer.
    FramebufferTexture(Way, Option<usize>, usize, Option<usize>),
    FramebufferRenderbuffer(Way),
    ShaderSource,
    CompileShader,
    ShaderStatus,
    ProgramStatus,
    LinkProgram,
    AttribLocation,
    UniformLocation,
    UniformBlockIndex,
    UniformBlockBinding,
    /// First argument after the location; whether the program is the first argument.
    Uniform(bool),
    UseStages,
    ActiveProgram,
    VertexPointer(&'static str),
    AttribPointer,
    AttribEnable(Way, bool),
    AttribDivisor,
    AttribFormat(Way),
    AttribBinding(Way),
    BindVertexBuffer(Way),
    BindingDivisor(Way),
    ElementBuffer,
    BindSampler,
    BindSamplers,
    BindTextures,
    BindTextureUnit,
    BindImage,
    BindBuffersBase,
    BindBuffersRange,
    ObjectLabel,
    Interleaved,
    PixelStore,
}

/// What a function does; `None` if it changes nothing that is followed.
pub(super) fn op(name: &[u8]) -> Option<Op> {
    if let Some(action) = context_action(name) {
        return Some(Op::Context(action));
    }
    let text = std::str::from_utf8(name).ok().filter(|name| name.starts_with("gl") && !name.starts_with("glX"))?;
    let base = stem(text);
    if let Some(special) = special(base) {
        return Some(Op::Special(special));
    }
    if let Some(action) = action(name) {
        return Some(Op::Object(action));
    }
    commands::parameters(base.strip_prefix("gl")?).map(Op::Set).or_else(|| matrix_op(base).map(Op::Matrix))
}

fn special(name: &str) -> Option<Special> {
    use Special as S;
    use Way::{Bound, Named};
    Some(match name {
        "glEnable" => S::Enable(true, None),
        "glDisable" => S::Enable(false, None),
        "glEnablei" | "glEnableIndexed" => S::Enable(true, Some(1)),
        "glDisablei" | "glDisableIndexed" => S::Enable(false, Some(1)),
        "glEnableClientState" => S::ClientState(true),
        "glDisableClientState" => S::ClientState(false),
        "glPolygonMode" => S::PolygonMode,
        "glStencilFuncSeparate" => S::StencilFuncSeparate,
        "glStencilOpSeparate" => S::StencilOpSeparate,
        "glStencilMaskSeparate" => S::StencilMaskSeparate,
        "glColor3f" | "glColor3d" | "glColor3fv" | "glColor3dv" => S::Current("GL_CURRENT_COLOR", 3, 1),
        "glColor4f" | "glColor4d" | "glColor4fv" | "glColor4dv" => S::Current("GL_CURRENT_COLOR", 4, 1),
        "glColor3ub" | "glColor3ubv" => S::Current("GL_CURRENT_COLOR", 3, 255),
        "glColor4ub" | "glColor4ubv" => S::Current("GL_CURRENT_COLOR", 4, 255),
        "glDrawBuffer" => S::DrawBuffer,
        "glDrawBuffers" => S::DrawBuffers(Bound),
        "glNamedFramebufferDrawBuffers" => S::DrawBuffers(Named),
        "glReadBuffer" => S::ReadBuffer,
        "glPushAttrib" => S::PushAttributes,
        "glPopAttrib" => S::PopAttributes,
        "glEndList" => S::EndList,
        "glCallList" => S::CallList,
        "glCallLists" => S::CallLists,
        "glObjectLabel" | "glLabelObject" => S::ObjectLabel,
        "glPixelStorei" | "glPixelStoref" => S::PixelStore,
        "glInterleavedArrays" => S::Interleaved,
        _ => return textures(name).or_else(|| programs(name)).or_else(|| arrays(name)),
    })
}

fn textures(name: &str) -> Option<Special> {
    use Special as S;
    use Way::{Bound, Named};
    Some(match name {
        "glBufferData" | "glBufferStorage" => S::BufferData(Bound),
        "glNamedBufferData" | "glNamedBufferStorage" => S::BufferData(Named),
        "glBufferSubData" => S::BufferSubData(Bound),
        "glNamedBufferSubData" => S::BufferSubData(Named),
        "glCopyBufferSubData" => S::CopyBuffer,
        "glTexImage1D" => S::TexImage(1),
        "glTexImage2D" => S::TexImage(2),
        "glTexImage3D" => S::TexImage(3),
        "glTexImage2DMultisample" => S::TexMultisample(2),
        "glTexImage3DMultisample" => S::TexMultisample(3),
        "glTexSubImage1D" | "glCompressedTexSubImage1D" => S::TexSubImage(1, Bound),
        "glTexSubImage2D" | "glCompressedTexSubImage2D" => S::TexSubImage(2, Bound),
        "glTexSubImage3D" | "glCompressedTexSubImage3D" => S::TexSubImage(3, Bound),
        "glTextureSubImage1D" | "glCompressedTextureSubImage1D" => S::TexSubImage(1, Named),
        "glTextureSubImage2D" | "glCompressedTextureSubImage2D" => S::TexSubImage(2, Named),
        "glTextureSubImage3D" | "glCompressedTextureSubImage3D" => S::TexSubImage(3, Named),
        "glCopyTexImage1D" => S::CopyTexImage(1),
        "glCopyTexImage2D" => S::CopyTexImage(2),
        "glCompressedTexImage1D" => S::CompressedTexImage(1),
        "glCompressedTexImage2D" => S::CompressedTexImage(2),
        "glCompressedTexImage3D" => S::CompressedTexImage(3),
        "glTexStorage1D" => S::TexStorage(1, Bound),
        "glTexStorage2D" => S::TexStorage(2, Bound),
        "glTexStorage3D" => S::TexStorage(3, Bound),
        "glTextureStorage1D" => S::TexStorage(1, Named),
        "glTextureStorage2D" => S::TexStorage(2, Named),
        "glTextureStorage3D" => S::TexStorage(3, Named),
        "glTexBuffer" => S::TexBuffer(Bound),
        "glTextureBuffer" => S::TexBuffer(Named),
        "glGenerateMipmap" => S::GenerateMipmap(Bound),
        "glGenerateTextureMipmap" => S::GenerateMipmap(Named),
        "glTexParameterf" | "glTexParameterfv" | "glTexParameteri" | "glTexParameteriv" | "glTexParameterIiv"
        | "glTexParameterIuiv" | "glTexParameterx" => S::TexParameter(Bound),
        "glTextureParameterf" | "glTextureParameterfv" | "glTextureParameteri" | "glTextureParameteriv" => {
            S::TexParameter(Named)
        }
        "glSamplerParameterf" | "glSamplerParameterfv" | "glSamplerParameteri" | "glSamplerParameteriv" => {
            S::SamplerParameter
        }
        "glRenderbufferStorage" => S::RenderbufferStorage(Bound, false),
        "glRenderbufferStorageMultisample" => S::RenderbufferStorage(Bound, true),
        "glNamedRenderbufferStorage" => S::RenderbufferStorage(Named, false),
        "glNamedRenderbufferStorageMultisample" => S::RenderbufferStorage(Named, true),
        "glFramebufferTexture" => S::FramebufferTexture(Bound, None, 2, None),
        "glFramebufferTexture1D" | "glFramebufferTexture2D" | "glFramebufferTexture2DMultisample" => {
            S::FramebufferTexture(Bound, Some(2), 3, None)
        }
        "glFramebufferTexture3D" => S::FramebufferTexture(Bound, Some(2), 3, Some(5)),
        "glFramebufferTextureLayer" => S::FramebufferTexture(Bound, None, 2, Some(4)),
        "glNamedFramebufferTexture" => S::FramebufferTexture(Named, None, 2, None),
        "glNamedFramebufferTextureLayer" => S::FramebufferTexture(Named, None, 2, Some(4)),
        "glFramebufferRenderbuffer" => S::FramebufferRenderbuffer(Bound),
        "glNamedFramebufferRenderbuffer" => S::FramebufferRenderbuffer(Named),
        "glBindSampler" => S::BindSampler,
        "glBindSamplers" => S::BindSamplers,
        "glBindTextures" => S::BindTextures,
        "glBindTextureUnit" => S::BindTextureUnit,
        "glBindImageTexture" => S::BindImage,
        "glBindBuffersBase" => S::BindBuffersBase,
        "glBindBuffersRange" => S::BindBuffersRange,
        _ => return None,
    })
}

fn programs(name: &str) -> Option<Special> {
    use Special as S;
    Some(match name {
        "glShaderSource" => S::ShaderSource,
        "glCompileShader" => S::CompileShader,
        "glGetShaderiv" => S::ShaderStatus,
        "glGetProgramiv" => S::ProgramStatus,
        "glLinkProgram" => S::LinkProgram,
        "glBindAttribLocation" => S::AttribLocation,
        "glGetUniformLocation" => S::UniformLocation,
        "glGetUniformBlockIndex" => S::UniformBlockIndex,
        "glUniformBlockBinding" => S::UniformBlockBinding,
        "glUseProgramStages" => S::UseStages,
        "glActiveShaderProgram" => S::ActiveProgram,
        _ => {
            let is_of = |rest: &str| {
                let rest = rest.strip_prefix("Matrix").unwrap_or(rest);
                rest.starts_with(|first: char| first.is_ascii_digit()) || rest.starts_with("Handle")
            };
            if name.strip_prefix("glUniform").is_some_and(is_of) {
                S::Uniform(false)
            } else if name.strip_prefix("glProgramUniform").is_some_and(is_of) {
                S::Uniform(true)
            } else {
                return None;
            }
        }
    })
}

fn arrays(name: &str) -> Option<Special> {
    use Special as S;
    use Way::{Bound, Named};
    Some(match name {
        "glVertexPointer" => S::VertexPointer("GL_VERTEX_ARRAY"),
        "glColorPointer" => S::VertexPointer("GL_COLOR_ARRAY"),
        "glTexCoordPointer" => S::VertexPointer("GL_TEXTURE_COORD_ARRAY"),
        "glSecondaryColorPointer" => S::VertexPointer("GL_SECONDARY_COLOR_ARRAY"),
        "glNormalPointer" => S::VertexPointer("GL_NORMAL_ARRAY"),
        "glFogCoordPointer" => S::VertexPointer("GL_FOG_COORD_ARRAY"),
        "glIndexPointer" => S::VertexPointer("GL_INDEX_ARRAY"),
        "glVertexAttribPointer" | "glVertexAttribIPointer" | "glVertexAttribLPointer" => S::AttribPointer,
        "glEnableVertexAttribArray" => S::AttribEnable(Bound, true),
        "glDisableVertexAttribArray" => S::AttribEnable(Bound, false),
        "glEnableVertexArrayAttrib" => S::AttribEnable(Named, true),
        "glDisableVertexArrayAttrib" => S::AttribEnable(Named, false),
        "glVertexAttribDivisor" => S::AttribDivisor,
        "glVertexAttribFormat" | "glVertexAttribIFormat" | "glVertexAttribLFormat" => S::AttribFormat(Bound),
        "glVertexArrayAttribFormat" | "glVertexArrayAttribIFormat" | "glVertexArrayAttribLFormat" => {
            S::AttribFormat(Named)
        }
        "glVertexAttribBinding" => S::AttribBinding(Bound),
        "glVertexArrayAttribBinding" => S::AttribBinding(Named),
        "glBindVertexBuffer" => S::BindVertexBuffer(Bound),
        "glVertexArrayVertexBuffer" => S::BindVertexBuffer(Named),
        "glVertexBindingDivisor" => S::BindingDivisor(Bound),
        "glVertexArrayBindingDivisor" => S::BindingDivisor(Named),
        "glVertexArrayElementBuffer" => S::ElementBuffer,
        _ => return None,
    })
}

impl Op {
    /// True for calls that are compiled into a display list instead of being executed.
    pub(super) fn is_compiled(self) -> bool {
        match self {
            Self::Context(_) => false,
            Self::Object(action) => {
                use crate::tools::gl::kind::Kind;
                use crate::tools::gl::lifecycle::Verb;
                matches!(action.verb, Verb::Bind { .. })
                    && matches!(action.kind, Kind::Texture | Kind::Program | Kind::AssemblyProgram)
            }
            Self::Set(setters) => {
                use crate::tools::gl::commands::effects::Of;
                !setters.iter().any(|(of, _)| matches!(of, Of::Named("GL_CLIENT_ACTIVE_TEXTURE" | "GL_RENDER_MODE")))
            }
            Self::Matrix(_) => true,
            Self::Special(special) => matches!(
                special,
                Special::Enable(..)
                    | Special::PolygonMode
                    | Special::StencilFuncSeparate
                    | Special::StencilOpSeparate
                    | Special::StencilMaskSeparate
                    | Special::Current(..)
                    | Special::DrawBuffer
                    | Special::DrawBuffers(_)
                    | Special::ReadBuffer
                    | Special::PushAttributes
                    | Special::PopAttributes
                    | Special::CallList
                    | Special::CallLists
                    | Special::TexImage(_)
                    | Special::TexSubImage(..)
                    | Special::CopyTexImage(_)
                    | Special::CompressedTexImage(_)
                    | Special::TexParameter(_)
                    | Special::Uniform(_)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_recognized_with_any_suffix() {
        assert_eq!(op(b"glActiveTextureARB"), op(b"glActiveTexture"));
        assert_eq!(op(b"glBufferDataARB"), Some(Op::Special(Special::BufferData(Way::Bound))));
        assert_eq!(op(b"glUniformMatrix4x3fv"), Some(Op::Special(Special::Uniform(false))));
        assert_eq!(op(b"glProgramUniform4fEXT"), Some(Op::Special(Special::Uniform(true))));
        assert_eq!(op(b"glUniformBlockBinding"), Some(Op::Special(Special::UniformBlockBinding)));
        assert!(matches!(op(b"glGenTextures"), Some(Op::Object(_))));
        for name in ["glVertex3f", "glDrawArrays", "glXSwapBuffers", "eglSwapBuffers", "", "gl"] {
            assert_eq!(op(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn lists_take_what_they_take() {
        for (name, is_compiled) in [
            ("glEnable", true),
            ("glTranslatef", true),
            ("glBindTexture", true),
            ("glGenTextures", false),
            ("glBufferData", false),
            ("glClientActiveTexture", false),
            ("glColor3f", true),
        ] {
            assert_eq!(op(name.as_bytes()).unwrap().is_compiled(), is_compiled, "{name}");
        }
    }
}

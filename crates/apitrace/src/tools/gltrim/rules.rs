//! The effect of a function, by its name.

use crate::lanes::flags::{CallFlags, call_flags};
use crate::tools::gl::commands;
use crate::tools::gl::contexts::{ContextVerb, System, context_action};
use crate::tools::gl::lifecycle::{Action, action, stem};
use crate::tools::gltrim::image_rules::texture;
pub(super) use crate::tools::gltrim::image_rules::{Texture, Way};

/// The effect of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rule {
    /// No effect that a later call could observe: queries, labels, waiting.
    Nothing,
    /// Unknown: the call stays.
    Unknown,
    /// A query whose result programs use in later calls (`glGetUniformLocation`).
    Location,
    /// Sets state: a row of the table.
    State(u16),
    /// Like `glEnable`, for client arrays.
    ClientState,
    PixelStore,
    ActiveTexture,
    ClientActiveTexture,
    MatrixMode,
    MatrixLoad,
    MatrixMultiply,
    MatrixPush,
    MatrixPop,
    AttribPush,
    AttribPop,
    ClientPush,
    ClientPop,
    Begin,
    End,
    Vertex,
    Draw,
    Clear,
    ClearBuffer {
        is_named: bool,
    },
    Blit {
        is_named: bool,
    },
    ReadPixels,
    Accumulate,
    NewList,
    EndList,
    CallList,
    CallLists,
    /// Makes, deletes or binds objects.
    Object(Action),
    BindIndexed,
    BindMany(&'static str),
    BindImage,
    BindUnit,
    VertexBuffer {
        is_named: bool,
    },
    ElementBuffer,
    Attribute {
        is_named: bool,
    },
    ArrayPointer,
    BufferData {
        is_named: bool,
    },
    BufferPart {
        is_named: bool,
    },
    BufferCopy {
        is_named: bool,
    },
    BufferClear {
        is_named: bool,
        is_part: bool,
    },
    Map {
        is_named: bool,
        is_range: bool,
    },
    Flush {
        is_named: bool,
    },
    Unmap {
        is_named: bool,
    },
    Memcpy,
    Texture(Texture, Way),
    CopyImage,
    View,
    Sampler,
    RenderStorage {
        is_named: bool,
    },
    /// An attachment: the index of the object's name, and whether a face or layer follows it.
    Attach {
        object: usize,
        is_texture: bool,
        has_target: bool,
        is_layer: bool,
        is_named: bool,
    },
    DrawBuffers {
        is_named: bool,
    },
    ReadBuffer {
        is_named: bool,
    },
    FramebufferParameter {
        is_named: bool,
    },
    /// Changes a program or shader.
    Code,
    AttachShader,
    Link,
    Uniform,
    ProgramUniform,
    UseStages,
    AssemblyCode,
    AssemblyParameter,
    QueryEnd,
    Conditional {
        is_end: bool,
    },
    Wait,
    Feedback {
        is_end: bool,
    },
    DrawFeedback,
    /// Begins or ends a debug group.
    Group {
        is_end: bool,
    },
    Context(System, ContextVerb),
    Swap,
    /// Other functions of the window system.
    System,
}

/// The rule of a function.
pub(super) fn rule(name: &[u8]) -> Rule {
    let Ok(name) = std::str::from_utf8(name) else { return Rule::Unknown };
    if let Some((system, verb)) = context_action(name.as_bytes()) {
        return Rule::Context(system, verb);
    }
    if call_flags(name.as_bytes()).has(CallFlags::END_FRAME) {
        return Rule::Swap;
    }
    let Some(rest) = name.strip_prefix("gl").filter(|rest| !rest.starts_with('X') && !name.starts_with("glu")) else {
        return of_system(name);
    };
    let base = stem(rest);
    if let Some(rule) = exact(base) {
        return rule;
    }
    if let Some((function, way)) = texture(base, rest.ends_with("EXT") && base != rest) {
        return Rule::Texture(function, way);
    }
    if let Some(action) = action(name.as_bytes()) {
        return Rule::Object(action);
    }
    by_pattern(base, name)
}

fn of_system(name: &str) -> Rule {
    if name == "memcpy" {
        return Rule::Memcpy;
    }
    let rest = ["glX", "egl", "wgl", "CGL"].iter().find_map(|prefix| name.strip_prefix(prefix));
    let Some(rest) = rest else { return Rule::Unknown };
    // `eglGetDisplay` makes the display that all others need, and replayers take it from there.
    let asks = ["Get", "Query", "Is", "Wait", "Describe"].iter().any(|word| rest.starts_with(word));
    let makes = rest.contains("Display") || rest.starts_with("GetPbuffer") || rest.starts_with("GetFBConfig");
    if asks && !makes { Rule::Nothing } else { Rule::System }
}

/// Functions that are recognized by their full name.
fn exact(base: &str) -> Option<Rule> {
    exact_state(base)
        .or_else(|| exact_binding(base))
        .or_else(|| exact_buffer(base))
        .or_else(|| exact_framebuffer(base))
        .or_else(|| exact_program(base))
}

/// Functions for state, stacks and drawing.
fn exact_state(base: &str) -> Option<Rule> {
    let (bound, named) = (false, true);
    Some(match base {
        "ActiveTexture" => Rule::ActiveTexture,
        "ClientActiveTexture" => Rule::ClientActiveTexture,
        "EnableClientState" | "DisableClientState" | "EnableClientStatei" | "DisableClientStatei" => Rule::ClientState,
        "MatrixMode" => Rule::MatrixMode,
        "LoadIdentity"
        | "LoadMatrixf"
        | "LoadMatrixd"
        | "LoadTransposeMatrixf"
        | "LoadTransposeMatrixd"
        | "LoadMatrixx" => Rule::MatrixLoad,
        "MultMatrixf"
        | "MultMatrixd"
        | "MultTransposeMatrixf"
        | "MultTransposeMatrixd"
        | "MultMatrixx"
        | "Rotatef"
        | "Rotated"
        | "Rotatex"
        | "Scalef"
        | "Scaled"
        | "Scalex"
        | "Translatef"
        | "Translated"
        | "Translatex"
        | "Ortho"
        | "Orthof"
        | "Orthox"
        | "Frustum"
        | "Frustumf"
        | "Frustumx" => Rule::MatrixMultiply,
        "PushMatrix" => Rule::MatrixPush,
        "PopMatrix" => Rule::MatrixPop,
        "PushAttrib" => Rule::AttribPush,
        "PopAttrib" => Rule::AttribPop,
        "PushClientAttrib" => Rule::ClientPush,
        "PopClientAttrib" => Rule::ClientPop,
        "Begin" => Rule::Begin,
        "End" => Rule::End,
        "ArrayElement" | "EvalPoint1" | "EvalPoint2" => Rule::Vertex,
        "Clear" => Rule::Clear,
        "Accum" => Rule::Accumulate,
        "ClearBufferfv" | "ClearBufferiv" | "ClearBufferuiv" | "ClearBufferfi" => Rule::ClearBuffer { is_named: bound },
        "ClearNamedFramebufferfv"
        | "ClearNamedFramebufferiv"
        | "ClearNamedFramebufferuiv"
        | "ClearNamedFramebufferfi" => Rule::ClearBuffer { is_named: named },
        "BlitFramebuffer" => Rule::Blit { is_named: bound },
        "BlitNamedFramebuffer" => Rule::Blit { is_named: named },
        "ReadPixels"
        | "ReadnPixels"
        | "GetTexImage"
        | "GetnTexImage"
        | "GetTextureImage"
        | "GetTextureSubImage"
        | "GetCompressedTexImage"
        | "GetnCompressedTexImage"
        | "GetCompressedTextureImage"
        | "GetCompressedTextureSubImage" => Rule::ReadPixels,
        "NewList" => Rule::NewList,
        "EndList" => Rule::EndList,
        "CallList" => Rule::CallList,
        "CallLists" => Rule::CallLists,
        _ => return None,
    })
}

/// Functions for bindings.
fn exact_binding(base: &str) -> Option<Rule> {
    let (bound, named) = (false, true);
    Some(match base {
        "BindBufferBase" | "BindBufferRange" | "BindBufferOffset" => Rule::BindIndexed,
        "BindBuffersBase" | "BindBuffersRange" => Rule::BindMany("buffers"),
        "BindTextures" => Rule::BindMany("textures"),
        "BindSamplers" => Rule::BindMany("samplers"),
        "BindImageTextures" => Rule::BindMany("images"),
        "BindImageTexture" => Rule::BindImage,
        "BindTextureUnit" => Rule::BindUnit,
        "BindVertexBuffer" => Rule::VertexBuffer { is_named: bound },
        "VertexArrayVertexBuffer" => Rule::VertexBuffer { is_named: named },
        "BindVertexBuffers" => Rule::BindMany("vertex buffers"),
        "VertexArrayElementBuffer" => Rule::ElementBuffer,
        "EnableVertexAttribArray"
        | "DisableVertexAttribArray"
        | "VertexAttribDivisor"
        | "VertexAttribBinding"
        | "VertexAttribFormat"
        | "VertexAttribIFormat"
        | "VertexAttribLFormat"
        | "VertexBindingDivisor" => Rule::Attribute { is_named: bound },
        "EnableVertexArrayAttrib"
        | "DisableVertexArrayAttrib"
        | "VertexArrayAttribBinding"
        | "VertexArrayAttribFormat"
        | "VertexArrayAttribIFormat"
        | "VertexArrayAttribLFormat"
        | "VertexArrayBindingDivisor" => Rule::Attribute { is_named: named },
        _ => return None,
    })
}

/// Functions for buffers.
fn exact_buffer(base: &str) -> Option<Rule> {
    let (bound, named) = (false, true);
    Some(match base {
        "BufferData" | "BufferStorage" => Rule::BufferData { is_named: bound },
        "NamedBufferData" | "NamedBufferStorage" => Rule::BufferData { is_named: named },
        "BufferSubData" => Rule::BufferPart { is_named: bound },
        "NamedBufferSubData" => Rule::BufferPart { is_named: named },
        "CopyBufferSubData" => Rule::BufferCopy { is_named: bound },
        "CopyNamedBufferSubData" | "NamedCopyBufferSubData" => Rule::BufferCopy { is_named: named },
        "ClearBufferData" => Rule::BufferClear { is_named: bound, is_part: false },
        "ClearBufferSubData" => Rule::BufferClear { is_named: bound, is_part: true },
        "ClearNamedBufferData" => Rule::BufferClear { is_named: named, is_part: false },
        "ClearNamedBufferSubData" => Rule::BufferClear { is_named: named, is_part: true },
        "MapBuffer" => Rule::Map { is_named: bound, is_range: false },
        "MapBufferRange" => Rule::Map { is_named: bound, is_range: true },
        "MapNamedBuffer" => Rule::Map { is_named: named, is_range: false },
        "MapNamedBufferRange" => Rule::Map { is_named: named, is_range: true },
        "FlushMappedBufferRange" => Rule::Flush { is_named: bound },
        "FlushMappedNamedBufferRange" => Rule::Flush { is_named: named },
        "UnmapBuffer" => Rule::Unmap { is_named: bound },
        "UnmapNamedBuffer" => Rule::Unmap { is_named: named },
        _ => return None,
    })
}

/// Functions for images and framebuffers.
fn exact_framebuffer(base: &str) -> Option<Rule> {
    let (bound, named) = (false, true);
    Some(match base {
        "CopyImageSubData" => Rule::CopyImage,
        "TextureView" => Rule::View,
        "RenderbufferStorage" | "RenderbufferStorageMultisample" | "RenderbufferStorageMultisampleAdvanced" => {
            Rule::RenderStorage { is_named: bound }
        }
        "NamedRenderbufferStorage" | "NamedRenderbufferStorageMultisample" => Rule::RenderStorage { is_named: named },
        "FramebufferTexture1D" | "FramebufferTexture2D" | "FramebufferTexture2DMultisample" => {
            Rule::Attach { object: 3, is_texture: true, has_target: true, is_layer: false, is_named: bound }
        }
        "FramebufferTexture3D" => {
            Rule::Attach { object: 3, is_texture: true, has_target: true, is_layer: true, is_named: bound }
        }
        "FramebufferTexture" => {
            Rule::Attach { object: 2, is_texture: true, has_target: false, is_layer: false, is_named: bound }
        }
        "FramebufferTextureLayer" => {
            Rule::Attach { object: 2, is_texture: true, has_target: false, is_layer: true, is_named: bound }
        }
        "NamedFramebufferTexture" => {
            Rule::Attach { object: 2, is_texture: true, has_target: false, is_layer: false, is_named: named }
        }
        "NamedFramebufferTextureLayer" => {
            Rule::Attach { object: 2, is_texture: true, has_target: false, is_layer: true, is_named: named }
        }
        "FramebufferRenderbuffer" => {
            Rule::Attach { object: 3, is_texture: false, has_target: false, is_layer: false, is_named: bound }
        }
        "NamedFramebufferRenderbuffer" => {
            Rule::Attach { object: 3, is_texture: false, has_target: false, is_layer: false, is_named: named }
        }
        "DrawBuffer" | "DrawBuffers" => Rule::DrawBuffers { is_named: bound },
        "NamedFramebufferDrawBuffer" | "NamedFramebufferDrawBuffers" => Rule::DrawBuffers { is_named: named },
        "ReadBuffer" => Rule::ReadBuffer { is_named: bound },
        "NamedFramebufferReadBuffer" => Rule::ReadBuffer { is_named: named },
        "FramebufferParameteri" => Rule::FramebufferParameter { is_named: bound },
        "NamedFramebufferParameteri" => Rule::FramebufferParameter { is_named: named },
        _ => return None,
    })
}

/// Functions of programs and queries, and those that nothing depends on.
fn exact_program(base: &str) -> Option<Rule> {
    Some(match base {
        "AttachShader" | "AttachObject" => Rule::AttachShader,
        "LinkProgram" => Rule::Link,
        "UseProgramStages" | "ActiveShaderProgram" => Rule::UseStages,
        "ProgramString" | "LoadProgram" => Rule::AssemblyCode,
        "GetUniformLocation"
        | "GetAttribLocation"
        | "GetUniformBlockIndex"
        | "GetProgramResourceIndex"
        | "GetProgramResourceLocation"
        | "GetSubroutineIndex"
        | "GetSubroutineUniformLocation"
        | "GetFragDataLocation"
        | "GetFragDataIndex" => Rule::Location,
        "EndQuery" | "EndQueryIndexed" | "QueryCounter" => Rule::QueryEnd,
        "BeginConditionalRender" => Rule::Conditional { is_end: false },
        "EndConditionalRender" => Rule::Conditional { is_end: true },
        "WaitSync" => Rule::Wait,
        "BeginTransformFeedback" => Rule::Feedback { is_end: false },
        "EndTransformFeedback" => Rule::Feedback { is_end: true },
        "DrawTransformFeedback"
        | "DrawTransformFeedbackInstanced"
        | "DrawTransformFeedbackStream"
        | "DrawTransformFeedbackStreamInstanced" => Rule::DrawFeedback,
        "PushDebugGroup" | "PushGroupMarker" => Rule::Group { is_end: false },
        "PopDebugGroup" | "PopGroupMarker" => Rule::Group { is_end: true },
        "Finish"
        | "Flush"
        | "ClientWaitSync"
        | "MemoryBarrier"
        | "TextureBarrier"
        | "ReleaseShaderCompiler"
        | "DebugMessageInsert"
        | "InsertEventMarker"
        | "DebugMessageControl"
        | "StringMarkerGREMEDY"
        | "ObjectLabel"
        | "ObjectPtrLabel"
        | "LabelObject"
        | "ValidateProgram"
        | "ValidateProgramPipeline"
        | "InvalidateFramebuffer"
        | "InvalidateSubFramebuffer"
        | "InvalidateNamedFramebufferData"
        | "InvalidateNamedFramebufferSubData"
        | "DiscardFramebuffer"
        | "InvalidateTexImage"
        | "InvalidateTexSubImage"
        | "InvalidateBufferData"
        | "InvalidateBufferSubData"
        | "PrioritizeTextures"
        | "CheckFramebufferStatus"
        | "CheckNamedFramebufferStatus"
        | "RenderMode"
        | "SelectBuffer"
        | "FeedbackBuffer"
        | "InitNames"
        | "LoadName"
        | "PushName"
        | "PopName"
        | "PassThrough"
        | "StringMarker"
        | "DebugMessageCallback" => Rule::Nothing,
        _ => return None,
    })
}

/// Families of functions.
fn by_pattern(base: &str, name: &str) -> Rule {
    let starts = |words: &[&str]| words.iter().any(|word| base.starts_with(word));
    if starts(&["Get", "Is", "AreTextures", "AreProgramsResident"]) {
        // Bindless objects are used through handles, which are not followed here.
        return if base.contains("Handle") { Rule::Unknown } else { Rule::Nothing };
    }
    if starts(&["PixelStore"]) {
        return Rule::PixelStore;
    }
    if base.ends_with("Pointer") || matches!(base, "VertexAttribIPointer" | "VertexAttribLPointer") {
        let is_attribute = base.starts_with("VertexAttrib");
        return if is_attribute { Rule::Attribute { is_named: false } } else { Rule::ArrayPointer };
    }
    if base == "InterleavedArrays" {
        return Rule::ArrayPointer;
    }
    if starts(&["SamplerParameter"]) {
        return Rule::Sampler;
    }
    if starts(&["ProgramUniform", "UniformBlockBinding", "ShaderStorageBlockBinding"]) {
        return Rule::ProgramUniform;
    }
    if starts(&["Uniform"]) {
        return Rule::Uniform;
    }
    if starts(&["ProgramLocalParameter", "ProgramNamedParameter", "NamedProgramLocalParameter"]) {
        return Rule::AssemblyParameter;
    }
    if starts(&["Shader", "CompileShader", "BindAttribLocation", "BindFragData", "TransformFeedbackVaryings"])
        || matches!(base, "SpecializeShader" | "ProgramParameteri" | "ProgramBinary" | "DetachShader" | "DetachObject")
        || starts(&["ProgramParameter"]) && !name.ends_with("NV")
    {
        return Rule::Code;
    }
    if starts(&["VertexP2", "VertexP3", "VertexP4"]) {
        return Rule::Vertex;
    }
    if starts(&["Vertex"]) && base.get(6..7).is_some_and(|digit| ("2"..="4").contains(&digit)) || starts(&["EvalCoord"])
    {
        return Rule::Vertex;
    }
    if let Some(row) = commands::find(base) {
        return Rule::State(row);
    }
    let draws = call_flags(name.as_bytes()).has(CallFlags::RENDER);
    if draws || starts(&["Draw", "MultiDraw", "DispatchCompute", "Rect", "Bitmap", "CopyPixels", "EvalMesh"]) {
        return Rule::Draw;
    }
    Rule::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::gl::kind::Kind;

    #[test]
    fn functions_are_recognized_by_their_names() {
        for (name, expected) in [
            ("glTexImage2D", Rule::Texture(Texture::Image(2), Way::Bound)),
            ("glCompressedTexSubImage3D", Rule::Texture(Texture::Part(3), Way::Bound)),
            ("glTextureSubImage2D", Rule::Texture(Texture::Part(2), Way::Named)),
            ("glTextureImage2DEXT", Rule::Texture(Texture::Image(2), Way::NamedTarget)),
            ("glTexImage3DEXT", Rule::Texture(Texture::Image(3), Way::Bound)),
            ("glCopyTexSubImage2D", Rule::Texture(Texture::Copy { dimensions: 2, is_part: true }, Way::Bound)),
            ("glTexStorage2D", Rule::Texture(Texture::Storage(3), Way::Bound)),
            ("glTexParameteriv", Rule::Texture(Texture::Parameter, Way::Bound)),
            ("glGenerateMipmapEXT", Rule::Texture(Texture::Mipmaps, Way::Bound)),
            ("glGenerateTextureMipmap", Rule::Texture(Texture::Mipmaps, Way::Named)),
            ("glVertex3f", Rule::Vertex),
            ("glVertexAttribPointerARB", Rule::Attribute { is_named: false }),
            ("glVertexPointer", Rule::ArrayPointer),
            ("glUniformMatrix4fv", Rule::Uniform),
            ("glUniformBlockBinding", Rule::ProgramUniform),
            ("glDrawArraysInstancedARB", Rule::Draw),
            ("glDispatchCompute", Rule::Draw),
            ("glGetError", Rule::Nothing),
            ("glGetUniformLocationARB", Rule::Location),
            ("glMapBufferARB", Rule::Map { is_named: false, is_range: false }),
            ("glShaderSourceARB", Rule::Code),
            ("glXSwapBuffers", Rule::Swap),
            ("glXGetVisualFromFBConfig", Rule::Nothing),
            ("glXChooseFBConfig", Rule::System),
            ("eglInitialize", Rule::System),
            ("eglQueryString", Rule::Nothing),
            ("memcpy", Rule::Memcpy),
            ("glFooBar", Rule::Unknown),
            ("IDirect3D9::CreateDevice", Rule::Unknown),
        ] {
            assert_eq!(rule(name.as_bytes()), expected, "{name}");
        }
        assert!(matches!(rule(b"glGenTextures"), Rule::Object(action) if action.kind == Kind::Texture));
        assert!(matches!(rule(b"glBindFramebufferEXT"), Rule::Object(action) if action.kind == Kind::Framebuffer));
        assert!(matches!(rule(b"glColor4ub"), Rule::State(_)));
        assert!(matches!(rule(b"glXMakeCurrent"), Rule::Context(..)));
        assert_eq!(rule(b"gl\xff"), Rule::Unknown);
    }
}

//! Which arguments of a function name objects.
//!
//! Determined by the arguments' names, which apitrace takes from the Khronos registry: `texture` is a texture wherever
//! it is a number. Where it is an enumeration (`glActiveTexture(texture)`), so is the value on the wire, and
//! [`Reference::name`] returns `None`.

use crate::lanes::wire::Value;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::Values;

/// An argument that names an object, or an array of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Index of the argument.
    pub argument: usize,
    /// What it names.
    pub kind: Kind,
    /// It is an array of names.
    pub is_array: bool,
}

/// The references of a function, by its name and those of its arguments.
pub fn references<'a>(function: &[u8], arguments: impl Iterator<Item = &'a [u8]>) -> Vec<Reference> {
    let Some(function) = std::str::from_utf8(function).ok().filter(|name| name.starts_with("gl")) else {
        return Vec::new();
    };
    // Glyphs, windows and the drawables of window systems have separate names, and glX is not gl.
    if function.starts_with("glX") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (argument, name) in arguments.enumerate() {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if let Some((kind, is_array)) = kind(function, name) {
            found.push(Reference { argument, kind, is_array });
        }
    }
    found
}

fn kind(function: &str, argument: &str) -> Option<(Kind, bool)> {
    let has = |part: &str| function.contains(part);
    let one = |kind| Some((kind, false));
    let many = |kind| Some((kind, true));
    match argument {
        "buffer" | "readBuffer" | "writeBuffer" => one(Kind::Buffer),
        "buffers" => many(Kind::Buffer),
        "texture" | "origtexture" => one(Kind::Texture),
        "textures" => many(Kind::Texture),
        "framebuffer" | "readFramebuffer" | "drawFramebuffer" => one(Kind::Framebuffer),
        "framebuffers" => many(Kind::Framebuffer),
        "renderbuffer" => one(Kind::Renderbuffer),
        "renderbuffers" => many(Kind::Renderbuffer),
        "sampler" => one(Kind::Sampler),
        "samplers" => many(Kind::Sampler),
        "shader" => one(Kind::Shader),
        "shaders" => many(Kind::Shader),
        "obj" if has("AttachObject") || has("DetachObject") || has("DeleteObject") => one(Kind::Shader),
        "programObj" | "containerObj" => one(Kind::Program),
        "program" if has("glBindProgram") && !has("Pipeline") => one(Kind::AssemblyProgram),
        "program" => one(Kind::Program),
        "programs" if has("Resident") || has("GenPrograms") || has("DeletePrograms") => many(Kind::AssemblyProgram),
        "programs" => many(Kind::Program),
        "pipeline" => one(Kind::Pipeline),
        "pipelines" => many(Kind::Pipeline),
        "vaobj" => one(Kind::VertexArray),
        "array" if has("VertexArray") => one(Kind::VertexArray),
        "arrays" if has("VertexArrays") => many(Kind::VertexArray),
        "sync" => one(Kind::Sync),
        "list" if !has("CommandList") && !has("Format") => one(Kind::List),
        "lists" if has("glCallLists") => many(Kind::List),
        "xfb" => one(Kind::TransformFeedback),
        "id" => by_function(function).map(|kind| (kind, false)),
        "ids" => by_function(function).map(|kind| (kind, true)),
        "memory" | "memoryObject" if has("Mem") => one(Kind::Memory),
        "memoryObjects" => many(Kind::Memory),
        "semaphore" => one(Kind::Semaphore),
        "semaphores" => many(Kind::Semaphore),
        "fence" => one(Kind::Fence),
        "fences" => many(Kind::Fence),
        "path" if function.ends_with("NV") => one(Kind::Path),
        _ => None,
    }
}

/// The kind of an argument that is just called `id`.
fn by_function(function: &str) -> Option<Kind> {
    let has = |part: &str| function.contains(part);
    if has("TransformFeedback") {
        return Some(Kind::TransformFeedback);
    }
    if has("OcclusionQuer") {
        return Some(Kind::OcclusionQuery);
    }
    let is_query = has("Quer") || has("ConditionalRender");
    is_query.then_some(Kind::Query)
}

impl Reference {
    /// The name in a call, if it is a single number and not zero.
    pub fn name(&self, values: &Values<'_>) -> Option<u64> {
        name(values.argument(self.argument)?.value())
    }

    /// All names in a call, without zeros.
    pub fn names<'a>(&self, values: &Values<'a>) -> impl Iterator<Item = u64> + 'a {
        let single = if self.is_array { None } else { self.name(values) };
        let elements = self.is_array.then(|| values.array(self.argument));
        single.into_iter().chain(elements.into_iter().flatten().filter_map(|mut wire| name(wire.value())))
    }
}

fn name(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Unsigned(name) | Value::Pointer(name) if name != 0 => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str, arguments: &[&str]) -> Vec<(usize, Kind, bool)> {
        let arguments = arguments.iter().map(|name| name.as_bytes());
        references(function.as_bytes(), arguments).iter().map(|r| (r.argument, r.kind, r.is_array)).collect()
    }

    #[test]
    fn argument_names_determine_the_kind() {
        assert_eq!(of("glBindTexture", &["target", "texture"]), [(1, Kind::Texture, false)]);
        assert_eq!(
            of("glNamedFramebufferTexture", &["framebuffer", "attachment", "texture", "level"]),
            [(0, Kind::Framebuffer, false), (2, Kind::Texture, false)]
        );
        assert_eq!(of("glBeginQuery", &["target", "id"]), [(1, Kind::Query, false)]);
        assert_eq!(of("glBeginConditionalRender", &["id", "mode"]), [(0, Kind::Query, false)]);
        assert_eq!(of("glBindTransformFeedback", &["target", "id"]), [(1, Kind::TransformFeedback, false)]);
        assert_eq!(of("glBindProgramARB", &["target", "program"]), [(1, Kind::AssemblyProgram, false)]);
        assert_eq!(
            of("glUseProgramStages", &["pipeline", "stages", "program"]),
            [(0, Kind::Pipeline, false), (2, Kind::Program, false)]
        );
        assert_eq!(of("glDeleteVertexArrays", &["n", "arrays"]), [(1, Kind::VertexArray, true)]);
        assert_eq!(of("glXMakeCurrent", &["dpy", "drawable", "ctx"]), []);
        assert_eq!(of("glEnableClientState", &["array"]), []);
        assert_eq!(of("glDebugMessageInsert", &["source", "type", "id"]), []);
    }

    #[test]
    fn every_function_that_makes_or_deletes_by_the_array_has_a_reference() {
        let pairs = [
            ("glGenBuffers", "buffers"),
            ("glDeleteTextures", "textures"),
            ("glDeleteFramebuffers", "framebuffers"),
            ("glGenRenderbuffers", "renderbuffers"),
            ("glDeleteSamplers", "samplers"),
            ("glGenQueries", "ids"),
            ("glDeleteProgramPipelines", "pipelines"),
            ("glGenVertexArrays", "arrays"),
            ("glDeleteTransformFeedbacks", "ids"),
            ("glGenProgramsARB", "programs"),
            ("glDeleteFencesNV", "fences"),
        ];
        for (function, argument) in pairs {
            let action = crate::tools::gl::lifecycle::action(function.as_bytes()).unwrap();
            assert_eq!(of(function, &["n", argument]), [(1, action.kind, true)], "{function}");
        }
    }
}

//! Which functions make, delete and bind objects, by name.
//!
//! Argument indexes are those of the Khronos registry's prototypes, whose order apitrace keeps.

use crate::tools::gl::kind::{Kind, Scope};

/// What a function does to objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Makes several objects: these arguments are their number and the array of their names (`glGenTextures`,
    /// `glCreateTextures`).
    MakeMany {
        /// Argument with the number of names.
        count: usize,
        /// Argument with the names.
        names: usize,
    },
    /// Makes the object it returns (`glCreateShader`, `glFenceSync`).
    Make,
    /// Makes as many consecutive objects as the argument specifies and returns the first name (`glGenLists`).
    MakeRange {
        /// Argument with the number of names.
        count: usize,
    },
    /// Makes the object whose name is stored through this argument (`glCreatePerfQueryINTEL`).
    MakeInto(usize),
    /// Deletes the objects in an array (`glDeleteTextures`).
    DeleteMany {
        /// Argument with the number of names.
        count: usize,
        /// Argument with the names.
        names: usize,
    },
    /// Deletes the object of this argument (`glDeleteShader`).
    Delete(usize),
    /// Deletes consecutive objects (`glDeleteLists`).
    DeleteRange {
        /// Argument with the first name.
        first: usize,
        /// Argument with the number of names.
        count: usize,
    },
    /// Makes the object of this argument current, and creates it if the name is new and the context allows that
    /// (`glBindTexture`, `glBeginQuery`, `glNewList`).
    Bind {
        /// Argument with the name.
        name: usize,
        /// Argument with the target it is bound to.
        target: Option<usize>,
    },
    /// Attaches the second to the first, which keeps it alive (`glAttachShader`).
    Attach {
        /// Argument with the name of the container.
        holder: usize,
        /// Argument with the name of the attached object.
        attached: usize,
    },
    /// Detaches the second from the first (`glDetachShader`).
    Detach {
        /// Argument with the name of the container.
        holder: usize,
        /// Argument with the name of the attached object.
        attached: usize,
    },
}

/// What a function does to objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Action {
    /// The kind; for [`Verb::Attach`] and [`Verb::Detach`] that of the attached object.
    pub kind: Kind,
    /// What is done.
    pub verb: Verb,
    /// Which contexts see the names made.
    pub scope: Scope,
}

/// Suffixes of extensions.
const SUFFIXES: [&str; 16] = [
    "ARB", "EXT", "OES", "APPLE", "NV", "NVX", "ATI", "AMD", "INTEL", "ANGLE", "KHR", "SGIX", "SGIS", "IMG", "QCOM",
    "MESA",
];

/// A function's name without the suffix of its extension.
pub fn stem(name: &str) -> &str {
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// What a function does to objects; `None` for all others.
pub fn action(name: &[u8]) -> Option<Action> {
    let name = std::str::from_utf8(name).ok()?;
    if !name.starts_with("gl") {
        return None;
    }
    let of = |kind: Kind, verb| Some(Action { kind, verb, scope: kind.scope() });
    if let Some((_, kind, verb)) = EXACT.iter().find(|(known, ..)| *known == name) {
        return of(*kind, *verb);
    }
    let base = stem(name);
    if let Some((_, kind, verb)) = STEMS.iter().find(|(known, ..)| *known == base) {
        return of(*kind, *verb);
    }
    let scope = |kind: Kind| {
        // Framebuffers of the extension are shared (issue 5 of GL_EXT_framebuffer_object), those of the core are not.
        if kind == Kind::Framebuffer && name.ends_with("EXT") { Scope::Group } else { kind.scope() }
    };
    let many = |rest: &str| MANY.iter().find(|(plural, _)| *plural == rest).map(|(_, kind)| *kind);
    if let Some(kind) = base.strip_prefix("glGen").and_then(many) {
        return Some(Action { kind, verb: Verb::MakeMany { count: 0, names: 1 }, scope: scope(kind) });
    }
    if let Some(kind) = base.strip_prefix("glDelete").and_then(many) {
        return Some(Action { kind, verb: Verb::DeleteMany { count: 0, names: 1 }, scope: scope(kind) });
    }
    if let Some(kind) = base.strip_prefix("glCreate").and_then(many) {
        // Textures and queries are created for a target, which is the first argument.
        let first = usize::from(matches!(kind, Kind::Texture | Kind::Query));
        return Some(Action { kind, verb: Verb::MakeMany { count: first, names: first + 1 }, scope: scope(kind) });
    }
    let (_, kind, verb) = BINDS.iter().find(|(known, ..)| *known == base)?;
    Some(Action { kind: *kind, verb: *verb, scope: scope(*kind) })
}

/// Kinds whose objects are made and deleted in arrays.
const MANY: [(&str, Kind); 17] = [
    ("Buffers", Kind::Buffer),
    ("Textures", Kind::Texture),
    ("Framebuffers", Kind::Framebuffer),
    ("Renderbuffers", Kind::Renderbuffer),
    ("Samplers", Kind::Sampler),
    ("Queries", Kind::Query),
    ("ProgramPipelines", Kind::Pipeline),
    ("VertexArrays", Kind::VertexArray),
    ("TransformFeedbacks", Kind::TransformFeedback),
    ("MemoryObjects", Kind::Memory),
    ("Semaphores", Kind::Semaphore),
    ("Programs", Kind::AssemblyProgram),
    ("Fences", Kind::Fence),
    ("OcclusionQueries", Kind::OcclusionQuery),
    ("PerfMonitors", Kind::PerfMonitor),
    ("CommandLists", Kind::CommandList),
    ("States", Kind::State),
];

/// Functions that differ from others only by their suffix.
const EXACT: [(&str, Kind, Verb); 8] = [
    ("glGenVertexShadersEXT", Kind::VertexShaderExt, Verb::MakeRange { count: 0 }),
    ("glDeleteVertexShaderEXT", Kind::VertexShaderExt, Verb::Delete(0)),
    ("glGenFragmentShadersATI", Kind::FragmentShaderAti, Verb::MakeRange { count: 0 }),
    ("glDeleteFragmentShaderATI", Kind::FragmentShaderAti, Verb::Delete(0)),
    ("glBindVertexShaderEXT", Kind::VertexShaderExt, Verb::Bind { name: 0, target: None }),
    ("glBindFragmentShaderATI", Kind::FragmentShaderAti, Verb::Bind { name: 0, target: None }),
    ("glCreateSyncFromCLeventARB", Kind::Sync, Verb::Make),
    ("glImportSyncEXT", Kind::Sync, Verb::Make),
];

/// Functions for a single object, without suffix.
const STEMS: [(&str, Kind, Verb); 22] = [
    ("glCreateShader", Kind::Shader, Verb::Make),
    ("glCreateShaderObject", Kind::Shader, Verb::Make),
    ("glCreateProgram", Kind::Program, Verb::Make),
    ("glCreateProgramObject", Kind::Program, Verb::Make),
    ("glCreateShaderProgram", Kind::Program, Verb::Make),
    ("glCreateShaderProgramv", Kind::Program, Verb::Make),
    ("glDeleteShader", Kind::Shader, Verb::Delete(0)),
    ("glDeleteProgram", Kind::Program, Verb::Delete(0)),
    // Shaders and programs; the name determines which it is.
    ("glDeleteObject", Kind::Program, Verb::Delete(0)),
    ("glAttachShader", Kind::Shader, Verb::Attach { holder: 0, attached: 1 }),
    ("glAttachObject", Kind::Shader, Verb::Attach { holder: 0, attached: 1 }),
    ("glDetachShader", Kind::Shader, Verb::Detach { holder: 0, attached: 1 }),
    ("glDetachObject", Kind::Shader, Verb::Detach { holder: 0, attached: 1 }),
    ("glFenceSync", Kind::Sync, Verb::Make),
    ("glDeleteSync", Kind::Sync, Verb::Delete(0)),
    ("glGenLists", Kind::List, Verb::MakeRange { count: 0 }),
    ("glDeleteLists", Kind::List, Verb::DeleteRange { first: 0, count: 1 }),
    ("glNewList", Kind::List, Verb::Bind { name: 0, target: None }),
    ("glGenPaths", Kind::Path, Verb::MakeRange { count: 0 }),
    ("glDeletePaths", Kind::Path, Verb::DeleteRange { first: 0, count: 1 }),
    ("glCreatePerfQuery", Kind::PerfQuery, Verb::MakeInto(1)),
    ("glDeletePerfQuery", Kind::PerfQuery, Verb::Delete(0)),
];

const BINDS: [(&str, Kind, Verb); 17] = [
    ("glBindBuffer", Kind::Buffer, Verb::Bind { name: 1, target: Some(0) }),
    ("glBindBufferBase", Kind::Buffer, Verb::Bind { name: 2, target: Some(0) }),
    ("glBindBufferRange", Kind::Buffer, Verb::Bind { name: 2, target: Some(0) }),
    ("glBindBufferOffset", Kind::Buffer, Verb::Bind { name: 2, target: Some(0) }),
    ("glBindTexture", Kind::Texture, Verb::Bind { name: 1, target: Some(0) }),
    ("glBindMultiTexture", Kind::Texture, Verb::Bind { name: 2, target: Some(1) }),
    ("glBindFramebuffer", Kind::Framebuffer, Verb::Bind { name: 1, target: Some(0) }),
    ("glBindRenderbuffer", Kind::Renderbuffer, Verb::Bind { name: 1, target: Some(0) }),
    ("glBindSampler", Kind::Sampler, Verb::Bind { name: 1, target: None }),
    ("glBindVertexArray", Kind::VertexArray, Verb::Bind { name: 0, target: None }),
    ("glBindTransformFeedback", Kind::TransformFeedback, Verb::Bind { name: 1, target: Some(0) }),
    ("glBindProgramPipeline", Kind::Pipeline, Verb::Bind { name: 0, target: None }),
    ("glBindProgram", Kind::AssemblyProgram, Verb::Bind { name: 1, target: Some(0) }),
    ("glBeginQuery", Kind::Query, Verb::Bind { name: 1, target: Some(0) }),
    ("glBeginQueryIndexed", Kind::Query, Verb::Bind { name: 2, target: Some(0) }),
    ("glUseProgram", Kind::Program, Verb::Bind { name: 0, target: None }),
    ("glUseProgramObject", Kind::Program, Verb::Bind { name: 0, target: None }),
];

impl Action {
    /// True when binding a new name makes an object, unless the context has the core profile.
    pub fn makes_when_bound(&self) -> bool {
        match self.kind {
            // Lists, in any context that supports them.
            Kind::Buffer | Kind::Texture | Kind::Framebuffer | Kind::Renderbuffer | Kind::Query => true,
            Kind::AssemblyProgram | Kind::List => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<(Kind, Verb)> {
        action(name.as_bytes()).map(|action| (action.kind, action.verb))
    }

    #[test]
    fn every_kind_is_made_and_deleted_by_some_function() {
        let names = [
            ("glGenBuffersARB", Kind::Buffer, "glDeleteBuffers"),
            ("glCreateTextures", Kind::Texture, "glDeleteTexturesEXT"),
            ("glGenFramebuffersOES", Kind::Framebuffer, "glDeleteFramebuffersOES"),
            ("glCreateRenderbuffers", Kind::Renderbuffer, "glDeleteRenderbuffers"),
            ("glGenSamplers", Kind::Sampler, "glDeleteSamplers"),
            ("glGenQueriesEXT", Kind::Query, "glDeleteQueriesARB"),
            ("glCreateShaderObjectARB", Kind::Shader, "glDeleteShader"),
            ("glCreateShaderProgramvEXT", Kind::Program, "glDeleteProgram"),
            ("glCreateProgramPipelines", Kind::Pipeline, "glDeleteProgramPipelinesEXT"),
            ("glGenVertexArraysAPPLE", Kind::VertexArray, "glDeleteVertexArraysOES"),
            ("glFenceSyncAPPLE", Kind::Sync, "glDeleteSync"),
            ("glGenLists", Kind::List, "glDeleteLists"),
            ("glGenTransformFeedbacksNV", Kind::TransformFeedback, "glDeleteTransformFeedbacks"),
            ("glCreateMemoryObjectsEXT", Kind::Memory, "glDeleteMemoryObjectsEXT"),
            ("glGenSemaphoresEXT", Kind::Semaphore, "glDeleteSemaphoresEXT"),
            ("glGenProgramsARB", Kind::AssemblyProgram, "glDeleteProgramsNV"),
            ("glGenFragmentShadersATI", Kind::FragmentShaderAti, "glDeleteFragmentShaderATI"),
            ("glGenVertexShadersEXT", Kind::VertexShaderExt, "glDeleteVertexShaderEXT"),
            ("glGenFencesAPPLE", Kind::Fence, "glDeleteFencesNV"),
            ("glGenOcclusionQueriesNV", Kind::OcclusionQuery, "glDeleteOcclusionQueriesNV"),
            ("glGenPathsNV", Kind::Path, "glDeletePathsNV"),
            ("glGenPerfMonitorsAMD", Kind::PerfMonitor, "glDeletePerfMonitorsAMD"),
            ("glCreatePerfQueryINTEL", Kind::PerfQuery, "glDeletePerfQueryINTEL"),
            ("glCreateCommandListsNV", Kind::CommandList, "glDeleteCommandListsNV"),
            ("glCreateStatesNV", Kind::State, "glDeleteStatesNV"),
        ];
        assert!(names.iter().map(|(_, kind, _)| *kind).eq(Kind::ALL));
        for (make, kind, delete) in names {
            let (made, verb) = of(make).unwrap();
            assert_eq!(made, kind, "{make}");
            let makes = matches!(verb, Verb::MakeMany { .. } | Verb::Make | Verb::MakeRange { .. } | Verb::MakeInto(_));
            assert!(makes, "{make}");
            let (deleted, verb) = of(delete).unwrap();
            assert_eq!(deleted, kind, "{delete}");
            let deletes = matches!(verb, Verb::DeleteMany { .. } | Verb::Delete(_) | Verb::DeleteRange { .. });
            assert!(deletes, "{delete}");
        }
    }

    #[test]
    fn arguments_are_those_of_the_prototypes() {
        assert_eq!(of("glCreateTextures"), Some((Kind::Texture, Verb::MakeMany { count: 1, names: 2 })));
        assert_eq!(of("glCreateBuffers"), Some((Kind::Buffer, Verb::MakeMany { count: 0, names: 1 })));
        assert_eq!(of("glBindBufferRange"), Some((Kind::Buffer, Verb::Bind { name: 2, target: Some(0) })));
        assert_eq!(of("glBindProgramNV"), Some((Kind::AssemblyProgram, Verb::Bind { name: 1, target: Some(0) })));
    }

    #[test]
    fn framebuffers_of_the_extension_are_shared_and_others_are_not() {
        let scope = |name: &str| action(name.as_bytes()).unwrap().scope;
        assert_eq!((scope("glGenFramebuffersEXT"), scope("glGenFramebuffers")), (Scope::Group, Scope::Context));
        assert_eq!((scope("glGenQueries"), scope("glGenTexturesEXT")), (Scope::Context, Scope::Group));
    }

    #[test]
    fn other_functions_do_nothing_to_objects() {
        for name in ["glClear", "glGenerateMipmap", "glXCreateContext", "glGen", "gl", "", "glDrawArraysEXT", "EXT"] {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(action(b"glGenText\xffures"), None);
    }
}

//! Kinds of objects, their name spaces, and what contexts share.

/// A kind of OpenGL object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Buffer object.
    Buffer,
    /// Texture.
    Texture,
    /// Framebuffer object.
    Framebuffer,
    /// Renderbuffer.
    Renderbuffer,
    /// Sampler object.
    Sampler,
    /// Query object.
    Query,
    /// Shader.
    Shader,
    /// Program of the shading language.
    Program,
    /// Program pipeline.
    Pipeline,
    /// Vertex array object.
    VertexArray,
    /// Sync object (fence).
    Sync,
    /// Display list.
    List,
    /// Transform feedback object.
    TransformFeedback,
    /// Memory object (`GL_EXT_memory_object`).
    Memory,
    /// Semaphore (`GL_EXT_semaphore`).
    Semaphore,
    /// Assembly program (`GL_ARB_vertex_program` and similar).
    AssemblyProgram,
    /// Fragment shader of `GL_ATI_fragment_shader`.
    FragmentShaderAti,
    /// Vertex shader of `GL_EXT_vertex_shader`.
    VertexShaderExt,
    /// Fence of `GL_NV_fence` or `GL_APPLE_fence`.
    Fence,
    /// Occlusion query of `GL_NV_occlusion_query`.
    OcclusionQuery,
    /// Path of `GL_NV_path_rendering`.
    Path,
    /// Performance monitor (`GL_AMD_performance_monitor`).
    PerfMonitor,
    /// Performance query (`GL_INTEL_performance_query`).
    PerfQuery,
    /// Command list (`GL_NV_command_list`).
    CommandList,
    /// State object (`GL_NV_command_list`).
    State,
}

/// Which contexts see an object's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// All contexts of the share group.
    Group,
    /// The context it was made in.
    Context,
}

impl Kind {
    /// All kinds, in the order of [`Kind::index`].
    pub const ALL: [Self; 25] = [
        Self::Buffer,
        Self::Texture,
        Self::Framebuffer,
        Self::Renderbuffer,
        Self::Sampler,
        Self::Query,
        Self::Shader,
        Self::Program,
        Self::Pipeline,
        Self::VertexArray,
        Self::Sync,
        Self::List,
        Self::TransformFeedback,
        Self::Memory,
        Self::Semaphore,
        Self::AssemblyProgram,
        Self::FragmentShaderAti,
        Self::VertexShaderExt,
        Self::Fence,
        Self::OcclusionQuery,
        Self::Path,
        Self::PerfMonitor,
        Self::PerfQuery,
        Self::CommandList,
        Self::State,
    ];

    /// Index in [`Kind::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name for messages; for buffers and textures as in apitrace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::Texture => "texture",
            Self::Framebuffer => "framebuffer",
            Self::Renderbuffer => "renderbuffer",
            Self::Sampler => "sampler",
            Self::Query => "query",
            Self::Shader => "shader",
            Self::Program => "program",
            Self::Pipeline => "pipeline",
            Self::VertexArray => "vertexarray",
            Self::Sync => "sync",
            Self::List => "list",
            Self::TransformFeedback => "transformfeedback",
            Self::Memory => "memory",
            Self::Semaphore => "semaphore",
            Self::AssemblyProgram => "assemblyprogram",
            Self::FragmentShaderAti => "fragmentshader",
            Self::VertexShaderExt => "vertexshader",
            Self::Fence => "fence",
            Self::OcclusionQuery => "occlusionquery",
            Self::Path => "path",
            Self::PerfMonitor => "perfmonitor",
            Self::PerfQuery => "perfquery",
            Self::CommandList => "commandlist",
            Self::State => "state",
        }
    }

    /// Which contexts see its names (OpenGL 4.6, chapter 5): container objects and queries are not shared.
    ///
    /// Framebuffers of `GL_EXT_framebuffer_object` are shared, as [`super::lifecycle::Action::scope`] indicates.
    pub fn scope(self) -> Scope {
        match self {
            Self::Framebuffer
            | Self::Query
            | Self::Pipeline
            | Self::VertexArray
            | Self::TransformFeedback
            | Self::Fence
            | Self::OcclusionQuery
            | Self::PerfMonitor
            | Self::PerfQuery
            | Self::State => Scope::Context,
            _ => Scope::Group,
        }
    }

    /// The kind that identifies the name space: shaders and programs share one.
    #[must_use]
    pub fn namespace(self) -> Self {
        if self == Self::Shader { Self::Program } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_index_and_a_unique_name() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), at);
            assert_eq!(Kind::ALL.iter().filter(|other| other.name() == kind.name()).count(), 1);
        }
    }
}

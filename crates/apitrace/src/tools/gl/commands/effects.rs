//! The vocabulary of the table of commands.

use crate::tools::gl::kind::Kind;

/// What a state also depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// Nothing.
    Nothing,
    /// The active texture unit, which selects too.
    Unit,
    /// The modelview matrix, which is applied.
    ModelView,
    /// All state of the context.
    Everything,
}

/// Where the value of a parameter is in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// An argument.
    One(usize),
    /// Several arguments in a row.
    List(usize, usize),
}

/// Which parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
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
pub(crate) type Parameter = (Of, Source);

/// Families of state. The states of a family can become unknown together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Family {
    Capability,
    /// Capabilities that can be set for all draw buffers or viewports, and for single ones.
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

/// The number of families.
pub(crate) const FAMILIES: usize = Family::Direct3D as usize + 1;

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum ObjectKind {
    Texture,
    /// The unnamed texture of a target.
    DefaultTexture,
    Buffer,
    Framebuffer,
    Renderbuffer,
    Program,
    VertexArray,
    Sampler,
    Pipeline,
}

impl ObjectKind {
    /// The objects of a kind, if their names are followed here.
    pub(crate) fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Texture => Self::Texture,
            Kind::Buffer => Self::Buffer,
            Kind::Framebuffer => Self::Framebuffer,
            Kind::Renderbuffer => Self::Renderbuffer,
            Kind::Program => Self::Program,
            Kind::VertexArray => Self::VertexArray,
            Kind::Sampler => Self::Sampler,
            Kind::Pipeline => Self::Pipeline,
            _ => return None,
        })
    }
}

/// What the key of a state contains besides arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depends {
    Nothing,
    /// The active texture unit.
    Unit,
    /// The vertex array object.
    VertexArray,
    /// The vertex array object, and the buffer that is bound for vertices is part of the value.
    VertexArrayAndBuffer,
    /// The first argument names an object of this kind, which may be shared between contexts.
    Object(ObjectKind),
}

/// How arguments make a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Unchanged.
    Plain,
    /// The color value applies to alpha too.
    Twice,
}

/// A state that is set by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setter {
    pub(crate) family: Family,
    /// Distinguishes states of one family.
    pub(crate) slot: u8,
    /// The number of leading arguments that form the key, which are the command's selectors; the rest are the value.
    pub(crate) keys: u8,
    pub(crate) depends: Depends,
    pub(crate) form: Form,
    /// Put in front of the value: enabled or not.
    pub(crate) mark: Option<bool>,
    /// The family that becomes unknown, if state can be set both for all and one by one.
    pub(crate) unsettles: Option<Family>,
    /// The value begins with the name of an object of this kind: a new object with the same name is a different value.
    pub(crate) names: Option<ObjectKind>,
}

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Set(Setter),
    /// `glEnable` and `glDisable`.
    Capability(bool),
    /// The face in the first argument, or both if there is none.
    Faced {
        slot: u8,
        has_face: bool,
    },
    ActiveTexture,
    BindTexture,
    TextureParameter,
    BindBuffer,
    /// Binds to a numbered binding point, and to the target itself.
    BindIndexed,
    BindFramebuffer,
    BindVertexArray,
    UseProgram,
    /// A uniform. `has_count`: an array with a count; `has_program`: of the program in the first argument.
    Uniform {
        has_program: bool,
        has_count: bool,
        kind: u16,
    },
    /// The names in an array, or one name, become free, or get a new meaning.
    Delete(ObjectKind),
    Renew(ObjectKind),
    /// These families become unknown.
    Unsettle(&'static [Family]),
    UnsettleAll,
    /// Makes a context current; the argument that contains it.
    MakeCurrent {
        at: u8,
        is_zero_success: bool,
    },
    DestroyContext(u8),
    /// Calls until the end of the list are recorded in it.
    NewList,
    EndList,
    /// Direct3D: the device is argument 0.
    Device(u8, u8),
    DeviceUnsettle,
    DeviceRelease,
    BeginStateBlock,
    EndStateBlock,
}

//! The table of functions, made from the registries of Khronos when the crate is built (`build/`).

/// A function of OpenGL, EGL or GLX.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) result: Kind,
    pub(crate) parameters: &'static [Parameter],
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// How many pointers lead to it; 0 for a value.
    pub(crate) pointers: u8,
    /// Nothing is written through the pointer.
    pub(crate) is_const: bool,
    pub(crate) length: Length,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Void,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    Double,
    Character,
    /// A pointer to text that ends with a zero.
    Text,
    /// What only the driver knows, of a pointer's size.
    Handle,
    /// Truth, with the place of its group; `true`: of one byte, else of four.
    Truth(u16, bool),
    /// The place of the group.
    Enum(u16),
    Mask(u16),
}

impl Kind {
    /// Bytes of one value in memory.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Void | Self::Int8 | Self::Uint8 | Self::Character | Self::Truth(_, true) => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float | Self::Truth(_, false) | Self::Enum(_) | Self::Mask(_) => 4,
            Self::Int64 | Self::Uint64 | Self::Double | Self::Text | Self::Handle => 8,
        }
    }

    /// Whether it is passed in the registers for floating-point numbers.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }
}

/// How many things a pointer points to. Numbers are places of parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Length {
    /// The registry does not say, or its rule is not known here: the pointer alone is recorded.
    Unknown,
    One,
    Constant(u32),
    /// As many as a parameter says, times a number.
    Times(u8, u32),
    /// As many as the number that this parameter points to says afterwards.
    Returned(u8),
    /// Pairs up to the name that ends them; `true`: EGL's. The place of the group of all names.
    Attributes(bool, u16),
    /// As the parameter's enumerant says.
    Parameter(u8),
    /// Pixels.
    Image {
        format: u8,
        kind: u8,
        sides: [Option<u8>; 3],
    },
    /// Bits of width and height; `None`: 32 by 32.
    Bitmap(Option<(u8, u8)>),
    /// So many of a type that another parameter says.
    Typed {
        count: u8,
        kind: u8,
    },
    /// Control points of an evaluator: for each direction stride and order.
    Map {
        target: u8,
        sides: &'static [(u8, u8)],
    },
    /// A value for clearing the buffer.
    Cleared(u8),
}

/// Enumerants that belong together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// Sorted by value.
    pub(crate) members: &'static [(&'static str, i64)],
}

impl Group {
    pub(crate) fn has(&self, value: i64) -> bool {
        self.members.binary_search_by_key(&value, |(_, value)| *value).is_ok()
    }
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
include!(concat!(env!("OUT_DIR"), "/groups.rs"));

/// The number of a function; `None`: it is not in the table.
pub(crate) fn number(name: &[u8]) -> Option<usize> {
    FUNCTIONS.binary_search_by(|function| function.name.as_bytes().cmp(name)).ok()
}

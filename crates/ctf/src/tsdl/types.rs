//! Types as they are declared: names of other fields are not resolved yet, and one declaration may be used many times.

use std::rc::Rc;

use anytrace_core::Endian;

/// Most bits of an integer.
pub(crate) const INTEGER_BITS_MAX: u32 = 64;

/// An integer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) size: u32,
    pub(crate) align: u32,
    pub(crate) is_signed: bool,
    pub(crate) base: u8,
    /// `None` is that of the trace.
    pub(crate) order: Option<Endian>,
    /// True for text when it is an element of an array.
    pub(crate) is_text: bool,
    /// The clock whose value it is.
    pub(crate) clock: Option<Rc<str>>,
}

/// A label of an enumeration and the values that it is for, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) first: i128,
    pub(crate) last: i128,
}

/// A named member of a structure or variant.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: Rc<str>,
    pub(crate) ty: Type,
}

/// The name of another field, such as `stream.event.header.id`.
pub(crate) type Path = Rc<[String]>;

/// A type.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Integer(Rc<Integer>),
    Float { size: u32, align: u32, order: Option<Endian> },
    Text,
    Enumeration(Rc<Integer>, Rc<[Label]>),
    Structure(Rc<[Member]>, u32),
    Variant(Rc<[Member]>, Option<Path>),
    Array(Rc<Self>, u64),
    Sequence(Rc<Self>, Path),
}

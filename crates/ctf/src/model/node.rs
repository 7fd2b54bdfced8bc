//! Types with every name resolved: what the decoder walks.

use std::sync::Arc;

use anytrace_core::Endian;

/// What the value of a field is for, by its name in the structures that the specification defines ("Event Packet
/// Header", section 5.1, and "Event Packet Context", 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    Magic,
    StreamId,
    Begin,
    End,
    ContentSize,
    PacketSize,
    Discarded,
    PacketNumber,
    Processor,
    EventId,
    None,
}

/// How many there are, `None` aside.
pub(crate) const ROLES: usize = Role::None as usize;

/// An integer whose value nothing refers to.
pub(crate) const NO_SLOT: u32 = u32::MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) size: u32,
    pub(crate) align: u32,
    pub(crate) is_signed: bool,
    pub(crate) base: u8,
    pub(crate) order: Endian,
    /// Where its value is kept for what refers to it.
    pub(crate) slot: u32,
    pub(crate) role: Role,
    /// True when it sets the clock.
    pub(crate) is_time: bool,
    /// True for text when it is an element of an array.
    pub(crate) is_text: bool,
}

pub(crate) use crate::tsdl::types::Label;

#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// As it is shown: without the underscore that recorders put in front.
    pub(crate) name: Arc<str>,
    pub(crate) node: Node,
}

/// Values of a tag, both included, and the option that they choose.
pub(crate) type Choice = (i128, i128, usize);

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Integer(Integer),
    Enumeration(Integer, Arc<[Label]>),
    Float { size: u32, align: u32, order: Endian },
    Text,
    Structure { fields: Vec<Field>, align: u32 },
    Variant { slot: u32, choices: Vec<Choice>, options: Vec<Field> },
    Array { of: Box<Self>, length: u64 },
    Sequence { of: Box<Self>, slot: u32 },
}

impl Node {
    /// Where it must begin, in bits. A variant is aligned as the option that is chosen.
    pub(crate) fn align(&self) -> u32 {
        match self {
            Self::Integer(integer) | Self::Enumeration(integer, _) => integer.align,
            Self::Float { align, .. } | Self::Structure { align, .. } => *align,
            Self::Text => 8,
            Self::Variant { .. } => 1,
            Self::Array { of, .. } | Self::Sequence { of, .. } => of.align(),
        }
    }

    /// True for characters, so that an array of them is text.
    pub(crate) fn is_character(&self) -> bool {
        matches!(self, Self::Integer(integer) if integer.is_text && integer.size == 8 && integer.align == 8)
    }
}

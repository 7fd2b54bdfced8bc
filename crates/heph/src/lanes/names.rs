//! Descriptions by number.

pub(crate) use anytrace_core::Interner as Names;

/// The number of a description for which there was no room.
pub(crate) const NO_ROOM: u32 = u32::MAX;

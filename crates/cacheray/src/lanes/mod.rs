//! The trace in the terms of the engines: spans or accesses.

pub(crate) mod accesses;
pub(crate) mod marks;
pub(crate) mod tables;

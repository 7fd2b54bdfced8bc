//! The trace in the terms of the engines: accesses and tables.

pub(crate) mod accesses;
pub(crate) mod marks;
pub(crate) mod tables;

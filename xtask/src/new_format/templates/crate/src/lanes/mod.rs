//! The trace as tables, and where reading can begin inside it.

pub(crate) mod marks;
pub(crate) mod tables;

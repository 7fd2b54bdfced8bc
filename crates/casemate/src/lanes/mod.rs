//! The trace for programs that know no format.

pub(crate) mod marks;
pub(crate) mod tables;

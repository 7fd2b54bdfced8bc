//! The trace for programs that know no format.

pub(crate) mod tables;

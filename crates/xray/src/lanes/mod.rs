//! The trace in the terms of the engines: spans or accesses.

pub(crate) mod calls;
pub(crate) mod ordered;
pub(crate) mod spans;

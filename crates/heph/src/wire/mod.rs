//! The bytes: records, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod counter;
pub(crate) mod dialect;
pub(crate) mod fault;
pub(crate) mod framer;
pub(crate) mod marks;
pub(crate) mod nested;
pub(crate) mod parse;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod session;
pub(crate) mod writer;

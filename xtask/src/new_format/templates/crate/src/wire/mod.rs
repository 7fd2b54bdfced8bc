//! The bytes: records, their parser, reader and writer.

pub(crate) mod marks;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod writer;

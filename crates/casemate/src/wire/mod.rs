//! The bytes: records, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod field;
pub(crate) mod marks;
pub(crate) mod output;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod skip;
pub(crate) mod style;
pub(crate) mod walk;
pub(crate) mod words;
pub(crate) mod writer;

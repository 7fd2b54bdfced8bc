//! Bytes: records of words, the parser, the reader, the writer.

pub(crate) mod arguments;
pub(crate) mod content;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod words;
pub(crate) mod writer;

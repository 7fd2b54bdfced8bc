//! Bytes: lines and binary records, the parser, the reader, the writer.

pub(crate) mod attr;
pub(crate) mod bytes;
pub(crate) mod event;
pub(crate) mod fault;
pub(crate) mod folder;
pub(crate) mod header;
pub(crate) mod packed;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod resync;
pub(crate) mod sample;
pub(crate) mod text;
pub(crate) mod writer;

//! From bytes to records: the files of an archive, packets, events.

pub(crate) mod bits;
pub(crate) mod catalog;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod parse;
pub(crate) mod place;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod writer;

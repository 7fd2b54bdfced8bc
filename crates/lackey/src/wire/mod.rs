//! The bytes: records, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod excerpt;
#[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only lanes make marks"))]
pub(crate) mod marks;
pub(crate) mod message;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod writer;

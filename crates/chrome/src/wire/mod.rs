//! The bytes: events, the JSON around them, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod event;
pub(crate) mod excerpt;
pub(crate) mod frame;
pub(crate) mod json;
#[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only lanes make marks"))]
pub(crate) mod marks;
pub(crate) mod number;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod reader;
pub(crate) mod record;
mod state;
pub(crate) mod writer;

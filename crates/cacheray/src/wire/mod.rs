//! The bytes: records, their parser, reader and writer, and what a reader does after damage.

pub(crate) mod damage_start;
pub(crate) mod detect;
pub(crate) mod diagnostics;
pub(crate) mod likeness;
#[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only lanes make marks"))]
pub(crate) mod marks;
pub(crate) mod mix;
pub(crate) mod parallel;
pub(crate) mod parse;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod resync;
pub(crate) mod writer;

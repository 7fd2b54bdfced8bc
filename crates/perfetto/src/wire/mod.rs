//! The bytes: packets, their parser, reader and writer, and the messages in them.

pub(crate) mod numbers;
pub(crate) mod parse;
pub(crate) mod probe;
pub(crate) mod proto;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod resync;
pub(crate) mod schema;
pub(crate) mod writer;

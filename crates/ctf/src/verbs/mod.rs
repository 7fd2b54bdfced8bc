//! The generic verbs: info, dump, check, and writing a trace again.

pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod facts;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod lines;
mod packets;
pub(crate) mod rewrite;
pub(crate) mod select;
pub(crate) mod walk;

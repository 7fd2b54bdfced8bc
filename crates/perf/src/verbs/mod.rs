//! The generic verbs: info, dump, check, and writing a recording again.

pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod lines;
pub(crate) mod patch;
pub(crate) mod rewrite;
pub(crate) mod select;
mod unpack;

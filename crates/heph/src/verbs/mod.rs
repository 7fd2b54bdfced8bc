//! The generic verbs: info, dump, check, and writing a trace again.

pub(crate) mod attribute_text;
pub(crate) mod check;
pub(crate) mod counters;
pub(crate) mod dump;
pub(crate) mod finding;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod jsonl;
pub(crate) mod lanes;
pub(crate) mod observer;
pub(crate) mod out;
pub(crate) mod rewrite;
pub(crate) mod select;
pub(crate) mod sessions;

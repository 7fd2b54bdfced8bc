//! The generic verbs: info, dump, check, and writing a trace again.

pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod event_lines;
pub(crate) mod events;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod jsonl;
pub(crate) mod rewrite;
pub(crate) mod rewriter;
pub(crate) mod text;

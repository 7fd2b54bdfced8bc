//! The generic verbs: info, dump, check, and writing a trace again.

pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod head_check;
pub(crate) mod info;
pub(crate) mod jsonl;
pub(crate) mod lines;
pub(crate) mod losses;
pub(crate) mod output;
pub(crate) mod regions;
pub(crate) mod rewrite;
pub(crate) mod rtta;
pub(crate) mod trim;
pub(crate) mod types;

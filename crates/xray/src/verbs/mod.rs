//! The generic verbs: info, dump, check, and writing a trace again.

pub(crate) mod assemble;
pub(crate) mod basic_rewrite;
pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod faithful;
pub(crate) mod info;
pub(crate) mod jsonl;
pub(crate) mod pairing;
pub(crate) mod pick;
pub(crate) mod rewrite;
pub(crate) mod structured;
pub(crate) mod yaml_copy;

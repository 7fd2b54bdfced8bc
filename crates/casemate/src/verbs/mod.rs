//! The generic verbs: info, dump, check, and writing a trace again.

pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod emitter;
pub(crate) mod info;
pub(crate) mod jsonl;
pub(crate) mod memory;
pub(crate) mod model_check;
pub(crate) mod out;
pub(crate) mod preamble;
pub(crate) mod rewrite;
pub(crate) mod state;
#[cfg(test)]
pub(crate) mod state_oracle;
mod state_sync;
pub(crate) mod trim;

//! The format's own commands as library functions: calls assembled from their events, call sets, the text of `apitrace
//! dump`.
//!
//! [`calls`] is the basis of the commands: it emits each call once, when it is left, with the bytes of its values.
//! [`wire`] reads those bytes and [`dictionary`] contains the names that belong to them.

pub use crate::lanes::{calls, dictionary, flags, spans, wire};

mod call_range;
pub mod callset;
mod callset_parse;
mod carry;
pub mod diff;
pub mod diff_images;
pub mod diff_state;
pub mod dump;
mod flow;
pub mod from_jsonl;
mod from_jsonl_values;
pub mod gl;
pub mod gltrim;
pub mod index;
pub mod info;
pub mod jsonl;
mod jsonl_values;
pub mod leaks;
mod levels;
mod picked;
pub mod pickle;
pub mod program;
pub mod repack;
mod replace;
pub mod sed;
pub mod state;
pub mod stats;
pub mod to_c;
pub mod trim;
mod waiting;
pub(crate) mod words;
mod workers;

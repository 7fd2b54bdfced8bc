//! The format's own commands as library functions: calls assembled from their events, call sets, the text of `apitrace
//! dump`.
//!
//! [`calls`] is the basis of the commands: it emits each call once, when it is left, with the bytes of its values.
//! [`wire`] reads those bytes and [`dictionary`] contains the names that belong to them.

pub mod calls;
pub mod callset;
mod callset_parse;
mod carry;
pub mod dictionary;
pub mod diff;
pub mod diff_images;
pub mod diff_state;
pub mod dump;
pub mod flags;
mod flags_table;
mod float;
mod flow;
pub mod from_jsonl;
mod from_jsonl_values;
pub mod gl;
pub mod gltrim;
mod guids;
mod guids_table;
mod idle;
pub mod index;
pub mod info;
pub mod jsonl;
mod labels;
pub mod leaks;
mod levels;
mod packed;
mod picked;
pub mod pickle;
mod print;
mod print_value;
pub mod repack;
mod replace;
pub mod sed;
pub mod spans;
pub mod state;
pub mod stats;
mod text;
pub mod to_c;
pub mod trim;
mod waiting;
mod walk;
pub mod wire;
mod workers;

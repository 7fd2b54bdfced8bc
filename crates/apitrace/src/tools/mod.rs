//! The format's own commands as library functions: calls put together from their events, call sets, the text of
//! `apitrace dump`.
//!
//! [`calls`] is what the commands stand on: it gives each call once, when it is left, with the bytes of its values.
//! [`wire`] walks through those bytes and [`dictionary`] has the names that belong to them.

pub mod calls;
pub mod callset;
mod callset_parse;
pub mod dictionary;
pub mod dump;
pub mod flags;
mod flags_table;
mod float;
pub mod from_jsonl;
mod from_jsonl_values;
mod guids;
mod guids_table;
mod idle;
pub mod info;
pub mod jsonl;
mod labels;
mod picked;
pub mod pickle;
mod print;
mod print_value;
mod text;
mod walk;
pub mod wire;
mod workers;

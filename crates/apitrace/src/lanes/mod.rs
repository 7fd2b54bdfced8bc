//! The lanes above events: calls assembled from them, and spans.
//!
//! [`calls`] emits each call once, when it is left, with the bytes of its values. [`wire`] reads those bytes and
//! [`dictionary`] contains the names that belong to them.

pub mod calls;
pub mod dictionary;
pub mod flags;
pub(crate) mod float;
pub(crate) mod formatter;
pub(crate) mod guids;
pub(crate) mod idle;
pub(crate) mod labels;
pub(crate) mod marks;
pub(crate) mod packed;
pub(crate) mod points;
pub(crate) mod print;
pub(crate) mod print_value;
pub mod spans;
pub(crate) mod style;
pub(crate) mod tables;
pub(crate) mod text;
pub(crate) mod walk;
pub mod wire;
pub(crate) mod zstd_frames;

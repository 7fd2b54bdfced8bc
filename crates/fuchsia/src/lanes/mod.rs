//! The trace as spans, sorted by thread and time, and as tables.

#[cfg(feature = "lanes")]
mod collect;
#[cfg(feature = "lanes")]
mod emit;
#[cfg(feature = "lanes")]
mod item;
#[cfg(feature = "lanes")]
pub(crate) mod spans;
pub(crate) mod tables;

//! The trace as spans, sorted by thread and time, and as tables.

#[cfg(feature = "lanes")]
mod collect;
#[cfg(feature = "lanes")]
mod emit;
#[cfg(feature = "lanes")]
mod gather;
#[cfg(feature = "lanes")]
mod item;
#[cfg(feature = "lanes")]
mod meaning;
#[cfg(feature = "lanes")]
mod names;
#[cfg(feature = "lanes")]
mod own;
#[cfg(feature = "lanes")]
pub(crate) mod spans;
pub(crate) mod tables;

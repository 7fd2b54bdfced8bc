//! The trace as spans: every packet is read once, its events are stored by track and sorted, then emitted. And as
//! tables.

#[cfg(feature = "lanes")]
mod attributes;
#[cfg(feature = "lanes")]
mod collect;
#[cfg(feature = "lanes")]
mod collector;
#[cfg(feature = "lanes")]
mod ftrace;
#[cfg(feature = "lanes")]
mod rows;
#[cfg(feature = "lanes")]
pub(crate) mod spans;
#[cfg(feature = "lanes")]
mod store;
pub(crate) mod tables;

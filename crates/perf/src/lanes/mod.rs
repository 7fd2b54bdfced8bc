//! The recording as spans, made of its samples, and as tables.

#[cfg(feature = "lanes")]
mod chosen;
#[cfg(feature = "lanes")]
mod emit;
#[cfg(feature = "lanes")]
mod item;
#[cfg(feature = "lanes")]
mod space;
#[cfg(feature = "lanes")]
pub(crate) mod spans;
pub(crate) mod tables;
#[cfg(feature = "lanes")]
mod text;

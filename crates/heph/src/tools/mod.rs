//! The format's own commands as library functions.

pub mod compat;
pub mod loss;
pub mod spans;
pub mod stats;
pub mod tasks;
pub(crate) mod words;
pub mod written;

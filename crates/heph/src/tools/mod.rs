//! The format's own commands as library functions.

pub mod loss;
mod runtime;
pub mod spans;
pub mod stats;

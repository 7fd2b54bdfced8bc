//! The format's own commands as library functions: results as structs, renderers to text and JSON.

pub mod check;
pub mod render;

pub use check::{CheckOptions, Claim, Found, Related, Report, Role, Verdict, check};

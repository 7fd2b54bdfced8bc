//! The format's own commands as library functions: each takes an input and options and gives a result to print.

pub mod convert;
pub mod fdr_dump;
mod fdr_groups;
mod fdr_line;
pub mod map;

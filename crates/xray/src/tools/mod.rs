//! The format's own commands as library functions: each takes an input and options and gives a result to print.

pub mod map;

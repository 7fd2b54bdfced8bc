//! The trace in the terms of the engines: spans and tables, and where reading can begin inside it.

mod arguments;
mod collect;
mod emit;
mod homes;
mod item;
mod keys;
pub(crate) mod marks;
pub(crate) mod overlaps;
mod own;
mod pairs;
mod rows;
mod sorter;
pub(crate) mod spans;
pub(crate) mod tables;

//! The format's own commands as library functions: each takes an input and options and returns a result to print.

pub mod account;
pub(crate) mod bucket_order;
pub mod convert;
pub mod fdr_dump;
mod fdr_groups;
mod fdr_line;
pub mod graph;
pub mod graph_diff;
mod graph_diff_report;
mod graph_report;
pub mod map;
mod naming;
mod open_search;
mod palette;
mod printing;
#[cfg(test)]
mod sections_tests;
mod spread;
pub mod stack;
mod stack_counter;
pub mod stack_files;
mod stack_hash;
mod stack_profile;
mod stack_report;
mod stack_stream;
mod stack_tops;
mod stack_tree;
mod wire;

pub use graph_report::{GraphReport, GraphView, Stat};
pub use naming::Names;
pub use stack_report::{StackGrouping, StackReport, StackUnit, StackView, Weight};
pub use stack_tops::Tops;

//! The format's own commands as library functions: each takes an input and options and gives a result to print.

mod bucket_order;
mod naming;
mod printing;
pub mod stack;
mod stack_report;
mod stack_stream;
mod stack_tree;
mod wire;

pub use naming::Names;
pub use stack_report::{StackGrouping, StackReport, StackUnit, StackView, Weight};
pub mod map;

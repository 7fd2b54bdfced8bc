//! Events as a call tree: exact for traces of any size, or in order of arrival in bounded memory.
//!
//! [`tree`] prints it; [`anytrace_core::Trace::spans`] emits it for every verb that works on spans.

mod builder;
mod line;
mod printer;
mod tree;
mod tree_options;
mod window;

pub use crate::lanes::Lanes;
pub use tree::tree;
pub use tree_options::{Streaming, TreeForm, TreeOptions, TreeSummary};

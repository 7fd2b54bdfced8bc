//! wip
#![forbid(unsafe_code)]
#![allow(dead_code, missing_docs)]
mod address;
mod archivist;
mod datagram;
mod options;
mod queue;
mod store;
mod tally;
pub use address::*;
pub use options::*;
pub use tally::*;

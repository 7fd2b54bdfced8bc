//! Spans and accesses one at a time, by a function: for programs that need no batches, numbers and announcements.

mod accesses;
mod spans;

pub use accesses::{AccessEvent, each_access};
pub use spans::{SpanRef, each_edge, each_span};

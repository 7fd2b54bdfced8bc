//! Traces as their descriptions define them: types with all names resolved, streams, events, clocks.

mod build;
mod clock;
pub(crate) mod node;
mod resolve;
mod trace;

pub(crate) use build::build;
pub(crate) use trace::{Stream, Trace};

//! What records mean: the events that the recording describes, samples with their fields, losses.

pub(crate) mod features;
pub(crate) mod session;

//! What packets mean together: sequences with their interned data and clocks, tracks, events.

pub(crate) mod clocks;
pub(crate) mod compressed;
pub(crate) mod event;
pub(crate) mod kernel;
pub(crate) mod names;
pub(crate) mod sequences;
pub(crate) mod session;
pub(crate) mod tracks;

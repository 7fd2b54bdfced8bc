//! What records mean: strings and threads of providers, clocks, names of processes and threads.

pub(crate) mod names;
pub(crate) mod session;

//! Caches simulated on memory accesses: any number of levels, several configurations in one pass.
//!
//! [`config`] describes what is simulated, and [`config_file`] and [`presets`] are its sources; [`Simulation`] takes
//! the accesses of a trace and returns [`results::Results`]. [`results::LevelResults`] documents each counter.

mod attribution;
mod batch;
mod by_code;
mod by_mark;
mod classes;
mod coherence;
pub mod compare;
pub mod config;
pub mod config_file;
mod config_ini;
mod config_upstream;
mod cores;
mod fields;
mod hierarchy;
pub mod next_use;
mod options;
mod prefetch;
pub mod presets;
pub mod processor;
pub mod results;
mod simulation;
#[cfg(test)]
mod slow;
pub mod split;
mod store;
mod tally;
#[cfg(test)]
mod tests;
mod touched;
mod unit;
mod workers;

pub use by_code::ByCode;
pub(crate) use by_mark::{ByMark, MARKED};
pub use cores::{CorePlan, Cores};
pub use options::Options;
pub use simulation::Simulation;

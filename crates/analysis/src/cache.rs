//! Caches simulated on memory accesses: any number of levels, several configurations in one pass.
//!
//! [`config`] describes what is simulated, and [`config_file`] and [`presets`] are its sources; [`Simulation`] takes
//! the accesses of a trace and returns [`results::Results`]. [`results::LevelResults`] documents each counter.

mod attribution;
mod classes;
mod coherence;
pub mod compare;
pub mod config;
pub mod config_file;
mod config_ini;
mod fields;
mod hierarchy;
pub mod next_use;
mod prefetch;
pub mod presets;
pub mod results;
mod simulation;
#[cfg(test)]
mod slow;
mod store;
#[cfg(test)]
mod tests;
mod workers;

pub use simulation::{CorePlan, Cores, Options, Simulation};

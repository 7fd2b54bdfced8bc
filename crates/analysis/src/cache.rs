//! Caches simulated on memory accesses: any number of levels, several configurations in one pass.
//!
//! [`config`] says what is simulated and [`config_file`], [`presets`] where that comes from; [`Simulation`] takes a
//! trace's accesses and gives [`results::Results`]. What each counter means is written at [`results::LevelResults`].

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

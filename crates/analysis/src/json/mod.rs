//! Results of engines for programs, as `stats --format json` and `memory sim --format json` print them; the book names
//! every key. Keys are never removed.

mod details;
mod events;
mod places;
mod simulation;
mod stats;
mod types;

pub use events::kind_word;
pub use places::text;
pub use simulation::{SimulationReport, run_lengths, simulation};
pub use stats::{Stats, stats};
pub use types::FieldNames;

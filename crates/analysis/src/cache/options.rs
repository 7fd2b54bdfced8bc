//! What a simulation is asked for.

use super::cores::CorePlan;
use super::next_use::Foreseen;

/// What is simulated and what is reported.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which thread runs on which core.
    pub cores: CorePlan,
    /// Results by type and field.
    pub with_types: bool,
    /// Why lines were missed.
    pub with_classes: bool,
    /// Treat instruction fetches as reads instead of ignoring them.
    pub with_fetches: bool,
    /// Threads to simulate on. Results are the same for any number.
    pub threads: usize,
    /// What [`super::next_use::NextUse`] learned, for configurations with OPT.
    pub foreseen: Foreseen,
}

//! The caches that verbs simulate unless they are told otherwise.

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::presets::{PRESETS, Preset};
use anytrace_analysis::cache::processor;

use crate::paint;

/// The caches that are simulated where none are named; which they are is a note.
pub(super) fn default_config() -> Config {
    let (preset, why) = match processor::of_this_machine() {
        Some(preset) => (preset, "this machine's processor"),
        None => (
            Preset::of_name(DEFAULT_PRESET).unwrap_or(&PRESETS[0]),
            "the default: this machine's processor has no preset",
        ),
    };
    paint::complain("note", format!("no --config: simulates the caches of {} ({why})", preset.name));
    preset.config()
}

/// The caches of [`DEFAULT_PRESET`], whatever this machine has: for results that are the same everywhere.
pub(super) fn documented_config() -> Config {
    Preset::of_name(DEFAULT_PRESET).unwrap_or(&PRESETS[0]).config()
}

/// The preset for machines whose processor has none.
const DEFAULT_PRESET: &str = "zen3";

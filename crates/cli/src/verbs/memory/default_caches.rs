//! The caches that verbs simulate unless they are told otherwise.

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::presets::Preset;
use anytrace_analysis::cache::processor;

use crate::paint;

/// The caches that are simulated where none are named; which they are is a note.
pub(super) fn default_config() -> Config {
    let (preset, why) = match processor::of_this_machine() {
        Some(preset) => (preset, "this machine's processor"),
        None => (Preset::documented(), "the default: this machine's processor has no preset"),
    };
    paint::complain("note", format!("no --config: simulates the caches of {} ({why})", preset.name));
    preset.config()
}

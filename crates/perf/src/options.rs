//! The options that only this format has.

use anytrace_core::{FormatOption, OptionUse, OptionValues};

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[FormatOption {
    name: "event",
    aliases: &[],
    used_to: OptionUse::Read,
    values: OptionValues::Number,
    value_name: "N",
    help: "Show samples of the event with this number, from 0 in the order of info; default: that of the first sample",
}];

//! The options that only this format has.

use anytrace_core::{FormatOption, OptionUse, OptionValues};

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[FormatOption {
    name: "buffers",
    aliases: &["buffer"],
    used_to: OptionUse::Select,
    values: OptionValues::Numbers(&[]),
    value_name: "SET",
    help: "Buffers by number from 0, separated by commas: A..B (without B), A..=B or A-B (with B), A+N, A.., ..B or N, \
           with /STEP; * is all. May be repeated",
}];

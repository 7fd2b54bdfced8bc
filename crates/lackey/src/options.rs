//! The options that only this format has.

use anytrace_core::{FormatOption, OptionUse, OptionValues};

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[FormatOption {
    name: "style",
    aliases: &[],
    used_to: OptionUse::Write,
    values: OptionValues::OneOf(&["canonical"]),
    value_name: "canonical",
    help: "Spelling of the records",
}];

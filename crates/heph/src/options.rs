//! The options that only this format has.

use anytrace_core::{FormatOption, OptionUse, OptionValues};

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[FormatOption {
    name: "recover",
    aliases: &[],
    used_to: OptionUse::Read,
    values: OptionValues::Flag,
    value_name: "",
    help: "Recover arrays of arrays, which the format cannot express; each is reported",
}];

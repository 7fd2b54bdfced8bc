//! The options that only this format has.

use anytrace_core::{FormatOption, OptionUse, OptionValues};

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[
    FormatOption {
        name: "pointer-width",
        aliases: &[],
        used_to: OptionUse::Read,
        values: OptionValues::OneOf(&["4", "8"]),
        value_name: "4|8",
        help: "Pointer width of the input in bytes, where detection is wrong",
    },
    FormatOption {
        name: "to-pointer-width",
        aliases: &[],
        used_to: OptionUse::Write,
        values: OptionValues::OneOf(&["4", "8"]),
        value_name: "4|8",
        help: "Pointer width to write, in bytes",
    },
];

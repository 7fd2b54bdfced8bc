//! The options that only this format has.

use crate::wire::style::{Radix, Style};
use anytrace_core::{FormatOption, OptionUse, OptionValues};

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[
    FormatOption {
        name: "radix",
        aliases: &[],
        used_to: OptionUse::Read,
        values: OptionValues::OneOf(&Radix::NAMES),
        value_name: "dec|hex",
        help: "Base of numbers without a prefix",
    },
    FormatOption {
        name: "style",
        aliases: &[],
        used_to: OptionUse::Write,
        values: OptionValues::OneOf(&Style::NAMES),
        value_name: "canonical|positional|pretty",
        help: "Layout of the text",
    },
    FormatOption {
        name: "to-radix",
        aliases: &[],
        used_to: OptionUse::Write,
        values: OptionValues::OneOf(&Radix::NAMES),
        value_name: "dec|hex",
        help: "Base of the numbers written",
    },
];

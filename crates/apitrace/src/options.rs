//! The options that only this format has.

use anytrace_core::{FormatOption, OptionUse, OptionValues};

use crate::wire::container::Container;

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[
    FormatOption {
        name: "frames",
        aliases: &["frame"],
        used_to: OptionUse::Select,
        values: OptionValues::Numbers(&["frame"]),
        value_name: "SET",
        help: "Frames by number from 0, separated by commas: A..B (without B), A..=B or A-B (with B), A+N, A.., ..B or N, with \
               /STEP or /frame (calls that end frames); * is all. May be repeated",
    },
    FormatOption {
        name: "container",
        aliases: &["to-container"],
        used_to: OptionUse::Write,
        values: OptionValues::OneOf(&Container::NAMES),
        value_name: "NAME",
        help: "Container to write",
    },
    FormatOption {
        name: "level",
        aliases: &[],
        used_to: OptionUse::Write,
        values: OptionValues::Number,
        value_name: "N",
        help: "Compression level of the container",
    },
];

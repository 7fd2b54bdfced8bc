//! The options that only this format has: none.

use anytrace_core::FormatOption;

/// What [`anytrace_core::Format::options`] returns.
pub(crate) const OPTIONS: &[FormatOption] = &[];

//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_HEADER: Rule =
    Rule::error("newformat/bad-header", "the first line is not the header of the format");
pub(crate) static VERSION: Rule = Rule::error("newformat/version", "the version of the trace is not supported");
pub(crate) static BAD_RECORD: Rule = Rule::error("newformat/bad-record", "a line is not a record");
pub(crate) static TRUNCATED: Rule = Rule::error("newformat/truncated", "the data end inside a line");
pub(crate) static LINE_TOO_LONG: Rule =
    Rule::error("newformat/line-too-long", "a line is longer than the limit on a record");

// Rules beyond grammar: reported by `check`.
pub(crate) static ORDER: Rule = Rule::warning("newformat/order", "a number is smaller than the one before it");

/// All of the above.
pub(crate) static RULES: [&Rule; 6] = [&BAD_HEADER, &VERSION, &BAD_RECORD, &TRUNCATED, &LINE_TOO_LONG, &ORDER];

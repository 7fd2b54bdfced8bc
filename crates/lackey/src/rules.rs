//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_LINE: Rule = Rule::error("lackey/bad-line", "a line is a malformed record");
pub(crate) static TRUNCATED: Rule =
    Rule::error("lackey/truncated", "the data end inside a record or one of Valgrind's lines");
pub(crate) static NOT_TEXT: Rule = Rule::error("lackey/not-text", "a line contains non-text bytes");
pub(crate) static NO_LINE_END: Rule =
    Rule::warning("lackey/no-line-end", "the last record has no line end: its size may be truncated");
pub(crate) static LINE_TOO_LONG: Rule =
    Rule::warning("lackey/line-too-long", "a line is longer than the limit on a record and is read in pieces");
pub(crate) static TEXT: Rule =
    Rule::warning("lackey/text", "text that is not part of the trace appears among the records");
pub(crate) static TEXT_BEFORE_RECORD: Rule =
    Rule::warning("lackey/text-before-record", "text appears before a record on its line");

// Rules beyond grammar: reported by `check`.
pub(crate) static ODD_SIZE: Rule = Rule::warning("lackey/odd-size", "an access has a size that Valgrind never writes");
pub(crate) static ACCESS_WRAPS: Rule = Rule::warning("lackey/access-wraps", "an access reaches past the last address");
pub(crate) static BLOCK_WITHOUT_FETCH: Rule =
    Rule::warning("lackey/block-without-fetch", "a superblock does not begin with the fetch of its first instruction");
pub(crate) static COUNTS_DIFFER: Rule =
    Rule::warning("lackey/counts-differ", "Valgrind's count differs from the number in the trace");
pub(crate) static SPELLING: Rule = Rule::note("lackey/spelling", "records have a non-canonical spelling");
pub(crate) static SEVERAL_PROCESSES: Rule =
    Rule::note("lackey/several-processes", "several processes wrote to one log; records do not identify their process");
pub(crate) static NO_END: Rule =
    Rule::note("lackey/no-end", "Valgrind's first lines are present, but its final counts are missing");

/// All of the above.
pub(crate) static RULES: [&Rule; 14] = [
    &BAD_LINE,
    &TRUNCATED,
    &NOT_TEXT,
    &NO_LINE_END,
    &LINE_TOO_LONG,
    &TEXT,
    &TEXT_BEFORE_RECORD,
    &ODD_SIZE,
    &ACCESS_WRAPS,
    &BLOCK_WITHOUT_FETCH,
    &COUNTS_DIFFER,
    &SPELLING,
    &SEVERAL_PROCESSES,
    &NO_END,
];

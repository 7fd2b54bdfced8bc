//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_RECORD: Rule = Rule::error("fuchsia/bad-record", "bytes are not a record");
pub(crate) static TRUNCATED: Rule = Rule::error("fuchsia/truncated", "the data end inside a record");
pub(crate) static RECORD_TOO_LONG: Rule =
    Rule::error("fuchsia/record-too-long", "a record is longer than the limit on a record");

// What is inside records: reported by `check` and by the verbs that look inside.
pub(crate) static BAD_FIELD: Rule = Rule::error("fuchsia/bad-field", "a field of a record cannot be read");
pub(crate) static NO_MAGIC: Rule = Rule::warning("fuchsia/no-magic", "the trace does not begin with its magic number");
pub(crate) static NO_RATE: Rule =
    Rule::warning("fuchsia/no-rate", "a provider does not say how long its ticks are: they are taken for nanoseconds");
pub(crate) static UNKNOWN_STRING: Rule =
    Rule::warning("fuchsia/unknown-string", "a record refers to a string that its provider has not defined");
pub(crate) static UNKNOWN_THREAD: Rule =
    Rule::warning("fuchsia/unknown-thread", "a record refers to a thread that its provider has not defined");
pub(crate) static BUFFER_FULL: Rule =
    Rule::warning("fuchsia/buffer-full", "the buffer of a provider was full: records were lost");
pub(crate) static END_WITHOUT_BEGIN: Rule =
    Rule::warning("fuchsia/end-without-begin", "a duration ends on a thread on which none is open");
pub(crate) static BEGIN_WITHOUT_END: Rule =
    Rule::warning("fuchsia/begin-without-end", "durations of a thread are open where the trace ends");
pub(crate) static UNKNOWN_RECORD: Rule =
    Rule::note("fuchsia/unknown-record", "a record is of a type that is not in the format's definition");
pub(crate) static STREAM_TIME: Rule =
    Rule::note("fuchsia/stream-time", "times count from the first event of a stream that cannot be read twice");
pub(crate) static LIMIT: Rule = Rule::warning("fuchsia/limit", "more threads, providers or names than are kept apart");

/// All of the above.
pub(crate) static RULES: [&Rule; 14] = [
    &BAD_RECORD,
    &TRUNCATED,
    &RECORD_TOO_LONG,
    &BAD_FIELD,
    &NO_MAGIC,
    &NO_RATE,
    &UNKNOWN_STRING,
    &UNKNOWN_THREAD,
    &BUFFER_FULL,
    &END_WITHOUT_BEGIN,
    &BEGIN_WITHOUT_END,
    &UNKNOWN_RECORD,
    &STREAM_TIME,
    &LIMIT,
];

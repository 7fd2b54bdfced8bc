//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_HEADER: Rule = Rule::error("perf/bad-header", "the header of perf.data cannot be used");
pub(crate) static VERSION: Rule = Rule::error("perf/version", "the version of perf.data is not supported");
pub(crate) static BAD_RECORD: Rule = Rule::error("perf/bad-record", "bytes are not a record");
pub(crate) static TRUNCATED: Rule = Rule::error("perf/truncated", "the data end before the records do");
pub(crate) static RECORD_TOO_LONG: Rule =
    Rule::error("perf/record-too-long", "a record is longer than the limit on a record");
pub(crate) static UNFINISHED: Rule =
    Rule::error("perf/unfinished", "the recorder did not finish: the header has no length of the records");

pub(crate) static BAD_COMPRESSION: Rule =
    Rule::error("perf/bad-compression", "compressed records cannot be decompressed");

// What is inside records: reported by `check` and by the verbs that look inside.
pub(crate) static BAD_FIELD: Rule = Rule::error("perf/bad-field", "a field of a record cannot be read");
pub(crate) static UNKNOWN_EVENT: Rule =
    Rule::error("perf/unknown-event", "a record belongs to an event that the recording does not describe");
pub(crate) static LOST: Rule = Rule::warning("perf/lost", "the kernel lost records before this one");
pub(crate) static THROTTLED: Rule = Rule::warning("perf/throttled", "the kernel stopped sampling for a time");
pub(crate) static NOT_READ: Rule = Rule::warning("perf/not-read", "records are of a version that is not known");
pub(crate) static STRAY: Rule = Rule::warning("perf/stray", "a line of a stack belongs to no sample");
pub(crate) static NO_TIME: Rule = Rule::warning("perf/no-time", "samples have no time");
pub(crate) static OTHER_EVENT: Rule =
    Rule::note("perf/other-event", "samples of other events than the first are not in the spans");
pub(crate) static NOT_UNWOUND: Rule =
    Rule::note("perf/not-unwound", "stacks were recorded as bytes, which are not unwound");
pub(crate) static STREAM_TIME: Rule =
    Rule::note("perf/stream-time", "times count from the first record of a stream that cannot be read twice");
pub(crate) static LIMIT: Rule =
    Rule::warning("perf/limit", "more threads, mappings, names or frames than are kept apart");

/// All of the above.
pub(crate) static RULES: [&Rule; 18] = [
    &BAD_HEADER,
    &VERSION,
    &BAD_RECORD,
    &TRUNCATED,
    &RECORD_TOO_LONG,
    &UNFINISHED,
    &BAD_COMPRESSION,
    &BAD_FIELD,
    &UNKNOWN_EVENT,
    &LOST,
    &THROTTLED,
    &NOT_READ,
    &STRAY,
    &NO_TIME,
    &OTHER_EVENT,
    &NOT_UNWOUND,
    &STREAM_TIME,
    &LIMIT,
];

//! Every rule that a diagnostic of this crate can name.

use anytrace_core::Rule;

pub(crate) static BAD_MAGIC: Rule =
    Rule::error("heph/bad-magic", "a packet starts with neither of the two magic numbers");
pub(crate) static SIZE_TOO_SMALL: Rule =
    Rule::error("heph/size-too-small", "a packet's size is below the minimum for its kind");
pub(crate) static SIZE_TOO_BIG: Rule = Rule::error("heph/size-too-big", "a packet's size is above the limit");
pub(crate) static TRUNCATED: Rule = Rule::error("heph/truncated", "the data end inside a packet");
pub(crate) static STRING_OVERRUN: Rule = Rule::error("heph/string-overrun", "a string is longer than its packet");
pub(crate) static MISSING_VALUE: Rule = Rule::error("heph/missing-value", "an attribute ends after its name");
pub(crate) static BAD_TYPE: Rule = Rule::error("heph/bad-type", "an attribute has an unknown type");
pub(crate) static BAD_UTF8: Rule = Rule::error("heph/bad-utf8", "a string is not UTF-8");
pub(crate) static VALUE_OVERRUN: Rule = Rule::error("heph/value-overrun", "a value is longer than its packet");
pub(crate) static BAD_OPTION_SIZE: Rule = Rule::error("heph/bad-option-size", "an option's value has the wrong length");
pub(crate) static ERROR_RECORD: Rule =
    Rule::error("heph/error-record", "an error record in JSON lines has no bytes to write");
pub(crate) static CAPTURE_CUT: Rule =
    Rule::error("heph/capture-cut", "a capture of datagrams ends inside one, or names an impossible length");

pub(crate) static NO_EPOCH_YET: Rule = Rule::warning("heph/no-epoch-yet", "an event precedes the first epoch");
pub(crate) static EPOCH_AFTER_EVENTS: Rule =
    Rule::warning("heph/epoch-after-events", "the epoch follows events; it applies to them too");
pub(crate) static EPOCH_SET_AGAIN: Rule =
    Rule::warning("heph/epoch-set-again", "a later epoch differs from the previous one");
pub(crate) static UNKNOWN_OPTION: Rule =
    Rule::warning("heph/unknown-option", "an option is unknown; it is kept unchanged");
pub(crate) static COUNTER_STARTS_AT: Rule =
    Rule::warning("heph/counter-starts-at", "the first counter of a stream is not 0: events before it are missing");
pub(crate) static COUNTER_GAP: Rule =
    Rule::warning("heph/counter-gap", "counters of a stream are missing: events are lost");
pub(crate) static COUNTER_BACK: Rule =
    Rule::warning("heph/counter-back", "a counter decreases: a duplicate packet or a restarted writer");
pub(crate) static COUNTER_DOUBTFUL: Rule = Rule::warning(
    "heph/counter-doubtful",
    "a counter is further ahead than events can have been recorded in the time, or nothing continues it: it is not counted as a loss",
);
pub(crate) static TAIL_MISSING: Rule =
    Rule::warning("heph/tail-missing", "the last events of a stream, by its recorder's account, are missing");
pub(crate) static SESSION_NOT_CLOSED: Rule =
    Rule::warning("heph/session-not-closed", "a recording has no end here: what was recorded last may be missing");
pub(crate) static END_BEFORE_START: Rule = Rule::warning("heph/end-before-start", "an event ends before it starts");
pub(crate) static NESTED_ARRAY_RECOVERED: Rule =
    Rule::warning("heph/nested-array-recovered", "an array of arrays, which the format cannot express, was recovered");

pub(crate) static SESSION_CLOSED: Rule =
    Rule::note("heph/session-closed", "a recording ends here, with the number of all its events");
pub(crate) static COUNTER_OUT_OF_ORDER: Rule =
    Rule::note("heph/counter-out-of-order", "events of a stream are not in the order of their counters");
pub(crate) static PARTIAL_OVERLAP: Rule =
    Rule::note("heph/partial-overlap", "events of one lane overlap without nesting");
pub(crate) static TOO_MANY_STREAMS: Rule =
    Rule::note("heph/too-many-streams", "more streams than the limit; streams above it are not checked for losses");

pub(crate) static WITHOUT_NUMBER: Rule = Rule::note(
    "heph/without-number",
    "events that say of no span what caused them; they are not in the tree by causes",
);

pub(crate) static STREAM_TIME: Rule = Rule::note(
    "heph/stream-time",
    "a long stream is read once: times with units count from its first packets, which need not be the earliest",
);

/// Every rule of the format.
pub(crate) static RULES: [&Rule; 30] = [
    &BAD_MAGIC,
    &SIZE_TOO_SMALL,
    &SIZE_TOO_BIG,
    &TRUNCATED,
    &STRING_OVERRUN,
    &MISSING_VALUE,
    &BAD_TYPE,
    &BAD_UTF8,
    &VALUE_OVERRUN,
    &BAD_OPTION_SIZE,
    &ERROR_RECORD,
    &CAPTURE_CUT,
    &NO_EPOCH_YET,
    &EPOCH_AFTER_EVENTS,
    &EPOCH_SET_AGAIN,
    &UNKNOWN_OPTION,
    &COUNTER_STARTS_AT,
    &COUNTER_GAP,
    &COUNTER_BACK,
    &COUNTER_DOUBTFUL,
    &TAIL_MISSING,
    &SESSION_NOT_CLOSED,
    &END_BEFORE_START,
    &NESTED_ARRAY_RECOVERED,
    &SESSION_CLOSED,
    &COUNTER_OUT_OF_ORDER,
    &PARTIAL_OVERLAP,
    &TOO_MANY_STREAMS,
    &STREAM_TIME,
    &WITHOUT_NUMBER,
];

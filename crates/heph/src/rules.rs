//! Every rule that a diagnostic of this crate can name.

use anytrace_core::Rule;

pub(crate) static BAD_MAGIC: Rule =
    Rule::error("heph/bad-magic", "a packet starts with neither of the two magic numbers");
pub(crate) static SIZE_TOO_SMALL: Rule =
    Rule::error("heph/size-too-small", "a packet's size is below the least of its kind");
pub(crate) static SIZE_TOO_BIG: Rule = Rule::error("heph/size-too-big", "a packet's size is above the limit");
pub(crate) static TRUNCATED: Rule = Rule::error("heph/truncated", "the data end inside a packet");
pub(crate) static STRING_OVERRUN: Rule = Rule::error("heph/string-overrun", "a string is longer than its packet");
pub(crate) static MISSING_VALUE: Rule = Rule::error("heph/missing-value", "an attribute ends after its name");
pub(crate) static BAD_TYPE: Rule = Rule::error("heph/bad-type", "an attribute's type is none the format has");
pub(crate) static BAD_UTF8: Rule = Rule::error("heph/bad-utf8", "a string is not UTF-8");
pub(crate) static VALUE_OVERRUN: Rule = Rule::error("heph/value-overrun", "a value is longer than its packet");
pub(crate) static BAD_OPTION_SIZE: Rule = Rule::error("heph/bad-option-size", "an option's value has the wrong length");
pub(crate) static ERROR_RECORD: Rule =
    Rule::error("heph/error-record", "an error record of JSON lines has no bytes to write");
pub(crate) static CAPTURE_CUT: Rule =
    Rule::error("heph/capture-cut", "a capture of datagrams ends inside one, or names an impossible length");

pub(crate) static NO_EPOCH_YET: Rule = Rule::warning("heph/no-epoch-yet", "an event comes before any epoch");
pub(crate) static EPOCH_AFTER_EVENTS: Rule =
    Rule::warning("heph/epoch-after-events", "the epoch comes after events; it holds for them too");
pub(crate) static EPOCH_SET_AGAIN: Rule =
    Rule::warning("heph/epoch-set-again", "a second epoch differs from the one before");
pub(crate) static UNKNOWN_OPTION: Rule =
    Rule::warning("heph/unknown-option", "an option the format does not name; kept as it is");
pub(crate) static COUNTER_STARTS_AT: Rule =
    Rule::warning("heph/counter-starts-at", "the first counter of a stream is not 0: events before it are missing");
pub(crate) static COUNTER_GAP: Rule =
    Rule::warning("heph/counter-gap", "counters of a stream are missing: events are lost");
pub(crate) static COUNTER_BACK: Rule =
    Rule::warning("heph/counter-back", "a counter goes back: a duplicate, or a writer that started again");
pub(crate) static END_BEFORE_START: Rule = Rule::warning("heph/end-before-start", "an event ends before it starts");
pub(crate) static NESTED_ARRAY_RECOVERED: Rule =
    Rule::warning("heph/nested-array-recovered", "an array of arrays, which the format cannot express, was recovered");

pub(crate) static COUNTER_OUT_OF_ORDER: Rule =
    Rule::note("heph/counter-out-of-order", "events of a stream stand in another order than their counters");
pub(crate) static PARTIAL_OVERLAP: Rule =
    Rule::note("heph/partial-overlap", "events of one lane overlap without one being inside the other");
pub(crate) static TOO_MANY_STREAMS: Rule =
    Rule::note("heph/too-many-streams", "more streams than the limit; those past it are not checked for losses");

pub(crate) static TOO_MANY_TRACKS: Rule =
    Rule::error("heph/too-many-tracks", "more lanes, or more spans across each other in one, than can be shown apart");

/// Every rule of the format.
pub(crate) static RULES: [&Rule; 25] = [
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
    &END_BEFORE_START,
    &NESTED_ARRAY_RECOVERED,
    &COUNTER_OUT_OF_ORDER,
    &PARTIAL_OVERLAP,
    &TOO_MANY_STREAMS,
    &TOO_MANY_TRACKS,
];

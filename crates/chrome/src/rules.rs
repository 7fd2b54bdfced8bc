//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_EVENT: Rule = Rule::error("chrome/bad-event", "an event is malformed JSON");
pub(crate) static EVENT_TOO_LONG: Rule =
    Rule::error("chrome/event-too-long", "an event is longer than the limit on a record");
pub(crate) static TRUNCATED: Rule =
    Rule::error("chrome/truncated", "the data end inside an event or inside the object around the events");
pub(crate) static BAD_FRAME: Rule = Rule::error("chrome/bad-frame", "the JSON around the events is malformed");
pub(crate) static NO_EVENTS: Rule = Rule::breach("chrome/no-events", "the object has no array traceEvents");
pub(crate) static TRAILING_DATA: Rule = Rule::error("chrome/trailing-data", "data follow the end of the trace");
pub(crate) static SEPARATOR: Rule =
    Rule::warning("chrome/separator", "there is not exactly one comma between two events");

// Rules beyond grammar: reported by `check`.
pub(crate) static BAD_FIELD: Rule =
    Rule::breach("chrome/bad-field", "a field that the event needs is missing or of the wrong type");
pub(crate) static NOT_STRICT: Rule = Rule::warning("chrome/not-strict", "an event is not strict JSON");
pub(crate) static UNKNOWN_PHASE: Rule = Rule::warning("chrome/unknown-phase", "an event has an unknown phase");
pub(crate) static MISSING_ID: Rule =
    Rule::warning("chrome/missing-id", "an event that is joined to others by its id has none");
pub(crate) static END_WITHOUT_BEGIN: Rule = Rule::warning("chrome/end-without-begin", "a span ends that did not begin");
pub(crate) static BEGIN_WITHOUT_END: Rule = Rule::warning("chrome/begin-without-end", "a span begins and does not end");
pub(crate) static NAME_DIFFERS: Rule =
    Rule::warning("chrome/name-differs", "the end of a span has another name than its beginning");
pub(crate) static TIME_BACK: Rule =
    Rule::warning("chrome/time-back", "beginnings and ends of a thread are not in order of time");
pub(crate) static FLOW_WITHOUT_START: Rule =
    Rule::warning("chrome/flow-without-start", "an arrow ends that did not begin");
pub(crate) static COUNTER_VALUE: Rule =
    Rule::warning("chrome/counter-value", "a counter has a value that is not a number");
pub(crate) static METADATA_DIFFERS: Rule =
    Rule::warning("chrome/metadata-differs", "a process or thread has several names");
pub(crate) static OVERLAP: Rule =
    Rule::warning("chrome/overlap", "complete events of a thread overlap and do not nest");
pub(crate) static TOO_DEEP: Rule = Rule::error("chrome/too-deep", "more spans are open than can be followed");
pub(crate) static TOO_MANY_KEYS: Rule =
    Rule::note("chrome/too-many-keys", "there are more threads, ids or names than are kept apart");

/// All of the above.
pub(crate) static RULES: [&Rule; 21] = [
    &BAD_EVENT,
    &EVENT_TOO_LONG,
    &TRUNCATED,
    &BAD_FRAME,
    &NO_EVENTS,
    &TRAILING_DATA,
    &SEPARATOR,
    &BAD_FIELD,
    &NOT_STRICT,
    &UNKNOWN_PHASE,
    &MISSING_ID,
    &END_WITHOUT_BEGIN,
    &BEGIN_WITHOUT_END,
    &NAME_DIFFERS,
    &TIME_BACK,
    &FLOW_WITHOUT_START,
    &COUNTER_VALUE,
    &METADATA_DIFFERS,
    &OVERLAP,
    &TOO_DEEP,
    &TOO_MANY_KEYS,
];

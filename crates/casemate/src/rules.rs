//! Every code that this crate reports. The book's chapter has one example for each.

use anytrace_core::Rule;

use crate::model::BREACH_COUNT;
use crate::model::BREACHES;

// Grammar: reported by every verb.
pub(crate) static UNCLOSED_RECORD: Rule =
    Rule::error("casemate/unclosed-record", "a record lacks its closing parenthesis");
pub(crate) static TRUNCATED_RECORD: Rule = Rule::error("casemate/truncated-record", "the input ends inside a record");
pub(crate) static UNTERMINATED_STRING: Rule =
    Rule::error("casemate/unterminated-string", "a string does not end on its line");
pub(crate) static RECORD_TOO_LONG: Rule = Rule::error("casemate/record-too-long", "a record is longer than the limit");
pub(crate) static RECORD_WITHOUT_NAME: Rule =
    Rule::error("casemate/record-without-name", "a record does not start with a name");
pub(crate) static STRAY_TEXT: Rule = Rule::error("casemate/stray-text", "text between records is not a record");
pub(crate) static UNEXPECTED_CLOSE: Rule =
    Rule::error("casemate/unexpected-close", "a closing parenthesis has no opening one");
pub(crate) static CONTROL_CHARACTER: Rule =
    Rule::error("casemate/control-character", "a control character appears inside a record");
pub(crate) static UNKNOWN_KIND: Rule = Rule::error("casemate/unknown-kind", "the kind of transition is unknown");
pub(crate) static BAD_NUMBER: Rule =
    Rule::error("casemate/bad-number", "a number contains characters other than digits");
pub(crate) static EMPTY_NUMBER: Rule = Rule::error("casemate/empty-number", "a hexadecimal number has no digits");
pub(crate) static NUMBER_TOO_LARGE: Rule =
    Rule::error("casemate/number-too-large", "a number does not fit in its field");
pub(crate) static MISSING_FIELD: Rule = Rule::error("casemate/missing-field", "a field is missing");
pub(crate) static UNEXPECTED_FIELD: Rule =
    Rule::error("casemate/unexpected-field", "a field does not belong to its record");
pub(crate) static DUPLICATE_FIELD: Rule = Rule::error("casemate/duplicate-field", "a field appears twice");
pub(crate) static MALFORMED_FIELD: Rule =
    Rule::error("casemate/malformed-field", "a field is not a single value in parentheses");
pub(crate) static UNKNOWN_MEMORY_ORDER: Rule =
    Rule::error("casemate/unknown-memory-order", "the memory order is unknown");
pub(crate) static UNKNOWN_BARRIER: Rule = Rule::error("casemate/unknown-barrier", "the barrier is neither ISB nor DSB");
pub(crate) static UNKNOWN_BARRIER_KIND: Rule =
    Rule::error("casemate/unknown-barrier-kind", "the kind of DSB is not in the document");
pub(crate) static UNKNOWN_ATOMIC: Rule =
    Rule::error("casemate/unknown-atomic", "the operation of an atomic access is unknown");
pub(crate) static UNKNOWN_TLBI: Rule = Rule::error("casemate/unknown-tlbi", "the TLBI operation is unknown");
pub(crate) static UNKNOWN_SYSREG: Rule = Rule::error("casemate/unknown-sysreg", "the system register is unknown");
pub(crate) static UNKNOWN_HINT: Rule = Rule::error("casemate/unknown-hint", "the kind of hint is unknown");
pub(crate) static UNKNOWN_LOCK_KIND: Rule =
    Rule::error("casemate/unknown-lock-kind", "the kind of lock operation is unknown");
pub(crate) static RECORD_AFTER_CLAIM: Rule =
    Rule::error("casemate/record-after-claim", "a record follows the line that claims a violation");

// Rules beyond grammar: reported by `check`.
pub(crate) static UNALIGNED_ADDRESS: Rule =
    Rule::breach("casemate/unaligned-address", "an address is not a multiple of 8");
pub(crate) static UNALIGNED_SIZE: Rule = Rule::breach("casemate/unaligned-size", "a size is not a multiple of 8");
pub(crate) static UNFOUNDED_CLAIM: Rule =
    Rule::breach("casemate/unfounded-claim", "the trace claims a violation, but nothing in it can violate a rule");
pub(crate) static VALUE_OUT_OF_RANGE: Rule =
    Rule::warning("casemate/value-out-of-range", "a value is out of range for its field");
pub(crate) static RANGE_PAST_END: Rule =
    Rule::warning("casemate/range-past-end", "a range of memory reaches past the last address");
pub(crate) static DUPLICATE_ID: Rule = Rule::warning("casemate/duplicate-id", "an id is reused");
pub(crate) static DECREASING_ID: Rule = Rule::warning("casemate/decreasing-id", "an id is smaller than an earlier one");
pub(crate) static CLAIMED_VIOLATION: Rule =
    Rule::note("casemate/claimed-violation", "the trace says that the reference found a violation");
pub(crate) static REFERENCE_OUTPUT: Rule =
    Rule::note("casemate/reference-output", "lines of the reference checker's output appear among the records");
pub(crate) static MIXED_SPELLING: Rule =
    Rule::note("casemate/mixed-spelling", "records are written in several dialects");

/// The table of all rules: the format's, then the break-before-make checker's.
pub(crate) static ALL_RULES: [&Rule; RULES.len() + BREACH_COUNT] = {
    let mut all = [RULES[0]; RULES.len() + BREACH_COUNT];
    let mut at = 0;
    while at < RULES.len() {
        all[at] = RULES[at];
        at += 1;
    }
    while at < all.len() {
        all[at] = BREACHES[at - RULES.len()].rule;
        at += 1;
    }
    all
};

/// The table of the format's own rules: grammar first, then rules.
pub(crate) static RULES: [&Rule; 35] = [
    &UNCLOSED_RECORD,
    &TRUNCATED_RECORD,
    &UNTERMINATED_STRING,
    &RECORD_TOO_LONG,
    &RECORD_WITHOUT_NAME,
    &STRAY_TEXT,
    &UNEXPECTED_CLOSE,
    &CONTROL_CHARACTER,
    &UNKNOWN_KIND,
    &BAD_NUMBER,
    &EMPTY_NUMBER,
    &NUMBER_TOO_LARGE,
    &MISSING_FIELD,
    &UNEXPECTED_FIELD,
    &DUPLICATE_FIELD,
    &MALFORMED_FIELD,
    &UNKNOWN_MEMORY_ORDER,
    &UNKNOWN_BARRIER,
    &UNKNOWN_BARRIER_KIND,
    &UNKNOWN_ATOMIC,
    &UNKNOWN_TLBI,
    &UNKNOWN_SYSREG,
    &UNKNOWN_HINT,
    &UNKNOWN_LOCK_KIND,
    &RECORD_AFTER_CLAIM,
    &UNALIGNED_ADDRESS,
    &UNALIGNED_SIZE,
    &UNFOUNDED_CLAIM,
    &VALUE_OUT_OF_RANGE,
    &RANGE_PAST_END,
    &DUPLICATE_ID,
    &DECREASING_ID,
    &CLAIMED_VIOLATION,
    &REFERENCE_OUTPUT,
    &MIXED_SPELLING,
];

//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

macro_rules! rules {
    ($($name:ident = $level:ident($code:literal, $summary:literal);)*) => {
        $(pub(crate) static $name: Rule = Rule::$level($code, $summary);)*
        /// All rules, in the order of the book.
        pub(crate) static RULES: [&Rule; [$($code),*].len()] = [$(&$name),*];
    };
}

rules! {
    HEADER_TRUNCATED = error("xray/header-truncated", "the file ends inside the header");
    UNKNOWN_TYPE = error("xray/unknown-type", "the type in the header is neither Basic (0) nor FDR (1)");
    UNKNOWN_VERSION = error("xray/unknown-version", "the version in the header is unknown");
    TRUNCATED = error("xray/truncated", "the data end inside a buffer or record");
    UNKNOWN_METADATA = error("xray/unknown-metadata-kind", "a metadata record has an unknown kind");
    UNKNOWN_FUNCTION = error("xray/unknown-function-kind", "a function record has an unknown kind");
    EVENT_SIZE = error("xray/event-size", "an event's payload is empty, negative or longer than what is left");
    EVENT_TOO_LONG = error("xray/event-too-long", "an event's payload is longer than the limit on records");
    RECORD_CUT = error("xray/record-cut-by-extents", "the buffer's extents end inside a record, whose rest is lost");
    EXTENTS_SHORT = error("xray/extents-too-short", "records continue past the end of the buffer's extents");
    EXTENTS_LONG = error("xray/extents-too-long", "the next buffer begins before the buffer's extents end");
    EXTENTS_INSIDE = error("xray/extents-inside-buffer", "a buffer-extents record appears inside a buffer, with no buffer after it");
    EXTENTS_MISSING = breach("xray/extents-missing", "a buffer begins without its extents");
    END_NOT_IN_VERSION = breach("xray/end-of-buffer-not-in-version", "an end-of-buffer record appears in version 2 or later");
    BAD_TRANSITION = breach("xray/bad-transition", "a record follows one it may not follow");
    BAD_END = breach("xray/bad-buffer-end", "a buffer ends after a record that may not be last");
    KIND_NOT_IN_VERSION = warning("xray/kind-not-in-version", "a record is of a kind introduced in a later version");
    END_MISSING = warning("xray/end-of-buffer-missing", "a version 1 buffer has no end-of-buffer record");
    EMPTY_BUFFER = warning("xray/empty-extents", "the extents of a buffer are 0");
    PADDING = warning("xray/padding", "zero bytes appear between or after buffers");
    GAP = warning("xray/gap", "bytes that are not a buffer appear between or after buffers");
    FALSE_INTRODUCER = warning("xray/false-introducer", "bytes between buffers look like buffer extents but are not");
    ARGUMENT_AFTER_EXIT = warning("xray/argument-after-exit", "an argument follows a record that takes none");
    ARGUMENTS_TOO_MANY = error("xray/arguments-too-many", "a function record has more arguments than can be kept");
    FUNCTION_ID_ZERO = warning("xray/function-id-zero", "function records have id 0, which programs never use");
    TSC_BACKWARDS = warning("xray/tsc-backwards", "time goes backward within a thread's buffer");
    BUFFER_ORDER = note("xray/buffer-order", "buffers of one thread are not sorted by time");
    PID_CHANGED = warning("xray/pid-changed", "buffers of one thread name several processes");
    ORPHAN_EXIT = warning("xray/orphan-exit", "functions exit without having been entered");
    MISSING_EXIT = note("xray/missing-exit", "functions are entered but never exit");
    THREADS_UNTRACKED = note("xray/threads-not-tracked", "more threads, or more open functions, than the limit: pairing was not checked for the rest");
    STREAM_ORDER = warning("xray/stream-order", "a long stream is not sorted by time and was read in stored order");
    STREAM_TIME = note("xray/stream-time", "a long stream is read once: times in seconds count from its first time, which need not be the earliest");
    STREAM_HELD = note("xray/stream-held", "a long stream is not sorted by time and was sorted in memory");
    BASIC_TYPE = error("xray/unknown-basic-record", "a Basic record is neither a function nor an argument record");
    BASIC_ARGUMENT = error("xray/argument-without-function", "an argument record does not follow its function record");
    YAML_SYNTAX = error("xray/yaml-syntax", "a line does not have the form of XRay's YAML: of a trace or of an instrumentation map");
    YAML_FIELD = error("xray/yaml-field", "a field of a YAML entry is missing or has a wrong value");
    YAML_UNKNOWN_FIELD = warning("xray/yaml-unknown-field", "a YAML entry has an unknown field");
}

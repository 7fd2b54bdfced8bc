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
    UNKNOWN_VERSION = error("xray/unknown-version", "the version in the header is not known");
    TRUNCATED = error("xray/truncated", "the data end inside a buffer or record");
    UNKNOWN_METADATA = error("xray/unknown-metadata-kind", "a metadata record has an unknown kind");
    UNKNOWN_FUNCTION = error("xray/unknown-function-kind", "a function record has an unknown kind");
    EVENT_SIZE = error("xray/event-size", "an event's payload is empty, negative or longer than what is left");
    EVENT_TOO_LONG = error("xray/event-too-long", "an event's payload is longer than the limit on records");
    RECORD_CUT = error("xray/record-cut-by-extents", "the buffer's extents end inside a record, whose rest is lost");
    EXTENTS_SHORT = error("xray/extents-too-short", "records go on behind the end of the buffer's extents");
    EXTENTS_LONG = error("xray/extents-too-long", "the next buffer begins before the buffer's extents end");
    EXTENTS_INSIDE = error("xray/extents-inside-buffer", "a buffer-extents record stands inside a buffer, and no buffer behind it");
    EXTENTS_MISSING = breach("xray/extents-missing", "a buffer begins without its extents");
    END_NOT_IN_VERSION = breach("xray/end-of-buffer-not-in-version", "an end-of-buffer record stands in version 2 or later");
    BAD_TRANSITION = breach("xray/bad-transition", "a record follows one that it may not follow");
    BAD_END = breach("xray/bad-buffer-end", "a buffer ends after a record that may not be the last");
    KIND_NOT_IN_VERSION = warning("xray/kind-not-in-version", "a record is of a kind that later versions brought");
    END_MISSING = warning("xray/end-of-buffer-missing", "a version 1 buffer has no end-of-buffer record");
    EMPTY_BUFFER = warning("xray/empty-extents", "the extents of a buffer are 0");
    PADDING = warning("xray/padding", "zero bytes stand between or after buffers");
    GAP = warning("xray/gap", "bytes that are no buffer stand between or after buffers");
    FALSE_INTRODUCER = warning("xray/false-introducer", "bytes between buffers look like buffer extents but are not");
    ARGUMENT_AFTER_EXIT = warning("xray/argument-after-exit", "an argument follows a record that takes none");
    ARGUMENTS_TOO_MANY = error("xray/arguments-too-many", "a function record has more arguments than can be carried over");
    FUNCTION_ID_ZERO = warning("xray/function-id-zero", "function records have id 0, which no program gives");
    TSC_BACKWARDS = warning("xray/tsc-backwards", "time goes back within a thread's buffer");
    BUFFER_ORDER = note("xray/buffer-order", "buffers of one thread are not in order of time");
    PID_CHANGED = warning("xray/pid-changed", "buffers of one thread name several processes");
    ORPHAN_EXIT = warning("xray/orphan-exit", "functions are left that were not entered");
    MISSING_EXIT = note("xray/missing-exit", "functions are entered and not left");
    THREADS_UNTRACKED = note("xray/threads-not-tracked", "more threads, or more open functions, than the limit: pairing was not checked for the rest");
    STREAM_ORDER = warning("xray/stream-order", "a long stream is not in order of time and was taken as it came");
    STREAM_HELD = note("xray/stream-held", "a long stream is not in order of time and was held in memory to be sorted");
    BASIC_TYPE = error("xray/unknown-basic-record", "a Basic record is neither function nor argument");
    BASIC_ARGUMENT = error("xray/argument-without-function", "an argument record does not follow its function record");
    YAML_SYNTAX = error("xray/yaml-syntax", "a line is not of the form an XRay YAML trace has");
    YAML_FIELD = error("xray/yaml-field", "a field of a YAML entry is missing or has a wrong value");
    YAML_UNKNOWN_FIELD = warning("xray/yaml-unknown-field", "a YAML entry has a field that is not known");
}

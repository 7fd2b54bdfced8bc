//! Every rule a diagnostic of this format may name.

use anytrace_core::Rule;

macro_rules! rules {
    ($($name:ident $severity:ident $code:literal $summary:literal;)*) => {
        $(pub(crate) static $name: Rule = Rule::$severity(concat!("apitrace/", $code), $summary);)*
        /// The table of them all.
        pub(crate) static RULES: [&Rule; [$($code),*].len()] = [$(&$name),*];
    };
}

rules! {
    CONTAINER_TRUNCATED error "container-truncated" "the Snappy container ends inside a chunk";
    CHUNK_CORRUPT error "chunk-corrupt" "a Snappy chunk cannot be fully decompressed";
    CHUNK_LENGTH error "chunk-length" "the length of a Snappy chunk differs from that of its block";
    DATA_AFTER_END error "data-after-end" "bytes follow the chunk of length 0 that ends the container";
    BROTLI_CORRUPT error "brotli-corrupt" "the Brotli data are damaged";
    BROTLI_TRUNCATED error "brotli-truncated" "the Brotli data end prematurely";
    EMPTY_STREAM warning "empty-stream" "the container has no raw stream, not even a version";
    HEADER_TRUNCATED error "header-truncated" "the raw stream ends inside its header";
    HEADER_LIMIT error "header-limit" "the properties are larger than the limit";
    UNSUPPORTED_VERSION error "unsupported-version" "the raw stream has an unknown version";
    SEMANTIC_VERSION breach "semantic-version" "the semantic version is higher than the version";
    DUPLICATE_PROPERTY warning "duplicate-property" "two properties have the same name";
    TRUNCATED_EVENT error "truncated-event" "the raw stream ends inside an event";
    GAP error "gap" "part of the raw stream is missing";
    UNKNOWN_EVENT error "unknown-event" "an event is neither an enter nor a leave";
    UNKNOWN_DETAIL error "unknown-detail" "an event has an unknown detail";
    UNKNOWN_TYPE error "unknown-type" "a value has an unknown type";
    UNKNOWN_FRAME_DETAIL error "unknown-frame-detail" "a stack frame has an unknown detail";
    ENUM_VALUE_TYPE error "enum-value-type" "the value of an enumeration is not an integer";
    TOKEN_LIMIT error "token-limit" "a definition or number is longer than the limit";
    NESTING_LIMIT error "nesting-limit" "values are nested too deeply to read";
    LOST_SIGNATURE error "lost-signature" "a signature is used whose definition could not be read";
    SIGNATURE_LIMIT error "signature-limit" "more signatures are defined than can be tracked";
    DEFINITION_LIMIT warning "definition-limit" "more definitions than the limit: names are missing";
    OPEN_LIMIT error "open-limit" "more open calls than the limit: the oldest are emitted unfinished";
    LATE_CALL note "late-call" "a requested call is still open where reading ended";
    DAMAGED_WHEN_INDEXED error "damaged-when-indexed" "the trace was damaged when it was indexed";
    VALUE_LIMIT error "value-limit" "an argument or return value is longer than the limit and is omitted";
    OBJECT_LIMIT breach "object-limit" "more live objects, contexts or attachments than the limit; some are not tracked";
    SIGNATURE_REDEFINED breach "signature-redefined" "a function is defined a second time";
    DEEP_NESTING warning "deep-nesting" "values are nested more deeply than in real programs";
    LONG_NUMBER warning "long-number" "a number takes more than ten bytes";
    LEAVE_WITHOUT_ENTER warning "leave-without-enter" "a call returns that was never entered";
    REPEATED_LEAVE warning "repeated-leave" "a call returns a second time";
    LEAVE_OF_LOST_CALL warning "leave-of-lost-call" "a call returns whose enter could not be read";
    INCOMPLETE_CALL note "incomplete-call" "a call never returns";
    ARGUMENT_INDEX error "argument-index" "an argument's index is past the end of the function's signature";
    DUPLICATE_ARGUMENT warning "duplicate-argument" "an argument appears twice";
    DUPLICATE_RETURN warning "duplicate-return" "a return value appears twice";
    RETURN_IN_ENTER warning "return-in-enter" "an enter event has a return value";
    ZERO_FLAG_NOT_FIRST warning "zero-flag-not-first" "a bit mask has a zero flag that is not its first flag";
    UNKNOWN_FLAGS warning "unknown-flags" "call flags other than bit 0 are set";
    THREAD_DETAIL warning "thread-detail" "an event has a thread detail, which no reader accepts";
    DETAIL_BEFORE_VERSION warning "detail-before-version" "the stream uses a feature of later versions";
}

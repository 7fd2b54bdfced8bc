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
    CHUNK_CORRUPT error "chunk-corrupt" "a Snappy chunk cannot be decompressed to its end";
    CHUNK_LENGTH error "chunk-length" "the length of a Snappy chunk is not the length of its block";
    DATA_AFTER_END error "data-after-end" "bytes follow the chunk of length 0 that ends the container";
    BROTLI_CORRUPT error "brotli-corrupt" "the Brotli data are damaged";
    BROTLI_TRUNCATED error "brotli-truncated" "the Brotli data end too early";
    EMPTY_STREAM warning "empty-stream" "the container holds no raw stream, not even a version";
    HEADER_TRUNCATED error "header-truncated" "the raw stream ends inside its header";
    HEADER_LIMIT error "header-limit" "the properties are larger than the limit";
    UNSUPPORTED_VERSION error "unsupported-version" "the raw stream has a version that is not known";
    SEMANTIC_VERSION breach "semantic-version" "the semantic version is higher than the version";
    DUPLICATE_PROPERTY warning "duplicate-property" "two properties have the same name";
    TRUNCATED_EVENT error "truncated-event" "the raw stream ends inside an event";
    GAP error "gap" "a part of the raw stream is missing";
    UNKNOWN_EVENT error "unknown-event" "an event is neither enter nor leave";
    UNKNOWN_DETAIL error "unknown-detail" "an event has a detail that does not exist";
    UNKNOWN_TYPE error "unknown-type" "a value has a type that does not exist";
    UNKNOWN_FRAME_DETAIL error "unknown-frame-detail" "a stack frame has a detail that does not exist";
    ENUM_VALUE_TYPE error "enum-value-type" "the value of an enumeration is no integer";
    TOKEN_LIMIT error "token-limit" "a definition or number is longer than the limit";
    NESTING_LIMIT error "nesting-limit" "values are nested too deep to be followed";
    LOST_SIGNATURE error "lost-signature" "a signature is used whose definition could not be read";
    SIGNATURE_LIMIT error "signature-limit" "more signatures are defined than can be told apart";
    DEFINITION_LIMIT warning "definition-limit" "more definitions stand here than are kept: names are missing";
    OPEN_LIMIT error "open-limit" "more calls are open than are kept: the oldest are given out unfinished";
    LATE_CALL note "late-call" "a call that was asked for is still open where reading ended";
    DAMAGED_WHEN_INDEXED error "damaged-when-indexed" "the trace was damaged when its index was made";
    VALUE_LIMIT error "value-limit" "an argument or return value is longer than the limit and left out";
    OBJECT_LIMIT breach "object-limit" "more objects, contexts or attachments are alive than are followed";
    SIGNATURE_REDEFINED breach "signature-redefined" "a function is defined a second time";
    DEEP_NESTING warning "deep-nesting" "values are nested deeper than programs do";
    LONG_NUMBER warning "long-number" "a number takes more than ten bytes";
    LEAVE_WITHOUT_ENTER warning "leave-without-enter" "a call is left that was never entered";
    REPEATED_LEAVE warning "repeated-leave" "a call is left a second time";
    LEAVE_OF_LOST_CALL warning "leave-of-lost-call" "a call is left whose enter could not be read";
    INCOMPLETE_CALL note "incomplete-call" "a call is never left";
    ARGUMENT_INDEX error "argument-index" "an argument has an index beyond the function's signature";
    DUPLICATE_ARGUMENT warning "duplicate-argument" "an argument is given twice";
    DUPLICATE_RETURN warning "duplicate-return" "a return value is given twice";
    RETURN_IN_ENTER warning "return-in-enter" "an enter event has a return value";
    ZERO_FLAG_NOT_FIRST warning "zero-flag-not-first" "a bit mask has a zero flag that is not its first";
    UNKNOWN_FLAGS warning "unknown-flags" "call flags other than bit 0 are set";
    THREAD_DETAIL warning "thread-detail" "an event has the thread detail that no reader accepts";
    DETAIL_BEFORE_VERSION warning "detail-before-version" "the stream holds what only later versions have";
}

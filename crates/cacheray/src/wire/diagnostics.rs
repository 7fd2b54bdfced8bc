//! What the reader reports of records that are wrong.

use anytrace_core::{Diagnostic, Place};

use crate::rules;
use crate::wire::record::Record;

/// Flags on a record that has none.
#[cold]
pub(super) fn flags_on_rtta(record: &Record<'_>, at: Place) -> Diagnostic {
    rules::FLAGS_ON_RTTA
        .at(at.offset)
        .record(at.seq)
        .field("tag")
        .expected(format!("{:#04x} ({})", record.kind().base(), record.kind().name()))
        .found(format!("{:#04x}", record.tag.0))
}

/// Zeros from `start` to the end of the data, `rest` bytes after `end`.
#[cold]
pub(super) fn zero_tail(start: Place, end: Place, rest: u64) -> Diagnostic {
    rules::ZERO_TAIL
        .at(start.offset)
        .record(start.seq)
        .found(format!(
            "{} bytes of zeros, which read as {} accesses of 0 bytes",
            end.offset - start.offset + rest,
            end.seq - start.seq
        ))
        .help("the file was preallocated, or its end was never written; `repair` cuts it")
}

/// A name that is longer than what is left of the data.
#[cold]
pub(super) fn past_end(at: Place, name_bytes: u64, left: u64) -> Diagnostic {
    rules::TRUNCATED_STRING
        .at(at.offset)
        .record(at.seq)
        .field("type name")
        .expected(format!("{name_bytes} bytes"))
        .found(format!("{left} bytes left"))
}

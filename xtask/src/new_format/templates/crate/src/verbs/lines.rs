//! One line for each record: for people and as JSON.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_json_bytes, push_quoted};

use crate::wire::record::{NAME, Record, VERSION};

/// How much output is gathered before it is written.
pub(crate) const FULL_BYTES: usize = 1 << 16;

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>) {
    push_header_start(out, NAME);
    out.extend_from_slice(b",\"format_version\":");
    push_dec(out, VERSION);
    out.extend_from_slice(b"}\n");
}

/// Appends a record for people.
pub(crate) fn push_text(out: &mut Vec<u8>, record: &Record<'_>) {
    push_dec(out, record.number);
    out.push(b' ');
    push_quoted(out, record.text);
    out.push(b'\n');
}

/// Appends a record as JSON.
pub(crate) fn push_json(out: &mut Vec<u8>, record: &Record<'_>, offset: Option<u64>) {
    out.extend_from_slice(b"{\"number\":");
    push_dec(out, record.number);
    out.extend_from_slice(b",\"text\":");
    push_json_bytes(out, record.text);
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

//! One line for each record or piece: for people and as JSON.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_hex, push_json_bytes};

use crate::NAME;
use crate::wire::reader::{LinePlace, Piece};
use crate::wire::record::{Kind, Record};

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>) {
    push_header_start(out, NAME);
    out.extend_from_slice(b",\"format_version\":null}\n");
}

/// Appends a record for people.
pub(crate) fn push_text(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(record.kind.name().as_bytes());
    out.push(b' ');
    push_hex(out, record.address);
    if record.kind != Kind::Block {
        out.extend_from_slice(b" size ");
        push_dec(out, record.size);
    }
    out.push(b'\n');
}

/// Appends a record as JSON. Its line is included only if Valgrind would spell it differently.
pub(crate) fn push_record_json(out: &mut Vec<u8>, record: &Record<'_>, offset: Option<u64>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(record.kind.name().as_bytes());
    out.extend_from_slice(b"\",\"address\":");
    push_dec(out, record.address);
    if record.kind != Kind::Block {
        out.extend_from_slice(b",\"size\":");
        push_dec(out, record.size);
    }
    if !record.is_usual {
        out.extend_from_slice(b",\"line\":");
        push_json_bytes(out, without_end(record.text));
    }
    push_end(out, record.text, offset);
}

/// Appends a piece as JSON. Lost bytes have no line.
pub(crate) fn push_piece_json(out: &mut Vec<u8>, piece: Piece<'_>, at: LinePlace, has_offset: bool) {
    let (kind, bytes): (&[u8], _) = match piece {
        Piece::Message(bytes) => (b"message", bytes),
        Piece::Text(bytes) => (b"text", bytes),
        Piece::Space(bytes) => (b"space", bytes),
        Piece::Lost(_) => return,
    };
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(kind);
    out.extend_from_slice(b"\",\"line\":");
    push_json_bytes(out, without_end(bytes));
    push_end(out, bytes, has_offset.then_some(at.offset));
}

fn push_end(out: &mut Vec<u8>, bytes: &[u8], offset: Option<u64>) {
    if !bytes.ends_with(b"\n") {
        out.extend_from_slice(b",\"line_end\":false");
    }
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

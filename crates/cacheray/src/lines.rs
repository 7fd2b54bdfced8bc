//! One record, one line: for people and as JSON.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_hex, push_json_bytes, push_quoted};

use crate::reader::Place;
use crate::record::{Body, Layout, Record, Tag};

/// What stands on a text line besides the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextStyle {
    /// Byte offset in front.
    pub(crate) has_offset: bool,
    /// Record number in front.
    pub(crate) has_seq: bool,
}

/// Appends a record as text, with a line end.
#[inline]
pub(crate) fn push_text(out: &mut Vec<u8>, record: &Record<'_>, at: Place, style: TextStyle) {
    if style.has_offset {
        push_hex(out, at.offset);
        out.push(b' ');
    }
    if style.has_seq {
        push_dec(out, at.seq);
        out.push(b' ');
    }
    out.extend_from_slice(record.kind().name().as_bytes());
    out.push(b' ');
    push_hex(out, record.address);
    match record.body {
        Body::Access { size } => {
            out.extend_from_slice(b" size ");
            push_dec(out, size);
        }
        Body::Add { elemsize, elemcount, .. } => {
            out.extend_from_slice(b" elemsize ");
            push_dec(out, elemsize);
            out.extend_from_slice(b" elemcount ");
            push_dec(out, elemcount);
        }
        Body::Remove => {}
    }
    out.extend_from_slice(b" thread ");
    push_dec(out, record.thread);
    if record.tag.has_flags() {
        push_flags(out, record.tag);
    }
    if let Body::Add { name, .. } = record.body {
        out.extend_from_slice(b" type ");
        push_quoted(out, name);
    }
    out.push(b'\n');
}

fn push_flags(out: &mut Vec<u8>, tag: Tag) {
    if tag.is_atomic() {
        out.extend_from_slice(b" atomic");
    }
    if tag.is_unaligned() {
        out.extend_from_slice(b" unaligned");
    }
}

/// Appends the header line of JSON lines.
pub(crate) fn push_jsonl_header(out: &mut Vec<u8>, layout: Layout) {
    push_header_start(out, crate::NAME);
    out.extend_from_slice(b",\"format_version\":null,\"byte_order\":\"");
    out.extend_from_slice(layout.endian.name().as_bytes());
    out.extend_from_slice(b"\",\"pointer_width\":");
    push_dec(out, layout.width.bytes());
    out.extend_from_slice(b"}\n");
}

/// Appends a record as a JSON object, with a line end: every field of the wire.
#[inline]
pub(crate) fn push_jsonl(out: &mut Vec<u8>, record: &Record<'_>, offset: Option<u64>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(record.kind().name().as_bytes());
    out.extend_from_slice(b"\",\"address\":");
    push_dec(out, record.address);
    match record.body {
        Body::Access { size } => {
            out.extend_from_slice(b",\"size\":");
            push_dec(out, size);
        }
        Body::Add { elemsize, elemcount, .. } => {
            out.extend_from_slice(b",\"elemsize\":");
            push_dec(out, elemsize);
            out.extend_from_slice(b",\"elemcount\":");
            push_dec(out, elemcount);
        }
        Body::Remove => {}
    }
    out.extend_from_slice(b",\"thread\":");
    push_dec(out, record.thread);
    if record.tag.is_atomic() {
        out.extend_from_slice(b",\"atomic\":true");
    }
    if record.tag.is_unaligned() {
        out.extend_from_slice(b",\"unaligned\":true");
    }
    if let Body::Add { name, .. } = record.body {
        out.extend_from_slice(b",\"type\":");
        push_json_bytes(out, name);
    }
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add() -> Record<'static> {
        let body = Body::Add { elemsize: 8, elemcount: 2, name: b"a\x1b\"\xff" };
        Record { tag: Tag(0x42), address: 0x1000, thread: 7, body }
    }

    #[test]
    fn a_text_line_is_escaped_and_shows_flags() {
        let mut out = Vec::new();
        push_text(&mut out, &add(), Place { seq: 3, offset: 54 }, TextStyle { has_offset: true, has_seq: true });
        let expected = "0x36 3 rtta_add 0x1000 elemsize 8 elemcount 2 thread 7 atomic type \"a\\u{1b}\\\"\\xff\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_json_line_holds_every_field() {
        let mut out = Vec::new();
        push_jsonl(&mut out, &add(), Some(54));
        let expected = "{\"kind\":\"rtta_add\",\"address\":4096,\"elemsize\":8,\"elemcount\":2,\"thread\":7,\
                        \"atomic\":true,\"type\":{\"hex\":\"611b22ff\"},\"offset\":54}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

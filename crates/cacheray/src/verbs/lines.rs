//! One record, one line: for people and as JSON.

use std::io::{self, Write};

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{
    push_dec, push_escaped, push_hex, push_hex_bytes, push_json_bytes, push_json_str, push_quoted,
};

use anytrace_core::Place;

use crate::wire::record::{Body, Layout, Record, Tag};

/// Names longer than this are written piece by piece.
pub(crate) const LONG_NAME_BYTES: usize = 1 << 16;

/// How a record is shown on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// For people, preceded by the byte offset and the record number if selected.
    Text { has_offset: bool, has_seq: bool },
    /// As a JSON object with every field of the wire.
    Jsonl { has_offset: bool },
}

impl Line {
    /// Appends a record, with a line end.
    #[inline]
    pub(crate) fn push(self, out: &mut Vec<u8>, record: &Record<'_>, at: Place) {
        self.push_before_name(out, record, at);
        if let Body::Add { name, .. } = record.body {
            match self {
                Self::Text { .. } => push_quoted(out, name),
                Self::Jsonl { .. } => push_json_bytes(out, name),
            }
        }
        self.push_after_name(out, at);
    }

    /// Writes a record with a long name, so that its escaped form is never in memory as one piece.
    pub(crate) fn write_long(self, out: &mut dyn Write, record: &Record<'_>, name: &[u8], at: Place) -> io::Result<()> {
        let is_hex = matches!(self, Self::Jsonl { .. }) && std::str::from_utf8(name).is_err();
        let mut line = Vec::new();
        self.push_before_name(&mut line, record, at);
        line.extend_from_slice(if is_hex { b"{\"hex\":\"" } else { b"\"" });
        for piece in pieces(name) {
            match (self, std::str::from_utf8(piece)) {
                (Self::Text { .. }, _) => push_escaped(&mut line, piece),
                (Self::Jsonl { .. }, Ok(text)) if !is_hex => push_json_piece(&mut line, text),
                (Self::Jsonl { .. }, _) => push_hex_bytes(&mut line, piece),
            }
            out.write_all(&line)?;
            line.clear();
        }
        line.extend_from_slice(if is_hex { b"\"}" } else { b"\"" });
        self.push_after_name(&mut line, at);
        out.write_all(&line)
    }

    #[inline]
    fn push_before_name(self, out: &mut Vec<u8>, record: &Record<'_>, at: Place) {
        match self {
            Self::Text { has_offset, has_seq } => {
                if has_offset {
                    push_hex(out, at.offset);
                    out.push(b' ');
                }
                if has_seq {
                    push_dec(out, at.seq);
                    out.push(b' ');
                }
                push_text(out, record);
            }
            Self::Jsonl { .. } => push_json(out, record),
        }
    }

    #[inline]
    fn push_after_name(self, out: &mut Vec<u8>, at: Place) {
        match self {
            Self::Text { .. } => {}
            Self::Jsonl { has_offset } => {
                if has_offset {
                    out.extend_from_slice(b",\"offset\":");
                    push_dec(out, at.offset);
                }
                out.push(b'}');
            }
        }
        out.push(b'\n');
    }
}

/// Appends a record as text, up to its type name.
#[inline]
fn push_text(out: &mut Vec<u8>, record: &Record<'_>) {
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
    if let Body::Add { .. } = record.body {
        out.extend_from_slice(b" type ");
    }
}

fn push_flags(out: &mut Vec<u8>, tag: Tag) {
    if tag.is_atomic() {
        out.extend_from_slice(b" atomic");
    }
    if tag.is_unaligned() {
        out.extend_from_slice(b" unaligned");
    }
}

/// Appends a record as a JSON object, up to its type name.
#[inline]
fn push_json(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(record.kind().name().as_bytes());
    out.extend_from_slice(b"\",");
    push_json_place(out, record);
    out.extend_from_slice(b",\"thread\":");
    push_dec(out, record.thread);
    push_json_flags(out, record.tag);
    if let Body::Add { .. } = record.body {
        out.extend_from_slice(b",\"type\":");
    }
}

/// Appends address and sizes of a record as members of a JSON object.
#[inline]
fn push_json_place(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(b"\"address\":");
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
}

#[inline]
fn push_json_flags(out: &mut Vec<u8>, tag: Tag) {
    if tag.is_atomic() {
        out.extend_from_slice(b",\"atomic\":true");
    }
    if tag.is_unaligned() {
        out.extend_from_slice(b",\"unaligned\":true");
    }
}

/// Appends a record as a JSON object without kind, thread and type name, for the table of records.
#[cfg(feature = "lanes")]
pub(crate) fn push_attributes(out: &mut Vec<u8>, record: &Record<'_>) {
    out.push(b'{');
    push_json_place(out, record);
    push_json_flags(out, record.tag);
    out.push(b'}');
}

/// Appends a part of a JSON string: the text between the quotes.
fn push_json_piece(out: &mut Vec<u8>, text: &str) {
    let mut quoted = Vec::new();
    push_json_str(&mut quoted, text);
    out.extend_from_slice(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default());
}

/// Cuts bytes into pieces, never inside a character.
fn pieces(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let is_inside = |at: &usize| rest.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let at = (LONG_NAME_BYTES - 3..=LONG_NAME_BYTES).rev().find(|at| !is_inside(at)).unwrap_or(LONG_NAME_BYTES);
        let (piece, others) = rest.split_at(at.min(rest.len()));
        rest = others;
        (!piece.is_empty()).then_some(piece)
    })
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
        Line::Text { has_offset: true, has_seq: true }.push(&mut out, &add(), Place { seq: 3, offset: 54 });
        let expected = "0x36 3 rtta_add 0x1000 elemsize 8 elemcount 2 thread 7 atomic type \"a\\u{1b}\\\"\\xff\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_json_line_holds_every_field() {
        let mut out = Vec::new();
        Line::Jsonl { has_offset: true }.push(&mut out, &add(), Place { seq: 3, offset: 54 });
        let expected = "{\"kind\":\"rtta_add\",\"address\":4096,\"elemsize\":8,\"elemcount\":2,\"thread\":7,\
                        \"atomic\":true,\"type\":{\"hex\":\"611b22ff\"},\"offset\":54}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_long_name_is_written_as_a_short_one_is() {
        let text = "aé\u{1b}\"🦀\\".repeat(30_000);
        let mut bytes = text.clone().into_bytes();
        bytes.insert(70_001, 0xff);
        for name in [text.as_bytes(), &bytes, &[0x80; 200_000], "é".repeat(100_000).as_bytes(), &bytes[1..]] {
            let body = Body::Add { elemsize: 8, elemcount: 2, name };
            let record = Record { tag: Tag(2), address: 0x1000, thread: 7, body };
            for line in [Line::Text { has_offset: true, has_seq: true }, Line::Jsonl { has_offset: true }] {
                let (mut at_once, mut pieced) = (Vec::new(), Vec::new());
                line.push(&mut at_once, &record, Place::default());
                line.write_long(&mut pieced, &record, name, Place::default()).unwrap();
                assert!(at_once == pieced, "{line:?}");
            }
        }
    }
}

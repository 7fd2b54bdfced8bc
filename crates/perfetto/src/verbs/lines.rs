//! One line for each packet: for people and as JSON.
//!
//! JSON has every field in the order of the wire, as `[name, value]`: names where the format's definition has them,
//! else
//! numbers. A third element is the width of a varint or length that has more bytes than it needs, as many recorders
//! write. What cannot be written so is hexadecimal, so that every packet comes back byte for byte.

use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_escaped, push_hex_bytes, push_json_str};

use crate::wire::proto::{Field, Fields, Value, varint_bytes};
use crate::wire::record::{NAME, Record};
use crate::wire::schema::{Kind, Message, TRACE_PACKET};

/// How much output is gathered before it is written.
pub(crate) const FULL_BYTES: usize = 1 << 16;

/// Deepest nesting of messages in JSON: each is two levels of arrays, and readers of JSON take 128.
const DEPTH_MAX: usize = 24;

/// Most fields of a packet in JSON; packets with more are hexadecimal.
pub(crate) const FIELDS_MAX: usize = 20_000;

/// Most bytes of a value that the lines for people show.
const SHOWN_BYTES: usize = 200;

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>) {
    push_header_start(out, NAME);
    out.extend_from_slice(b"}\n");
}

/// Appends a packet for people: its kind, its sequence, its fields.
pub(crate) fn push_text(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(record.kind_name().as_bytes());
    if record.kind() != 0 && record.kind_name() == "unknown" {
        out.push(b' ');
        push_dec(out, record.kind());
    }
    push_text_fields(out, record.body, &TRACE_PACKET, 0);
    out.push(b'\n');
}

fn push_text_fields(out: &mut Vec<u8>, bytes: &[u8], message: &Message, depth: usize) {
    for field in Fields::of(bytes) {
        let row = message.field(field.number);
        out.push(b' ');
        match row {
            Some(row) => out.extend_from_slice(row.name.as_bytes()),
            None => push_dec(out, field.number),
        }
        match (row.map(|row| row.kind), field.value) {
            (Some(Kind::Message(inner)), Value::Bytes(inside)) if depth < DEPTH_MAX => {
                out.extend_from_slice(b" {");
                push_text_fields(out, inside, inner, depth + 1);
                out.extend_from_slice(b" }");
                continue;
            }
            _ => out.push(b'='),
        }
        push_text_value(out, row.map(|row| row.kind), field.value);
    }
}

fn push_text_value(out: &mut Vec<u8>, kind: Option<Kind>, value: Value<'_>) {
    match (kind, value) {
        (Some(Kind::Signed), Value::Varint(value)) => push_dec(out, value.cast_signed()),
        (Some(Kind::Double), Value::Fixed64(bits)) => {
            out.extend_from_slice(format!("{:?}", f64::from_bits(bits)).as_bytes());
        }
        (_, Value::Varint(value) | Value::Fixed64(value)) => push_dec(out, value),
        (_, Value::Fixed32(value)) => push_dec(out, value),
        (_, Value::Group) => out.extend_from_slice(b"group"),
        (Some(Kind::Text), Value::Bytes(bytes)) => {
            out.push(b'"');
            push_escaped(out, bytes.get(..SHOWN_BYTES).unwrap_or(bytes));
            out.push(b'"');
            push_cut(out, bytes);
        }
        (_, Value::Bytes(bytes)) => {
            out.extend_from_slice(b"0x");
            push_hex_bytes(out, bytes.get(..SHOWN_BYTES).unwrap_or(bytes));
            push_cut(out, bytes);
        }
    }
}

fn push_cut(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() > SHOWN_BYTES {
        out.extend_from_slice(b"... (");
        push_dec(out, bytes.len());
        out.extend_from_slice(b" bytes)");
    }
}

/// Appends a packet as JSON.
pub(crate) fn push_json(out: &mut Vec<u8>, record: &Record<'_>, offset: Option<u64>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(record.kind_name().as_bytes());
    out.push(b'"');
    if record.length_bytes > 0 {
        out.extend_from_slice(b",\"length_bytes\":");
        push_dec(out, record.length_bytes);
    }
    out.extend_from_slice(b",\"packet\":");
    push_json_packet(out, record.body);
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

/// The fields of a packet as JSON.
pub(crate) fn push_json_packet(out: &mut Vec<u8>, body: &[u8]) {
    let start = out.len();
    let mut left = FIELDS_MAX;
    if !push_message(out, body, &TRACE_PACKET, 0, &mut left) || left == 0 {
        out.truncate(start);
        push_hex_object(out, body);
    }
}

/// Appends the fields of a message; false, with anything appended, where it has to be hexadecimal.
fn push_message(out: &mut Vec<u8>, bytes: &[u8], message: &Message, depth: usize, left: &mut usize) -> bool {
    let mut fields = Fields::of(bytes);
    let mut is_first = true;
    out.push(b'[');
    for field in fields.by_ref() {
        let Some(value_bytes) = value_bytes(bytes, &field) else { return false };
        *left = left.saturating_sub(1);
        if *left == 0 {
            return true;
        }
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        push_field(out, &field, value_bytes, message, depth, left);
    }
    out.push(b']');
    fields.fault().is_none()
}

/// How many bytes the varint or length of a field has; `None` for a field that JSON cannot have.
fn value_bytes(bytes: &[u8], field: &Field<'_>) -> Option<usize> {
    let wire: u64 = match field.value {
        Value::Varint(_) => 0,
        Value::Fixed64(_) => 1,
        Value::Bytes(_) => 2,
        Value::Fixed32(_) => 5,
        Value::Group => return None,
    };
    let tag_bytes = varint_bytes(u64::from(field.number) << 3 | wire);
    let after_tag = field.at + tag_bytes;
    // A tag that is longer than it needs to be is rare enough to be hexadecimal.
    if bytes.get(after_tag.checked_sub(1)?)? & 0x80 != 0 {
        return None;
    }
    Some(match field.value {
        Value::Bytes(_) => field.value_at.checked_sub(after_tag)?,
        Value::Varint(_) => 1 + bytes.get(after_tag..)?.iter().take_while(|byte| **byte & 0x80 != 0).count(),
        _ => 0,
    })
}

fn push_field(out: &mut Vec<u8>, field: &Field<'_>, bytes: usize, message: &Message, depth: usize, left: &mut usize) {
    let row = message.field(field.number);
    out.push(b'[');
    match row {
        Some(row) => push_json_str(out, row.name),
        None => push_dec(out, field.number),
    }
    out.push(b',');
    push_value(out, row.map(|row| row.kind), field.value, depth, left);
    let needed = match field.value {
        Value::Varint(value) => varint_bytes(value),
        Value::Bytes(bytes) => varint_bytes(bytes.len() as u64),
        _ => bytes,
    };
    if bytes != needed {
        out.push(b',');
        push_dec(out, bytes);
    }
    out.push(b']');
}

fn push_value(out: &mut Vec<u8>, kind: Option<Kind>, value: Value<'_>, depth: usize, left: &mut usize) {
    match (kind, value) {
        (Some(Kind::Signed), Value::Varint(value)) => push_dec(out, value.cast_signed()),
        (_, Value::Varint(value)) => push_dec(out, value),
        (Some(Kind::Double), Value::Fixed64(bits)) if f64::from_bits(bits).is_finite() => {
            out.extend_from_slice(format!("{:?}", f64::from_bits(bits)).as_bytes());
        }
        (_, Value::Fixed64(value)) => {
            out.extend_from_slice(b"{\"fixed64\":");
            push_dec(out, value);
            out.push(b'}');
        }
        (_, Value::Fixed32(value)) => {
            out.extend_from_slice(b"{\"fixed32\":");
            push_dec(out, value);
            out.push(b'}');
        }
        (Some(Kind::Text), Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => push_json_str(out, text),
            Err(_) => push_hex_object(out, bytes),
        },
        (Some(Kind::Message(inner)), Value::Bytes(inside)) if depth < DEPTH_MAX => {
            let start = out.len();
            if !push_message(out, inside, inner, depth + 1, left) {
                out.truncate(start);
                push_hex_object(out, inside);
            }
        }
        (_, Value::Bytes(bytes)) => push_hex_object(out, bytes),
        (_, Value::Group) => {}
    }
}

fn push_hex_object(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"{\"hex\":\"");
    push_hex_bytes(out, bytes);
    out.extend_from_slice(b"\"}");
}

/// What an event of a packet is: `slice_begin`, `slice_end`, `instant`, `counter`; else the packet's kind.
pub(crate) fn event_kind(record: &Record<'_>) -> &'static str {
    if record.kind() != crate::wire::record::data::TRACK_EVENT {
        return record.kind_name();
    }
    let kind = Fields::of(record.data()).find(|field| field.number == 9).map_or(0, |field| field.value.number());
    match kind {
        1 => "slice_begin",
        2 => "slice_end",
        3 => "instant",
        4 => "counter",
        _ => "track_event",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(body: &[u8]) -> String {
        let mut out = Vec::new();
        push_json_packet(&mut out, body);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn fields_have_names_widths_and_values() {
        let body = b"\x40\x85\x00\x5a\x09\x48\x01\xba\x01\x01a\xf8\x3e\x02";
        assert_eq!(json(body), r#"[["timestamp",5,2],["track_event",[["type",1],["name","a"],[1007,2]]]]"#);
        assert_eq!(json(b"\x5a\x81\x80\x00\x48"), r#"[["track_event",{"hex":"48"},3]]"#);
        assert_eq!(json(b"\xc0\x00\x05"), r#"{"hex":"c00005"}"#, "a tag that is too long");
        assert_eq!(json(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), r#"[["trusted_uid",-1]]"#);
    }

    #[test]
    fn lines_for_people_show_messages_in_braces() {
        let record = Record::new(b"\x40\x05\x5a\x05\xba\x01\x02a\"").unwrap_or_else(|fault| panic!("{fault:?}"));
        let mut out = Vec::new();
        push_text(&mut out, &record);
        assert_eq!(
            String::from_utf8(out).unwrap_or_default(),
            "track_event timestamp=5 track_event { name=\"a\\\"\" }\n"
        );
    }
}

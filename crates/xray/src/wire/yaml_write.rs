//! Writes YAML traces in the peer's form, without its two faults: a stale function id on events, a stale type on the
//! entries after them.

use anytrace_core::Place;

use anytrace_core::text::push_dec;

use crate::wire::moment::{Moment, MomentKind};
use crate::wire::yaml::{YamlEntry, YamlHeader};
use crate::wire::yaml_scan::push_base64;

/// Appends the start of the document.
pub(crate) fn put_yaml_header(out: &mut Vec<u8>, header: &YamlHeader) {
    out.extend_from_slice(b"---\nheader:\n  version:         ");
    push_dec(out, header.version);
    out.extend_from_slice(b"\n  type:            ");
    push_dec(out, header.type_code);
    let flag = |is_set| if is_set { "true" } else { "false" };
    out.extend_from_slice(b"\n  constant-tsc:    ");
    out.extend_from_slice(flag(header.constant_tsc).as_bytes());
    out.extend_from_slice(b"\n  nonstop-tsc:     ");
    out.extend_from_slice(flag(header.nonstop_tsc).as_bytes());
    out.extend_from_slice(b"\n  cycle-frequency: ");
    push_dec(out, header.cycle_frequency);
    out.extend_from_slice(b"\nrecords:");
}

/// Appends the end of the document. An empty list is written as an empty list.
pub(crate) fn put_yaml_end(out: &mut Vec<u8>, entries: u64) {
    out.extend_from_slice(if entries == 0 { b"         []\n...\n" } else { b"\n...\n" });
}

/// Appends one entry, without the field `function` if there is no name and `is_always_named` is false.
pub(crate) fn put_moment(out: &mut Vec<u8>, moment: &Moment<'_>, is_always_named: bool) {
    let event_type = if let MomentKind::Typed(event_type) = moment.kind { event_type } else { 0 };
    put_function(out, u32::from(event_type), moment.function, moment.name, is_always_named);
    put_rest(out, moment);
}

/// Appends one entry with all its fields as they are; without the field `function` where there is no name.
pub(crate) fn put_entry(out: &mut Vec<u8>, entry: &YamlEntry) {
    put_function(out, entry.event_type, entry.function.cast_unsigned(), &entry.name, false);
    put_rest(out, &entry.moment(Place { offset: 0, seq: 0 }));
}

fn put_rest(out: &mut Vec<u8>, moment: &Moment<'_>) {
    put_arguments(out, moment.arguments);
    out.extend_from_slice(b", cpu: ");
    push_dec(out, moment.cpu);
    put_owner(out, moment.thread, moment.process);
    put_kind(out, moment.kind.name());
    push_dec(out, moment.tsc);
    put_data(out, moment.data, false);
}

/// The parts of an entry, for writers that cache them. This one: up to the name.
pub(crate) fn put_function(out: &mut Vec<u8>, event_type: u32, function: u32, name: &[u8], is_always_named: bool) {
    out.extend_from_slice(b"\n  - { type: ");
    push_dec(out, event_type);
    out.extend_from_slice(b", func-id: ");
    push_dec(out, function.cast_signed());
    if !name.is_empty() {
        out.extend_from_slice(b", function: ");
        put_scalar(out, name);
    } else if is_always_named {
        out.extend_from_slice(b", function: '");
        push_dec(out, function.cast_signed());
        out.push(b'\'');
    }
}

/// The arguments.
pub(crate) fn put_arguments(out: &mut Vec<u8>, arguments: &[u64]) {
    if arguments.is_empty() {
        return;
    }
    out.extend_from_slice(b", args: [ ");
    for (n, value) in arguments.iter().enumerate() {
        if n > 0 {
            out.extend_from_slice(b", ");
        }
        push_dec(out, *value);
    }
    out.extend_from_slice(b" ]");
}

/// Thread and process, after the processor.
pub(crate) fn put_owner(out: &mut Vec<u8>, thread: u32, process: u32) {
    out.extend_from_slice(b", thread: ");
    push_dec(out, thread);
    if process != 0 {
        out.extend_from_slice(b", process: ");
        push_dec(out, process);
    }
}

/// The kind, up to the time.
pub(crate) fn put_kind(out: &mut Vec<u8>, kind: &str) {
    out.extend_from_slice(b", kind: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b", tsc: ");
}

/// The payload, after the time. `as_peer`: the peer ends it at the first byte that is not UTF-8, and writes byte 0x7f
/// unescaped.
pub(crate) fn put_data(out: &mut Vec<u8>, data: &[u8], as_peer: bool) {
    out.extend_from_slice(b", data: ");
    put_scalar_as(out, data, as_peer);
    out.extend_from_slice(b" }");
}

/// The quoting that a scalar needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

pub(crate) fn put_scalar(out: &mut Vec<u8>, bytes: &[u8]) {
    put_scalar_as(out, bytes, false);
}

fn put_scalar_as(out: &mut Vec<u8>, bytes: &[u8], as_peer: bool) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        // The peer stops at the first byte that is not UTF-8 and drops the rest.
        if let (true, Some(chunk)) = (as_peer, bytes.utf8_chunks().next()) {
            put_double(out, chunk.valid(), as_peer);
            out.pop();
            out.extend_from_slice("\u{fffd}\"".as_bytes());
            return;
        }
        out.extend_from_slice(b"!!binary \"");
        push_base64(out, bytes);
        out.push(b'"');
        return;
    };
    match quotes(text) {
        Quotes::None => out.extend_from_slice(bytes),
        Quotes::Single => {
            out.push(b'\'');
            for &byte in bytes {
                out.push(byte);
                if byte == b'\'' {
                    out.push(byte);
                }
            }
            out.push(b'\'');
        }
        Quotes::Double => put_double(out, text, as_peer),
    }
}

/// The peer's choice of quotes, observed in its outputs.
fn quotes(text: &str) -> Quotes {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return Quotes::Single };
    let is_word =
        matches!(text, "null" | "Null" | "NULL" | "~" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE");
    let is_edged = first.is_ascii_whitespace() || last.is_ascii_whitespace();
    let mut found = if is_word || is_edged || is_numeric(text) || b"-?:\\,[]{}#&*!|>'\"%@`".contains(first) {
        Quotes::Single
    } else {
        Quotes::None
    };
    for &byte in bytes {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' | b'^' | b'.' | b',' | b' ' | b'\t' => {}
            0..=0x1f | 0x7f.. => return Quotes::Double,
            _ => found = Quotes::Single,
        }
    }
    found
}

/// Numbers as defined by YAML 1.2's core schema.
fn is_numeric(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        None => is_digits(mantissa),
        Some((integer, fraction)) => {
            (is_digits(integer) || integer.is_empty())
                && (is_digits(fraction) || (fraction.is_empty() && !integer.is_empty()))
        }
    };
    mantissa_fits && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

fn put_double(out: &mut Vec<u8>, text: &str, as_peer: bool) {
    out.push(b'"');
    for c in text.chars() {
        let letter = match c {
            '\\' | '"' => c as u8,
            '\0' => b'0',
            '\x07' => b'a',
            '\x08' => b'b',
            '\t' => b't',
            '\n' => b'n',
            '\x0b' => b'v',
            '\x0c' => b'f',
            '\r' => b'r',
            '\x1b' => b'e',
            '\u{85}' => b'N',
            '\u{a0}' => b'_',
            '\u{2028}' => b'L',
            '\u{2029}' => b'P',
            c if is_shown(c) || (as_peer && c == '\x7f') => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            c => {
                let code = u32::from(c);
                let (mark, digits) = if code < 0x100 {
                    ('x', 2)
                } else if code < 0x1_0000 {
                    ('u', 4)
                } else {
                    ('U', 8)
                };
                out.extend_from_slice(format!("\\{mark}{code:0digits$X}").as_bytes());
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out.push(b'"');
}

/// Characters that can be sent to a terminal unchanged.
fn is_shown(c: char) -> bool {
    let hidden = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    !c.is_control() && !hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        put_scalar(&mut out, bytes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn scalars_are_quoted_as_the_peer_does() {
        for (bytes, expected) in [
            (&b""[..], "''"),
            (b"custom-1", "custom-1"),
            (b"1", "'1'"),
            (b"1.5e3", "'1.5e3'"),
            (b"0x", "0x"),
            (b"rpc start id=0 \"quoted\" \\ path", "'rpc start id=0 \"quoted\" \\ path'"),
            (b"\0", "\"\\0\""),
            (b"\x01&", "\"\\x01&\""),
            (b"a: b\nc\t\"d\"'", "\"a: b\\nc\\t\\\"d\\\"'\""),
            (b"\xff", "!!binary \"/w==\""),
        ] {
            assert_eq!(scalar(bytes), expected);
        }
    }
}

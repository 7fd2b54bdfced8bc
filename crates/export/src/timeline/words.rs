//! Names, labels and values as the outputs show them.

use std::borrow::Cow;

use anytrace_core::span::{EdgeFlags, Location, NO_CPU, Track, Value};
use anytrace_core::text;

/// A name as text: bytes that are not UTF-8 become `\xNN`, the rest stays.
pub(crate) fn shown(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.utf8_chunks().fold(String::with_capacity(bytes.len() + 8), |mut out, chunk| {
            out.push_str(chunk.valid());
            for byte in chunk.invalid() {
                out.push_str(&format!("\\x{byte:02x}"));
            }
            out
        })),
    }
}

/// The label of a track: its own name or its thread's number, and its lane if that is not the first.
pub(crate) fn label(track: &Track) -> String {
    let base = track.name.clone().unwrap_or_else(|| format!("thread {}", track.thread));
    if track.lane == 0 { base } else { format!("{base} (lane {})", track.lane) }
}

/// A track's label with its process first, for outputs that list tracks of all processes together.
pub(crate) fn full_label(track: &Track) -> String {
    match (&track.process_name, track.process) {
        (Some(name), 0) => format!("{name}, {}", label(track)),
        (Some(name), process) => format!("{name} ({process}), {}", label(track)),
        (None, 0) => label(track),
        (None, process) => format!("process {process}, {}", label(track)),
    }
}

/// Place in source code: `FILE:LINE`, or the file alone.
pub(crate) fn place(location: &Location) -> String {
    if location.line == 0 { location.file.clone() } else { format!("{}:{}", location.file, location.line) }
}

/// Words of flags, separated by spaces.
pub(crate) fn push_flags(out: &mut Vec<u8>, flags: EdgeFlags) {
    for (n, word) in flags.words().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
    }
}

/// Greatest number that every reader of JSON keeps exactly (2^53 - 1).
const EXACT_MAX: u64 = (1 << 53) - 1;

/// A value as JSON: numbers that JavaScript cannot represent and floats that JSON cannot are strings, addresses are
/// hexadecimal strings, bytes that are not text are `{"hex":"…"}`.
pub(crate) fn push_json_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::U64(v) if v > EXACT_MAX => quoted(out, |out| text::push_dec(out, v)),
        Value::U64(v) => text::push_dec(out, v),
        Value::I64(v) if v.unsigned_abs() > EXACT_MAX => quoted(out, |out| text::push_dec(out, v)),
        Value::I64(v) => text::push_dec(out, v),
        Value::F64(v) if v.is_finite() => out.extend_from_slice(format!("{v:?}").as_bytes()),
        Value::F64(v) => quoted(out, |out| out.extend_from_slice(v.to_string().as_bytes())),
        Value::Bool(v) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        Value::Address(v) => quoted(out, |out| text::push_hex(out, v)),
        Value::Text(v) => text::push_json_str(out, &shown(v)),
        Value::Bytes(v) => {
            out.extend_from_slice(b"{\"hex\":\"");
            text::push_hex_bytes(out, v);
            out.extend_from_slice(b"\"}");
        }
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                push_json_value(out, item);
            }
            out.push(b']');
        }
    }
}

fn quoted(out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    inner(out);
    out.push(b'"');
}

/// The key of an attribute: its name, made distinct from the keys `cpu`, `flags` and `src` that anytrace itself adds.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    match name {
        "cpu" | "flags" | "src" => Cow::Owned(format!("{name} (attribute)")),
        other => Cow::Borrowed(other),
    }
}

/// A processor, if known.
pub(crate) fn cpu(number: u16) -> Option<u16> {
    (number != NO_CPU).then_some(number)
}

/// Byte strings by number, in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Fragments {
    /// Adds the next: what `append` appends.
    pub(crate) fn add(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// One of them; empty for a number that was not announced.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let at = number as usize;
        let Some(&end) = self.ends.get(at) else { return &[] };
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::Items;

    use super::*;

    #[test]
    fn broken_utf8_is_shown_byte_for_byte() {
        assert_eq!(shown(b"a\xffb\xc3\xa9\xc3"), "a\\xffb\u{e9}\\xc3");
        assert_eq!(shown("\u{1f980}".as_bytes()), "\u{1f980}");
    }

    #[test]
    fn labels_name_lane_and_process() {
        let mut track = Track { process: 7, thread: 12, lane: 2, name: None, process_name: Some("app".to_owned()) };
        assert_eq!(full_label(&track), "app (7), thread 12 (lane 2)");
        track = Track { name: Some("main".to_owned()), process_name: None, process: 0, lane: 0, ..track };
        assert_eq!(full_label(&track), "main");
    }

    #[test]
    fn every_value_is_valid_json_and_no_number_loses_digits() {
        let mut list = Vec::new();
        Items::push(&mut list, Value::U64(1));
        Items::push(&mut list, Value::Text(b"\""));
        let nested = {
            let mut outer = Vec::new();
            Items::push(&mut outer, Value::Array(Items::of(&list)));
            outer
        };
        let values = [
            (Value::Array(Items::of(&list)), "[1,\"\\\"\"]"),
            (Value::Array(Items::of(&nested)), "[[1,\"\\\"\"]]"),
            (Value::Array(Items::of(&[])), "[]"),
            (Value::U64(u64::MAX), "\"18446744073709551615\""),
            (Value::U64(EXACT_MAX), "9007199254740991"),
            (Value::I64(i64::MIN), "\"-9223372036854775808\""),
            (Value::I64(-5), "-5"),
            (Value::F64(0.1), "0.1"),
            (Value::F64(1e300), "1e300"),
            (Value::F64(f64::NAN), "\"NaN\""),
            (Value::F64(f64::NEG_INFINITY), "\"-inf\""),
            (Value::Address(0xdead), "\"0xdead\""),
            (Value::Text(b"q\"\xff\x1b"), "\"q\\\"\\\\xff\\u001b\""),
            (Value::Bytes(&[0, 255]), "{\"hex\":\"00ff\"}"),
            (Value::Bool(true), "true"),
        ];
        for (value, wanted) in values {
            let mut out = Vec::new();
            push_json_value(&mut out, value);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), wanted);
            serde_json::from_slice::<serde_json::Value>(&out).unwrap();
        }
    }

    #[test]
    fn fragments_are_found_by_number() {
        let mut fragments = Fragments::default();
        for text in ["a", "", "bcd"] {
            fragments.add(|out| out.extend_from_slice(text.as_bytes()));
        }
        assert_eq!((fragments.get(0), fragments.get(1), fragments.get(2)), (&b"a"[..], &b""[..], &b"bcd"[..]));
        assert_eq!(fragments.get(3), b"");
    }
}

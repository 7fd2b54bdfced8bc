//! Texts that are escaped for terminals, JSON and XML, against readers that follow the definitions.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use anytrace_core::text::{
    escaped, is_unsafe_char, parse_hex_bytes, printable, push_dec, push_hex, push_hex_bytes, push_json_bytes,
    push_json_str, push_quoted, xml, xml_characters,
};
use serde_json::Value;

mod common;

use common::Random;

/// Undoes [`escaped`] by its documentation.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let kind = rest.chars().next().expect("a backslash is never last");
        rest = &rest[kind.len_utf8()..];
        match kind {
            '"' | '\\' => out.push(kind as u8),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'x' => {
                out.push(u8::from_str_radix(&rest[..2], 16).unwrap());
                rest = &rest[2..];
            }
            'u' => {
                let (number, more) = rest.strip_prefix('{').unwrap().split_once('}').unwrap();
                let c = char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap();
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = more;
            }
            other => panic!("an unknown escape: {other}"),
        }
    }
    out
}

fn is_safe(text: &str) -> bool {
    !text.contains(is_unsafe_char)
}

/// Bytes in which everything that must be escaped is frequent.
fn bytes(random: &mut Random) -> Vec<u8> {
    let often =
        ["\"", "\\", "\n", "\r", "\t", "\u{1b}", "\u{202e}", "\u{200b}", "é", "🦀", "&<>'", "x", "\u{fffe}", "\0"];
    let mut out = Vec::new();
    for _ in 0..random.below(30) {
        match random.below(5) {
            0 => out.push(random.below(256) as u8),
            1 | 2 => out.extend_from_slice(random.character().to_string().as_bytes()),
            _ => out.extend_from_slice(often[random.below(often.len() as u64) as usize].as_bytes()),
        }
    }
    out
}

fn text(random: &mut Random) -> String {
    String::from_utf8_lossy(&bytes(random)).into_owned()
}

/// Runs a test on many generators.
fn each_of(count: u64, test: impl Fn(&mut Random)) {
    for seed in 0..count {
        test(&mut Random(seed));
    }
}

#[test]
fn escaped_bytes_are_safe_and_come_back() {
    each_of(400, |random| {
        let bytes = bytes(random);
        let text = escaped(&bytes);
        assert!(is_safe(&text), "{text:?}");
        assert_eq!(unescape(&text), bytes.clone());
        let mut quoted = Vec::new();
        push_quoted(&mut quoted, &bytes);
        assert_eq!(String::from_utf8(quoted).unwrap(), format!("\"{text}\""));
    });
}

#[test]
fn json_of_any_bytes_is_ascii_safe_json_that_comes_back() {
    each_of(400, |random| {
        let bytes = bytes(random);
        let mut out = Vec::new();
        push_json_bytes(&mut out, &bytes);
        let text = String::from_utf8(out).unwrap();
        assert!(is_safe(&text), "{text:?}");
        let value: Value = serde_json::from_str(&text).unwrap();
        let back = match &value {
            Value::String(text) => text.clone().into_bytes(),
            Value::Object(object) => parse_hex_bytes(object["hex"].as_str().unwrap()).unwrap(),
            other => panic!("{other}"),
        };
        assert_eq!(&back, &bytes);
        assert_eq!(anytrace_core::jsonl::value_bytes(&value), Some(bytes));
    });
}

#[test]
fn json_strings_come_back() {
    each_of(400, |random| {
        let text = text(random);
        let mut out = Vec::new();
        push_json_str(&mut out, &text);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    });
}

#[test]
fn printable_text_is_safe_and_plain_text_is_unchanged() {
    each_of(400, |random| {
        let text = text(random);
        let shown = printable(&text);
        assert!(is_safe(&shown));
        assert_eq!(shown == text, is_safe(&text));
        assert_eq!(printable(&shown), shown);
    });
}

#[test]
fn xml_has_no_markup_and_no_character_that_xml_forbids() {
    each_of(400, |random| {
        let text = text(random);
        let shown = xml(&text);
        assert!(!shown.contains(['<', '>', '"', '\'']));
        for part in shown.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|entity| part.starts_with(entity)), "{part}");
        }
        let is_allowed = |c: char| matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
        assert!(shown.chars().all(is_allowed));
        let back = shown
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&amp;", "&");
        assert_eq!(back, xml_characters(&text));
    });
}

#[test]
fn numbers_are_written_as_the_standard_library_does() {
    each_of(400, |random| {
        let (number, signed, bytes) = (random.next() >> random.below(64), random.next().cast_signed(), bytes(random));
        let mut out = Vec::new();
        push_dec(&mut out, number);
        out.push(b' ');
        push_dec(&mut out, signed);
        out.push(b' ');
        push_hex(&mut out, number);
        out.push(b' ');
        push_hex_bytes(&mut out, &bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(String::from_utf8(out).unwrap(), format!("{number} {signed} {number:#x} {hex}"));
        assert_eq!(parse_hex_bytes(&hex), Some(bytes));
    });
}

#[test]
fn what_is_no_hexadecimal_is_refused() {
    for wrong in ["0", "abc", "0g", "é", "0x00", " 00", "+0"] {
        assert_eq!(parse_hex_bytes(wrong), None, "{wrong:?}");
    }
    assert_eq!(parse_hex_bytes(""), Some(Vec::new()));
    assert_eq!(parse_hex_bytes("00fF").map(|bytes| bytes.len()), Some(2));
}

#[test]
fn every_control_character_is_unsafe_and_no_letter_is() {
    for c in (0..=0x10_ffff).filter_map(char::from_u32) {
        if c.is_control() {
            assert!(is_unsafe_char(c), "{:x}", u32::from(c));
        }
        if c.is_ascii_graphic() || c == ' ' || ('à'..='ÿ').contains(&c) {
            assert!(!is_unsafe_char(c), "{c}");
        }
    }
}

//! Fast, safe text: numbers, escaped strings and JSON pieces appended to a byte buffer.
//!
//! Every verb that prints one record per line uses these, so that a control character in a trace can never reach a
//! terminal and every JSON line is valid.

use std::borrow::Cow;

/// Appends a decimal number.
#[inline]
pub fn push_dec(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `0x` and lower-case hex digits without leading zeros.
#[inline]
pub fn push_hex(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; 18];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = HEX[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    digits[at - 1] = b'x';
    digits[at - 2] = b'0';
    out.extend_from_slice(&digits[at - 2..]);
}

/// Appends two lower-case hex digits a byte.
pub fn push_hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

/// Reads what [`push_hex_bytes`] wrote.
pub fn parse_hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            u8::try_from(high << 4 | low).ok()
        })
        .collect()
}

/// True for characters that may move, hide or reorder what a terminal shows: C0, DEL and C1 controls, marks of
/// direction, line and paragraph separators, and characters without a width.
pub fn is_unsafe_char(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Appends text from a trace in double quotes, escaped so that it is safe on any terminal.
///
/// Quotes and backslashes are escaped by a backslash; line ends and tabs as `\n`, `\r`, `\t`; other
/// control and direction characters as `\u{hex}`; bytes that are not UTF-8 as `\xNN`.
pub fn push_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    push_escaped(out, bytes);
    out.push(b'"');
}

/// Appends text escaped as [`push_quoted`] does, without the quotes.
pub fn push_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                c if is_unsafe_char(c) => {
                    out.extend_from_slice(b"\\u{");
                    let mut hex = Vec::new();
                    push_hex(&mut hex, u64::from(u32::from(c)));
                    out.extend_from_slice(&hex[2..]);
                    out.push(b'}');
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(b"\\x");
            push_hex_bytes(out, &[*byte]);
        }
    }
}

/// The escaped form of [`push_escaped`] as a `String`, for messages.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    push_escaped(&mut out, bytes);
    String::from_utf8_lossy(&out).into_owned()
}

/// Text for people, in which characters that could move, hide or reorder it on a terminal are written as `\u{hex}`;
/// quotes and backslashes stay.
pub fn printable(text: &str) -> String {
    if !text.contains(is_unsafe_char) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_unsafe_char(c) {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
        out
    })
}

/// A name as text: bytes that are not UTF-8 become `\xNN`, the rest stays.
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
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

/// Text with every character that XML 1.0 (section 2.2) forbids, and all that [`printable`] escapes, written as
/// `\u{hex}`; line ends and tabs stay. For libraries that escape markup themselves; all others take [`xml`].
pub fn xml_characters(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        push_xml_character(&mut out, c);
        out
    })
}

/// Text for XML, SVG and HTML, in elements and in quoted attributes: markup as entities, and characters as in
/// [`xml_characters`]. A document with this text in such a place is well-formed, whatever the text.
pub fn xml(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match entity(c) {
            Some(entity) => out.push_str(entity),
            None => push_xml_character(&mut out, c),
        }
        out
    })
}

/// The entity for a character that is markup in XML, in elements or in quoted attributes.
pub fn entity(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&apos;",
        _ => return None,
    })
}

fn push_xml_character(out: &mut String, c: char) {
    let is_noncharacter = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    if matches!(c, '\n' | '\t') || !(is_unsafe_char(c) || is_noncharacter) {
        out.push(c);
    } else {
        out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
    }
}

/// Appends a JSON string. Control and direction characters are written as `\uXXXX`.
pub fn push_json_str(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        out.extend_from_slice(text.as_bytes());
    } else {
        push_json_escaped(out, text);
    }
    out.push(b'"');
}

fn push_json_escaped(out: &mut Vec<u8>, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if is_unsafe_char(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(b"\\u");
                    push_hex_bytes(out, &unit.to_be_bytes());
                }
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends bytes as JSON: a string where they are UTF-8, else `{"hex":"…"}`.
///
/// [`crate::jsonl::Object::bytes`] reads both forms back.
pub fn push_json_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => push_json_str(out, text),
        Err(_) => {
            out.extend_from_slice(b"{\"hex\":\"");
            push_hex_bytes(out, bytes);
            out.extend_from_slice(b"\"}");
        }
    }
}

/// Nanoseconds with four digits and a unit: `999 ns`, `1.234 µs`, `12.35 ms`, `123.5 s`.
pub fn nanoseconds(ns: u128) -> String {
    if ns < 1000 {
        return format!("{ns} ns");
    }
    let (mut unit, mut divisor) = ("s", 1_000_000_000_u128);
    for (smaller, size) in [("ms", 1_000_000), ("µs", 1000)] {
        // What would round up to 1000 of a unit is one of the next.
        if (ns + size / 20) / size < 1000 {
            (unit, divisor) = (smaller, size);
        }
    }
    let integer = ns / divisor;
    let digits: u32 = match integer {
        0..10 => 3,
        10..100 => 2,
        _ => 1,
    };
    let scale = 10_u128.pow(digits);
    let rounded = (ns * scale + divisor / 2) / divisor;
    format!("{}.{:0width$} {unit}", grouped(rounded / scale), rounded % scale, width = digits as usize)
}

/// Digits in groups of three.
pub fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits_and_the_unit_that_fits() {
        let shown =
            [0, 999, 1000, 1234, 12_345, 123_456, 999_949, 999_999, 1_234_567, 59_999_999_999, 12_345_600_000_000];
        assert_eq!(
            shown.map(nanoseconds),
            [
                "0 ns",
                "999 ns",
                "1.000 µs",
                "1.234 µs",
                "12.35 µs",
                "123.5 µs",
                "999.9 µs",
                "1.000 ms",
                "1.235 ms",
                "60.00 s",
                "12,345.6 s"
            ]
        );
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!([0, 999, 1_234_567].map(grouped), ["0", "999", "1,234,567"]);
    }

    fn made(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn broken_utf8_is_shown_byte_for_byte() {
        assert_eq!(shown(b"a\xffb\xc3\xa9\xc3"), "a\\xffb\u{e9}\\xc3");
        assert_eq!(shown("\u{1f980}".as_bytes()), "\u{1f980}");
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        assert_eq!(made(|o| push_hex(o, 0)), "0x0");
        assert_eq!(made(|o| push_hex(o, u64::MAX)), "0xffffffffffffffff");
        assert_eq!(made(|o| push_dec(o, i64::MIN)), i64::MIN.to_string());
    }

    #[test]
    fn characters_without_width_or_that_turn_the_direction_are_unsafe_and_letters_are_not() {
        let bad = "\u{0}\u{7}\u{1b}\u{7f}\u{80}\u{9b}\u{9f}\u{ad}\u{61c}\u{180e}\u{200b}\u{200d}\u{200f}\u{2028}\u{202e}\u{2066}\u{2069}\u{3164}\u{feff}\u{e0041}";
        assert!(bad.chars().all(is_unsafe_char));
        assert!(!" aé測🦀\u{a0}\u{fe0f}\u{fffd}".chars().any(is_unsafe_char));
    }

    #[test]
    fn no_control_or_direction_character_survives() {
        let text = made(|o| push_quoted(o, "a\u{1b}[2J\u{202e}\"\n\u{9b}é".as_bytes()));
        assert_eq!(text, "\"a\\u{1b}[2J\\u{202e}\\\"\\n\\u{9b}é\"");
        assert_eq!(made(|o| push_quoted(o, &[b'a', 0xff])), "\"a\\xff\"");
    }

    #[test]
    fn printable_text_keeps_its_quotes_and_shows_its_escapes() {
        assert_eq!(printable("a \"b\" \\ é"), "a \"b\" \\ é");
        assert_eq!(printable("a\u{1b}[2J\n"), "a\\u{1b}[2J\\u{a}");
    }

    #[test]
    fn text_in_xml_has_no_markup_and_no_character_that_xml_forbids() {
        assert_eq!(xml("<a b='\"'>&"), "&lt;a b=&apos;&quot;&apos;&gt;&amp;");
        assert_eq!(
            xml_characters("a\u{0}<\u{1b}\u{fffe}\u{1ffff}\r\n\té"),
            "a\\u{0}<\\u{1b}\\u{fffe}\\u{1ffff}\\u{d}\n\té"
        );
        for c in (0..0x3000).chain(0xfd00..0x1_0000).chain(0x1_fff0..0x2_0000).filter_map(char::from_u32) {
            // XML 1.0, production 2 (Char).
            let is_char =
                |c| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
            let text = xml(&c.to_string());
            assert!(
                !text.is_empty() && text.chars().all(is_char) && !text.contains(['<', '>', '"', '\'', '\r']),
                "{c:?}"
            );
        }
    }

    #[test]
    fn json_strings_read_back() {
        for text in ["", "plain", "q\"\\\n\r\t\u{0}\u{1f}\u{7f}\u{202e}é🦀"] {
            let json = made(|o| push_json_str(o, text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_become_hex() {
        assert_eq!(made(|o| push_json_bytes(o, &[0xff, 1])), "{\"hex\":\"ff01\"}");
        assert_eq!(parse_hex_bytes("ff01"), Some(vec![0xff, 1]));
        assert_eq!(parse_hex_bytes("f"), None);
        assert_eq!(parse_hex_bytes("+1"), None);
    }
}

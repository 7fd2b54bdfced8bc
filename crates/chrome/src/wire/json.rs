//! Scans JSON without building anything: where a string or a value ends, and at which byte it stops being JSON.
//!
//! It is lenient where real writers are careless and the structure stays clear: control characters and bytes that are
//! not UTF-8 in strings, unknown escapes, `NaN` and `Infinity` (Python's `json` writes them). `check` reports those.

/// Deepest nesting of values inside an event: one bit each.
pub(crate) const DEPTH_MAX: u32 = 64;

/// Why a scan returned nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end first.
    End,
    /// The byte at this place is not what must be there.
    Bad(usize, &'static str),
}

/// The first byte from `at` on that is no white space.
#[inline(always)]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The end of the string whose opening quote is at `at`.
#[inline]
pub(crate) fn skip_string(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    let mut next = at + 1;
    loop {
        // Most strings are short: the search with wide registers begins late.
        let near = bytes.get(next..).ok_or(Stop::End)?;
        let short = near.get(..16).unwrap_or(near).iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let found = match short {
            Some(found) => found,
            None => memchr::memchr2(b'"', b'\\', near).ok_or(Stop::End)?,
        };
        next += found + 1;
        if near.get(found) == Some(&b'"') {
            return Ok(next);
        }
        next += 1;
    }
}

/// The end of a number or a word: `true`, `null`, `-1.5e3`, `NaN`.
#[inline]
fn skip_scalar(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    let rest = bytes.get(at..).unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let length = rest.iter().position(|byte| !is_part(byte)).ok_or(Stop::End)?;
    let word = rest.get(..length).unwrap_or_default();
    if is_number(word) || matches!(word, b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity") {
        Ok(at + length)
    } else {
        Err(Stop::Bad(at, "a value"))
    }
}

/// True for the text of a number; leading zeros pass.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let integer = digits(rest);
    rest = rest.get(integer..).unwrap_or_default();
    if integer == 0 {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = fraction.get(count..).unwrap_or_default();
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent = exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+")).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// The end of the value that begins at `at`.
#[inline]
pub(crate) fn skip_value(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    match bytes.get(at) {
        None => Err(Stop::End),
        Some(b'"') => skip_string(bytes, at),
        Some(b'{' | b'[') => skip_container(bytes, at),
        Some(_) => skip_scalar(bytes, at),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    FirstKey,
    Key,
    FirstValue,
    Value,
    After,
}

fn skip_container(bytes: &[u8], start: usize) -> Result<usize, Stop> {
    let mut kinds = 0_u64;
    let mut depth = 0;
    let mut at = start;
    let mut want = Want::Value;
    loop {
        at = skip_space(bytes, at);
        let &byte = bytes.get(at).ok_or(Stop::End)?;
        let is_object = kinds & 1 == 1;
        let is_close = match (want, byte) {
            (Want::FirstKey | Want::Key, b'"') => {
                at = skip_space(bytes, skip_string(bytes, at)?);
                match bytes.get(at) {
                    None => return Err(Stop::End),
                    Some(b':') => at += 1,
                    Some(_) => return Err(Stop::Bad(at, "a colon after the key")),
                }
                want = Want::Value;
                false
            }
            (Want::FirstKey, b'}') | (Want::FirstValue, b']') => true,
            (Want::FirstKey | Want::Key, _) => return Err(Stop::Bad(at, "a key")),
            (Want::Value | Want::FirstValue, b'{' | b'[') => {
                if depth == DEPTH_MAX {
                    return Err(Stop::Bad(at, "at most 64 levels of nesting"));
                }
                depth += 1;
                kinds = kinds << 1 | u64::from(byte == b'{');
                want = if byte == b'{' { Want::FirstKey } else { Want::FirstValue };
                at += 1;
                false
            }
            (Want::Value | Want::FirstValue, _) => {
                at = skip_value(bytes, at)?;
                want = Want::After;
                false
            }
            (Want::After, b',') => {
                want = if is_object { Want::Key } else { Want::Value };
                at += 1;
                false
            }
            (Want::After, b'}') if is_object => true,
            (Want::After, b']') if !is_object => true,
            (Want::After, _) if is_object => return Err(Stop::Bad(at, "a comma or }")),
            (Want::After, _) => return Err(Stop::Bad(at, "a comma or ]")),
        };
        if is_close {
            at += 1;
            depth -= 1;
            kinds >>= 1;
            want = Want::After;
            if depth == 0 {
                return Ok(at);
            }
        }
    }
}

/// Passes the members of the object that begins at `at` to `visit`: the raw key without its quotes, and the raw value.
/// Returns the end of the object.
#[inline]
pub(crate) fn members<'a>(
    bytes: &'a [u8],
    at: usize,
    mut visit: impl FnMut(&'a [u8], &'a [u8]),
) -> Result<usize, Stop> {
    match bytes.get(at) {
        None => return Err(Stop::End),
        Some(b'{') => {}
        Some(_) => return Err(Stop::Bad(at, "an event: an object")),
    }
    let mut at = skip_space(bytes, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        match bytes.get(at) {
            None => return Err(Stop::End),
            Some(b'"') => {}
            Some(_) => return Err(Stop::Bad(at, "a key")),
        }
        let key_end = skip_string(bytes, at)?;
        let key = bytes.get(at + 1..key_end - 1).unwrap_or_default();
        at = skip_space(bytes, key_end);
        match bytes.get(at) {
            None => return Err(Stop::End),
            Some(b':') => {}
            Some(_) => return Err(Stop::Bad(at, "a colon after the key")),
        }
        at = skip_space(bytes, at + 1);
        let end = skip_value(bytes, at)?;
        visit(key, bytes.get(at..end).unwrap_or_default());
        at = skip_space(bytes, end);
        match bytes.get(at) {
            None => return Err(Stop::End),
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b'}') => return Ok(at + 1),
            Some(_) => return Err(Stop::Bad(at, "a comma or }")),
        }
    }
}

/// Passes the elements of the array that begins at `at` to `visit`.
pub(crate) fn elements<'a>(bytes: &'a [u8], at: usize, mut visit: impl FnMut(&'a [u8])) -> Result<usize, Stop> {
    let mut at = skip_space(bytes, at + 1);
    if bytes.get(at) == Some(&b']') {
        return Ok(at + 1);
    }
    loop {
        let end = skip_value(bytes, at)?;
        visit(bytes.get(at..end).unwrap_or_default());
        at = skip_space(bytes, end);
        match bytes.get(at) {
            None => return Err(Stop::End),
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b']') => return Ok(at + 1),
            Some(_) => return Err(Stop::Bad(at, "a comma or ]")),
        }
    }
}

/// The content of a raw string without its quotes; `None` for another value.
#[inline]
pub(crate) fn inner(raw: &[u8]) -> Option<&[u8]> {
    raw.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Replaces escapes. Lone surrogates become U+FFFD, unknown escapes stay as they are.
pub(crate) fn unescape<'a>(inner: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    if memchr::memchr(b'\\', inner).is_none() {
        return inner;
    }
    room.clear();
    let mut rest = inner;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(found);
        room.extend_from_slice(before);
        let used = push_escape(room, escape);
        rest = escape.get(used..).unwrap_or_default();
    }
    room.extend_from_slice(rest);
    room
}

/// Appends what an escape stands for; returns its length.
fn push_escape(out: &mut Vec<u8>, escape: &[u8]) -> usize {
    let simple = match escape.get(1) {
        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') if unit(escape).is_some() => return push_unicode(out, escape),
        _ => {
            out.push(b'\\');
            return 1;
        }
    };
    out.push(simple);
    2
}

/// The number of `\uXXXX`.
fn unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn push_unicode(out: &mut Vec<u8>, escape: &[u8]) -> usize {
    let first = unit(escape).unwrap_or(0xfffd);
    let second = escape.get(6..).and_then(unit).filter(|second| (0xdc00..0xe000).contains(second));
    let (code, used) = match (first, second) {
        (0xd800..0xdc00, Some(second)) => (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12),
        _ => (first, 6),
    };
    let c = char::from_u32(code).unwrap_or('\u{fffd}');
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    used
}

/// The first place where a value that [`skip_value`] accepts is not strict JSON, and what is there.
pub(crate) fn first_lenient(text: &[u8]) -> Option<(usize, &'static str)> {
    if let Err(error) = std::str::from_utf8(text) {
        return Some((error.valid_up_to(), "bytes that are not UTF-8"));
    }
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte == b'"' {
            let end = skip_string(text, at).ok()?;
            if let Some(found) = lenient_string(text.get(at..end)?) {
                return Some((at + found.0, found.1));
            }
            at = end;
        } else if byte.is_ascii_alphanumeric() || byte == b'-' {
            let rest = text.get(at..)?;
            let length =
                rest.iter().position(|b| matches!(b, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t' | b':'));
            let word = rest.get(..length.unwrap_or(rest.len()))?;
            let digits = word.strip_prefix(b"-").unwrap_or(word);
            if matches!(digits, b"NaN" | b"Infinity") {
                return Some((at, "a number that JSON does not have"));
            }
            if digits.len() > 1 && digits.first() == Some(&b'0') && digits.get(1).is_some_and(u8::is_ascii_digit) {
                return Some((at, "a leading zero"));
            }
            at += word.len();
        } else {
            at += 1;
        }
    }
    None
}

fn lenient_string(string: &[u8]) -> Option<(usize, &'static str)> {
    let mut at = 0;
    while let Some(&byte) = string.get(at) {
        if byte < 0x20 {
            return Some((at, "a control character"));
        }
        if byte == b'\\' {
            let escape = string.get(at..)?;
            match escape.get(1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 1,
                Some(b'u') if unit(escape).is_some() => {
                    let first = unit(escape).unwrap_or(0);
                    let second = escape.get(6..).and_then(unit);
                    let is_pair = (0xd800..0xdc00).contains(&first)
                        && second.is_some_and(|second| (0xdc00..0xe000).contains(&second));
                    if (0xd800..0xe000).contains(&first) && !is_pair {
                        return Some((at, "a lone surrogate"));
                    }
                    at += if is_pair { 11 } else { 5 };
                }
                _ => return Some((at, "an unknown escape")),
            }
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_a_slow_parser_says() {
        for text in
            ["1", "-0.5e+3", "\"a\\\"b\\\\\"", "[]", "{}", "[1,[2,{\"a\":[null]}],\"]\"]", "{\"a\": {\"b\" :1 } }"]
        {
            let padded = format!("{text} ,");
            assert_eq!(skip_value(padded.as_bytes(), 0), Ok(text.len()), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
            for cut in 0..text.len() {
                assert_eq!(skip_value(&text.as_bytes()[..cut], 0), Err(Stop::End), "{text} cut at {cut}");
            }
        }
        for text in ["tru,", "[1 2]", "{1:2}", "{\"a\" 1}", "{\"a\":1,}", "[1,]", "[1}", "--1,", "1.,", ".5,", "]"] {
            assert!(matches!(skip_value(text.as_bytes(), 0), Err(Stop::Bad(..))), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text.trim_end_matches(',')).is_err(), "{text}");
        }
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(skip_value(deep(64).as_bytes(), 0), Ok(128));
        assert!(matches!(skip_value(deep(65).as_bytes(), 0), Err(Stop::Bad(64, _))));
    }

    #[test]
    fn escapes_stand_for_what_a_slow_parser_says() {
        for text in [r#""plain""#, r#""\"\\\/\b\f\n\r\t""#, r#""\u00e9 \ud83e\udd80 é""#] {
            let expected: String = serde_json::from_str(text).unwrap();
            assert_eq!(unescape(inner(text.as_bytes()).unwrap(), &mut Vec::new()), expected.as_bytes());
        }
        assert_eq!(unescape(br"\ud83e!\x\", &mut Vec::new()), "\u{fffd}!\\x\\".as_bytes());
    }

    #[test]
    fn what_is_not_strict_is_found_where_it_is() {
        let found = |text: &[u8]| first_lenient(text).map(|found| found.0);
        for text in ["{\"a\":[1,-0.5,0,true,null,\"\\u00e9\\n\\ud83e\\udd80\"]}", "[]"] {
            assert_eq!(found(text.as_bytes()), None, "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        }
        let bad: [(&[u8], usize); 6] =
            [(b"[\"a\tb\"]", 3), (b"[NaN]", 1), (b"[-Infinity]", 1), (b"[\"\\x\"]", 2), (b"[01]", 1), (b"\"\xff\"", 1)];
        for (text, at) in bad {
            assert_eq!(found(text), Some(at), "{text:?}");
            assert!(serde_json::from_slice::<serde_json::Value>(text).is_err());
        }
        assert_eq!(found(br#"["\ud83e"]"#), Some(2));
    }
}

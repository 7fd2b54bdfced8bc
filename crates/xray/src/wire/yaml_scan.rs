//! Keys and values of YAML entries: plain, quoted, base64 and lists of numbers.

use std::borrow::Cow;

/// The fields of an entry (page, section 1.6).
pub(crate) const FIELDS: [&str; 10] =
    ["type", "func-id", "function", "args", "cpu", "thread", "process", "kind", "tsc", "data"];

/// What is wrong, and where in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlFault {
    pub(crate) at: usize,
    /// The field, if its value is wrong rather than the syntax.
    pub(crate) field: Option<Cow<'static, str>>,
    pub(crate) expected: Cow<'static, str>,
    pub(crate) found: String,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    at: usize,
    bytes: Cow<'a, [u8]>,
    is_list: bool,
}

impl Value<'_> {
    fn wrong(&self, field: &'static str, expected: &'static str) -> YamlFault {
        let found = anytrace_core::text::escaped(self.bytes.get(..60).unwrap_or(&self.bytes));
        YamlFault { at: self.at, field: Some(field.into()), expected: expected.into(), found }
    }

    pub(crate) fn number<T: TryFrom<i128>>(&self, field: &'static str) -> Result<T, YamlFault> {
        let number = if self.is_list { None } else { number(&self.bytes) };
        number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| self.wrong(field, "a number in range"))
    }

    pub(crate) fn flag(&self, field: &'static str) -> Result<bool, YamlFault> {
        match self.bytes.as_ref() {
            b"true" | b"True" | b"TRUE" => Ok(true),
            b"false" | b"False" | b"FALSE" => Ok(false),
            _ => Err(self.wrong(field, "true or false")),
        }
    }

    pub(crate) fn text(self, field: &'static str) -> Result<Vec<u8>, YamlFault> {
        if self.is_list { Err(self.wrong(field, "a string")) } else { Ok(self.bytes.into_owned()) }
    }

    pub(crate) fn into_bytes(self, field: &'static str, out: &mut Vec<u8>) -> Result<(), YamlFault> {
        if self.is_list {
            return Err(self.wrong(field, "a string"));
        }
        out.clear();
        out.extend_from_slice(&self.bytes);
        Ok(())
    }

    pub(crate) fn into_list(self, field: &'static str, out: &mut Vec<u64>) -> Result<(), YamlFault> {
        if !self.is_list {
            return Err(self.wrong(field, "a list of numbers"));
        }
        out.clear();
        if self.bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        for piece in self.bytes.split(|&b| b == b',') {
            let value = number(piece.trim_ascii()).and_then(|n| u64::try_from(n).ok());
            out.push(value.ok_or_else(|| self.wrong(field, "a list of numbers"))?);
        }
        Ok(())
    }
}

/// Decimal, or hexadecimal with `0x`.
fn number(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
        None if digits.starts_with('+') => return None,
        None => i128::from(digits.parse::<u64>().ok()?),
    };
    Some(if is_negative { -value } else { value })
}

/// Reads the text of one header line or entry from left to right.
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    fields: &'static [&'static str],
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self::with_fields(text, &FIELDS)
    }

    /// For another kind of document: a comma in a plain value ends it only before one of these names.
    pub(crate) fn with_fields(text: &'a [u8], fields: &'static [&'static str]) -> Self {
        Self { text, at: 0, fields }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    /// Skips white space, line ends and comments.
    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            let is_behind_space = self.at == 0 || self.text.get(self.at - 1).is_some_and(u8::is_ascii_whitespace);
            if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if byte == b'#' && is_behind_space {
                self.at += self.rest().iter().position(|&b| b == b'\n').unwrap_or(self.rest().len());
            } else {
                return;
            }
        }
    }

    fn bad(&self, expected: &'static str) -> YamlFault {
        let rest = self.rest();
        let found = anytrace_core::text::escaped(rest.get(..40).unwrap_or(rest));
        let found = if found.is_empty() { "the end of the entry".to_owned() } else { found };
        YamlFault { at: self.at, field: None, expected: expected.into(), found }
    }

    /// Where the next word begins.
    pub(crate) fn place(&mut self) -> usize {
        self.space();
        self.at
    }

    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.space();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    pub(crate) fn item(&mut self) -> Result<(), YamlFault> {
        if self.take(b'-') { Ok(()) } else { Err(self.bad("-")) }
    }

    pub(crate) fn key(&mut self) -> Result<Vec<u8>, YamlFault> {
        self.space();
        let start = self.at;
        let key = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote)?.into_owned(),
            _ => {
                let length = self.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || b"-_".contains(b)).count();
                let key = self.rest().get(..length).unwrap_or_default().to_vec();
                self.at += length;
                key
            }
        };
        if key.is_empty() || !self.take(b':') {
            self.at = start;
            return Err(self.bad("a field name and a colon"));
        }
        Ok(key)
    }

    /// True after the last field.
    pub(crate) fn is_over(&mut self, is_flow: bool) -> Result<bool, YamlFault> {
        self.space();
        if !is_flow {
            return Ok(self.peek().is_none());
        }
        if self.take(b'}') {
            self.space();
            return if self.peek().is_none() { Ok(true) } else { Err(self.bad("the end of the entry")) };
        }
        if self.peek().is_none() { Err(self.bad("}")) } else { Ok(false) }
    }

    pub(crate) fn separator(&mut self, is_flow: bool) -> Result<(), YamlFault> {
        self.space();
        if !is_flow || self.take(b',') || self.peek() == Some(b'}') { Ok(()) } else { Err(self.bad(", or }")) }
    }

    pub(crate) fn value(&mut self, is_flow: bool) -> Result<Value<'a>, YamlFault> {
        while self.peek().is_some_and(|b| b == b' ' || b == b'\t') {
            self.at += 1;
        }
        if is_flow {
            self.space();
        }
        let at = self.at;
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => Ok(Value { at, bytes: self.quoted(quote)?, is_list: false }),
            Some(b'[') => self.list(),
            Some(b'!') => self.binary(),
            // Nothing on this line: the items of a list follow, each on its own line, or there is no value.
            None | Some(b'\r' | b'\n' | b'#') if !is_flow => self.block_list(),
            _ => {
                let end = self.plain_end(is_flow);
                let bytes = self.text.get(at..end).unwrap_or_default().trim_ascii();
                self.at = end;
                Ok(Value { at, bytes: Cow::Borrowed(bytes), is_list: false })
            }
        }
    }

    /// A plain value ends at a line end; in flow style also at `}` and at a comma followed by a field name.
    fn plain_end(&self, is_flow: bool) -> usize {
        let mut at = self.at;
        while let Some(&byte) = self.text.get(at) {
            let ends = match byte {
                b'\n' => true,
                b'#' => at > 0 && self.text.get(at - 1).is_some_and(|&b| b == b' ' || b == b'\t'),
                b'}' => is_flow,
                b',' => is_flow && self.is_before_key(at + 1),
                _ => false,
            };
            if ends {
                return at;
            }
            at += 1;
        }
        at
    }

    /// The peer leaves commas in data unquoted: only a comma before a field name is a separator.
    fn is_before_key(&self, at: usize) -> bool {
        let behind_comma = self.text.get(at..).unwrap_or_default();
        let rest = behind_comma.trim_ascii_start();
        let is_comment = rest.starts_with(b"#") && rest.len() < behind_comma.len();
        if rest.is_empty() || rest.starts_with(b"}") || is_comment {
            return true;
        }
        let length = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || b"-_".contains(b)).count();
        let (key, behind) = rest.split_at(length);
        let has_colon = behind.trim_ascii_start().first() == Some(&b':');
        let is_quoted = rest.first().is_some_and(|&b| b == b'"' || b == b'\'');
        is_quoted
            || (has_colon && (self.fields.iter().any(|name| name.as_bytes() == key) || behind.first() == Some(&b':')))
    }

    fn list(&mut self) -> Result<Value<'a>, YamlFault> {
        let at = self.at;
        let length = self.rest().iter().position(|&b| b == b']').ok_or_else(|| self.bad("a list and ]"))?;
        let bytes = self.rest().get(1..length).unwrap_or_default();
        self.at += length + 1;
        Ok(Value { at, bytes: Cow::Borrowed(bytes), is_list: true })
    }

    /// Items in block style, each after a hyphen; without items the value is empty.
    fn block_list(&mut self) -> Result<Value<'a>, YamlFault> {
        let at = self.at;
        let mut items = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let is_item =
                self.rest().first_chunk::<2>().is_some_and(|[dash, next]| *dash == b'-' && next.is_ascii_whitespace());
            if !is_item {
                let is_list = !items.is_empty();
                self.at = if is_list { self.at } else { before };
                return Ok(Value { at, bytes: Cow::Owned(items), is_list });
            }
            self.at += 1;
            if !items.is_empty() {
                items.push(b',');
            }
            let end = self.plain_end(false);
            let item = self.text.get(self.at..end).unwrap_or_default().trim_ascii();
            if item.is_empty() || item.contains(&b',') {
                return Err(self.bad("a number"));
            }
            items.extend_from_slice(item);
            self.at = end;
        }
    }

    fn binary(&mut self) -> Result<Value<'a>, YamlFault> {
        let at = self.at;
        let Some(rest) = self.rest().strip_prefix(b"!!binary") else { return Err(self.bad("!!binary")) };
        self.at = self.text.len() - rest.len();
        self.space();
        let encoded = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote)?.into_owned(),
            _ => {
                let length = self.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b)).count();
                let encoded = self.rest().get(..length).unwrap_or_default().to_vec();
                self.at += length;
                encoded
            }
        };
        let bytes = base64_decode(&encoded).ok_or_else(|| self.bad("base64"))?;
        Ok(Value { at, bytes: Cow::Owned(bytes), is_list: false })
    }

    fn quoted(&mut self, quote: u8) -> Result<Cow<'a, [u8]>, YamlFault> {
        self.at += 1;
        let start = self.at;
        let mut made: Option<Vec<u8>> = None;
        loop {
            let Some(byte) = self.peek() else { return Err(self.bad("a closing quote")) };
            let here = self.at;
            self.at += 1;
            if byte == quote {
                if quote == b'\'' && self.peek() == Some(b'\'') {
                    self.at += 1;
                    made.get_or_insert_with(|| self.text.get(start..here).unwrap_or_default().to_vec()).push(b'\'');
                    continue;
                }
                let plain = self.text.get(start..here).unwrap_or_default();
                return Ok(made.map_or(Cow::Borrowed(plain), Cow::Owned));
            }
            if quote == b'"' && byte == b'\\' {
                let mut out = made.take().unwrap_or_else(|| self.text.get(start..here).unwrap_or_default().to_vec());
                self.escape(&mut out)?;
                made = Some(out);
            } else if let Some(made) = &mut made {
                made.push(byte);
            }
        }
    }

    /// An escape of a double-quoted string (YAML 1.2, section 5.7).
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), YamlFault> {
        let Some(byte) = self.peek() else { return Err(self.bad("an escape")) };
        self.at += 1;
        let simple = match byte {
            b'0' => 0,
            b'a' => 7,
            b'b' => 8,
            b't' | b'\t' => 9,
            b'n' => 10,
            b'v' => 11,
            b'f' => 12,
            b'r' => 13,
            b'e' => 27,
            b' ' | b'"' | b'/' | b'\\' => u32::from(byte),
            b'N' => 0x85,
            b'_' => 0xa0,
            b'L' => 0x2028,
            b'P' => 0x2029,
            b'\n' => {
                while self.peek().is_some_and(|b| b == b' ' || b == b'\t') {
                    self.at += 1;
                }
                return Ok(());
            }
            b'x' => self.hex(2)?,
            b'u' => self.hex(4)?,
            b'U' => self.hex(8)?,
            _ => return Err(self.bad("an escape")),
        };
        let c = char::from_u32(simple).ok_or_else(|| self.bad("a character"))?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex(&mut self, digits: usize) -> Result<u32, YamlFault> {
        let text = self.rest().get(..digits).and_then(|text| std::str::from_utf8(text).ok());
        let value =
            text.filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit())).and_then(|t| u32::from_str_radix(t, 16).ok());
        let value = value.ok_or_else(|| self.bad("hex digits"))?;
        self.at += digits;
        Ok(value)
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes in base64.
pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * n) & 63) as usize];
            out.push(if n <= group.len() as u32 { digit } else { b'=' });
        }
    }
}

fn base64_decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text {
        let digit = BASE64.iter().position(|d| d == byte)?;
        bits = bits << 6 | u32::try_from(digit).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
        }
    }
    (count < 6).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trips() {
        for length in 0..10_u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(77) ^ 0x80).collect();
            let mut text = Vec::new();
            push_base64(&mut text, &bytes);
            assert_eq!(text.len() % 4, 0);
            assert_eq!(base64_decode(&text), Some(bytes));
        }
    }

    #[test]
    fn quotes_and_escapes_are_removed() {
        let mut scanner = Scanner::new(b"a: 'it''s', data: \"\\0\\x01\\\"\\e\", tsc: 5 }");
        assert_eq!(scanner.key().unwrap(), b"a");
        assert_eq!(scanner.value(true).unwrap().text("a").unwrap(), b"it's");
        scanner.separator(true).unwrap();
        assert_eq!(scanner.key().unwrap(), b"data");
        assert_eq!(scanner.value(true).unwrap().text("data").unwrap(), b"\0\x01\"\x1b");
        scanner.separator(true).unwrap();
        scanner.key().unwrap();
        assert_eq!(scanner.value(true).unwrap().number::<u64>("tsc").unwrap(), 5);
    }

    #[test]
    fn a_comma_in_plain_data_does_not_end_it() {
        let mut scanner = Scanner::new(b"data: a, b, c, tsc: 5 }");
        scanner.key().unwrap();
        assert_eq!(scanner.value(true).unwrap().text("data").unwrap(), b"a, b, c");
    }
}

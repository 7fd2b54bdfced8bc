//! JSON lines: a text form of every format, which `convert` reads back.
//!
//! The first line is a header, `{"anytrace":"jsonl","version":1,"format":"x",…}` (one format has none);
//! each further line is one record. Bytes that are not UTF-8 are written as `{"hex":"…"}`.

use std::io::{BufRead, BufReader, Read};

use serde_json::{Map, Value};

use crate::{Diagnostic, Error, Input, Limits, Rule, text};

static BAD_LINE: Rule = Rule::error("jsonl/bad-line", "a line is not a JSON object");
static BAD_FIELD: Rule = Rule::error("jsonl/bad-field", "a field is missing or has the wrong type or range");

/// The rules that a line of JSON may break.
pub fn rules() -> &'static [&'static Rule] {
    static RULES: [&Rule; 2] = [&BAD_LINE, &BAD_FIELD];
    &RULES
}

/// Version of the header line.
pub const VERSION: u64 = 1;

/// The format that the header line of JSON lines names, if there is a header line.
pub fn header_format(head: &[u8]) -> Option<String> {
    // An editor may have changed the spacing or the order of keys.
    let first = head.iter().position(|b| !b.is_ascii_whitespace())?;
    let line = head.get(first..)?.split(|&b| b == b'\n').next()?;
    if !line.starts_with(b"{") {
        return None;
    }
    let value: Value = serde_json::from_slice(line).ok()?;
    (value.get("anytrace")? == "jsonl").then_some(())?;
    Some(value.get("format")?.as_str()?.to_owned())
}

/// Begins the header line; the caller appends `,"key":value` pairs, then `}` and a line end.
pub fn push_header_start(out: &mut Vec<u8>, format: &str) {
    out.extend_from_slice(b"{\"anytrace\":\"jsonl\",\"version\":");
    text::push_dec(out, VERSION);
    out.extend_from_slice(b",\"format\":");
    text::push_json_str(out, format);
}

/// Reads JSON lines one object at a time, with bounded memory.
pub struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    number: u64,
    offset: u64,
    line_bytes_max: u64,
    values_max: usize,
}

impl Lines {
    /// Starts at the first line. A line may be four times as long as a record may be (escapes).
    pub fn new(input: Input, limits: Limits) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 16, input.into_read()),
            line: Vec::new(),
            number: 0,
            offset: 0,
            line_bytes_max: limits.record_bytes_max.saturating_mul(4).max(1 << 20),
            values_max: usize::MAX,
        }
    }

    /// Refuses lines with more values than this: each value takes about a hundred bytes of memory, whatever its length.
    #[must_use]
    pub fn with_values_max(mut self, values: usize) -> Self {
        self.values_max = values;
        self
    }

    /// Returns the next object, or `None` at the end. Empty lines are skipped.
    ///
    /// # Errors
    /// Malformed when a line is not a JSON object, limit when it is too long, I/O.
    #[expect(clippy::should_implement_trait, reason = "fallible, and an iterator adapter would hide the error")]
    pub fn next(&mut self) -> Result<Option<Object>, Error> {
        loop {
            self.offset += self.line.len() as u64;
            self.line.clear();
            let read = (&mut self.reader).take(self.line_bytes_max).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.len() as u64 == self.line_bytes_max && self.line.last() != Some(&b'\n') {
                return Err(Error::limit(format!("line {} is longer than {} bytes", self.number, self.line_bytes_max)));
            }
            if self.line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if has_more_values(&self.line, self.values_max) {
                return Err(Error::limit(format!("line {} has more than {} values", self.number, self.values_max)));
            }
            let place = Place { line: self.number, offset: self.offset };
            return match serde_json::from_slice(&self.line) {
                Ok(Value::Object(map)) => Ok(Some(Object { map, place })),
                Ok(_) => Err(place.error(&BAD_LINE, 1, |d| d.expected("an object").found("another JSON value"))),
                Err(error) => {
                    let column = error.column() as u64;
                    Err(place.error(&BAD_LINE, column, |d| d.expected("an object").found(error.to_string())))
                }
            };
        }
    }

    /// The header line, which must name the format.
    ///
    /// # Errors
    /// Malformed when the first line is not a header of this format and version.
    pub fn header(&mut self, format: &str) -> Result<Object, Error> {
        let Some(header) = self.next()? else {
            return Err(Error::malformed(BAD_LINE.at(0).line(1, 1).expected("a header line").found("nothing")));
        };
        if header.str("anytrace")? != "jsonl" || header.str("format")? != format {
            return Err(header.wrong("format", format!("jsonl of {format}"), "another"));
        }
        if header.u64("version")? != VERSION {
            return Err(header.wrong("version", VERSION.to_string(), header.u64("version")?.to_string()));
        }
        Ok(header)
    }
}

/// True when a line of JSON holds more values than this; counted without parsing the line.
pub fn has_more_values(line: &[u8], values_max: usize) -> bool {
    if line.len() <= values_max {
        return false;
    }
    let (mut values, mut is_string, mut is_escaped) = (1, false, false);
    for &byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b',' | b':' | b'[' | b'{' if !is_string => values += 1,
            _ => {}
        }
    }
    values > values_max
}

#[derive(Debug, Clone, Copy)]
struct Place {
    line: u64,
    offset: u64,
}

impl Place {
    #[cold]
    fn error(self, rule: &'static Rule, column: u64, complete: impl FnOnce(Diagnostic) -> Diagnostic) -> Error {
        Error::malformed(complete(rule.at(self.offset).line(self.line, column).record(self.line - 1)))
    }
}

/// One line: a JSON object whose getters report errors with line and field.
#[derive(Debug)]
pub struct Object {
    map: Map<String, Value>,
    place: Place,
}

impl Object {
    /// The error "field X: expected A, found B" at this line.
    pub fn wrong(&self, field: &str, expected: impl Into<String>, found: impl Into<String>) -> Error {
        self.place.error(&BAD_FIELD, 1, |d| d.field(field.to_owned()).expected(expected.into()).found(found.into()))
    }

    /// The raw value of a field, if it is present.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.map.get(field)
    }

    /// True when the field is present.
    pub fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    /// All fields, ordered by name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Line number, from 1.
    pub fn line(&self) -> u64 {
        self.place.line
    }

    fn need<'a, T>(
        &'a self,
        field: &str,
        expected: &str,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, Error> {
        match self.map.get(field) {
            None => Err(self.wrong(field, expected, "nothing")),
            Some(value) => take(value).ok_or_else(|| self.wrong(field, expected, shown(value))),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// Malformed, here and below, when the field is missing or of another type or range.
    pub fn str(&self, field: &str) -> Result<&str, Error> {
        self.need(field, "a string", Value::as_str)
    }

    /// An unsigned number.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn u64(&self, field: &str) -> Result<u64, Error> {
        self.need(field, "an unsigned 64-bit number", Value::as_u64)
    }

    /// A signed number.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn i64(&self, field: &str) -> Result<i64, Error> {
        self.need(field, "a signed 64-bit number", Value::as_i64)
    }

    /// An unsigned number that fits a smaller type.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn uint<T: TryFrom<u64>>(&self, field: &str) -> Result<T, Error> {
        let expected = format!("an unsigned number of {} bits", size_of::<T>() * 8);
        self.need(field, &expected, |value| T::try_from(value.as_u64()?).ok())
    }

    /// A signed number that fits a smaller type.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn int<T: TryFrom<i64>>(&self, field: &str) -> Result<T, Error> {
        let expected = format!("a signed number of {} bits", size_of::<T>() * 8);
        self.need(field, &expected, |value| T::try_from(value.as_i64()?).ok())
    }

    /// True or false.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn bool(&self, field: &str) -> Result<bool, Error> {
        self.need(field, "true or false", Value::as_bool)
    }

    /// An array.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn array(&self, field: &str) -> Result<&[Value], Error> {
        self.need(field, "an array", |value| value.as_array().map(Vec::as_slice))
    }

    /// Bytes, as [`text::push_json_bytes`] writes them.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn bytes(&self, field: &str) -> Result<Vec<u8>, Error> {
        self.need(field, "a string or {\"hex\":…}", value_bytes)
    }

    /// Bytes written as plain hex digits.
    ///
    /// # Errors
    /// As [`Self::str`].
    pub fn hex(&self, field: &str) -> Result<Vec<u8>, Error> {
        self.need(field, "hex digits", |value| text::parse_hex_bytes(value.as_str()?))
    }
}

/// Bytes of a value that is a string or `{"hex":"…"}`.
pub fn value_bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Object(map) if map.len() == 1 => text::parse_hex_bytes(map.get("hex")?.as_str()?),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines {
        Lines::new(Input::from_bytes("x", text.as_bytes().to_vec()), Limits::default())
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        let line = br#"{"a":[1,2,",,,[[\",,"],"b":{}}"#;
        assert!(has_more_values(line, 8));
        assert!(!has_more_values(line, 9));
        let mut lines = lines("{\"a\":[0,0,0,0,0,0,0,0,0]}\n").with_values_max(5);
        assert!(lines.next().unwrap_err().to_string().contains("line 1 has more than 5 values"));
    }

    #[test]
    fn a_wrong_field_is_named_with_its_line() {
        let mut lines = lines("{\"a\":1}\n\n{\"a\":-1}\n");
        assert_eq!(lines.next().unwrap().unwrap().u64("a").unwrap(), 1);
        let error = lines.next().unwrap().unwrap().u64("a").unwrap_err();
        let diagnostic = error.diagnostic().unwrap();
        assert_eq!((diagnostic.line, diagnostic.offset), (Some((3, 1)), 9));
        assert_eq!(diagnostic.field.as_deref(), Some("a"));
        assert!(lines.next().unwrap().is_none());
    }

    #[test]
    fn rubbish_is_malformed_with_its_line() {
        let error = lines("{}\n[1]\n").header("x").unwrap_err();
        assert!(error.diagnostic().is_some());
        let mut lines = lines("{}\n{oops\n");
        lines.next().unwrap();
        assert_eq!(lines.next().unwrap_err().diagnostic().unwrap().line.map(|l| l.0), Some(2));
    }

    #[test]
    fn the_header_names_format_and_version() {
        let mut out = Vec::new();
        push_header_start(&mut out, "x");
        out.extend_from_slice(b",\"byte_order\":\"big\"}\n");
        assert_eq!(header_format(&out).as_deref(), Some("x"));
        let spaced = b" {\"format\": \"x\", \"version\": 1, \"anytrace\": \"jsonl\"}\r\n{}";
        assert_eq!(header_format(spaced).as_deref(), Some("x"));
        assert_eq!(header_format(b"{\"format\":\"x\"}"), None);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(lines(&text).header("x").unwrap().str("byte_order").unwrap(), "big");
        assert!(lines(&text).header("y").is_err());
    }

    #[test]
    fn a_line_too_long_is_a_limit_not_memory() {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(5 << 20));
        let mut lines =
            Lines::new(Input::from_bytes("x", text.into_bytes()), Limits::default().with_record_bytes_max(1 << 20));
        assert_eq!(lines.next().unwrap_err().kind(), crate::Kind::Limit);
    }
}

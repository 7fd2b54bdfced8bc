//! Parses JSON as Python does: comments, `NaN`, integers of any length, control characters in strings.

use anytrace_core::Error;

/// Deepest nesting read.
const DEPTH_MAX: u32 = 256;

/// Longest integer read, in digits.
const DIGITS_MAX: usize = 4300;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer: its sign and its digits, without leading zeros.
    Integer(String),
    /// A number with a point or an exponent, infinity or NaN.
    Real(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object, sorted by names; of equal names the last one in the file remains.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A member of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Map(members) = self else { return None };
        let at = members.binary_search_by(|(key, _)| key.as_str().cmp(name)).ok()?;
        members.get(at).map(|(_, value)| value)
    }

    /// As in Python, Booleans are numbers too.
    fn as_integer(&self) -> Option<&str> {
        match self {
            Self::Bool(value) => Some(if *value { "1" } else { "0" }),
            Self::Integer(digits) => Some(digits),
            _ => None,
        }
    }

    fn as_real(&self) -> Option<f64> {
        match self {
            Self::Real(value) => Some(*value),
            // Longer numbers become infinite.
            _ => self.as_integer().map(|digits| digits.parse().unwrap_or(f64::NAN)),
        }
    }

    /// True for numbers that differ by less than the last bit of a 32-bit float.
    pub(crate) fn is_close(&self, other: &Self) -> bool {
        const TOLERANCE: f64 = 1.0 / 16_777_216.0;
        if let (Some(a), Some(b)) = (self.as_integer(), other.as_integer()) {
            return a == b;
        }
        match (self.as_real(), other.as_real()) {
            (Some(a), Some(b)) if a == b || a.is_nan() && b.is_nan() => true,
            (Some(0.0), Some(b)) => b.abs() < TOLERANCE,
            (Some(a), Some(b)) => ((b - a) / a).abs() < TOLERANCE,
            (None, None) => self == other,
            _ => false,
        }
    }
}

/// Reads a text. Images, and members whose names begin and end with `__`, are omitted unless `keeps_images`.
///
/// # Errors
/// [`anytrace_core::Kind::Usage`]: text that is not JSON, with line and column.
pub fn parse(text: &str, keeps_images: bool) -> Result<Node, Error> {
    let mut parser = Parser { text, at: 0, keeps_images };
    let node = parser.value(0)?;
    parser.blanks();
    if parser.at < text.len() { Err(parser.expected("the end")) } else { Ok(node) }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    keeps_images: bool,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    #[cold]
    fn expected(&self, what: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let found = match self.rest().chars().next() {
            Some(char) => format!("{char:?}"),
            None => "the end".to_owned(),
        };
        Error::usage(format!("line {line}, column {column}: expected {what}, found {found}"))
    }

    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            let after = match trimmed.strip_prefix("//") {
                Some(comment) => comment.trim_start_matches(|char| char != '\n' && char != '\r'),
                None => trimmed,
            };
            let taken = rest.len() - after.len();
            if taken == 0 {
                return;
            }
            self.at += taken;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    fn value(&mut self, depth: u32) -> Result<Node, Error> {
        self.blanks();
        if depth > DEPTH_MAX {
            return Err(self.expected("no deeper nesting"));
        }
        let words = [
            ("null", Node::Null),
            ("true", Node::Bool(true)),
            ("false", Node::Bool(false)),
            ("NaN", Node::Real(f64::NAN)),
            ("Infinity", Node::Real(f64::INFINITY)),
            ("-Infinity", Node::Real(f64::NEG_INFINITY)),
        ];
        match self.rest().bytes().next() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Node::Text),
            Some(b'-' | b'0'..=b'9') if !self.rest().starts_with("-I") => self.number(),
            _ => {
                let found = words.into_iter().find(|(word, _)| self.take(word));
                found.map(|(_, node)| node).ok_or_else(|| self.expected("a value"))
            }
        }
    }

    fn array(&mut self, depth: u32) -> Result<Node, Error> {
        self.at += 1;
        let mut list = Vec::new();
        self.blanks();
        if self.take("]") {
            return Ok(Node::List(list));
        }
        loop {
            list.push(self.value(depth + 1)?);
            self.blanks();
            if self.take("]") {
                return Ok(Node::List(list));
            }
            if !self.take(",") {
                return Err(self.expected(", or ]"));
            }
        }
    }

    fn object(&mut self, depth: u32) -> Result<Node, Error> {
        self.at += 1;
        let mut members: Vec<(String, Node)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        self.blanks();
        let mut is_over = self.take("}");
        while !is_over {
            self.blanks();
            if !self.rest().starts_with('"') {
                return Err(self.expected("a name"));
            }
            let name = self.string()?;
            self.blanks();
            if !self.take(":") {
                return Err(self.expected(":"));
            }
            let node = self.value(depth + 1)?;
            match places.get(&name).and_then(|place: &usize| members.get_mut(*place)) {
                Some(member) => member.1 = node,
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, node));
                }
            }
            self.blanks();
            is_over = self.take("}");
            if !is_over && !self.take(",") {
                return Err(self.expected(", or }"));
            }
        }
        members.sort_unstable_by(|x, y| x.0.cmp(&y.0));
        if self.keeps_images {
            return Ok(Node::Map(members));
        }
        if places.contains_key("__class__") {
            return Ok(Node::Null);
        }
        members.retain(|(name, _)| !(name.starts_with("__") && name.ends_with("__")));
        Ok(Node::Map(members))
    }

    fn number(&mut self) -> Result<Node, Error> {
        let start = self.at;
        self.take("-");
        let digits = self.digits();
        if digits == 0 || digits > 1 && self.text.get(self.at - digits..).is_some_and(|text| text.starts_with('0')) {
            return Err(self.expected("a number"));
        }
        let mut is_real = false;
        let fraction =
            self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()));
        if fraction {
            self.at += 1;
            self.digits();
            is_real = true;
        }
        let exponent = self.rest().strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['-', '+']).unwrap_or(rest));
        if let Some(rest) = exponent.filter(|rest| rest.starts_with(|char: char| char.is_ascii_digit())) {
            self.at = self.text.len() - rest.len();
            self.digits();
            is_real = true;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if is_real {
            return text.parse().map(Node::Real).map_err(|_| self.expected("a number"));
        }
        if text.len() > DIGITS_MAX {
            return Err(self.expected("a shorter number"));
        }
        Ok(Node::Integer(if text == "-0" { "0" } else { text }.to_owned()))
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        count
    }

    fn string(&mut self) -> Result<String, Error> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(['"', '\\']).ok_or_else(|| self.expected("the end of a string"))?;
            let (now, later) = rest.split_at(plain);
            out.push_str(now);
            let is_end = later.starts_with('"');
            self.at += plain + 1;
            if is_end {
                return Ok(out);
            }
            self.escape(&mut out)?;
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), Error> {
        let char = match self.rest().chars().next() {
            Some(char @ ('"' | '\\' | '/')) => char,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.at += 1;
                let high = self.hex()?;
                let low = self.rest().strip_prefix("\\u").and_then(|rest| u32::from_str_radix(rest.get(..4)?, 16).ok());
                let code = match (high, low) {
                    (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                        self.at += 6;
                        0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
                    }
                    _ => high,
                };
                // Half of a surrogate pair is not a character.
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            _ => return Err(self.expected("an escape")),
        };
        self.at += 1;
        out.push(char);
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, Error> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let value = value.ok_or_else(|| self.expected("four hexadecimal digits"))?;
        self.at += 4;
        Ok(value)
    }
}

/// The names of two objects' members, sorted.
pub(crate) fn names<'a>(a: &'a [(String, Node)], b: &'a [(String, Node)]) -> Vec<&'a str> {
    let mut names: Vec<&str> = a.iter().chain(b).map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        parse(text, false).unwrap()
    }

    #[test]
    fn what_python_reads_is_read() {
        let text = "// a comment\n{\"a\": [1, -0, 1.5e3, NaN, -Infinity, true, null], // another\n \"s\": \"\\u00e9\\ud83e\\udd80\\n\t//\"}";
        let Node::Map(members) = node(text) else { panic!("no object") };
        assert_eq!(members[1].1, Node::Text("é🦀\n\t//".to_owned()));
        let Node::List(list) = &members[0].1 else { panic!("no array") };
        assert_eq!(list[..3], [Node::Integer("1".to_owned()), Node::Integer("0".to_owned()), Node::Real(1500.0)]);
        assert_eq!(node("{\"a\": 1, \"a\": 2}").get("a"), Some(&Node::Integer("2".to_owned())));
    }

    #[test]
    fn images_and_private_members_go_unless_they_are_kept() {
        let text = "{\"i\": {\"__class__\": \"image\", \"__data__\": \"x\"}, \"__p__\": 1}";
        assert_eq!(node(text), Node::Map(vec![("i".to_owned(), Node::Null)]));
        let Node::Map(members) = parse(text, true).unwrap() else { panic!("no object") };
        assert_eq!(members.len(), 2);
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, message) in [
            ("", "line 1, column 1: expected a value, found the end"),
            ("{\n  \"a\" 1}", "line 2, column 7: expected :, found '1'"),
            ("[1 2]", "line 1, column 4: expected , or ], found '2'"),
            ("[01]", "line 1, column 4: expected a number, found ']'"),
            ("\"abc", "line 1, column 2: expected the end of a string, found 'a'"),
            ("1 x", "line 1, column 3: expected the end, found 'x'"),
            ("{\"a\":1,}", "line 1, column 8: expected a name, found '}'"),
        ] {
            assert_eq!(parse(text, false).unwrap_err().to_string(), message);
        }
        assert!(parse(&"[".repeat(1 << 20), false).is_err());
    }

    #[test]
    fn numbers_are_close_as_the_peer_has_it() {
        let close = |a: &str, b: &str| node(a).is_close(&node(b));
        assert!(close("1", "1.00000005") && close("0", "0.00000005") && close("NaN", "NaN") && close("true", "1"));
        assert!(!close("1", "1.0000001") && !close("0.0", "0.0000001") && !close("1", "2") && !close("null", "0"));
        assert!(close("\"a\"", "\"a\"") && !close("Infinity", "1"));
    }
}

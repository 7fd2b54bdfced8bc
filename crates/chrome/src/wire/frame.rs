//! The object around the array of events: its other keys, before and after the array, of any length.
//!
//! Values are passed byte by byte, so that a key with gigabytes costs no memory; only short ones are kept, for `info`.

use super::json::DEPTH_MAX;

/// The key of the array of events.
const EVENTS: &[u8] = b"traceEvents";

/// Most bytes of a key that are compared and kept.
const KEY_BYTES_MAX: usize = 256;

/// Most bytes of one value that are kept, and most keys.
const VALUE_BYTES_MAX: usize = 64 << 10;
const KEYS_MAX: usize = 256;

/// A key beside the events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fact {
    /// Raw, without quotes.
    pub(crate) key: Vec<u8>,
    /// The raw value; empty where it is longer than what is kept.
    pub(crate) value: Vec<u8>,
    is_cut: bool,
}

/// What ended a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// All bytes belong to the object, and it goes on.
    More,
    /// The array of events begins behind these bytes.
    Events(usize),
    /// The object ends with these bytes.
    Closed(usize),
    /// The byte at this place is not what must be there.
    Bad(usize, &'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// A key, or the end of an empty object.
    FirstKey,
    Key,
    InKey,
    Colon,
    Value,
    /// Inside a value of several bytes.
    InValue,
    /// Inside a number or a word, which any other byte ends.
    InScalar,
    Comma,
}

/// The state between two bytes of the object.
#[derive(Debug)]
pub(crate) struct Frame {
    want: Want,
    /// Open containers inside a value.
    depth: u32,
    /// Of each open container one bit, the innermost last: 1 is an object.
    kinds: u64,
    is_string: bool,
    is_escaped: bool,
    current: Fact,
    facts: Vec<Fact>,
}

impl Frame {
    /// Behind the opening brace.
    pub(crate) fn new() -> Self {
        Self {
            want: Want::FirstKey,
            depth: 0,
            kinds: 0,
            is_string: false,
            is_escaped: false,
            current: Fact::default(),
            facts: Vec::new(),
        }
    }

    /// Behind the array of events.
    pub(crate) fn resume(&mut self) {
        self.want = Want::Comma;
    }

    /// The keys so far, without the events.
    pub(crate) fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Passes bytes of the object.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Stopped {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.want {
                Want::InValue => {
                    at = match self.value(bytes, at) {
                        Ok(next) => next,
                        Err((at, expected)) => return Stopped::Bad(at, expected),
                    };
                    continue;
                }
                Want::InKey => {
                    self.key(byte);
                    at += 1;
                    continue;
                }
                Want::InScalar if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') => {
                    self.keep(&[byte]);
                    at += 1;
                    continue;
                }
                Want::InScalar => {
                    self.end_value();
                    continue;
                }
                _ => {}
            }
            at += 1;
            match (self.want, byte) {
                (_, b' ' | b'\t' | b'\r' | b'\n') => {}
                (Want::FirstKey | Want::Key, b'"') => {
                    self.want = Want::InKey;
                    self.current = Fact::default();
                }
                (Want::FirstKey | Want::Comma, b'}') => return Stopped::Closed(at),
                (Want::FirstKey | Want::Key, _) => return Stopped::Bad(at - 1, "a key"),
                (Want::Colon, b':') => self.want = Want::Value,
                (Want::Colon, _) => return Stopped::Bad(at - 1, "a colon after the key"),
                (Want::Value, b'[') if self.current.key == EVENTS => return Stopped::Events(at),
                (Want::Value, b'"' | b'[' | b'{') => {
                    self.want = Want::InValue;
                    at -= 1;
                }
                (Want::Value, b',' | b']' | b'}' | b':') => return Stopped::Bad(at - 1, "a value"),
                (Want::Value, _) => {
                    self.want = Want::InScalar;
                    self.keep(&[byte]);
                }
                (Want::Comma, b',') => self.want = Want::Key,
                (_, _) => return Stopped::Bad(at - 1, "a comma or }"),
            }
        }
        Stopped::More
    }

    fn key(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => {
                self.want = Want::Colon;
                return;
            }
            _ => {}
        }
        if self.current.key.len() < KEY_BYTES_MAX {
            self.current.key.push(byte);
        }
    }

    /// Passes a string, a bracket or what is between them.
    fn value(&mut self, bytes: &[u8], at: usize) -> Result<usize, (usize, &'static str)> {
        let rest = bytes.get(at..).unwrap_or_default();
        if self.is_string {
            return Ok(at + self.string(rest));
        }
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}')).unwrap_or(rest.len());
        self.keep(rest.get(..plain).unwrap_or_default());
        let Some(&byte) = rest.get(plain) else { return Ok(at + plain) };
        match byte {
            b'"' => self.is_string = true,
            b'{' | b'[' if self.depth >= DEPTH_MAX => {
                return Err((at + plain, "at most 64 levels of nesting"));
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.kinds = self.kinds << 1 | u64::from(byte == b'{');
            }
            _ if self.kinds & 1 != u64::from(byte == b'}') => {
                return Err((at + plain, "the bracket that fits the open one"));
            }
            _ => {
                self.depth -= 1;
                self.kinds >>= 1;
            }
        }
        self.keep(&[byte]);
        if self.depth == 0 && !self.is_string {
            self.end_value();
        }
        Ok(at + plain + 1)
    }

    /// Passes a part of a string; returns its length.
    fn string(&mut self, rest: &[u8]) -> usize {
        let mut used = 0;
        while let Some(&byte) = rest.get(used) {
            if self.is_escaped {
                self.is_escaped = false;
                used += 1;
                continue;
            }
            match byte {
                b'"' => {
                    used += 1;
                    self.is_string = false;
                    break;
                }
                b'\\' => {
                    self.is_escaped = true;
                    used += 1;
                }
                _ => {
                    let next = rest.get(used..).unwrap_or_default();
                    used += memchr::memchr2(b'"', b'\\', next).unwrap_or(next.len());
                }
            }
        }
        self.keep(rest.get(..used).unwrap_or_default());
        if !self.is_string && self.depth == 0 {
            self.end_value();
        }
        used
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.current.is_cut || self.current.value.len() + bytes.len() > VALUE_BYTES_MAX {
            self.current.is_cut = true;
            self.current.value = Vec::new();
        } else {
            self.current.value.extend_from_slice(bytes);
        }
    }

    fn end_value(&mut self) {
        self.want = Want::Comma;
        let fact = std::mem::take(&mut self.current);
        let kept: usize = self.facts.iter().map(|fact| fact.value.len()).sum();
        if self.facts.len() < KEYS_MAX {
            let value = if kept + fact.value.len() > 4 * VALUE_BYTES_MAX { Vec::new() } else { fact.value };
            self.facts.push(Fact { key: fact.key, value, is_cut: fact.is_cut });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &[u8] = br#" "a" : "x\"]}" , "b":[{"c":[1]},"]"],"n" :-1.5e3, "traceEvents" : [ "#;

    #[test]
    fn the_events_are_found_behind_other_keys_however_the_bytes_arrive() {
        let events = OBJECT.len() - 1;
        for step in [1, 2, 7, OBJECT.len()] {
            let mut frame = Frame::new();
            let (mut at, mut found) = (0, None);
            while found.is_none() {
                let end = (at + step).min(OBJECT.len());
                match frame.scan(&OBJECT[at..end]) {
                    Stopped::More => at = end,
                    Stopped::Events(used) => found = Some(at + used),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(found, Some(events));
            let facts: Vec<_> = frame.facts().iter().map(|fact| String::from_utf8_lossy(&fact.value)).collect();
            assert_eq!(facts, [r#""x\"]}""#, r#"[{"c":[1]},"]"]"#, "-1.5e3"]);
        }
    }

    #[test]
    fn the_end_and_wrong_bytes_are_found() {
        let scan = |text: &[u8]| Frame::new().scan(text);
        assert_eq!(scan(b"}"), Stopped::Closed(1));
        assert_eq!(scan(b"\"a\":1}x"), Stopped::Closed(6));
        assert_eq!(scan(b"\"a\":1"), Stopped::More);
        assert_eq!(scan(b"\"a\" 1}"), Stopped::Bad(4, "a colon after the key"));
        assert_eq!(scan(b"\"a\":1,}"), Stopped::Bad(6, "a key"));
        assert_eq!(scan(b"\"a\":[}"), Stopped::Bad(5, "the bracket that fits the open one"));
        assert_eq!(scan(b"1"), Stopped::Bad(0, "a key"));
        assert_eq!(
            scan(format!("\"a\":{}", "[".repeat(65)).as_bytes()),
            Stopped::Bad(68, "at most 64 levels of nesting")
        );
        let mut frame = Frame::new();
        frame.resume();
        assert_eq!(frame.scan(b" ,\"x\":{}}"), Stopped::Closed(9));
    }
}

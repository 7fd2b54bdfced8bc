//! Formats values for comparison: text of bounded length, and a key that is equal if the values are.

use std::hash::{DefaultHasher, Hasher};

use anytrace_core::text;

use crate::lanes::dictionary::{Dictionary, number};
use crate::lanes::text::until_nul;
use crate::lanes::text::{Escape, Quoting, push_text, push_wide};
use crate::lanes::wire::{Value, Wire};
use crate::tools::diff::number::{Digits, push_f32, push_f64};

/// Longest text kept of one value; longer ones are compared by their keys.
pub(crate) const VALUE_TEXT_MAX: usize = 64 << 10;

/// Text is passed on in pieces of about this size.
const PIECE_BYTES: usize = 4 << 10;

/// What is open around the next value.
#[derive(Debug, Clone, Copy)]
enum Level {
    Array {
        left: u64,
        is_first: bool,
        has_braces: bool,
    },
    Struct {
        id: u64,
        next: u64,
    },
    /// The second value of a pair, which is not shown.
    Machine,
}

/// Makes the text and the key of values.
pub(crate) struct Values {
    pub(crate) digits: Digits,
    /// Treat pointers as equal; their values are kept separately.
    pub(crate) ignores_pointers: bool,
    /// Pointers of the value, where they are ignored.
    pub(crate) pointers: Vec<u64>,
    /// A seed for values that are equal to nothing: Python's NaN.
    unequal: u64,
    hasher: DefaultHasher,
    piece: Vec<u8>,
    /// How much of the piece is part of the key already, or must not be.
    hashed: usize,
    levels: Vec<Level>,
}

impl Values {
    /// `unequal`: the seed for values that are equal to nothing, different on each side.
    pub(crate) fn new(digits: Digits, ignores_pointers: bool, unequal: u64) -> Self {
        let (hasher, pointers) = (DefaultHasher::new(), Vec::new());
        let (piece, levels) = (Vec::new(), Vec::new());
        Self { digits, ignores_pointers, pointers, unequal, hasher, piece, hashed: 0, levels }
    }

    /// Appends the text of a value and everything nested in it; returns its key.
    pub(crate) fn push(&mut self, out: &mut Vec<u8>, wire: &mut Wire<'_>, dictionary: &Dictionary) -> u64 {
        self.hasher = DefaultHasher::new();
        self.pointers.clear();
        let start = out.len();
        self.any(out, start, wire, dictionary);
        if self.levels.is_empty() {
            self.emit(out, start);
            return self.hasher.finish();
        }
        while let Some(level) = self.levels.last_mut() {
            match level {
                Level::Array { left: 0, has_braces, .. } => {
                    if *has_braces {
                        self.piece.push(b'}');
                    }
                    self.levels.pop();
                    continue;
                }
                Level::Array { left, is_first, .. } => {
                    *left -= 1;
                    if !std::mem::replace(is_first, false) {
                        self.piece.extend_from_slice(b", ");
                    }
                }
                Level::Machine => {
                    self.levels.pop();
                    wire.skip_value(&|id| dictionary.members(id));
                    continue;
                }
                Level::Struct { id, next } if *next >= dictionary.members(*id) => {
                    self.piece.push(b'}');
                    self.levels.pop();
                    continue;
                }
                Level::Struct { id, next } => {
                    if *next > 0 {
                        self.piece.extend_from_slice(b", ");
                    }
                    let name = dictionary.structure(*id).and_then(|names| names.get(*next)).unwrap_or_default();
                    push_name(&mut self.piece, name, self.digits);
                    self.piece.extend_from_slice(b" = ");
                    *next += 1;
                }
            }
            if wire.rest().is_empty() {
                // Cut values do not get here, but a loop over a hostile count must end regardless.
                break;
            }
            self.any(out, start, wire, dictionary);
        }
        self.levels.clear();
        self.emit(out, start);
        self.hasher.finish()
    }

    /// Passes the piece on.
    fn emit(&mut self, out: &mut Vec<u8>, start: usize) {
        self.settle();
        let room = (start + VALUE_TEXT_MAX).saturating_sub(out.len());
        match self.piece.get(..room) {
            Some(fits) if room < self.piece.len() => {
                if room > 0 {
                    out.extend_from_slice(fits);
                    out.extend_from_slice("…".as_bytes());
                }
            }
            _ => out.extend_from_slice(&self.piece),
        }
        self.piece.clear();
        self.hashed = 0;
    }

    /// Adds what was written so far to the key.
    fn settle(&mut self) {
        self.hasher.write(self.piece.get(self.hashed..).unwrap_or_default());
        self.hashed = self.piece.len();
    }

    /// A value, or the beginning of a compound one.
    fn any(&mut self, out: &mut Vec<u8>, start: usize, wire: &mut Wire<'_>, dictionary: &Dictionary) {
        if self.piece.len() > PIECE_BYTES {
            self.emit(out, start);
        }
        let hash = wire.blob_hash();
        match wire.value() {
            Value::Array(left) => {
                let has_braces = left != 1;
                self.piece.push(if has_braces { b'{' } else { b'&' });
                self.levels.push(Level::Array { left, is_first: true, has_braces });
            }
            Value::Struct(id) => {
                self.piece.push(b'{');
                self.levels.push(Level::Struct { id, next: 0 });
            }
            Value::Repr => {
                self.levels.push(Level::Machine);
                self.levels.push(Level::Array { left: 1, is_first: true, has_braces: false });
            }
            Value::Text(text) => self.text(out, start, text),
            Value::Wide(chars) => self.wide(chars),
            Value::Blob(length, content) => self.blob(length, content, hash),
            Value::Pointer(value) => self.pointer(value),
            value if self.digits == Digits::Python => self.python(value, dictionary),
            value => self.plain(value, dictionary),
        }
    }

    fn plain(&mut self, value: Value<'_>, dictionary: &Dictionary) {
        let out = &mut self.piece;
        match value {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Negative(magnitude) => text::push_dec(out, (magnitude as i64).wrapping_neg()),
            Value::Unsigned(value) => text::push_dec(out, value),
            Value::Float(value) => push_f32(out, value, Digits::Plain),
            Value::Double(value) => push_f64(out, value, Digits::Plain),
            Value::Enum(id, value) => match dictionary.enumeration(id).and_then(|names| names.name(value)) {
                Some(name) => push_name(out, name, Digits::Plain),
                None => text::push_dec(out, value.map_or(0, number)),
            },
            Value::Bitmask(id, value) => {
                let start = out.len();
                let rest = flags(dictionary, id, value, &mut |name| {
                    if out.len() > start {
                        out.extend_from_slice(b" | ");
                    }
                    push_name(out, name, Digits::Plain);
                });
                if rest != 0 || out.len() == start {
                    if out.len() > start {
                        out.extend_from_slice(b" | ");
                    }
                    text::push_hex(out, rest);
                }
            }
            _ => out.push(b'?'),
        }
    }

    /// As shown by the peer's Python. Numbers of any type that Python considers equal have one key.
    fn python(&mut self, value: Value<'_>, dictionary: &Dictionary) {
        match value {
            Value::Null => self.integer(0),
            Value::Bool(value) => {
                self.settle();
                self.hasher.write_i64(i64::from(value));
                self.piece.extend_from_slice(if value { b"True" } else { b"False" });
                self.hashed = self.piece.len();
            }
            Value::Negative(magnitude) => self.integer((magnitude as i64).wrapping_neg()),
            Value::Unsigned(value) => self.integer(value as i64),
            Value::Float(value) => self.real(f64::from(value)),
            Value::Double(value) => self.real(value),
            Value::Enum(id, value) => match dictionary.enumeration(id).and_then(|names| names.name(value)) {
                Some(name) => push_python_string(&mut self.piece, name),
                None => self.integer(value.map_or(0, number)),
            },
            Value::Bitmask(id, value) => {
                self.piece.push(b'(');
                let mut is_first = true;
                let out = &mut self.piece;
                let rest = flags(dictionary, id, value, &mut |name| {
                    if !std::mem::replace(&mut is_first, false) {
                        out.extend_from_slice(b", ");
                    }
                    push_python_string(out, name);
                });
                if rest != 0 {
                    if !is_first {
                        self.piece.extend_from_slice(b", ");
                    }
                    self.integer(rest as i64);
                }
                self.piece.push(b')');
            }
            _ => self.piece.extend_from_slice(b"None"),
        }
    }

    fn integer(&mut self, value: i64) {
        self.settle();
        self.hasher.write_i64(value);
        text::push_dec(&mut self.piece, value);
        self.hashed = self.piece.len();
    }

    fn real(&mut self, value: f64) {
        self.settle();
        if value.is_nan() {
            self.unequal = self.unequal.wrapping_add(2);
            self.hasher.write_u64(self.unequal);
        } else if value == value.trunc() && value.abs() < 9e18 {
            self.hasher.write_i64(value as i64);
        } else {
            self.hasher.write_u64(value.to_bits());
        }
        push_f64(&mut self.piece, value, Digits::Python);
        self.hashed = self.piece.len();
    }

    fn pointer(&mut self, value: u64) {
        self.settle();
        if self.ignores_pointers {
            self.pointers.push(value);
        } else {
            self.hasher.write_u64(value);
        }
        if self.digits == Digits::Plain {
            text::push_hex(&mut self.piece, value);
        } else if value == 0 {
            self.piece.extend_from_slice(b"NULL");
        } else {
            // Python's numbers are signed, and the peer prints addresses as signed numbers.
            let signed = value as i64;
            if signed < 0 {
                self.piece.push(b'-');
            }
            text::push_hex(&mut self.piece, signed.unsigned_abs());
        }
        self.hashed = self.piece.len();
    }

    fn blob(&mut self, length: u64, content: Option<&[u8]>, hash: Option<u64>) {
        let hash = hash.unwrap_or_else(|| {
            let mut hasher = DefaultHasher::new();
            hasher.write(content.unwrap_or_default());
            hasher.finish()
        });
        self.settle();
        self.hasher.write_u64(hash);
        self.piece.extend_from_slice(b"blob(");
        text::push_dec(&mut self.piece, length);
        self.piece.push(b')');
    }

    fn text(&mut self, out: &mut Vec<u8>, start: usize, text: &[u8]) {
        if self.digits == Digits::Python {
            return push_python_string(&mut self.piece, text);
        }
        self.piece.push(b'"');
        for part in text.chunks(PIECE_BYTES) {
            push_text(&mut self.piece, part, Quoting { escape: Escape::C, line_end: b"\\n" });
            self.emit(out, start);
        }
        self.piece.push(b'"');
    }

    fn wide(&mut self, mut chars: Wire<'_>) {
        if self.digits == Digits::Python {
            let mut ascii = Vec::new();
            while !chars.rest().is_empty() {
                match chars.uint() as u32 {
                    0 => break,
                    char => ascii.push(u8::try_from(char).unwrap_or(0xff)),
                }
            }
            return push_python_string(&mut self.piece, &ascii);
        }
        self.piece.extend_from_slice(b"L\"");
        while !chars.rest().is_empty() {
            let char = u32::try_from(chars.uint()).unwrap_or(u32::MAX);
            push_wide(&mut self.piece, char, Quoting { escape: Escape::C, line_end: b"\\n" });
        }
        self.piece.push(b'"');
    }
}

/// Appends a name. Bytes that are not text are escaped, except in the Python form.
pub(crate) fn push_name(out: &mut Vec<u8>, name: &[u8], digits: Digits) {
    let name = until_nul(name);
    if digits == Digits::Python || name.iter().all(u8::is_ascii_graphic) {
        out.extend_from_slice(name);
    } else {
        push_text(out, name, Quoting { escape: Escape::C, line_end: b"\\n" });
    }
}

/// Passes the names of the flags that are set, as chosen by apitrace, to the callback. Returns the bits without a name.
fn flags(dictionary: &Dictionary, id: u64, value: u64, visit: &mut dyn FnMut(&[u8])) -> u64 {
    let mut rest = value;
    let Some(mask) = dictionary.bitmask(id) else { return rest };
    for (name, flag) in mask.flags() {
        let is_set = if flag == 0 { rest == 0 } else { rest & flag == flag };
        if is_set {
            visit(until_nul(name));
            rest &= !flag;
        }
        if rest == 0 {
            break;
        }
    }
    rest
}

/// Appends a string as in the peer's Python, where characters that are not ASCII were lost. Identifiers have no quotes.
pub(crate) fn push_python_string(out: &mut Vec<u8>, text: &[u8]) {
    let text: Vec<u8> = until_nul(text).iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' }).collect();
    // Python's `$` matches before a line end, too.
    let word = text.strip_suffix(b"\n").unwrap_or(&text);
    let is_word = word.first().is_some_and(|byte| !byte.is_ascii_digit())
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if is_word {
        return out.extend_from_slice(&text);
    }
    let quote = if text.contains(&b'\'') && !text.contains(&b'"') { b'"' } else { b'\'' };
    out.push(quote);
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte if byte == quote => out.extend([b'\\', byte]),
            0x20..0x7f => out.push(byte),
            byte => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(quote);
}

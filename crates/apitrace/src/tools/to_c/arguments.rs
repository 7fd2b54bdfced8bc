//! Writes values of a trace as C expressions.
//!
//! Only numbers, escaped strings, and names that are checked to be valid get from a trace into the source.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use super::data::Data;
use crate::lanes::dictionary::Dictionary;
use crate::lanes::wire::{Value, Wire};
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::{float, integer};

/// Most elements of an array in the source; longer arrays go to the data.
const ELEMENTS_MAX: u64 = 16;

/// Most bytes of a string in the source.
const TEXT_MAX: usize = 2048;

/// Most enumeration names that are defined; further values are written as numbers.
const NAMES_MAX: usize = 1 << 13;

/// Why a value cannot be written.
#[derive(Debug)]
pub(super) enum Unfit {
    /// It does not have the parameter's type; a description.
    Value(&'static str),
    /// The data cannot be written.
    Io(io::Error),
}

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The C name of a type's letter; see `src/tables/types.txt`.
pub(super) fn type_name(letter: u8) -> &'static str {
    match letter {
        b'e' => "GLenum",
        b'u' => "GLuint",
        b'i' => "GLint",
        b'b' => "GLubyte",
        b'c' => "GLbyte",
        b'a' => "GLchar",
        b's' => "GLshort",
        b'w' => "GLushort",
        b'f' => "GLfloat",
        b'd' => "GLdouble",
        b'l' => "GLint64",
        b'L' => "GLuint64",
        b'n' => "GLintptr",
        b'y' => "GLsync",
        _ => "void",
    }
}

/// A type as C declares it. All pointers are to const, so that any argument can be passed.
pub(super) fn declared(kind: &[u8]) -> String {
    match kind {
        [b'p', b'p', letter] => format!("const {} *const *", type_name(*letter)),
        [b'p', letter] => format!("const {} *", type_name(*letter)),
        [letter, ..] => type_name(*letter).to_owned(),
        [] => "void".to_owned(),
    }
}

/// Splits a row of the table of types: the return type, then each parameter.
pub(super) fn split_types(row: &str) -> impl Iterator<Item = &[u8]> {
    row.as_bytes().split_inclusive(|letter| *letter != b'p')
}

/// Writes values as expressions.
pub(super) struct Expressions {
    pub(super) data: Data,
    /// Names of values that the source uses.
    pub(super) names: BTreeMap<String, u32>,
}

impl Expressions {
    /// A value of the type, as an argument. `kind`: it names objects of this kind.
    pub(super) fn value(
        &mut self,
        types: &[u8],
        kind: Option<Kind>,
        mut wire: Wire<'_>,
        dictionary: &Dictionary,
    ) -> Result<String, Unfit> {
        match types {
            [b'p', rest @ ..] => self.pointer(rest, kind, wire, dictionary),
            [letter, ..] => self.scalar(*letter, kind, wire.value(), dictionary),
            [] => Err(Unfit::Value("there is no such parameter")),
        }
    }

    fn scalar(
        &mut self,
        letter: u8,
        kind: Option<Kind>,
        value: Value<'_>,
        dictionary: &Dictionary,
    ) -> Result<String, Unfit> {
        let bad = Unfit::Value("a value's type differs from its parameter's");
        if matches!(letter, b'f' | b'd') {
            let number = float(value, dictionary).ok_or(bad)?;
            return Ok(if letter == b'f' { single(number as f32) } else { double(number) });
        }
        let read = match value {
            // Careless programs pass floating-point numbers to some functions for integers.
            Value::Float(_) | Value::Double(_) => float(value, dictionary).map(|number| number as i64),
            _ => integer(value, dictionary),
        };
        let number = read.ok_or(bad)?;
        Ok(match (letter, kind) {
            (b'y', _) => format!("sync_object({:#x})", number as u64),
            (b'u', Some(kind)) if number != 0 => format!("object({}, {})", kind_name(kind), number as u32),
            (b'e', _) => self.named(number as u32, value, dictionary),
            (b'u', _) => format!("{}u", number as u32),
            (b'i', _) if number as i32 == i32::MIN => "(-2147483647 - 1)".to_owned(),
            (b'i', _) => (number as i32).to_string(),
            (b'b', _) => (number as u8).to_string(),
            (b'c' | b'a', _) => (number as i8).to_string(),
            (b's', _) => (number as i16).to_string(),
            (b'w', _) => (number as u16).to_string(),
            (b'l' | b'n', _) if i32::try_from(number).is_ok() => number.to_string(),
            (b'l' | b'n', _) => format!("(GLint64){:#x}u", number as u64),
            (b'L', _) => format!("{:#x}u", number as u64),
            _ => return Err(Unfit::Value("a parameter has a type that traces cannot represent")),
        })
    }

    /// A number by its names in the trace, if they are valid names.
    fn named(&mut self, number: u32, value: Value<'_>, dictionary: &Dictionary) -> String {
        match value {
            Value::Enum(id, signed) => {
                let name = dictionary.enumeration(id).and_then(|values| values.name(signed));
                if let Some(name) = name.and_then(|name| self.define(name, number)) {
                    return name;
                }
            }
            Value::Bitmask(id, bits) if bits == u64::from(number) && bits != 0 => {
                let (mut rest, mut text) = (number, String::new());
                for (name, flag) in dictionary.bitmask(id).into_iter().flat_map(|mask| mask.flags()) {
                    let flag = u32::try_from(flag).unwrap_or(0);
                    if flag != 0
                        && rest & flag == flag
                        && let Some(name) = self.define(name, flag)
                    {
                        rest &= !flag;
                        text.push_str(if text.is_empty() { "" } else { " | " });
                        text.push_str(&name);
                    }
                }
                if rest == 0 {
                    return text;
                }
            }
            _ => {}
        }
        format!("{number:#x}")
    }

    /// The name, if it is valid in C and has only one value.
    fn define(&mut self, name: &[u8], number: u32) -> Option<String> {
        let is_name = name.len() <= 80
            && name.starts_with(b"GL_")
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let name = std::str::from_utf8(name).ok().filter(|_| is_name)?;
        match self.names.get(name) {
            Some(known) => (*known == number).then(|| name.to_owned()),
            None if self.names.len() >= NAMES_MAX => None,
            None => {
                self.names.insert(name.to_owned(), number);
                Some(name.to_owned())
            }
        }
    }

    fn pointer(
        &mut self,
        to: &[u8],
        kind: Option<Kind>,
        mut wire: Wire<'_>,
        dictionary: &Dictionary,
    ) -> Result<String, Unfit> {
        match wire.value() {
            Value::Null => Ok("0".to_owned()),
            Value::Blob(_, Some(bytes)) => Ok(format!("blob({})", self.data.add(bytes)?)),
            Value::Text(text) if matches!(to, b"a" | b"b" | b"v") => self.text(text),
            Value::Array(0) => Ok("0".to_owned()),
            Value::Array(count) => self.array(to, kind, (wire, count), dictionary),
            Value::Unsigned(number) | Value::Pointer(number) => Ok(format!("address({number:#x})")),
            Value::Blob(_, None) => Err(Unfit::Value("its bytes are not in the trace")),
            _ => Err(Unfit::Value("a value is not a pointer")),
        }
    }

    fn array(
        &mut self,
        to: &[u8],
        kind: Option<Kind>,
        (mut wire, count): (Wire<'_>, u64),
        dictionary: &Dictionary,
    ) -> Result<String, Unfit> {
        let mut elements = Vec::new();
        let mut letter = to.first().copied().unwrap_or(b'v');
        if letter == b'v' {
            // For untyped memory, the values determine the type.
            let mut first = wire;
            letter = match first.value() {
                Value::Float(_) => b'f',
                Value::Double(_) => b'd',
                _ => b'u',
            };
        }
        // Untyped memory may be a vertex array, which must stay in place.
        let is_long = count > ELEMENTS_MAX || to == b"v";
        if is_long && !matches!(letter, b'p' | b'y') && (kind.is_none() || letter != b'u') {
            return Ok(format!("blob({})", self.data.add(&encoded(letter, (wire, count), dictionary)?)?));
        }
        for _ in 0..count {
            if wire.rest().is_empty() {
                break;
            }
            let element = match to {
                [b'p', b'p', ..] => return Err(Unfit::Value("pointers are nested too deeply")),
                [b'p', inner @ ..] => {
                    let mut ahead = wire;
                    if matches!(ahead.value(), Value::Array(_)) {
                        return Err(Unfit::Value("arrays are nested"));
                    }
                    self.pointer(inner, None, wire, dictionary)?
                }
                _ => {
                    let mut ahead = wire;
                    self.scalar(letter, kind, ahead.value(), dictionary)?
                }
            };
            elements.push(element);
            wire.skip_value(&|id| dictionary.members(id));
        }
        let of = if to.first() == Some(&b'p') {
            format!("const {} *const", type_name(to.get(1).copied().unwrap_or(b'v')))
        } else {
            format!("const {}", type_name(letter))
        };
        Ok(format!("({of}[]){{{}}}", elements.join(", ")))
    }

    /// A C string of exactly these bytes, and a null byte.
    pub(super) fn text(&mut self, text: &[u8]) -> Result<String, Unfit> {
        if text.len() > TEXT_MAX {
            let ended = [text, &[0]].concat();
            return Ok(format!("blob({})", self.data.add(&ended)?));
        }
        Ok(literal(text))
    }
}

/// A string literal; nothing in it can end it or begin a trigraph.
pub(super) fn literal(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\n' if at + 1 < text.len() => out.push_str("\\n\"\n        \""),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'"' | b'\\' | b'?' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            0x20..=0x7e => out.push(char::from(*byte)),
            _ => {
                // Writing to a String cannot fail. Always three digits, so that a following digit is not read as part
                // of the escape.
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// The elements of an array as in the memory of little-endian machines.
fn encoded(letter: u8, (mut wire, count): (Wire<'_>, u64), dictionary: &Dictionary) -> Result<Vec<u8>, Unfit> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        if wire.rest().is_empty() {
            break;
        }
        let value = wire.value();
        let bad = Unfit::Value("an element's type differs from its parameter's");
        if matches!(letter, b'f' | b'd') {
            let number = float(value, dictionary).ok_or(bad)?;
            match letter {
                b'f' => bytes.extend((number as f32).to_le_bytes()),
                _ => bytes.extend(number.to_le_bytes()),
            }
            continue;
        }
        let number = integer(value, dictionary).ok_or(bad)?.to_le_bytes();
        let length = match letter {
            b'b' | b'c' | b'a' => 1,
            b's' | b'w' => 2,
            b'e' | b'u' | b'i' => 4,
            _ => 8,
        };
        bytes.extend(number.iter().take(length));
    }
    Ok(bytes)
}

fn single(number: f32) -> String {
    if number.is_finite() { format!("{number:?}f") } else { format!("float_of({:#x})", number.to_bits()) }
}

fn double(number: f64) -> String {
    if number.is_finite() { format!("{number:?}") } else { format!("double_of({:#x})", number.to_bits()) }
}

/// The C constant of a kind.
pub(super) fn kind_name(kind: Kind) -> String {
    kind.namespace().name().to_ascii_uppercase()
}

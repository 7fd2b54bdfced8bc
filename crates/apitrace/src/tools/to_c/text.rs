//! Writes values of a trace as C expressions.
//!
//! Only numbers, escaped strings, and names that are checked to be valid get from a trace into the source.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::data::Data;
use super::failed;
use crate::lanes::dictionary::Dictionary;
use crate::lanes::wire::Value;
use crate::tools::gl::kind::Kind;
use crate::tools::gl::values::float;
use crate::tools::program::{Argument, Array, Scalar, Unfit};

/// Most elements of an array in the source; longer arrays go to the data.
const ELEMENTS_MAX: u64 = 16;

/// Most bytes of a string in the source.
const TEXT_MAX: usize = 2048;

/// Most enumeration names that are defined; further values are written as numbers.
const NAMES_MAX: usize = 1 << 13;

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

/// Writes values as expressions.
pub(super) struct Expressions {
    pub(super) data: Data,
    /// Names of values that the source uses.
    pub(super) names: BTreeMap<String, u32>,
}

impl Expressions {
    /// An argument for a parameter of this type.
    pub(super) fn argument(
        &mut self,
        types: &[u8],
        argument: &Argument<'_>,
        dictionary: &Dictionary,
    ) -> Result<String, Unfit> {
        let letter = types.first().copied().unwrap_or(b'v');
        Ok(match *argument {
            Argument::Scalar(scalar) => self.scalar(letter, scalar, dictionary),
            Argument::WindowBuffer(scalar) => format!("window_buffer({})", self.scalar(letter, scalar, dictionary)),
            Argument::WindowBuffers(elements) => {
                let number = |mut wire: crate::lanes::wire::Wire<'_>| float(wire.value(), dictionary).unwrap_or(0.0);
                let buffers: Vec<String> =
                    elements.map(|wire| format!("window_buffer({:#x})", number(wire) as u32)).collect();
                format!("(const GLenum[]){{{}}}", buffers.join(", "))
            }
            Argument::Location(None, location) => format!("location({location})"),
            Argument::Location(Some(program), location) => format!("location_of({program}u, {location})"),
            Argument::Block(program, block) => format!("block_of({program}u, {block}u)"),
            Argument::Null => "0".to_owned(),
            Argument::Bytes(bytes) => format!("blob({})", self.data.add(bytes).map_err(failed)?),
            Argument::Text(text) => self.text(text)?,
            Argument::Address(number) => format!("address({number:#x})"),
            Argument::Array(array) => self.array(&array, dictionary)?,
            Argument::NewNames => "names".to_owned(),
        })
    }

    fn scalar(&mut self, letter: u8, scalar: Scalar<'_>, dictionary: &Dictionary) -> String {
        let number = match scalar {
            Scalar::Float(number) if letter == b'f' => return single(number as f32),
            Scalar::Float(number) => return double(number),
            Scalar::Sync(number) => return format!("sync_object({number:#x})"),
            Scalar::Object(kind, name) => return format!("object({}, {name})", kind_name(kind)),
            Scalar::Enum(number, value) => return self.named(number, value, dictionary),
            Scalar::Integer(number) => number,
        };
        match letter {
            b'i' if number as i32 == i32::MIN => "(-2147483647 - 1)".to_owned(),
            b'i' => (number as i32).to_string(),
            b'b' => (number as u8).to_string(),
            b'c' | b'a' => (number as i8).to_string(),
            b's' => (number as i16).to_string(),
            b'w' => (number as u16).to_string(),
            b'l' | b'n' if i32::try_from(number).is_ok() => number.to_string(),
            b'l' | b'n' => format!("(GLint64){:#x}u", number as u64),
            b'L' => format!("{:#x}u", number as u64),
            _ => format!("{}u", number as u32),
        }
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

    fn array(&mut self, array: &Array<'_>, dictionary: &Dictionary) -> Result<String, Unfit> {
        let letter = array.letter;
        // Untyped memory may be a vertex array, which must stay in place.
        let is_long = array.count > ELEMENTS_MAX || array.is_untyped;
        if is_long && !matches!(letter, b'p' | b'y') && (array.kind.is_none() || letter != b'u') {
            let mut bytes = Vec::new();
            for element in array.arguments(dictionary) {
                if let Argument::Scalar(scalar) = element? {
                    scalar.encode(letter, &mut bytes);
                }
            }
            return Ok(format!("blob({})", self.data.add(&bytes).map_err(failed)?));
        }
        let types = [&[letter], array.inner].concat();
        let types = if letter == b'p' { array.inner } else { &types };
        let mut elements = Vec::new();
        for element in array.arguments(dictionary) {
            elements.push(self.argument(types, &element?, dictionary)?);
        }
        let of = if letter == b'p' {
            format!("const {} *const", type_name(array.inner.first().copied().unwrap_or(b'v')))
        } else {
            format!("const {}", type_name(letter))
        };
        Ok(format!("({of}[]){{{}}}", elements.join(", ")))
    }

    /// A C string of exactly these bytes, and a null byte.
    pub(super) fn text(&mut self, text: &[u8]) -> Result<String, Unfit> {
        if text.len() > TEXT_MAX {
            let ended = [text, &[0]].concat();
            return Ok(format!("blob({})", self.data.add(&ended).map_err(failed)?));
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

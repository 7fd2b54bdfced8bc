//! The attributes of integers, floating-point numbers, strings and blocks.

use std::rc::Rc;

use anytrace_core::Endian;

use super::Fault;
use super::lex::Token;
use super::parser::Parser;
use super::types::{INTEGER_BITS_MAX, Integer, Path, Type};

/// What is on the right of `=`.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Integer(i128),
    Text(String),
    Name(Path),
}

impl Value {
    /// A word: a string or a name.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Integer(_) => None,
            Self::Text(text) => Some(text.clone()),
            Self::Name(path) => Some(path.join(".")),
        }
    }

    pub(super) fn integer(&self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn shown(&self) -> String {
        self.integer().map_or_else(|| self.text().unwrap_or_default(), |value| value.to_string())
    }

    fn flag(&self) -> Option<bool> {
        match self.shown().to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }
}

/// A byte order; the outer `None` is a word that is none, the inner one that of the trace.
pub(super) fn order(word: &str) -> Option<Option<Endian>> {
    match word {
        "le" => Some(Some(Endian::Little)),
        "be" | "network" => Some(Some(Endian::Big)),
        "native" => Some(None),
        _ => None,
    }
}

impl Parser<'_> {
    pub(super) fn value(&mut self) -> Result<Value, Fault> {
        if let Token::Text(_) = self.peek()? {
            let Token::Text(mut text) = self.take()? else { return Ok(Value::Integer(0)) };
            // Adjacent strings are one, as in C.
            while let Token::Text(more) = self.peek()? {
                text.push_str(more);
                self.take()?;
            }
            return Ok(Value::Text(text));
        }
        if self.word().is_some() {
            Ok(Value::Name(self.path("value")?))
        } else {
            self.integer("value").map(Value::Integer)
        }
    }

    /// `{ key = value; … }`, each with its place.
    fn attributes(&mut self, what: &str) -> Result<Vec<(String, Value, usize)>, Fault> {
        self.expect("{", what)?;
        let mut found = Vec::new();
        while !self.take_if("}")? {
            let at = self.at();
            let key = self.name(what)?.to_owned();
            self.expect("=", &key)?;
            found.push((key, self.value()?, at));
            if !self.is("}") {
                self.expect(";", what)?;
            }
            // There are nine.
            if found.len() > 64 {
                return Err(self.wrong(what, "fewer attributes"));
            }
        }
        Ok(found)
    }

    pub(super) fn integer_type(&mut self) -> Result<Type, Fault> {
        let start = self.at();
        let (mut size, mut align) = (None, None);
        let mut integer =
            Integer { size: 0, align: 1, is_signed: false, base: 10, order: None, is_text: false, clock: None };
        for (key, value, at) in self.attributes("integer")? {
            let wrong = |expected: &str| Fault::new(at, key.clone(), expected, value.shown());
            let text = value.text();
            match key.as_str() {
                "size" => size = Some(bits(&value).ok_or_else(|| wrong("1 to 64"))?),
                "align" => align = Some(alignment(&value).ok_or_else(|| wrong("a power of two"))?),
                "signed" => integer.is_signed = value.flag().ok_or_else(|| wrong("true or false"))?,
                "base" => integer.base = base(&value.shown()).ok_or_else(|| wrong("a base of numbers"))?,
                "encoding" => integer.is_text = matches!(text.as_deref(), Some("UTF8" | "ASCII" | "utf8" | "ascii")),
                "byte_order" => {
                    integer.order =
                        text.as_deref().and_then(order).ok_or_else(|| wrong("le, be, network or native"))?;
                }
                "map" => integer.clock = clock(&value),
                _ => {}
            }
        }
        integer.size = size.ok_or_else(|| Fault::new(start, "integer", "a size", "none"))?;
        integer.align = align.unwrap_or(if integer.size.is_multiple_of(8) { 8 } else { 1 });
        Ok(Type::Integer(Rc::new(integer)))
    }

    pub(super) fn float_type(&mut self) -> Result<Type, Fault> {
        let start = self.at();
        let (mut exponent, mut mantissa, mut align, mut byte_order) = (0, 0, 8, None);
        for (key, value, at) in self.attributes("floating_point")? {
            let wrong = |expected: &str| Fault::new(at, key.clone(), expected, value.shown());
            match key.as_str() {
                "exp_dig" => exponent = bits(&value).ok_or_else(|| wrong("8 or 11"))?,
                "mant_dig" => mantissa = bits(&value).ok_or_else(|| wrong("24 or 53"))?,
                "align" => align = alignment(&value).ok_or_else(|| wrong("a power of two"))?,
                "byte_order" => {
                    let text = value.text();
                    byte_order = text.as_deref().and_then(order).ok_or_else(|| wrong("le, be, network or native"))?;
                }
                _ => {}
            }
        }
        match (exponent, mantissa) {
            (8, 24) | (11, 53) => Ok(Type::Float { size: exponent + mantissa, align, order: byte_order }),
            _ => {
                let found = format!("exp_dig {exponent} and mant_dig {mantissa}");
                Err(Fault::new(start, "floating_point", "exp_dig 8 and mant_dig 24, or 11 and 53", found))
            }
        }
    }

    /// A string, whose encodings are read as one.
    pub(super) fn string_type(&mut self) -> Result<Type, Fault> {
        if self.is("{") {
            self.attributes("string")?;
        }
        Ok(Type::Text)
    }
}

fn bits(value: &Value) -> Option<u32> {
    value.integer().and_then(|size| u32::try_from(size).ok()).filter(|size| (1..=INTEGER_BITS_MAX).contains(size))
}

pub(super) fn alignment(value: &Value) -> Option<u32> {
    value.integer().and_then(|align| u32::try_from(align).ok()).filter(|align| align.is_power_of_two())
}

fn base(word: &str) -> Option<u8> {
    match word {
        "decimal" | "dec" | "d" | "i" | "u" | "10" => Some(10),
        "hexadecimal" | "hex" | "x" | "X" | "p" | "16" => Some(16),
        "octal" | "oct" | "o" | "8" => Some(8),
        "binary" | "b" | "2" => Some(2),
        _ => None,
    }
}

/// `clock.NAME.value`.
fn clock(value: &Value) -> Option<Rc<str>> {
    match value {
        Value::Name(path) => match &**path {
            [first, name, ..] if first == "clock" => Some(name.as_str().into()),
            [name] => Some(name.as_str().into()),
            _ => None,
        },
        _ => None,
    }
}

//! Arguments of records: names with values.

use super::words::{Words, bits, half};

/// A text: in the record itself, or a number of the provider's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Inline(&'a [u8]),
    /// 0 is the empty text.
    Number(u16),
}

/// Reads what a reference of 16 bits refers to; text of the record itself is taken from `words`.
#[inline]
pub(crate) fn text<'a>(reference: u16, words: &mut Words<'a>) -> Option<Text<'a>> {
    if reference & 0x8000 == 0 {
        return Some(Text::Number(reference));
    }
    words.padded(u64::from(reference & 0x7fff)).map(Text::Inline)
}

/// The value of an argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    I64(i64),
    U64(u64),
    F64(f64),
    Text(Text<'a>),
    Pointer(u64),
    Koid(u64),
    Bool(bool),
    /// Of a type that is not in the format's definition.
    Unknown(u8),
}

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Argument<'a> {
    pub(crate) name: Text<'a>,
    pub(crate) value: Value<'a>,
}

/// Arguments that were not read yet. They were checked when the record was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arguments<'a> {
    count: u64,
    words: Words<'a>,
}

impl<'a> Arguments<'a> {
    pub(crate) const NONE: Self = Self { count: 0, words: Words { rest: &[] } };

    /// Takes so many arguments from the words of a record; `None` if one cannot be read.
    pub(crate) fn take(count: u64, words: &mut Words<'a>) -> Option<Self> {
        let arguments = Self { count, words: *words };
        for _ in 0..count {
            argument(words)?;
        }
        Some(arguments)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Argument<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        argument(&mut self.words)
    }
}

fn argument<'a>(words: &mut Words<'a>) -> Option<Argument<'a>> {
    let all = *words;
    let head = words.word()?;
    let bytes = usize::try_from(bits(head, 4, 15)).ok()?.checked_mul(8).filter(|bytes| *bytes > 0)?;
    let mut own = Words { rest: all.rest.get(8..bytes)? };
    words.rest = all.rest.get(bytes..)?;
    let name = text(half(head, 16), &mut own)?;
    let upper = (head >> 32) as u32;
    let value = match head & 15 {
        0 => Value::Null,
        1 => Value::I64(upper.cast_signed().into()),
        2 => Value::U64(upper.into()),
        3 => Value::I64(own.word()?.cast_signed()),
        4 => Value::U64(own.word()?),
        5 => Value::F64(f64::from_bits(own.word()?)),
        6 => Value::Text(text(half(head, 32), &mut own)?),
        7 => Value::Pointer(own.word()?),
        8 => Value::Koid(own.word()?),
        9 => Value::Bool(upper & 1 != 0),
        other => Value::Unknown(other as u8),
    };
    Some(Argument { name, value })
}

//! Values of an array, in the bytes of a batch.

use super::Value;
use crate::bytes::array_at;

/// Deepest nesting of arrays that is kept; deeper ones are left out.
const DEPTH_MAX: u8 = 16;

const U64: u8 = 0;
const I64: u8 = 1;
const F64: u8 = 2;
const BOOL: u8 = 3;
const ADDRESS: u8 = 4;
const TEXT: u8 = 5;
const BYTES: u8 = 6;
const ARRAY: u8 = 7;

/// The values of an array, in order; cheap to copy.
///
/// ```
/// use anytrace_core::span::{Items, Value};
///
/// let mut bytes = Vec::new();
/// Items::push(&mut bytes, Value::U64(7));
/// Items::push(&mut bytes, Value::Text(b"seven"));
/// let items = Items::of(&bytes);
/// assert_eq!(items.collect::<Vec<_>>(), [Value::U64(7), Value::Text(b"seven")]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Items<'a> {
    bytes: &'a [u8],
    depth: u8,
}

impl<'a> Items<'a> {
    /// Values that [`Self::push`] appended.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// Appends a value.
    pub fn push(out: &mut Vec<u8>, value: Value<'_>) {
        match value {
            Value::U64(v) => eight(out, U64, v),
            Value::I64(v) => eight(out, I64, v.cast_unsigned()),
            Value::F64(v) => eight(out, F64, v.to_bits()),
            Value::Bool(v) => out.extend_from_slice(&[BOOL, u8::from(v)]),
            Value::Address(v) => eight(out, ADDRESS, v),
            Value::Text(v) => bytes(out, TEXT, v),
            Value::Bytes(v) => bytes(out, BYTES, v),
            Value::Array(v) => bytes(out, ARRAY, v.bytes),
        }
    }

    /// The bytes that hold them.
    pub(super) fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8).and_then(|bytes| array_at(bytes, 0)).map(u64::from_le_bytes)
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.take(4).and_then(|bytes| array_at(bytes, 0)).map(u32::from_le_bytes)?;
        self.take(length as usize)
    }
}

fn eight(out: &mut Vec<u8>, kind: u8, value: u64) {
    out.push(kind);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    // Nothing in a trace is longer; anything longer is cut rather than given a wrong length.
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    out.push(kind);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(value.get(..length as usize).unwrap_or(value));
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let kind = *self.take(1)?.first()?;
        Some(match kind {
            U64 => Value::U64(self.number()?),
            I64 => Value::I64(self.number()?.cast_signed()),
            F64 => Value::F64(f64::from_bits(self.number()?)),
            BOOL => Value::Bool(self.take(1)? != [0]),
            ADDRESS => Value::Address(self.number()?),
            TEXT => Value::Text(self.long()?),
            BYTES => Value::Bytes(self.long()?),
            ARRAY if self.depth < DEPTH_MAX => {
                let depth = self.depth + 1;
                Value::Array(Items { bytes: self.long()?, depth })
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_comes_back_and_depth_is_bounded() {
        let values = [
            Value::U64(u64::MAX),
            Value::I64(-5),
            Value::F64(0.5),
            Value::Bool(true),
            Value::Address(16),
            Value::Text(b"text"),
            Value::Bytes(b""),
        ];
        let mut inner = Vec::new();
        values.iter().for_each(|&value| Items::push(&mut inner, value));
        assert_eq!(Items::of(&inner).collect::<Vec<_>>(), values);
        let mut nested = inner.clone();
        for _ in 0..40 {
            let mut outer = Vec::new();
            Items::push(&mut outer, Value::Array(Items::of(&nested)));
            nested = outer;
        }
        let mut level = Items::of(&nested);
        let mut depth = 0;
        while let Some(Value::Array(next)) = level.next() {
            (level, depth) = (next, depth + 1);
        }
        assert_eq!(depth, usize::from(DEPTH_MAX));
        assert_eq!(Items::of(&inner[..5]).next(), None);
    }
}

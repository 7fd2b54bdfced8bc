//! Arguments of a call by index, and their values as bytes that are equal when the values are.

use crate::tools::dictionary::{Dictionary, number as signed};
use crate::tools::wire::{Value, Wire};

/// Arguments beyond this are not looked at; no function of the table has as many.
const ARGUMENTS: usize = 16;

/// Longer values are not compared.
const VALUE_BYTES_MAX: usize = 4096;

/// Where the arguments of a call stand.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tools::stats) struct Arguments<'a> {
    at: [Option<Wire<'a>>; ARGUMENTS],
    /// Index of the last argument, and one.
    count: usize,
    pub(in crate::tools::stats) returned: Option<Wire<'a>>,
    pub(in crate::tools::stats) is_fake: bool,
}

impl<'a> Arguments<'a> {
    /// Takes note of an argument.
    #[inline]
    pub(in crate::tools::stats) fn add(&mut self, index: u64, wire: Wire<'a>) {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(place) = self.at.get_mut(at) {
            *place = Some(wire);
            self.count = self.count.max(at + 1);
        } else {
            self.count = ARGUMENTS + 1;
        }
    }

    pub(in crate::tools::stats) fn wire(&self, index: u8) -> Option<Wire<'a>> {
        self.at.get(usize::from(index)).copied().flatten()
    }

    /// An argument that is a number.
    #[inline]
    pub(super) fn number(&self, index: u8, dictionary: &Dictionary) -> Option<u64> {
        number(self.wire(index)?, dictionary)
    }
}

/// A value that is a number, a name or an address.
#[inline]
pub(super) fn number(mut wire: Wire<'_>, dictionary: &Dictionary) -> Option<u64> {
    scalar(wire.value(), dictionary)
}

#[inline]
fn scalar(value: Value<'_>, dictionary: &Dictionary) -> Option<u64> {
    Some(match value {
        Value::Null => 0,
        Value::Bool(value) => u64::from(value),
        Value::Negative(value) => value.wrapping_neg(),
        Value::Unsigned(value) | Value::Bitmask(_, value) | Value::Pointer(value) => value,
        Value::Enum(_, Some(value)) => signed(value) as u64,
        Value::Enum(id, None) => dictionary.enumeration(id)?.value(None) as u64,
        _ => return None,
    })
}

/// Numbers of an array, or a number alone.
pub(super) fn numbers_of(mut wire: Wire<'_>, dictionary: &Dictionary, most: u64) -> Option<Vec<u64>> {
    match wire.value() {
        Value::Array(count) if count <= most => (0..count).map(|_| scalar(wire.value(), dictionary)).collect(),
        Value::Null => Some(Vec::new()),
        value => scalar(value, dictionary).map(|one| vec![one]),
    }
}

/// Appends the arguments from an index on. False when they cannot be compared.
pub(super) fn push_values(out: &mut Vec<u8>, of: &Arguments<'_>, from: usize, dictionary: &Dictionary) -> bool {
    of.count <= ARGUMENTS
        && of.at.iter().take(of.count).skip(from).all(|argument| match argument {
            Some(wire) => push_value(out, *wire, dictionary),
            None => false,
        })
}

/// Appends a value with its shape. False for texts and blobs, what is too long, and what no one can tell.
fn push_value(out: &mut Vec<u8>, wire: Wire<'_>, dictionary: &Dictionary) -> bool {
    push(out, wire, dictionary, true)
}

/// Appends the numbers of an array, without its shape.
pub(super) fn push_flat(out: &mut Vec<u8>, wire: Wire<'_>, dictionary: &Dictionary) -> bool {
    push(out, wire, dictionary, false)
}

fn push(out: &mut Vec<u8>, mut wire: Wire<'_>, dictionary: &Dictionary, has_shape: bool) -> bool {
    let mut left = 1_u64;
    while left > 0 {
        left -= 1;
        let (shape, count) = match wire.value() {
            Value::Float(value) => {
                out.extend_from_slice(&f64::from(value).to_bits().to_le_bytes());
                continue;
            }
            Value::Double(value) => {
                out.extend_from_slice(&value.to_bits().to_le_bytes());
                continue;
            }
            Value::Array(count) => (0, count),
            Value::Struct(id) => (1, dictionary.members(id)),
            Value::Repr => (2, 2),
            value => match scalar(value, dictionary) {
                Some(number) => {
                    out.extend_from_slice(&number.to_le_bytes());
                    continue;
                }
                None => return false,
            },
        };
        if count > VALUE_BYTES_MAX as u64 || out.len() > VALUE_BYTES_MAX {
            return false;
        }
        if has_shape {
            out.push(shape);
            out.extend_from_slice(&count.to_le_bytes());
        }
        left += count;
    }
    true
}

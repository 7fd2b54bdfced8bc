//! Arguments of a call by index, and their values as words that are equal when the values are.

use crate::lanes::dictionary::{Dictionary, number as signed};
use crate::lanes::wire::{Value, Wire};

/// Arguments beyond this are ignored; no function of the table has as many.
const ARGUMENTS: usize = 12;

/// Longer values are not compared.
const WORDS_MAX: usize = 512;

/// No such argument.
const MISSING: u32 = u32::MAX;

/// Set in positions that are in the leave event.
const IN_LEAVE: u32 = 1 << 31;

/// The positions of the arguments of a call.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools::stats) struct Arguments<'a> {
    events: [Wire<'a>; 2],
    at: [u32; ARGUMENTS],
    returned: u32,
    /// Index of the last argument plus one.
    count: u32,
    pub(in crate::tools::stats) is_fake: bool,
}

impl<'a> Arguments<'a> {
    /// No arguments yet, for a call with these events.
    #[inline]
    pub(in crate::tools::stats) fn new(enter: Wire<'a>, leave: Wire<'a>) -> Self {
        Self { events: [enter, leave], at: [MISSING; ARGUMENTS], returned: MISSING, count: 0, is_fake: false }
    }

    /// A position in an event, counted from its end.
    #[inline]
    fn place(wire: &Wire<'a>, is_enter: bool) -> u32 {
        let left = u32::try_from(wire.rest().len()).unwrap_or(MISSING) & !IN_LEAVE;
        if is_enter { left } else { left | IN_LEAVE }
    }

    /// Records an argument.
    #[inline]
    pub(in crate::tools::stats) fn add(&mut self, index: u64, wire: &Wire<'a>, is_enter: bool) {
        let place = Self::place(wire, is_enter);
        if let Some(slot) = usize::try_from(index).ok().and_then(|at| self.at.get_mut(at)) {
            *slot = place;
            self.count = self.count.max(index as u32 + 1);
        } else {
            self.count = ARGUMENTS as u32 + 1;
        }
    }

    /// Records the return value.
    #[inline]
    pub(in crate::tools::stats) fn set_returned(&mut self, wire: &Wire<'a>, is_enter: bool) {
        self.returned = Self::place(wire, is_enter);
    }

    #[inline]
    fn at(&self, place: u32) -> Option<Wire<'a>> {
        if place == MISSING {
            return None;
        }
        let [enter, leave] = self.events;
        let event = if place & IN_LEAVE == 0 { enter } else { leave };
        let left = (place & !IN_LEAVE) as usize;
        Some(event.skip_to(event.rest().len().checked_sub(left)?))
    }

    #[inline]
    pub(in crate::tools::stats) fn wire(&self, index: u8) -> Option<Wire<'a>> {
        self.at(*self.at.get(usize::from(index))?)
    }

    /// An argument that is a number.
    #[inline(always)]
    pub(super) fn number(&self, index: u8, dictionary: &Dictionary) -> Option<u64> {
        scalar(self.wire(index)?.value(), dictionary)
    }

    /// The return value, if it is a number.
    pub(super) fn returned(&self, dictionary: &Dictionary) -> Option<u64> {
        scalar(self.at(self.returned)?.value(), dictionary)
    }

    /// Numbers of an argument that is an array, or a number alone.
    pub(super) fn numbers(&self, index: u8, dictionary: &Dictionary, most: u64) -> Option<Vec<u64>> {
        let mut wire = self.wire(index)?;
        match wire.value() {
            Value::Array(count) if count <= most => (0..count).map(|_| scalar(wire.value(), dictionary)).collect(),
            Value::Null => Some(Vec::new()),
            value => scalar(value, dictionary).map(|one| vec![one]),
        }
    }

    /// Appends the arguments from an index on. Returns false if they cannot be compared: texts and blobs, too long or
    /// missing values.
    #[inline]
    pub(super) fn push_from(&self, out: &mut Vec<u64>, from: u8, dictionary: &Dictionary) -> bool {
        let Some(rest) = self.at.get(usize::from(from)..self.count as usize) else {
            return self.count as usize <= usize::from(from);
        };
        rest.iter().all(|place| self.at(*place).is_some_and(|wire| push(out, wire, dictionary, true)))
    }

    /// Appends the numbers of an array, without its shape.
    pub(super) fn push_flat(&self, out: &mut Vec<u64>, index: u8, dictionary: &Dictionary) -> bool {
        self.wire(index).is_some_and(|wire| push(out, wire, dictionary, false))
    }
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

fn push(out: &mut Vec<u64>, mut wire: Wire<'_>, dictionary: &Dictionary, has_shape: bool) -> bool {
    let mut left = 1_u64;
    while left > 0 {
        left -= 1;
        let (shape, count) = match wire.value() {
            Value::Float(value) => {
                out.push(f64::from(value).to_bits());
                continue;
            }
            Value::Double(value) => {
                out.push(value.to_bits());
                continue;
            }
            Value::Array(count) => (0, count),
            Value::Struct(id) => (1, dictionary.members(id)),
            Value::Repr => (2, 2),
            value => match scalar(value, dictionary) {
                Some(number) => {
                    out.push(number);
                    continue;
                }
                None => return false,
            },
        };
        if count > WORDS_MAX as u64 || out.len() > WORDS_MAX {
            return false;
        }
        if has_shape {
            out.extend([shape, count]);
        }
        left += count - wire.floats(count, |value| out.push(f64::from(value).to_bits()));
    }
    true
}

//! The arguments of an assembled call by index, read on demand.

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Dictionary, number};
use crate::lanes::wire::{Detail, Value, Wire};

/// Most numbers read of an array: four for each viewport of any driver.
const FLOATS_MAX: usize = 256;

/// Arguments beyond these are ignored; no function of OpenGL or its window systems has more (`glCopyImageSubData` has
/// 15).
const ARGUMENTS_MAX: usize = 16;

/// The positions of the arguments and the return value of a call.
///
/// Nothing here fails: missing values are `None`, and so are values of unexpected types.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    dictionary: &'a Dictionary,
    /// Where the arguments begin: their events without what precedes them, by length. Wires are four
    /// times as large, which counts for millions of calls.
    arguments: [usize; ARGUMENTS_MAX],
    /// A bit for each argument that is there, and for each that is in the second event.
    is_there: u32,
    is_late: u32,
    enter: &'a [u8],
    leave: &'a [u8],
    returned: Option<Wire<'a>>,
    backtrace: Option<(u64, Wire<'a>)>,
    is_fake: bool,
}

impl<'a> Values<'a> {
    /// Finds the values of a call. If an argument occurs twice, the last one counts, as in apitrace.
    pub fn new(call: &Call<'a>, dictionary: &'a Dictionary) -> Self {
        let mut this = Self {
            dictionary,
            arguments: [0; ARGUMENTS_MAX],
            is_there: 0,
            is_late: 0,
            enter: call.enter,
            leave: call.leave,
            returned: None,
            backtrace: None,
            is_fake: false,
        };
        this.take(dictionary.wire(call.enter), 0);
        this.take(dictionary.wire(call.leave), u32::MAX);
        this
    }

    /// `late`: all bits for the second event.
    fn take(&mut self, mut wire: Wire<'a>, late: u32) {
        let members = |id| self.dictionary.members(id);
        loop {
            match wire.detail() {
                Detail::Argument(index) => {
                    let at = usize::try_from(index).unwrap_or(usize::MAX);
                    if let Some(place) = self.arguments.get_mut(at) {
                        *place = wire.rest().len();
                        self.is_there |= 1 << at;
                        self.is_late = self.is_late & !(1 << at) | late & 1 << at;
                    }
                    wire.skip_value(&members);
                }
                Detail::Return => {
                    self.returned = Some(wire);
                    wire.skip_value(&members);
                }
                Detail::Backtrace(count) => {
                    let start = wire;
                    let mut seen = 0;
                    while seen < count && !wire.rest().is_empty() {
                        wire.uint();
                        seen += 1;
                    }
                    self.backtrace = Some((seen, start));
                }
                Detail::Flags(flags) => self.is_fake |= flags & 1 != 0,
                Detail::Thread(_) => {}
                Detail::End => return,
            }
        }
    }

    /// The argument with this index.
    #[inline]
    pub fn argument(&self, index: usize) -> Option<Wire<'a>> {
        let left = *self.arguments.get(index)?;
        if self.is_there >> index & 1 == 0 {
            return None;
        }
        let event = if self.is_late >> index & 1 == 0 { self.enter } else { self.leave };
        Some(self.dictionary.wire(event.get(event.len().saturating_sub(left)..).unwrap_or_default()))
    }

    /// The return value.
    pub fn returned(&self) -> Option<Wire<'a>> {
        self.returned
    }

    /// Ids of the frames of the stack that made the call, innermost first.
    pub fn backtrace(&self) -> impl Iterator<Item = u64> + 'a {
        let (count, mut wire) = self.backtrace.unwrap_or((0, self.dictionary.wire(&[])));
        (0..count).map(move |_| wire.uint())
    }

    /// True when the call was inserted by the tracer.
    pub fn is_fake(&self) -> bool {
        self.is_fake
    }

    /// What ids denote.
    pub fn dictionary(&self) -> &'a Dictionary {
        self.dictionary
    }

    /// An argument as an integer: integers, enumerations, masks, pointers (null is 0), Booleans.
    #[inline]
    pub fn integer(&self, index: usize) -> Option<i64> {
        integer(self.argument(index)?.value(), self.dictionary)
    }

    /// An argument as an object's name or a handle.
    #[inline]
    pub fn name(&self, index: usize) -> Option<u64> {
        self.integer(index).map(|number| number as u64)
    }

    /// The return value as an object's name or a handle.
    pub fn returned_name(&self) -> Option<u64> {
        integer(self.returned?.value(), self.dictionary).map(|number| number as u64)
    }

    /// An argument as a floating-point number.
    pub fn float(&self, index: usize) -> Option<f64> {
        float(self.argument(index)?.value(), self.dictionary)
    }

    /// Floating-point numbers: those of an array argument, or this many arguments from that index on.
    pub fn floats(&self, index: usize, count: usize) -> Vec<f64> {
        let array: Vec<f64> =
            self.array(index).map_while(|mut wire| float(wire.value(), self.dictionary)).take(FLOATS_MAX).collect();
        if array.is_empty() { (index..index + count).map_while(|index| self.float(index)).collect() } else { array }
    }

    /// The integers of an array argument; empty if it is not an array.
    pub fn integers(&self, index: usize) -> impl Iterator<Item = i64> + 'a {
        let dictionary = self.dictionary;
        self.array(index).map_while(move |mut wire| integer(wire.value(), dictionary))
    }

    /// The elements of an array argument, each at its position; empty if it is not an array.
    pub fn array(&self, index: usize) -> Elements<'a> {
        let (wire, count) = match self.argument(index).map(|mut wire| (wire.value(), wire)) {
            Some((Value::Array(count), wire)) => (wire, count),
            _ => (self.dictionary.wire(&[]), 0),
        };
        Elements { wire, left: count, dictionary: self.dictionary }
    }

    /// A string argument.
    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        match self.argument(index)?.value() {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    wire: Wire<'a>,
    left: u64,
    dictionary: &'a Dictionary,
}

impl<'a> Elements<'a> {
    /// The elements of an array that begin here.
    pub(crate) fn new(wire: Wire<'a>, count: u64, dictionary: &'a Dictionary) -> Self {
        Self { wire, left: count, dictionary }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Wire<'a>;

    fn next(&mut self) -> Option<Wire<'a>> {
        if self.left == 0 || self.wire.rest().is_empty() {
            return None;
        }
        self.left -= 1;
        let element = self.wire;
        // Most are simple; only compound ones need more than one step.
        let mut after = element;
        if matches!(after.value(), Value::Array(_) | Value::Struct(_) | Value::Repr) {
            self.wire.skip_value(&|id| self.dictionary.members(id));
        } else {
            self.wire = after;
        }
        Some(element)
    }
}

/// A value as an integer.
#[inline]
pub fn integer(value: Value<'_>, dictionary: &Dictionary) -> Option<i64> {
    Some(match value {
        Value::Null => 0,
        Value::Bool(is_true) => i64::from(is_true),
        Value::Negative(magnitude) => (magnitude as i64).wrapping_neg(),
        Value::Unsigned(number) | Value::Pointer(number) | Value::Bitmask(_, number) => number as i64,
        Value::Enum(_, Some(signed)) => number(signed),
        Value::Enum(id, None) => dictionary.enumeration(id)?.value(None),
        _ => return None,
    })
}

/// A value as a floating-point number.
pub fn float(value: Value<'_>, dictionary: &Dictionary) -> Option<f64> {
    match value {
        Value::Float(number) => Some(f64::from(number)),
        Value::Double(number) => Some(number),
        other => integer(other, dictionary).map(|number| number as f64),
    }
}

/// Names of `glCallLists`: an array, or bytes of a type.
pub(crate) fn list_names(values: &Values<'_>) -> Vec<u64> {
    let count = values.integer(0).and_then(|count| usize::try_from(count).ok()).unwrap_or(0).min(1 << 16);
    let of = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let size = match values.integer(1) {
        Some(0x1400 | 0x1401) => 1,
        Some(0x1402 | 0x1403) => 2,
        Some(0x1404 | 0x1405) => 4,
        _ => 0,
    };
    match values.argument(2).map(|mut wire| wire.value()) {
        Some(Value::Blob(_, Some(bytes)) | Value::Text(bytes)) if size > 0 => {
            bytes.chunks_exact(size).take(count).map(of).collect()
        }
        _ => values.integers(2).take(count).map(|name| name as u64).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(enter: &'a [u8], leave: &'a [u8]) -> Call<'a> {
        Call { function: 0, is_incomplete: false, enter, leave, ..Call::NONE }
    }

    #[test]
    fn arguments_are_found_in_any_order_and_the_last_counts() {
        let dictionary = Dictionary::new(6);
        // A backtrace of two frames, n = 1, n = 2, then a fake flag; names = {7, {8}, 9} and the return value.
        let enter = [4, 2, 5, 6, 1, 0, 4, 1, 1, 0, 4, 2, 5, 1, 0];
        let leave = [1, 1, 11, 3, 4, 7, 11, 1, 4, 8, 4, 9, 2, 13, 0x90, 1, 0];
        let values = Values::new(&call(&enter, &leave), &dictionary);
        assert_eq!((values.integer(0), values.integer(2), values.integer(99)), (Some(2), None, None));
        assert_eq!((values.returned_name(), values.is_fake()), (Some(0x90), true));
        assert_eq!(values.backtrace().collect::<Vec<_>>(), [5, 6]);
        assert_eq!(values.array(1).count(), 3);
        assert_eq!(values.array(1).nth(2).map(|mut wire| wire.value()), Some(Value::Unsigned(9)));
        // A value that is not a number ends the numbers.
        assert_eq!(values.integers(1).collect::<Vec<_>>(), [7]);
        assert_eq!(values.integers(0).count(), 0);
    }

    #[test]
    fn no_bytes_make_it_loop_or_fail() {
        let dictionary = Dictionary::new(6);
        let bytes = [4, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0xff, 0xff, 0xff, 0xff, 7, 11, 0xff, 0xff, 0xff, 7, 4, 1];
        for cut in 0..bytes.len() {
            let values = Values::new(&call(bytes.get(cut..).unwrap_or_default(), &bytes), &dictionary);
            assert!(values.backtrace().count() <= bytes.len() && values.array(0).count() <= bytes.len());
        }
    }
}

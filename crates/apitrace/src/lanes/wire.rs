//! Reads the values of an assembled call, step by step, directly from its bytes.

use crate::wire::record::Signed;

/// Type byte of a blob whose content was omitted; its length follows. Not part of the format: [`super::calls`] writes
/// it.
pub(crate) const LEFT_OUT: u8 = 0x10;

/// As [`LEFT_OUT`], with a hash of the content, 8 bytes, after the length.
pub(crate) const LEFT_OUT_HASHED: u8 = 0x11;

/// A step through values. A compound value is followed by its elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// The null pointer.
    Null,
    /// False or true.
    Bool(bool),
    /// A negative number, or minus zero; the magnitude.
    Negative(u64),
    /// A number.
    Unsigned(u64),
    /// A 32-bit float.
    Float(f32),
    /// A 64-bit float.
    Double(f64),
    /// A string; bytes of any encoding.
    Text(&'a [u8]),
    /// A blob of this many bytes, and its content unless it was omitted.
    Blob(u64, Option<&'a [u8]>),
    /// An enumeration's id and value. Before version 3 the value is the signature's.
    Enum(u64, Option<Signed>),
    /// A bit mask's id and value.
    Bitmask(u64, u64),
    /// An array; this many values follow.
    Array(u64),
    /// A structure's id; a value for each of its members follows.
    Struct(u64),
    /// An opaque pointer.
    Pointer(u64),
    /// A human and a machine value follow.
    Repr,
    /// A wide string: a number for each character.
    Wide(Wire<'a>),
    /// An unknown type; occurs only after damage.
    Unknown,
}

/// A detail of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// No more.
    End,
    /// The argument with this index; its value follows.
    Argument(u64),
    /// The return value follows.
    Return,
    /// A stack of this many frames follows: their ids.
    Backtrace(u64),
    /// Flags of the call; bit 0: the call was inserted by the tracer.
    Flags(u64),
    /// The thread detail, before version 4.
    Thread(u64),
}

/// A position in the bytes of a call's event.
///
/// The bytes were parsed before, so nothing here can fail. Beyond their end all numbers are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire<'a> {
    bytes: &'a [u8],
    has_enum_values: bool,
}

impl<'a> Wire<'a> {
    /// The details of an event. `has_enum_values`: from version 3 on.
    #[inline]
    pub fn new(bytes: &'a [u8], has_enum_values: bool) -> Self {
        Self { bytes, has_enum_values }
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The position this many bytes later, or the end.
    #[inline]
    pub(crate) fn skip_to(&self, bytes: usize) -> Self {
        Self { bytes: self.bytes.get(bytes..).unwrap_or_default(), ..*self }
    }

    /// One byte; 0 at the end.
    #[inline(always)]
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                *byte
            }
            None => 0,
        }
    }

    /// A number; its bits beyond the 64th are dropped.
    #[inline(always)]
    pub fn uint(&mut self) -> u64 {
        match self.bytes {
            [a, rest @ ..] if *a < 0x80 => {
                self.bytes = rest;
                u64::from(*a)
            }
            [a, b, rest @ ..] if *b < 0x80 => {
                self.bytes = rest;
                u64::from(*a & 0x7f) | u64::from(*b) << 7
            }
            _ => self.long_uint(),
        }
    }

    fn long_uint(&mut self) -> u64 {
        let (mut value, mut shift) = (0_u64, 0_u32);
        while let Some((byte, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if *byte < 0x80 {
                break;
            }
        }
        value
    }

    /// This many bytes, or as many as there are.
    #[inline(always)]
    pub fn take(&mut self, length: u64) -> &'a [u8] {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(length);
        self.bytes = later;
        now
    }

    /// A string: its length and its bytes.
    pub fn string(&mut self) -> &'a [u8] {
        let length = self.uint();
        self.take(length)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.bytes.split_first_chunk::<N>() {
            Some((chunk, rest)) => {
                self.bytes = rest;
                *chunk
            }
            None => {
                self.bytes = &[];
                [0; N]
            }
        }
    }

    /// Sign and magnitude.
    #[inline]
    pub fn signed(&mut self) -> Signed {
        let is_negative = self.byte() == 3;
        Signed { is_negative, magnitude: self.uint() }
    }

    /// The next detail.
    #[inline(always)]
    pub fn detail(&mut self) -> Detail {
        match self.byte() {
            1 => Detail::Argument(self.uint()),
            2 => Detail::Return,
            3 => Detail::Thread(self.uint()),
            4 => Detail::Backtrace(self.uint()),
            5 => Detail::Flags(self.uint()),
            _ => {
                self.bytes = &[];
                Detail::End
            }
        }
    }

    /// The next value, or the start of a compound one.
    #[inline(always)]
    pub fn value(&mut self) -> Value<'a> {
        match self.byte() {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => Value::Negative(self.uint()),
            4 => Value::Unsigned(self.uint()),
            5 => Value::Float(f32::from_le_bytes(self.array())),
            6 => Value::Double(f64::from_le_bytes(self.array())),
            7 => Value::Text(self.string()),
            8 => {
                let length = self.uint();
                Value::Blob(length, Some(self.take(length)))
            }
            9 => {
                let id = self.uint();
                Value::Enum(id, self.has_enum_values.then(|| self.signed()))
            }
            10 => Value::Bitmask(self.uint(), self.uint()),
            11 => Value::Array(self.uint()),
            12 => Value::Struct(self.uint()),
            13 => Value::Pointer(self.uint()),
            14 => Value::Repr,
            15 => {
                let count = self.uint();
                let mut chars = *self;
                let from = self.bytes.len();
                for _ in 0..count.min(from as u64) {
                    self.uint();
                }
                chars.bytes = chars.bytes.get(..from - self.bytes.len()).unwrap_or_default();
                Value::Wide(chars)
            }
            LEFT_OUT => Value::Blob(self.uint(), None),
            LEFT_OUT_HASHED => {
                let length = self.uint();
                self.take(8);
                Value::Blob(length, None)
            }
            _ => {
                self.bytes = &[];
                Value::Unknown
            }
        }
    }

    /// The hash of the next blob, if its content was omitted and hashed.
    pub(crate) fn blob_hash(&self) -> Option<u64> {
        let mut ahead = *self;
        if ahead.byte() != LEFT_OUT_HASHED {
            return None;
        }
        ahead.uint();
        Some(u64::from_le_bytes(ahead.array()))
    }

    /// Reads consecutive 32-bit floats, at most this many, and passes each to the callback. Returns how many there
    /// were.
    #[inline]
    pub(crate) fn floats(&mut self, most: u64, mut each: impl FnMut(f32)) -> u64 {
        let mut count = 0;
        while count < most
            && let Some((&[5, a, b, c, d], rest)) = self.bytes.split_first_chunk::<5>()
        {
            each(f32::from_le_bytes([a, b, c, d]));
            self.bytes = rest;
            count += 1;
        }
        count
    }

    /// Skips a value and everything nested in it. `members` returns the number of members of a structure.
    pub fn skip_value(&mut self, members: &dyn Fn(u64) -> u64) {
        // How many values follow, by level: a vector, so that no nesting is too deep.
        let mut levels = Vec::new();
        let mut left = 1_u64;
        loop {
            while left == 0 {
                match levels.pop() {
                    Some(outer) => left = outer,
                    None => return,
                }
            }
            if self.bytes.is_empty() {
                return;
            }
            left -= 1;
            let inner = match self.value() {
                Value::Array(count) => count,
                Value::Struct(id) => members(id),
                Value::Repr => 2,
                _ => continue,
            };
            if left > 0 || inner > 0 {
                levels.push(left);
                left = inner;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order_and_skipped_completely() {
        // An array of a structure of two members and a pair, then a number.
        let bytes = [11, 2, 12, 9, 4, 1, 7, 1, b'x', 14, 0, 11, 0, 4, 0xc8, 1];
        let mut wire = Wire::new(&bytes, true);
        let mut skipped = wire;
        assert_eq!((wire.value(), wire.value()), (Value::Array(2), Value::Struct(9)));
        assert_eq!((wire.value(), wire.value()), (Value::Unsigned(1), Value::Text(b"x")));
        assert_eq!((wire.value(), wire.value(), wire.value()), (Value::Repr, Value::Null, Value::Array(0)));
        assert_eq!(wire.value(), Value::Unsigned(200));
        skipped.skip_value(&|_| 2);
        assert_eq!(skipped.value(), Value::Unsigned(200));
    }

    #[test]
    fn behind_the_end_there_are_zeros_and_no_loop_goes_on() {
        for cut in 0..8 {
            let bytes = [11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
            let mut wire = Wire::new(&bytes[..cut], true);
            wire.skip_value(&|_| u64::MAX);
            assert_eq!((wire.value(), wire.detail()), (Value::Null, Detail::End));
        }
    }

    #[test]
    fn floats_are_passed_over_together() {
        let mut wire = Wire::new(&[5, 0, 0, 128, 63, 5, 0, 0, 0, 64, 4, 7], true);
        let mut sum = 0.0;
        assert_eq!((wire.floats(9, |float| sum += float), sum), (2, 3.0));
        assert_eq!(wire.value(), Value::Unsigned(7));
    }

    #[test]
    fn wide_strings_are_their_characters() {
        let mut wire = Wire::new(&[15, 2, 0x41, 0xac, 0x41, 4, 7], true);
        let Value::Wide(mut chars) = wire.value() else { panic!("not wide") };
        assert_eq!((chars.uint(), chars.uint(), chars.rest()), (0x41, 0x20ac, &[][..]));
        assert_eq!(wire.value(), Value::Unsigned(7));
    }
}

//! Protocol buffers, the reading half: the fields of a message, one after the other, without copies.
//!
//! Encoding: the "Encoding" page of the Protocol Buffers documentation.

/// Deepest nesting of groups that is passed.
const GROUPS_MAX: usize = 16;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Wire type 0: a number of seven-bit groups.
    Varint(u64),
    /// Wire type 1: eight bytes.
    Fixed64(u64),
    /// Wire type 2: a length and that many bytes.
    Bytes(&'a [u8]),
    /// Wire types 3 and 4: a group, which no message of Perfetto has.
    Group,
    /// Wire type 5: four bytes.
    Fixed32(u32),
}

impl<'a> Value<'a> {
    /// The number of a varint or of fixed bytes; 0 of anything else.
    #[inline]
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value,
            Self::Fixed32(value) => value.into(),
            Self::Bytes(_) | Self::Group => 0,
        }
    }

    /// The bytes of a field with a length; none of anything else.
    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    #[inline]
    pub(crate) fn is_true(self) -> bool {
        self.number() != 0
    }

    /// A `double`.
    pub(crate) fn float(self) -> f64 {
        f64::from_bits(self.number())
    }
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// Its number in the message's definition.
    pub(crate) number: u32,
    pub(crate) value: Value<'a>,
    /// Where its tag begins in the message.
    pub(crate) at: usize,
    /// Where its value begins: behind the length, if it has one.
    pub(crate) value_at: usize,
}

/// A place in a message at which it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Where the field begins.
    pub(crate) at: usize,
    /// The field's number, where its tag could be read; else 0.
    pub(crate) number: u32,
    pub(crate) expected: &'static str,
}

/// Reads the fields of a message. Ends at the first that cannot be read; [`Self::fault`] says why.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    fault: Option<Malformed>,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, fault: None }
    }

    /// Why reading ended before the end of the message.
    pub(crate) fn fault(&self) -> Option<Malformed> {
        self.fault
    }

    #[cold]
    fn fail(&mut self, at: usize, number: u32, expected: &'static str) -> Option<Field<'a>> {
        self.fault = Some(Malformed { at, number, expected });
        self.at = self.bytes.len();
        None
    }

    /// Passes a group and those in it.
    #[cold]
    fn group(&mut self, at: usize, number: u32) -> Option<Field<'a>> {
        let mut open = vec![number];
        while let Some(innermost) = open.last() {
            let Some((tag, next)) = varint(self.bytes, self.at) else { break };
            self.at = next;
            let inner = u32::try_from(tag >> 3).unwrap_or(0);
            match tag & 7 {
                3 if open.len() < GROUPS_MAX => open.push(inner),
                4 if inner == *innermost => _ = open.pop(),
                0..=2 | 5 if self.value(tag & 7).is_some() => {}
                _ => break,
            }
        }
        if open.is_empty() {
            return Some(Field { number, value: Value::Group, at, value_at: self.at });
        }
        self.fail(at, number, "a group with its end")
    }

    /// The value of a wire type, with its place.
    #[inline(always)]
    fn value(&mut self, wire: u64) -> Option<(Value<'a>, usize)> {
        let at = self.at;
        match wire {
            0 => {
                let (value, next) = varint(self.bytes, at)?;
                self.at = next;
                Some((Value::Varint(value), at))
            }
            2 => {
                let (length, start) = varint(self.bytes, at)?;
                let end = start.checked_add(usize::try_from(length).ok()?)?;
                let value = self.bytes.get(start..end)?;
                self.at = end;
                Some((Value::Bytes(value), start))
            }
            1 => {
                let value = anytrace_core::bytes::array_at(self.bytes, at)?;
                self.at = at + 8;
                Some((Value::Fixed64(u64::from_le_bytes(value)), at))
            }
            _ => {
                let value = anytrace_core::bytes::array_at(self.bytes, at)?;
                self.at = at + 4;
                Some((Value::Fixed32(u32::from_le_bytes(value)), at))
            }
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Field<'a>> {
        let at = self.at;
        let first = *self.bytes.get(at)?;
        // Nearly all tags are one byte, and nearly all values numbers or bytes.
        if (8..0x80).contains(&first) && matches!(first & 7, 0 | 2) {
            self.at = at + 1;
            let number = u32::from(first >> 3);
            return match self.value(u64::from(first & 7)) {
                Some((value, value_at)) => Some(Field { number, value, at, value_at }),
                None => self.fail(at, number, "a value inside the message"),
            };
        }
        // The others are mostly two bytes.
        if let Some(&second) = self.bytes.get(at + 1)
            && first >= 0x80
            && (1..0x80).contains(&second)
            && matches!(first & 7, 0 | 2)
        {
            self.at = at + 2;
            let number = u32::from(second) << 4 | u32::from(first & 0x7f) >> 3;
            return match self.value(u64::from(first & 7)) {
                Some((value, value_at)) => Some(Field { number, value, at, value_at }),
                None => self.fail(at, number, "a value inside the message"),
            };
        }
        self.next_other(at)
    }
}

impl<'a> Fields<'a> {
    #[inline(never)]
    fn next_other(&mut self, at: usize) -> Option<Field<'a>> {
        let Some((tag, next)) = varint(self.bytes, at) else { return self.fail(at, 0, "a tag") };
        self.at = next;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let Some(number) = number else { return self.fail(at, 0, "a field number from 1 to 536870911") };
        match tag & 7 {
            wire @ (0 | 1 | 2 | 5) => match self.value(wire) {
                Some((value, value_at)) => Some(Field { number, value, at, value_at }),
                None => self.fail(at, number, "a value inside the message"),
            },
            3 => self.group(at, number),
            _ => self.fail(at, number, "wire type 0, 1, 2, 3 or 5"),
        }
    }
}

/// The number of seven-bit groups at a place, and where it ends. At most ten bytes, as protocol buffers write.
#[inline(always)]
pub(crate) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((first.into(), at + 1));
    }
    let second = *bytes.get(at + 1)?;
    if second < 0x80 {
        return Some((u64::from(second) << 7 | u64::from(first & 0x7f), at + 2));
    }
    longer_varint(bytes, at)
}

#[inline]
fn longer_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let Some(word) = anytrace_core::bytes::array_at(bytes, at).map(u64::from_le_bytes) else {
        return longest_varint(bytes, at);
    };
    // The last byte is the first without its highest bit.
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return longest_varint(bytes, at);
    }
    let groups = word & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    // Seven bits of each byte, joined in pairs.
    let groups = (groups & 0x007f_007f_007f_007f) | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
    let groups = (groups & 0x0000_3fff_0000_3fff) | (groups & 0x3fff_0000_3fff_0000) >> 2;
    let value = (groups & 0x0fff_ffff) | (groups & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, at + ends.trailing_zeros() as usize / 8 + 1))
}

/// A number of nine or ten bytes, or close to the end.
#[inline(never)]
fn longest_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (n, byte) in bytes.get(at..)?.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if n == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * n);
        if byte & 0x80 == 0 {
            return Some((value, at + n + 1));
        }
    }
    None
}

/// How many bytes a number has in its shortest form.
pub(crate) fn varint_bytes(value: u64) -> usize {
    usize::try_from((64 - value.leading_zeros()).max(1).div_ceil(7)).unwrap_or(10)
}

/// Appends a number in `width` bytes, or in as many as it needs if those are more.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut written = 1;
    while value >= 0x80 || written < width.min(10) {
        out.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
        written += 1;
    }
    out.push(u8::try_from(value).unwrap_or(0));
}

/// Appends a tag.
pub(crate) fn push_tag(out: &mut Vec<u8>, number: u32, wire: u64) {
    push_varint(out, u64::from(number) << 3 | wire, 0);
}

/// Appends a field of bytes with its length.
pub(crate) fn push_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    push_tag(out, number, 2);
    push_varint(out, bytes.len() as u64, 0);
    out.extend_from_slice(bytes);
}

/// The numbers of a repeated field: one in a field, or many in one ("packed").
#[inline]
pub(crate) fn each_number(value: Value<'_>, mut visit: impl FnMut(u64)) {
    if let Value::Bytes(bytes) = value {
        let mut at = 0;
        while let Some((number, next)) = varint(bytes, at) {
            visit(number);
            at = next;
        }
    } else {
        visit(value.number());
    }
}

/// The eight-byte numbers of a repeated field: one in a field, or many in one ("packed").
pub(crate) fn each_fixed64(value: Value<'_>, mut visit: impl FnMut(u64)) {
    if let Value::Bytes(bytes) = value {
        bytes.as_chunks::<8>().0.iter().for_each(|bytes| visit(u64::from_le_bytes(*bytes)));
    } else {
        visit(value.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> (Vec<(u32, Value<'_>)>, Option<Malformed>) {
        let mut fields = Fields::of(bytes);
        let found = fields.by_ref().map(|field| (field.number, field.value)).collect();
        (found, fields.fault())
    }

    #[test]
    fn fields_are_as_the_documentation_shows_them() {
        assert_eq!(all(b"\x08\x96\x01").0, [(1, Value::Varint(150))]);
        assert_eq!(all(b"\x12\x07testing").0, [(2, Value::Bytes(b"testing"))]);
        assert_eq!(all(b"\x11\x01\0\0\0\0\0\0\0\x1d\x02\0\0\0").0, [(2, Value::Fixed64(1)), (3, Value::Fixed32(2))]);
        assert_eq!(all(b"\x0b\x08\x01\x13\x14\x0c\x08\x05").0, [(1, Value::Group), (1, Value::Varint(5))]);
        let field = Fields::of(b"\x08\x01\x12\x02ab").nth(1).map(|field| (field.at, field.value_at));
        assert_eq!(field, Some((2, 4)));
    }

    #[test]
    fn what_cannot_be_read_is_located() {
        let fault = |bytes| all(bytes).1.map(|fault| (fault.at, fault.number));
        assert_eq!(fault(b"\x08\x01\x08"), Some((2, 1)));
        assert_eq!(fault(b"\x08\x01\x12\x03ab"), Some((2, 2)));
        assert_eq!(fault(b"\x00\x01"), Some((0, 0)), "number 0");
        assert_eq!(fault(b"\x0e\x01"), Some((0, 1)), "wire type 6");
        assert_eq!(fault(b"\x0c"), Some((0, 1)), "the end of no group");
        assert_eq!(fault(b"\x0b\x08\x01"), Some((0, 1)), "a group without its end");
        assert_eq!(fault(b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), Some((0, 1)), "more than 64 bits");
        assert_eq!(fault(&[0x0b; 100]), Some((0, 1)), "groups in groups");
    }

    #[test]
    fn numbers_keep_their_width() {
        let ends = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, 0xa5a5_a5a5_a5a5_a5a5 >> bit]);
        for value in ends.chain([300, u64::MAX]) {
            for width in 0..=10 {
                let mut out = Vec::new();
                push_varint(&mut out, value, width);
                let length = out.len();
                assert_eq!(varint(&out, 0), Some((value, length)), "{value} in {width}");
                assert_eq!(length, varint_bytes(value).max(width));
                // Whatever is behind it, and with nothing behind it.
                for behind in [0, 0x7f, 0x80, 0xff] {
                    out.truncate(length);
                    out.resize(length + 9, behind);
                    assert_eq!(varint(&out, 0), Some((value, length)), "{value} in {width}, then {behind}");
                }
                assert_eq!(varint(&out[..length - 1], 0), None, "{value} in {width}, cut");
            }
        }
    }
}

//! Scans numbers and strings at the front of a slice: the lowest level of the parser.

use crate::wire::record::Signed;

/// Longest number read, in bytes. The format's own reader has no limit; its writer needs ten.
const NUMBER_BYTES_MAX: usize = 1024;

/// Why parsing stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// More bytes are needed: this many from where parsing began.
    More(usize),
    /// The bytes break the grammar.
    Bad(Fault),
}

/// What breaks the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which rule.
    pub kind: FaultKind,
    /// Where, from the start of the event. In this crate also from the start of a token.
    pub at: usize,
    /// The number found there.
    pub found: u64,
}

/// The ways to break the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An event that is neither enter nor leave.
    Event,
    /// A detail that does not exist (in this version).
    Detail,
    /// A value type that does not exist.
    Type,
    /// A detail of a stack frame that does not exist.
    FrameDetail,
    /// The value of an enumeration is not an integer.
    EnumType,
    /// A string, definition or wide string is longer than the limit.
    TooLong,
    /// A number is longer than the limit.
    Number,
    /// Values are nested deeper than can be followed.
    TooDeep,
    /// A structure whose definition was lost: its members cannot be counted.
    LostStruct,
}

/// A position in a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan<'w> {
    bytes: &'w [u8],
    pub(crate) at: usize,
    /// A number took more than ten bytes.
    pub(crate) has_long_number: bool,
}

impl<'w> Scan<'w> {
    pub(crate) fn new(bytes: &'w [u8]) -> Self {
        Self { bytes, at: 0, has_long_number: false }
    }

    pub(crate) fn bad<T>(&self, kind: FaultKind, at: usize, found: u64) -> Result<T, Stop> {
        Err(Stop::Bad(Fault { kind, at, found }))
    }

    /// The bytes from an earlier position up to here.
    pub(crate) fn since(&self, from: usize) -> &'w [u8] {
        self.bytes.get(from..self.at).unwrap_or_default()
    }

    /// What follows.
    pub(crate) fn rest(&self) -> &'w [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Stop> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(Stop::More(self.at + 1)),
        }
    }

    /// An unsigned number. Bits beyond the 64th are discarded, as by the format's own reader.
    #[inline]
    pub(crate) fn uint(&mut self) -> Result<u64, Stop> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_uint(),
        }
    }

    fn long_uint(&mut self) -> Result<u64, Stop> {
        let start = self.at;
        let mut value = 0_u64;
        let mut shift = 0_u32;
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                break;
            }
            if self.at - start >= NUMBER_BYTES_MAX {
                return self.bad(FaultKind::Number, start, value);
            }
        }
        self.has_long_number |= self.at - start > 10;
        Ok(value)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        match self.rest().first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(Stop::More(self.at + N)),
        }
    }

    pub(crate) fn take(&mut self, length: u64) -> Result<&'w [u8], Stop> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(Stop::More(end.unwrap_or(usize::MAX))),
        }
    }

    pub(crate) fn string(&mut self) -> Result<&'w [u8], Stop> {
        let length = self.uint()?;
        self.take(length)
    }

    /// Sign byte and magnitude.
    pub(crate) fn signed(&mut self) -> Result<Signed, Stop> {
        let at = self.at;
        match self.byte()? {
            3 => Ok(Signed { is_negative: true, magnitude: self.uint()? }),
            4 => Ok(Signed { is_negative: false, magnitude: self.uint()? }),
            other => self.bad(FaultKind::EnumType, at, u64::from(other)),
        }
    }
}

/// Appends an unsigned number in as few bytes as possible.
pub(crate) fn push_uint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a string: length, then bytes.
pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    push_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends sign byte and magnitude.
pub(crate) fn push_signed(out: &mut Vec<u8>, value: Signed) {
    out.push(if value.is_negative { 3 } else { 4 });
    push_uint(out, value.magnitude);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_longer_than_ten_bytes_keep_their_low_64_bits() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let mut scan = Scan::new(&bytes);
        assert_eq!((scan.uint(), scan.has_long_number, scan.at), (Ok(u64::MAX), true, 12));
        assert_eq!(Scan::new(&[0x80]).uint(), Err(Stop::More(2)));
        assert!(matches!(Scan::new(&[0x80; 2000]).uint(), Err(Stop::Bad(_))));
    }

    #[test]
    fn a_length_beyond_memory_asks_for_more_and_allocates_nothing() {
        let mut huge = vec![];
        push_uint(&mut huge, u64::MAX);
        assert_eq!(Scan::new(&huge).string(), Err(Stop::More(usize::MAX)));
    }
}

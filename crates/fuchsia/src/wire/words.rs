//! Words of eight bytes, little-endian, and fields of their bits.

use anytrace_core::bytes::array_at;

/// Bits of a word, from the first to the last, both included.
#[inline]
pub(crate) fn bits(word: u64, first: u32, last: u32) -> u64 {
    let width = last - first + 1;
    let shifted = word >> first;
    if width >= 64 { shifted } else { shifted & ((1 << width) - 1) }
}

/// Sixteen bits of a word.
#[inline]
pub(crate) fn half(word: u64, first: u32) -> u16 {
    (word >> first) as u16
}

/// The words of a record that were not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Words<'a> {
    #[inline]
    pub(crate) fn word(&mut self) -> Option<u64> {
        let word = u64::from_le_bytes(array_at(self.rest, 0)?);
        self.rest = self.rest.get(8..)?;
        Some(word)
    }

    /// Bytes that end with zeros, up to the next multiple of eight.
    #[inline]
    pub(crate) fn padded(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let bytes = usize::try_from(bytes).ok()?;
        let (own, rest) = self.rest.split_at_checked(bytes.checked_next_multiple_of(8)?)?;
        self.rest = rest;
        own.get(..bytes)
    }
}

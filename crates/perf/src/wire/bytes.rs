//! Fields of fixed width, one after the other.

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

/// Bytes of which fields are taken from the front, or from the back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) endian: Endian,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8], endian: Endian) -> Self {
        Self { rest, endian }
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let value = self.endian.u32(array_at(self.rest, 0)?);
        self.rest = self.rest.get(4..)?;
        Some(value)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let value = self.endian.u64(array_at(self.rest, 0)?);
        self.rest = self.rest.get(8..)?;
        Some(value)
    }

    /// The next bytes; `None` if there are fewer.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// As many numbers of eight bytes.
    #[inline]
    pub(crate) fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let bytes = self.take(count.checked_mul(8)?)?;
        Some(Words { bytes, endian: self.endian })
    }

    /// The last eight bytes, which are removed.
    pub(crate) fn u64_from_end(&mut self) -> Option<u64> {
        let (rest, last) = self.rest.split_last_chunk::<8>()?;
        self.rest = rest;
        Some(self.endian.u64(*last))
    }
}

/// Numbers of eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Words<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) endian: Endian,
}

impl Words<'_> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = u64> {
        let endian = self.endian;
        self.bytes.as_chunks::<8>().0.iter().map(move |bytes| endian.u64(*bytes))
    }
}

/// Text up to the first zero.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

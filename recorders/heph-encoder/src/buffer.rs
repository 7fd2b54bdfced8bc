//! Where packets go.

use alloc::vec::Vec;
use core::fmt;

/// Why a packet was not written; the buffer is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The buffer has no room for all of the packet.
    Full,
    /// The packet has 4 GiB or more: its size field has 32 bits.
    TooLong,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the buffer has no room for the packet",
            Self::TooLong => "the packet has 4 GiB or more: the format has 32 bits for its size",
        })
    }
}

impl core::error::Error for Error {}

/// Something that packets are appended to.
///
/// Implemented for `Vec<u8>`, which is never full, and for [`Slice`]; implement it for a ring, a pool's block, a small
/// vector.
pub trait Buffer {
    /// Appends all of the bytes or none.
    ///
    /// # Errors
    /// [`Error::Full`] without room.
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Forgets what comes after the first `len` bytes.
    fn truncate(&mut self, len: usize);

    /// What was appended so far; written to for lengths that are known late.
    fn as_mut_bytes(&mut self) -> &mut [u8];
}

impl Buffer for Vec<u8> {
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }

    #[inline]
    fn as_mut_bytes(&mut self) -> &mut [u8] {
        self
    }
}

/// A buffer of fixed size, over bytes of the caller.
#[derive(Debug)]
pub struct Slice<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> Slice<'a> {
    /// Starts empty; holds as much as `bytes` is long.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// The packets written so far.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl Buffer for Slice<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.len.checked_add(bytes.len()).ok_or(Error::Full)?;
        self.bytes.get_mut(self.len..end).ok_or(Error::Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn as_mut_bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

/// Writes the size of the packet that starts at `start` and ends with the buffer.
pub(crate) fn patch_size<B: Buffer>(buffer: &mut B, start: usize) -> Result<(), Error> {
    let packet = buffer.as_mut_bytes().get_mut(start..).unwrap_or_default();
    let size = u32::try_from(packet.len()).map_err(|_| Error::TooLong)?;
    if let Some(field) = packet.get_mut(4..8) {
        field.copy_from_slice(&size.to_be_bytes());
    }
    Ok(())
}

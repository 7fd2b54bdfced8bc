//! Lane 2 of memory accesses: which addresses were read and written, by which thread, and what lives there; what the
//! cache simulation, miss-ratio curves and sharing analyses work on.
//!
//! A format tells its trace as batches of [`Access`]es in the order of records. Between batches it tells what changes
//! the meaning of addresses: regions of typed memory that come and go. Threads and types are numbers that are told
//! before their first use.

use crate::Error;

/// Most accesses in one batch: what fits a first-level cache.
pub const BATCH_ACCESSES: usize = 1024;

/// Number of a thread, from 0, in order of first appearance.
pub type ThreadNumber = u32;

/// Number of a type, from 0, in order of first appearance.
pub type TypeNumber = u32;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AccessKind {
    /// Data are read.
    Read = 0,
    /// Data are written.
    Write = 1,
    /// An instruction is fetched.
    Fetch = 2,
}

impl AccessKind {
    /// `read`, `write` or `fetch`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Fetch => "fetch",
        }
    }
}

/// What is special about an access; a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct AccessFlags(pub u8);

impl AccessFlags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Atomic.
    pub const ATOMIC: Self = Self(1);
    /// The compiler could not prove it aligned; says nothing about the address.
    pub const UNALIGNED: Self = Self(2);

    /// True when all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One access. A record that reads and writes is two, with the same `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// First address.
    pub address: u64,
    /// Number of the record, from 0.
    pub seq: u64,
    /// Who.
    pub thread: ThreadNumber,
    /// Bytes; 0 is possible.
    pub bytes: u16,
    /// What it does.
    pub kind: AccessKind,
    /// What is special about it.
    pub flags: AccessFlags,
}

impl Access {
    /// Last address, wrapping at 2^64; that of the first for an access of no bytes.
    #[inline]
    pub const fn last(&self) -> u64 {
        self.address.wrapping_add((self.bytes as u64).saturating_sub(1))
    }

    /// True for a write.
    #[inline]
    pub const fn is_write(&self) -> bool {
        matches!(self.kind, AccessKind::Write)
    }
}

/// Typed memory that begins to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionAdded {
    /// Number of the record.
    pub seq: u64,
    /// First address.
    pub address: u64,
    /// Bytes of an element, as the trace says: those of all elements where it was recorded by `malloc`.
    pub element_bytes: u64,
    /// Elements.
    pub elements: u64,
    /// Type of an element.
    pub type_number: TypeNumber,
    /// Who.
    pub thread: ThreadNumber,
}

impl RegionAdded {
    /// Last address, not wrapping; `None` for a region of no bytes.
    pub fn last(&self) -> Option<u64> {
        let bytes = u128::from(self.element_bytes) * u128::from(self.elements);
        let last = u128::from(self.address) + bytes.checked_sub(1)?;
        Some(u64::try_from(last).unwrap_or(u64::MAX))
    }
}

/// The latest live region that starts at an address ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionRemoved {
    /// Number of the record.
    pub seq: u64,
    /// First address of the region.
    pub address: u64,
    /// Who.
    pub thread: ThreadNumber,
}

/// Receives a trace as accesses, in the order of records.
pub trait AccessSink {
    /// A thread and its id in the trace; numbers are told in order. `None` stands for all threads beyond
    /// [`crate::Limits::distinct_max`].
    ///
    /// # Errors
    /// Whatever ends the pass, here and below.
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error>;

    /// A type and its name as the trace has it: UTF-8 is not promised; numbers are told in order. `None` stands for all
    /// types beyond [`crate::Limits::distinct_max`].
    ///
    /// # Errors
    /// As [`Self::thread`].
    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error>;

    /// A region begins to live.
    ///
    /// # Errors
    /// As [`Self::thread`].
    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error>;

    /// A region ends.
    ///
    /// # Errors
    /// As [`Self::thread`].
    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error>;

    /// The next accesses; never empty.
    ///
    /// # Errors
    /// As [`Self::thread`].
    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_24_bytes() {
        assert_eq!(std::mem::size_of::<Access>(), 24);
    }

    #[test]
    fn the_end_of_the_address_space_is_wrapped_by_accesses_and_not_by_regions() {
        let kind = AccessKind::Read;
        let access = Access { address: u64::MAX, seq: 0, thread: 0, bytes: 4, kind, flags: AccessFlags::NONE };
        assert_eq!(access.last(), 2);
        let region =
            RegionAdded { seq: 0, address: u64::MAX - 1, element_bytes: 8, elements: 2, type_number: 0, thread: 0 };
        assert_eq!(region.last(), Some(u64::MAX));
        let huge = RegionAdded { address: 16, element_bytes: u64::MAX, elements: u64::MAX, ..region };
        assert_eq!(huge.last(), Some(u64::MAX));
        assert_eq!(RegionAdded { elements: 0, ..region }.last(), None);
    }
}

//! Lane 2 of memory accesses: which addresses were read and written, by which thread, and which typed region was there.
//! The cache simulation, miss-ratio curves and sharing analyses work on it.
//!
//! A format emits its trace as batches of [`Access`]es in the order of records. Between batches it reports what changes
//! the meaning of addresses: regions of typed memory that are added and removed. Threads and types are numbers that are
//! announced before their first use.

pub mod codes;
mod data_only;
pub mod gather;

use crate::Error;

pub use data_only::DataOnly;
pub use gather::Gatherer;

/// Most accesses in one batch: what fits a first-level cache.
pub const BATCH_ACCESSES: usize = 1024;

/// Most lines have 2 to the power of this many bytes. Loops use it as a constant: in some of them a shift that the
/// compiler does not know takes longer than everything else.
pub const USUAL_LINE_SHIFT: u32 = 6;

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
    /// The compiler could not prove that it is aligned; this implies nothing about the address.
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
    /// Its thread.
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

/// Typed memory whose lifetime begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionAdded {
    /// Number of the record.
    pub seq: u64,
    /// First address.
    pub address: u64,
    /// Bytes of an element, as recorded: the bytes of all elements where `malloc` recorded it.
    pub element_bytes: u64,
    /// Elements.
    pub elements: u64,
    /// Type of an element.
    pub type_number: TypeNumber,
    /// Its thread.
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
    /// Its thread.
    pub thread: ThreadNumber,
}

/// Which lines a sampling sink wants to see: those whose hash is below a bound. Accesses to one line are either all
/// kept or all left out (spatial sampling: Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sieve {
    /// Bytes of a line are 2 to the power of this; at most 63.
    pub line_shift: u32,
    /// Lines with hashes below this pass.
    pub below: u64,
}

impl Sieve {
    /// The hash that decides about a line: evenly spread over all 64 bits and the same in every run, so that a sampled
    /// figure can be repeated. A trace can therefore be crafted so that all of its lines pass or all fail; the sampled
    /// curve then describes the sample, not the trace. Its cost cannot exceed that of the exact curve, because no table
    /// is indexed by this hash (tables have secrets, see [`crate::hash`]). For untrusted traces, do not sample.
    #[inline(always)]
    pub const fn hash(line: u64) -> u64 {
        // Both halves of the product of 128 bits (the mixing step of wyhash), with digits of pi and the golden ratio.
        let product = ((line ^ 0x243f_6a88_85a3_08d3) as u128) * 0x9e37_79b9_7f4a_7c15_u128;
        (product >> 64) as u64 ^ product as u64
    }

    /// True for an access that must be emitted: one to a line that passes, or to more or fewer lines than one.
    #[inline(always)]
    pub const fn passes(self, address: u64, bytes: u16) -> bool {
        let offset = address & ((1 << self.line_shift) - 1);
        // One less than no bytes is far beyond any line.
        let last = offset + (bytes as u32).wrapping_sub(1) as u64;
        (Self::hash(address >> self.line_shift) < self.below) | (last >> self.line_shift != 0)
    }
}

/// Receives a trace as accesses, in the order of records.
pub trait AccessSink {
    /// What the sink wants to see of the [`BATCH_ACCESSES`] records from number `seq` on; `None` is all of them. A
    /// format may leave out accesses that do not pass, and reports their number by [`Self::sieved_out`]. It may emit
    /// more than asked for, or never ask; the results of the sink are the same.
    fn sieve(&self, _seq: u64) -> Option<Sieve> {
        None
    }

    /// This many accesses of a thread were left out, each to one line.
    ///
    /// # Errors
    /// Whatever ends the pass.
    fn sieved_out(&mut self, _accesses: u64, _thread: ThreadNumber) -> Result<(), Error> {
        Ok(())
    }

    /// Where accesses of a thread may be put instead of being emitted, as long as all that counts is which lines they
    /// touch. A format may put a block there and then calls [`Self::gathered`] at once. It may also never ask; the
    /// results of the sink are the same.
    fn gatherer(&mut self, _thread: ThreadNumber) -> Option<&mut Gatherer> {
        None
    }

    /// A block of a thread's accesses was put into the [`Self::gatherer`].
    ///
    /// # Errors
    /// Whatever ends the pass.
    fn gathered(&mut self, _thread: ThreadNumber) -> Result<(), Error> {
        Ok(())
    }

    /// A thread and its id in the trace; numbers are announced in order. `None` is the thread that represents all
    /// threads beyond [`crate::Limits::distinct_max`].
    ///
    /// # Errors
    /// Whatever ends the pass, here and below.
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error>;

    /// A type and its name as the trace has it, possibly not UTF-8; numbers are announced in order. `None` is the type
    /// that represents all types beyond [`crate::Limits::distinct_max`].
    ///
    /// # Errors
    /// As [`Self::thread`].
    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error>;

    /// The fields of a type are known, so what is counted of its elements is wanted for each offset. Called before the
    /// type's first region, by what reads type data; everybody else may leave it out.
    ///
    /// # Errors
    /// As [`Self::thread`].
    fn fields_known(&mut self, _number: TypeNumber) -> Result<(), Error> {
        Ok(())
    }

    /// The lifetime of a region begins.
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
    fn a_sieve_passes_its_share_of_lines_and_everything_that_is_not_one_line() {
        let sieve = Sieve { line_shift: 6, below: u64::MAX / 100 };
        for stride in [1, 2, 64, 4096, 12_345] {
            let passed = (0..100_000_u64).filter(|n| sieve.passes(n * stride * 64 + 8, 8)).count();
            assert!((900..1100).contains(&passed), "{passed} of 100,000 lines {stride} apart");
        }
        let (line, _) = (0..100).map(|n| (n * 64, n)).find(|(at, _)| !sieve.passes(*at, 1)).unwrap();
        assert!(!sieve.passes(line + 63, 1) && !sieve.passes(line, 64));
        assert!(sieve.passes(line + 63, 2) && sieve.passes(line, 65) && sieve.passes(line, 0));
        assert!(sieve.passes(line + 63, 0) && sieve.passes(line, u16::MAX));
        assert!(Sieve { line_shift: 0, below: 0 }.passes(7, 2) && !Sieve { line_shift: 63, below: 0 }.passes(7, 2));
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

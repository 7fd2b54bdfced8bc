//! What a pass finds.

use anytrace_core::access::{Access, TypeNumber};

use crate::elements::TypeTable;
use crate::quantiles::Sorted;
use crate::type_profile::Series;

/// Some regions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub regions: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Amount {
    pub(super) fn count(&mut self, bytes: u64) {
        self.regions += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.regions += other.regions;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// One type.
#[derive(Debug)]
pub struct TypeLife {
    /// Regions that began, and their bytes.
    pub regions: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Regions that were removed: their lifetimes, in records from the add to the remove.
    pub lifetimes: Sorted,
    /// Regions not removed at the end of the trace.
    pub leaked: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
    /// Regions that no access ever touched; of code whose accesses are recorded.
    pub untouched: u64,
    /// Their bytes.
    pub untouched_bytes: u64,
    /// Regions that no access ever read; those never touched are among them.
    pub unread: Amount,
    /// Regions that no access ever wrote, without those of `calloc` and `realloc`, which write themselves.
    pub unwritten: Amount,
    /// Regions that their thread removed before it added another one.
    pub short_lived: Amount,
    /// Bytes that lived when all types together had most.
    pub bytes_at_peak: u64,
    /// The most bytes that lived at once.
    pub live_bytes_peak: u64,
    /// Record of that.
    pub peak_at: u64,
    /// Live bytes over time.
    pub live: Series,
    /// Records that read bytes that nothing has written since the add.
    pub unwritten_reads: u64,
    /// Accesses to removed regions of this type.
    pub after_remove: u64,
}

/// An access to memory that was removed and not added again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfterRemove {
    /// The access.
    pub access: Access,
    /// Type of the latest removed region that contained the byte.
    pub type_number: TypeNumber,
    /// Where that region began.
    pub region_start: u64,
    /// Record that added it.
    pub added_at: u64,
    /// Record that removed it.
    pub removed_at: u64,
    /// From the start of the region to the access.
    pub offset_bytes: u64,
    /// The same in its element.
    pub offset_in_element: u64,
}

/// Reads of one field that nothing had written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwrittenRead {
    /// Type.
    pub type_number: TypeNumber,
    /// Offset in the element.
    pub offset_bytes: u64,
    /// Bytes of the access.
    pub bytes: u16,
    /// Records.
    pub count: u64,
    /// The first of them.
    pub first: Access,
    /// Where its region begins.
    pub region_start: u64,
    /// Record that added the region.
    pub added_at: u64,
}

/// A region that was not removed, or that nothing touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leftover {
    /// Type.
    pub type_number: TypeNumber,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Record that added it.
    pub added_at: u64,
}

/// A remove without a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrayRemove {
    /// Record.
    pub seq: u64,
    /// Address.
    pub address: u64,
    /// Why it removes nothing.
    pub kind: StrayKind,
}

/// Why a remove removes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StrayKind {
    /// Of address 0, as `free(NULL)` is recorded.
    Null,
    /// Of a region that was removed before.
    Again,
    /// Of an address inside a region.
    Inside,
    /// No region was ever added at the address.
    Unknown,
}

impl StrayKind {
    /// A word for results.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Again => "again",
            Self::Inside => "inside",
            Self::Unknown => "unknown",
        }
    }
}

/// Result of a pass.
#[derive(Debug)]
pub struct Lifetimes {
    /// Names and layouts.
    pub table: TypeTable,
    /// By type number.
    pub types: Vec<TypeLife>,
    /// Records seen.
    pub records: u64,
    /// Live bytes of all types over time, and their maximum.
    pub live: Series,
    /// The most bytes that lived at once.
    pub live_bytes_peak: u64,
    /// Record of that.
    pub peak_at: u64,
    /// Accesses after the remove, up to [`FINDINGS_MAX`](super::FINDINGS_MAX).
    pub after_remove: Vec<AfterRemove>,
    /// How many there are.
    pub after_remove_count: u64,
    /// Reads before the first write, by type and field, the first first.
    pub unwritten: Vec<UnwrittenRead>,
    /// How many records.
    pub unwritten_count: u64,
    /// Records that read such bytes only to copy them: no findings, and not among the reads before the first write.
    pub copied_count: u64,
    /// Reads of bytes that no record has written, in memory of code whose writes are not recorded: not known to be
    /// wrong.
    pub unknown_count: u64,
    /// Regions in which reads before writes could not be searched: by `calloc`, too long, too many.
    pub unwatched: u64,
    /// Leaked regions in the order of their adds, up to [`FINDINGS_MAX`](super::FINDINGS_MAX).
    pub leaked: Vec<Leftover>,
    /// Regions that nothing touched, up to [`FINDINGS_MAX`](super::FINDINGS_MAX).
    pub untouched: Vec<Leftover>,
    /// Removes without a region, up to [`FINDINGS_MAX`](super::FINDINGS_MAX).
    pub stray: Vec<StrayRemove>,
    /// How many of each kind.
    pub stray_counts: Vec<(StrayKind, u64)>,
    /// Regions added over one that begins at the same address and was not removed.
    pub added_again: u64,
}

//! Accesses with what is known about each.

use anytrace_core::access::gather::{Candidate, Gatherer};
use anytrace_core::access::{Access, ThreadNumber};

use super::cores::Cores;

/// Accesses with their attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) accesses: &'a [Access],
    /// Field of each; empty if not wanted.
    pub(super) fields: &'a [u32],
    /// Place of each; empty if not wanted.
    pub(super) places: &'a [u64],
    pub(super) cores: &'a Cores,
    /// The only thread; `None` where there are several.
    pub(super) only: Option<ThreadNumber>,
}

impl<'a> Batch<'a> {
    /// One of the records.
    #[inline]
    pub(super) fn record(self, index: usize) -> Option<Record> {
        let access = *self.accesses.get(index)?;
        let (field, place) = (self.fields.get(index).copied(), self.places.get(index).copied());
        Some(Record { access, index: index as u32, field, place })
    }

    /// Gathers accesses from a number on, up to a full block or to one that is not of one line; returns their number.
    /// Where records must be identified, their numbers begin with `base`.
    pub(super) fn gather(self, gatherer: &mut Gatherer, from: usize, base: usize) -> usize {
        let rest = self.accesses.get(from..).unwrap_or_default();
        let candidate = |access: &Access| Candidate {
            address: access.address,
            bytes: access.bytes,
            is_write: access.is_write(),
            foreign: 0,
        };
        match self.is_each() {
            true => gatherer.gather_indexed(rest, candidate, (base + from) as u32),
            false => gatherer.gather(rest, candidate),
        }
    }

    /// True when records must be identified.
    fn is_each(self) -> bool {
        self.only.is_none() || !self.fields.is_empty()
    }
}

/// An access with its attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) access: Access,
    /// Number of the record in its batch.
    pub(super) index: u32,
    pub(super) field: Option<u32>,
    pub(super) place: Option<u64>,
}

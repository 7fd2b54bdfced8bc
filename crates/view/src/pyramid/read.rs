//! Slices of a row by number and by time.

use std::io;
use std::ops::Range;

use super::{Blobs, ENTRY_SLICES, Entry, GROUP_SLICES, Row, Slice, codec};

/// Times from the first to before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// First time.
    pub(crate) start: u64,
    /// The time behind the last.
    pub(crate) end: u64,
}

impl Window {
    /// Part of a slice that lies inside.
    pub(crate) fn overlap(self, slice: &Slice) -> u64 {
        slice.end.min(self.end).saturating_sub(slice.start.max(self.start))
    }
}

/// Reads the slices of a row; has the group it read last.
pub(crate) struct Reader<'a> {
    pub(super) row: &'a Row,
    blobs: &'a Blobs,
    group: usize,
    slices: Vec<Slice>,
    bytes: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// A reader of a row and of the blobs that its groups are in.
    pub(crate) fn new(row: &'a Row, blobs: &'a Blobs) -> Self {
        Self { row, blobs, group: usize::MAX, slices: Vec::new(), bytes: Vec::new() }
    }

    /// The slices of the group with slice `at`, from it on; empty beyond the last.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub(crate) fn from(&mut self, at: usize) -> io::Result<&[Slice]> {
        let group = at / GROUP_SLICES;
        if group > self.row.groups.len() {
            return Ok(&[]);
        }
        if self.group != group {
            self.group = usize::MAX;
            self.slices.clear();
            match self.row.groups.get(group) {
                Some(place) => {
                    self.blobs.read(*place, &mut self.bytes)?;
                    codec::decode(&self.bytes, &mut self.slices);
                }
                None => codec::decode(&self.row.tail, &mut self.slices),
            }
            self.group = group;
        }
        Ok(self.slices.get(at % GROUP_SLICES..).unwrap_or_default())
    }

    /// One slice.
    pub(crate) fn get(&mut self, at: usize) -> io::Result<Option<Slice>> {
        Ok(self.from(at)?.first().copied())
    }

    /// The number of the first slice that is not `before`, where all slices and entries that are come first.
    fn first_where(
        &mut self,
        entry_before: impl Fn(&Entry) -> bool,
        before: impl Fn(&Slice) -> bool,
    ) -> io::Result<usize> {
        let entries = self.row.levels.first().map(Vec::as_slice).unwrap_or_default();
        let at = entries.partition_point(entry_before) * ENTRY_SLICES;
        let in_entry = self.from(at)?;
        let in_entry = in_entry.get(..ENTRY_SLICES).unwrap_or(in_entry);
        let inside = in_entry.partition_point(before);
        Ok(at + inside)
    }

    /// The number of the first slice that ends at `time` or later.
    pub(crate) fn first_ending(&mut self, time: u64) -> io::Result<usize> {
        self.first_where(|entry| entry.end < time, |slice| slice.end < time)
    }

    /// The number of the first slice that begins at `time` or later.
    pub(crate) fn first_beginning(&mut self, time: u64) -> io::Result<usize> {
        // An entry that ends before has only slices that begin before; the rest may begin in the one that contains it.
        let mut at = self.first_where(|entry| entry.end < time, |slice| slice.start < time)?;
        while let Some(slice) = self.get(at)?
            && slice.start < time
        {
            at += 1;
        }
        Ok(at)
    }

    /// The numbers of the slices that begin in a window.
    pub(crate) fn beginning_in(&mut self, window: Window) -> io::Result<Range<usize>> {
        let start = self.first_beginning(window.start)?;
        let end = self.first_beginning(window.end.max(window.start))?;
        Ok(start..end)
    }
}

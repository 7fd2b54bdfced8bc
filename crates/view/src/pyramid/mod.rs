//! A row of slices, summarized so that a window of any width is drawn from few entries.
//!
//! A row has the slices of one track at one depth, in order: they do not overlap. Every 64 of them make an entry of the
//! lowest level; 8 entries make one of the level above. The slices themselves are stored in groups of 1,024, a few bytes
//! each, in memory or in a temporary file ([`blobs`]).

pub(crate) mod blobs;
mod codec;
mod outline;
mod read;
mod walk;

pub(crate) use blobs::{Blobs, Place};
pub(crate) use outline::{Bytes, Outline};
pub(crate) use read::{Reader, Window};
pub(crate) use walk::{Item, items};

/// Slices that make an entry of the lowest level.
pub(crate) const ENTRY_SLICES: usize = 64;

/// Entries that make one of the level above.
pub(crate) const FAN: usize = 8;

/// Slices that are stored together.
pub(crate) const GROUP_SLICES: usize = 1024;

/// A name that is none: an aggregate has several.
pub(crate) const NO_NAME: u32 = u32::MAX;

// Flags of slices, as the answers have them.
/// Still open at the end of the trace.
pub(crate) const OPEN: u8 = 1;
/// Its end is not in the trace but follows from that of another slice.
pub(crate) const DEDUCED: u8 = 2;
/// A point in time.
pub(crate) const INSTANT: u8 = 8;

/// An interval on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Slice {
    /// Begin, in the trace's unit.
    pub(crate) start: u64,
    /// End; never before `start`.
    pub(crate) end: u64,
    /// Time of the slices directly inside it.
    pub(crate) inner: u64,
    /// Number of its name.
    pub(crate) name: u32,
    /// [`OPEN`], [`DEDUCED`], [`INSTANT`].
    pub(crate) flags: u8,
}

impl Slice {
    /// Length.
    pub(crate) fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Length without the slices inside it.
    pub(crate) fn own(&self) -> u64 {
        self.length().saturating_sub(self.inner)
    }
}

/// A run of slices of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Begin of the first.
    pub(crate) start: u64,
    /// End of the last.
    pub(crate) end: u64,
    /// Sum of the lengths.
    pub(crate) busy: u64,
    /// Length of the longest, the first of equals.
    pub(crate) longest: u64,
    /// Its name.
    pub(crate) longest_name: u32,
}

impl Entry {
    fn of(slice: &Slice) -> Self {
        let length = slice.length();
        Self { start: slice.start, end: slice.end, busy: length, longest: length, longest_name: slice.name }
    }

    /// Appends what follows.
    fn append(&mut self, next: &Self) {
        self.end = next.end;
        self.busy = self.busy.saturating_add(next.busy);
        if next.longest > self.longest {
            (self.longest, self.longest_name) = (next.longest, next.longest_name);
        }
    }

    fn joined(mut parts: impl Iterator<Item = Self>) -> Option<Self> {
        let mut all = parts.next()?;
        parts.for_each(|part| all.append(&part));
        Some(all)
    }
}

/// The slices of one track at one depth.
///
/// Invariants: `levels[0]` has an entry for each 64 slices, `levels[k + 1]` one for each 8 of `levels[k]`; `groups` has
/// all slices but the last `tail_slices`, which are fewer than 1,024 and encoded in `tail`. `running` is the entry of
/// those behind the last of `levels[0]`.
#[derive(Debug, Default)]
pub(crate) struct Row {
    levels: Vec<Vec<Entry>>,
    groups: Vec<Place>,
    tail: Vec<u8>,
    tail_slices: usize,
    running: Option<Entry>,
    /// Slices of which only the entries are known; then there are no others.
    bare: usize,
    /// End of the last slice: the next begins there or later.
    last_end: u64,
}

impl Row {
    /// How many slices there are.
    pub(crate) fn len(&self) -> usize {
        self.bare + self.groups.len() * GROUP_SLICES + self.tail_slices
    }

    /// Appends a slice, which begins where the one before ends or later.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn push(&mut self, slice: Slice, blobs: &mut Blobs) -> std::io::Result<()> {
        // The order of edges promises this; a format that broke it must not break the search.
        let start = slice.start.max(self.last_end);
        let slice = Slice { start, end: slice.end.max(start), ..slice };
        codec::push(&slice, if self.tail_slices == 0 { 0 } else { self.last_end }, &mut self.tail);
        self.last_end = slice.end;
        self.tail_slices += 1;
        match &mut self.running {
            Some(entry) => entry.append(&Entry::of(&slice)),
            None => self.running = Some(Entry::of(&slice)),
        }
        if self.tail_slices.is_multiple_of(ENTRY_SLICES) {
            self.summarize();
            if self.tail_slices == GROUP_SLICES {
                self.groups.push(blobs.append(&self.tail)?);
                self.tail.clear();
                self.tail_slices = 0;
            }
        }
        Ok(())
    }

    /// Adds the entry of the last 64 slices, and those above that it completes.
    fn summarize(&mut self) {
        let mut made = self.running.take();
        let mut level = 0;
        while let Some(entry) = made {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(entries) = self.levels.get_mut(level) else { return };
            entries.push(entry);
            if !entries.len().is_multiple_of(FAN) {
                return;
            }
            let from = entries.len() - FAN;
            made = Entry::joined(entries.get(from..).unwrap_or_default().iter().copied());
            level += 1;
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.levels.iter().map(Vec::capacity).sum();
        entries * size_of::<Entry>()
            + self.groups.capacity() * size_of::<Place>()
            + self.tail.capacity()
            + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests;

//! Sorting in bounded memory: chunks in memory, and [`Runs`] of them on disk where there are several.

use super::{Runs, Stored};
use crate::Error;

/// A chunk is written to a temporary file when it reaches this size.
const CHUNK_BYTES: usize = 16 << 20;

/// Items with bytes of any length that have an order.
pub trait Keyed: Stored {
    /// What decides the order.
    type Key: Ord + Copy;

    /// The item's own.
    fn key(&self) -> Self::Key;

    /// The item with so many bytes behind it: what [`Stored::payload`] returns.
    #[must_use]
    fn with_payload(self, bytes: u32) -> Self;
}

/// Sorts items with their bytes; of equal keys, those that came earlier are first.
#[derive(Debug)]
pub struct Sorter<T> {
    items: Vec<(T, usize)>,
    arena: Vec<u8>,
    runs: Runs,
    chunk_bytes: usize,
}

impl<T> Default for Sorter<T> {
    fn default() -> Self {
        Self::with_chunks(CHUNK_BYTES)
    }
}

impl<T> Sorter<T> {
    /// With chunks of another size than 16 MiB.
    pub fn with_chunks(chunk_bytes: usize) -> Self {
        Self { items: Vec::new(), arena: Vec::new(), runs: Runs::default(), chunk_bytes }
    }
}

impl<T: Keyed> Sorter<T> {
    /// Adds an item. One with 4 GiB of bytes or more is left out: no record has them.
    ///
    /// # Errors
    /// I/O.
    #[inline]
    pub fn push(&mut self, item: T, bytes: &[u8]) -> Result<(), Error> {
        let Ok(length) = u32::try_from(bytes.len()) else { return Ok(()) };
        self.items.push((item.with_payload(length), self.arena.len()));
        self.arena.extend_from_slice(bytes);
        let is_full = self.items.len() * size_of::<(T, usize)>() + self.arena.len() >= self.chunk_bytes;
        if is_full { self.spill() } else { Ok(()) }
    }

    /// Visits all items in order.
    ///
    /// # Errors
    /// I/O, and what `visit` returns.
    pub fn each(mut self, visit: &mut impl FnMut(&T, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.items.sort_by_key(|(item, _)| item.key());
            return sorted(&self.items, &self.arena).try_for_each(|(item, bytes)| visit(item, bytes));
        }
        self.spill()?;
        (self.items, self.arena) = (Vec::new(), Vec::new());
        self.runs.each(T::key, visit)
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.items.sort_by_key(|(item, _)| item.key());
        self.runs.add(sorted(&self.items, &self.arena), T::key)?;
        self.items.clear();
        self.arena.clear();
        Ok(())
    }
}

fn sorted<'a, T: Stored>(items: &'a [(T, usize)], arena: &'a [u8]) -> impl Iterator<Item = (&'a T, &'a [u8])> {
    items.iter().map(|(item, at)| (item, arena.get(*at..*at + item.payload()).unwrap_or_default()))
}

//! Sorts records by time in bounded memory: those of each processor are in order, those of different ones are not.

use anytrace_core::Error;
use anytrace_core::runs::Runs;

use super::item::Item;

/// A chunk is written to a temporary file when it reaches this size.
const CHUNK_BYTES: usize = 16 << 20;

/// What receives items in order.
pub(super) type Each<'a> = dyn FnMut(&Item, &[u8]) -> Result<(), Error> + 'a;

/// Sorts items with their bytes.
#[derive(Debug)]
pub(super) struct Sorter {
    items: Vec<(Item, usize)>,
    arena: Vec<u8>,
    runs: Runs,
    chunk_bytes: usize,
}

impl Default for Sorter {
    fn default() -> Self {
        Self { items: Vec::new(), arena: Vec::new(), runs: Runs::default(), chunk_bytes: CHUNK_BYTES }
    }
}

impl Sorter {
    /// Adds an item.
    pub(super) fn push(&mut self, mut item: Item, bytes: &[u8]) -> Result<(), Error> {
        let Ok(length) = u32::try_from(bytes.len()) else { return Ok(()) };
        item.bytes = length;
        self.items.push((item, self.arena.len()));
        self.arena.extend_from_slice(bytes);
        let is_full = self.items.len() * size_of::<(Item, usize)>() + self.arena.len() >= self.chunk_bytes;
        if is_full { self.spill() } else { Ok(()) }
    }

    /// Visits all items in order of time.
    pub(super) fn each(mut self, visit: &mut Each<'_>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.items.sort_by_key(|(item, _)| item.key());
            return self.sorted().try_for_each(|(item, bytes)| visit(item, bytes));
        }
        self.spill()?;
        (self.items, self.arena) = (Vec::new(), Vec::new());
        self.runs.each(Item::key, &mut |item, bytes| visit(item, bytes))
    }

    fn sorted(&self) -> impl Iterator<Item = (&Item, &[u8])> {
        self.items.iter().map(|(item, at)| (item, self.arena.get(*at..*at + item.bytes as usize).unwrap_or_default()))
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.items.sort_by_key(|(item, _)| item.key());
        let mut runs = std::mem::take(&mut self.runs);
        runs.add(self.sorted(), Item::key)?;
        self.runs = runs;
        self.items.clear();
        self.arena.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_into_memory_does_not_change_the_order() {
        for chunk_bytes in [1, 200, 1 << 20] {
            let mut sorter = Sorter { chunk_bytes, ..Sorter::default() };
            for seq in 0..100_u64 {
                let item = Item { time_ns: seq * 37 % 20, seq, bytes: 0 };
                sorter.push(item, &vec![7; usize::try_from(seq % 5).unwrap()]).unwrap();
            }
            let mut found = Vec::new();
            sorter
                .each(&mut |item, bytes| {
                    assert_eq!(bytes.len() as u64, item.seq % 5);
                    found.push(item.key());
                    Ok(())
                })
                .unwrap();
            assert!(found.len() == 100 && found.is_sorted(), "{chunk_bytes}: {found:?}");
        }
    }
}

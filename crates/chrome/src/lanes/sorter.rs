//! Sorts any number of items in bounded memory: chunks are sorted in memory, written to a temporary file as runs, and
//! merged.

use anytrace_core::Error;
use anytrace_core::runs::{Runs, Stored};

use super::item::{Item, Order};

/// A chunk is written when it reaches this size.
const CHUNK_BYTES: usize = 12 << 20;

/// What receives items in order.
pub(crate) type Each<'a> = dyn FnMut(&Item, &[u8]) -> Result<(), Error> + 'a;

/// Sorts items.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    order: Order,
    items: Vec<(Item, usize)>,
    arena: Vec<u8>,
    runs: Runs,
}

impl Sorter {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    /// Adds an item with the bytes of its events.
    #[inline]
    pub(crate) fn push(&mut self, mut item: Item, bytes: &[u8], end_bytes: &[u8]) -> Result<(), Error> {
        // A record is not longer than its limit; what is longer all the same is left out.
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok();
        (item.bytes, item.end_bytes) = (0, 0);
        let at = self.arena.len();
        if let (Some(first), Some(second)) = (length(bytes), length(end_bytes)) {
            (item.bytes, item.end_bytes) = (first, second);
            self.arena.extend_from_slice(bytes);
            self.arena.extend_from_slice(end_bytes);
        }
        self.items.push((item, at));
        let is_full = self.items.len() * size_of::<(Item, usize)>() + self.arena.len() >= CHUNK_BYTES;
        if is_full { self.spill() } else { Ok(()) }
    }

    /// Visits all items in order.
    pub(crate) fn each(mut self, visit: &mut Each<'_>) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.sort();
            return self.sorted().try_for_each(|(item, bytes)| visit(item, bytes));
        }
        if !self.items.is_empty() {
            self.spill()?;
        }
        (self.items, self.arena) = (Vec::new(), Vec::new());
        let order = self.order;
        self.runs.each(|item: &Item| order.key(item), &mut |item, bytes| visit(item, bytes))
    }

    fn sort(&mut self) {
        let order = self.order;
        // Most chunks are a few sorted runs, which a stable sort merges.
        self.items.sort_by_key(|(item, _)| order.key(item));
    }

    /// The items of the chunk with their bytes.
    fn sorted(&self) -> impl Iterator<Item = (&Item, &[u8])> {
        self.items.iter().map(|(item, at)| (item, self.arena.get(*at..*at + item.payload()).unwrap_or_default()))
    }

    #[cold]
    fn spill(&mut self) -> Result<(), Error> {
        self.sort();
        let mut runs = std::mem::take(&mut self.runs);
        let order = self.order;
        runs.add(self.sorted(), |item| order.key(item))?;
        self.runs = runs;
        self.items.clear();
        self.arena.clear();
        // The memory for one long event must not be kept.
        self.arena.shrink_to(CHUNK_BYTES);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than is read of a run at once.
    const LONG: usize = 200_000;

    fn items(count: u64) -> Vec<(Item, Vec<u8>)> {
        (0..count)
            .map(|seq| {
                let mixed = seq.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 20;
                let start = (mixed % 1000).cast_signed() - 500;
                let item = Item {
                    home: (mixed >> 12) as u32 % 3,
                    owner: (mixed >> 16) % 5,
                    start,
                    end: start + ((mixed >> 24) % 7).cast_signed(),
                    seq,
                    bytes: (mixed % 4) as u32,
                    ..Item::default()
                };
                (item, vec![seq as u8; (mixed % 4) as usize])
            })
            .collect()
    }

    #[test]
    fn any_number_of_runs_and_levels_gives_the_order_of_a_plain_sort() {
        let items = items(20_000);
        for order in [Order::Pairs, Order::Nesting, Order::Owners] {
            let mut expected = items.clone();
            expected.sort_by_key(|(item, _)| order.key(item));
            // The last one makes more than 64 times 64 runs: three levels.
            for spill_every in [usize::MAX, 7000, 4] {
                let mut sorter = Sorter::new(order);
                for (n, (item, bytes)) in items.iter().enumerate() {
                    sorter.push(*item, bytes, &[]).unwrap();
                    if (n + 1) % spill_every == 0 {
                        sorter.spill().unwrap();
                    }
                }
                let mut found = Vec::new();
                let mut keep = |item: &Item, bytes: &[u8]| {
                    found.push((*item, bytes.to_vec()));
                    Ok(())
                };
                sorter.each(&mut keep).unwrap();
                assert!(found == expected, "{order:?}, {spill_every}");
            }
        }
    }

    #[test]
    fn an_event_longer_than_a_buffer_survives() {
        let long = vec![9; LONG];
        let mut sorter = Sorter::new(Order::Nesting);
        for start in [5, 1] {
            sorter.push(Item { start, ..Item::default() }, &long, b"end").unwrap();
            sorter.spill().unwrap();
        }
        let mut found = Vec::new();
        let mut keep = |item: &Item, bytes: &[u8]| {
            found.push((item.start, bytes.len()));
            Ok(())
        };
        sorter.each(&mut keep).unwrap();
        assert_eq!(found, [(1, LONG + 3), (5, LONG + 3)]);
    }
}

//! Ranges of addresses that may overlap in any way; finds the latest one that contains an address.
//!
//! Each range is kept as the few aligned blocks of 2^k bytes it consists of (at most 126), as in a segment tree over
//! the entire address space. So a query takes one look-up for each size of block in use, whatever the depth of the
//! overlaps.

use std::collections::BTreeMap;

/// Sizes of blocks: 2^0 to 2^64 bytes.
const SIZES: usize = 65;

/// Ranges, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Stabbing<V> {
    /// Size of a block, its number among those of this size, and when its range was added; with the range's value.
    blocks: BTreeMap<(u8, u64, u64), V>,
    /// Blocks of each size.
    counts: [usize; SIZES],
    /// Addresses at which a range begins or is over, and how many do.
    cuts: BTreeMap<u64, u32>,
}

impl<V> Default for Stabbing<V> {
    fn default() -> Self {
        Self { blocks: BTreeMap::new(), counts: [0; SIZES], cuts: BTreeMap::new() }
    }
}

impl<V: Copy + Ord> Stabbing<V> {
    /// Adds a range. Its order must not be that of another.
    pub(super) fn insert(&mut self, start: u64, last: u64, order: u64, value: V) {
        for_each_block(start, last, |size, number| {
            self.blocks.insert((size, number, order), value);
            if let Some(count) = self.counts.get_mut(usize::from(size)) {
                *count += 1;
            }
        });
        for cut in cuts_of(start, last) {
            *self.cuts.entry(cut).or_default() += 1;
        }
    }

    /// Removes a range that was added.
    pub(super) fn remove(&mut self, start: u64, last: u64, order: u64) {
        for_each_block(start, last, |size, number| {
            if self.blocks.remove(&(size, number, order)).is_some()
                && let Some(count) = self.counts.get_mut(usize::from(size))
            {
                *count -= 1;
            }
        });
        for cut in cuts_of(start, last) {
            if let Some(count) = self.cuts.get_mut(&cut) {
                *count -= 1;
                if *count == 0 {
                    self.cuts.remove(&cut);
                }
            }
        }
    }

    /// The order and the value of the latest range that contains an address.
    pub(super) fn latest(&self, address: u64) -> Option<(u64, V)> {
        // An address is in one block of each size; sizes without blocks need no look-up.
        let sizes = (0_u8..).zip(&self.counts).filter(|(_, count)| **count > 0);
        let latest_of = |size| {
            let number = block_number(address, size);
            let ((of, at, order), value) = self.blocks.range(..=(size, number, u64::MAX)).next_back()?;
            (*of == size && *at == number).then_some((*order, *value))
        };
        sizes.filter_map(|(size, _)| latest_of(size)).max()
    }

    /// The widest range of addresses around one in which the answer of [`Self::latest`] is certainly the same.
    pub(super) fn around(&self, address: u64) -> (u64, u64) {
        let start = self.cuts.range(..=address).next_back().map_or(0, |(cut, _)| *cut);
        let after = address.checked_add(1).and_then(|next| self.cuts.range(next..).next());
        (start, after.map_or(u64::MAX, |(cut, _)| cut.saturating_sub(1)))
    }

    /// True when there is no range.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// Where answers may change at a range: at its start, and after its end unless the address space ends there.
fn cuts_of(start: u64, last: u64) -> impl Iterator<Item = u64> {
    std::iter::once(start).chain(last.checked_add(1))
}

/// Number of the block of 2^`size` bytes that contains an address.
fn block_number(address: u64, size: u8) -> u64 {
    address.checked_shr(u32::from(size)).unwrap_or(0)
}

/// Emits the largest aligned blocks that make up a range, in ascending order.
fn for_each_block(start: u64, last: u64, mut emit: impl FnMut(u8, u64)) {
    let mut at = start;
    while let Some(above) = last.checked_sub(at) {
        // A block must begin at a multiple of its size; 0 is a multiple of all.
        let aligned = if at == 0 { 64 } else { at.trailing_zeros() };
        let fitting = above.checked_add(1).map_or(64, u64::ilog2);
        let size = aligned.min(fitting);
        let size_byte = u8::try_from(size).expect("it is at most 64");
        emit(size_byte, block_number(at, size_byte));
        let Some(next) = 1_u64.checked_shl(size).and_then(|bytes| at.checked_add(bytes)) else { return };
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_few_aligned_blocks() {
        let blocks = |start, last| {
            let mut blocks = Vec::new();
            for_each_block(start, last, |size, number| blocks.push((size, number)));
            blocks
        };
        assert_eq!(blocks(0, u64::MAX), [(64, 0)]);
        assert_eq!(blocks(5, 5), [(0, 5)]);
        assert_eq!(blocks(6, 13), [(1, 3), (2, 2), (1, 6)]);
        assert_eq!(blocks(u64::MAX, u64::MAX), [(0, u64::MAX)]);
        assert_eq!(blocks(1, u64::MAX).len(), 64);
        assert_eq!(blocks(1, u64::MAX - 1).len(), 126);
    }

    #[test]
    fn the_latest_range_is_found_and_the_next_when_it_goes() {
        let mut stabbing = Stabbing::default();
        stabbing.insert(0, u64::MAX, 1, 10);
        stabbing.insert(100, 199, 3, 30);
        stabbing.insert(150, 299, 2, 20);
        assert_eq!(stabbing.latest(160), Some((3, 30)));
        assert_eq!(stabbing.latest(200), Some((2, 20)));
        assert_eq!(stabbing.latest(300), Some((1, 10)));
        assert_eq!(stabbing.around(160), (150, 199));
        assert_eq!(stabbing.around(u64::MAX), (300, u64::MAX));
        stabbing.remove(100, 199, 3);
        assert_eq!(stabbing.latest(160), Some((2, 20)));
        stabbing.remove(0, u64::MAX, 1);
        assert_eq!(stabbing.latest(100), None);
        stabbing.remove(150, 299, 2);
        assert!(stabbing.is_empty() && stabbing.cuts.is_empty());
    }
}

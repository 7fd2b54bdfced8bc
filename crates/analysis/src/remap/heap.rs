//! An allocator for regions that move: it only assigns addresses.

use std::collections::BTreeMap;

/// Start of its memory: in the middle of a range that no 64-bit processor can address today.
const START: u64 = 1 << 62;

/// Distance between pools, plus a few lines so that pools do not all begin in the same set of a cache.
const POOL_BYTES: u64 = (1 << 48) + 17 * 64;

/// Bytes an allocator reserves before each block.
const HEADER_BYTES: u64 = 8;

/// Minimum bytes of a block, header included; blocks are multiples of it.
const BLOCK_BYTES_MIN: u64 = 32;
const GRAIN_BYTES: u64 = 16;

#[derive(Debug)]
pub(super) struct Heap {
    next: u64,
    /// Freed blocks by size and alignment, the latest last.
    free: BTreeMap<(u64, u64), Vec<u64>>,
}

impl Heap {
    /// The pool of a number.
    pub(super) fn new(number: u64) -> Self {
        Self { next: START.wrapping_add(number.wrapping_mul(POOL_BYTES)), free: BTreeMap::new() }
    }
}

fn block_bytes(bytes: u64) -> u64 {
    let with_header = bytes.saturating_add(HEADER_BYTES).max(BLOCK_BYTES_MIN);
    with_header.checked_next_multiple_of(GRAIN_BYTES).unwrap_or(u64::MAX - GRAIN_BYTES)
}

impl Heap {
    /// First address of a new block.
    pub(super) fn take(&mut self, bytes: u64, align: u64) -> u64 {
        let (block, align) = (block_bytes(bytes), align.clamp(GRAIN_BYTES, 1 << 20));
        if let Some(address) = self.free.get_mut(&(block, align)).and_then(Vec::pop) {
            return address;
        }
        // The header lies before the block's first byte, in the grain that is skipped here.
        let first = self.next.wrapping_add(GRAIN_BYTES).checked_next_multiple_of(align).unwrap_or(START);
        // Blocks of absurd sizes start over at the beginning: nothing is stored there, only addresses are assigned.
        self.next = first.checked_add(block - GRAIN_BYTES).unwrap_or(START);
        first
    }

    /// Takes a block back.
    pub(super) fn give(&mut self, address: u64, bytes: u64, align: u64) {
        let align = align.clamp(GRAIN_BYTES, 1 << 20);
        // The same rounding as in `take`, so that a block is found again by any size that rounds to it.
        self.free.entry((block_bytes(bytes), align)).or_default().push(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_as_those_of_common_allocators() {
        let mut heap = Heap::new(0);
        let first = heap.take(24, 16);
        assert_eq!([heap.take(24, 1) - first, heap.take(25, 16) - first, heap.take(64, 16) - first], [32, 64, 112]);
        assert_eq!(heap.take(10, 64) % 64, 0);
        heap.give(first, 24, 16);
        assert_eq!((heap.take(20, 8), first % 16), (first, 0));
        let _ = (heap.take(u64::MAX, 1), heap.take(u64::MAX, 1), heap.take(1, 1));
    }
}

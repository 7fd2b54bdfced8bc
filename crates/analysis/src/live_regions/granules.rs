//! A large table of small numbers, in large pages of memory where the system has them.
//!
//! Look-ups go to places that are far apart. With pages of 4 KiB the processor waits longer for the address translation
//! than for the data.

use std::ops::Range;

use memmap2::{MmapMut, MmapOptions};

/// Bytes of a number.
const BYTES: usize = size_of::<u32>();

/// Tables of at least this size are put into large pages, which have this many bytes.
const LARGE: usize = 2 << 20;

/// The table.
#[derive(Debug)]
pub(super) struct Granules {
    memory: Memory,
    /// Most numbers it may have.
    most: usize,
}

#[derive(Debug)]
enum Memory {
    Small(Vec<u8>),
    /// The largest size that may ever be needed: unused parts take only address space.
    Large(MmapMut),
}

impl Granules {
    /// An empty table for at most this many numbers.
    pub(super) fn new(most: usize) -> Self {
        Self { memory: Memory::Small(Vec::new()), most }
    }

    /// Makes the table at least this long. New numbers are unset.
    pub(super) fn reach(&mut self, numbers: usize) {
        let Memory::Small(small) = &mut self.memory else { return };
        let bytes = numbers.min(self.most) * BYTES;
        if bytes <= small.len() {
            return;
        }
        if bytes >= LARGE
            && let Some(mut large) = map(self.most * BYTES)
            && let Some(begin) = large.get_mut(..small.len())
        {
            begin.copy_from_slice(small);
            self.memory = Memory::Large(large);
        } else {
            small.resize(bytes, 0);
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Small(bytes) => bytes,
            Memory::Large(bytes) => bytes,
        }
    }

    /// All numbers.
    #[inline]
    pub(super) fn numbers(&self) -> Numbers<'_> {
        Numbers(self.bytes().as_chunks().0)
    }

    /// Sets a range of numbers, as far as it is in the table.
    pub(super) fn set_range(&mut self, range: Range<usize>, number: u32) {
        let bytes = match &mut self.memory {
            Memory::Small(bytes) => bytes.as_mut_slice(),
            Memory::Large(bytes) => bytes,
        };
        if let Some(numbers) = bytes.as_chunks_mut::<BYTES>().0.get_mut(range) {
            numbers.fill(number.to_ne_bytes());
        }
    }
}

/// The numbers of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers<'a>(&'a [[u8; BYTES]]);

impl Numbers<'_> {
    /// One of them.
    #[inline(always)]
    pub(super) fn get(self, at: usize) -> Option<u32> {
        self.0.get(at).copied().map(u32::from_ne_bytes)
    }
}

/// Memory from the system, in large pages if possible; `None` where there is none.
fn map(bytes: usize) -> Option<MmapMut> {
    let memory = MmapOptions::new().len(bytes.next_multiple_of(LARGE)).map_anon().ok()?;
    #[cfg(target_os = "linux")]
    // The system may not know the advice; the pages are then small.
    let _ = memory.advise(memmap2::Advice::HugePage);
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_numbers_stay_as_the_table_grows() {
        let mut table = Granules::new(3 * LARGE / BYTES);
        for count in [64, 4096, LARGE / BYTES, 3 * LARGE / BYTES] {
            table.reach(count);
            table.set_range(count - 2..count, count as u32);
            let numbers = table.numbers();
            assert_eq!((numbers.get(count - 1), numbers.get(count - 3)), (Some(count as u32), Some(0)));
            assert_eq!((numbers.get(63), matches!(table.memory, Memory::Large(_))), (Some(64), count * BYTES >= LARGE));
        }
        assert_eq!((table.numbers().get(3 * LARGE / BYTES), Granules::new(8).numbers().get(0)), (None, None));
    }
}

//! A large table of small numbers, in large pages of memory where the system has them.
//!
//! Look-ups go to places that are far apart. With pages of 4 KiB the processor waits longer for where a page is than for
//! what is in it.

use std::ops::Range;

use memmap2::{MmapMut, MmapOptions};

/// Bytes of a number.
const BYTES: usize = size_of::<u32>();

/// Tables from here on are put into large pages, which have so many bytes.
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
    /// As much as there may ever be: what is not used is no more than addresses.
    Large(MmapMut),
}

impl Granules {
    /// Begins without numbers; there may be so many.
    pub(super) fn new(most: usize) -> Self {
        Self { memory: Memory::Small(Vec::new()), most }
    }

    /// Makes the table so long, or longer. What is new means nothing yet.
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

    /// Sets a range of numbers, as far as it lies in the table.
    pub(super) fn fill(&mut self, range: Range<usize>, number: u32) {
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

/// Memory of the system's own, in large pages where it will; `None` where there is none.
fn map(bytes: usize) -> Option<MmapMut> {
    let memory = MmapOptions::new().len(bytes.next_multiple_of(LARGE)).map_anon().ok()?;
    #[cfg(target_os = "linux")]
    // It may not know of them: then they are small.
    let _ = memory.advise(memmap2::Advice::HugePage);
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_in_stays_as_the_table_grows() {
        let mut table = Granules::new(3 * LARGE / BYTES);
        for count in [64, 4096, LARGE / BYTES, 3 * LARGE / BYTES] {
            table.reach(count);
            table.fill(count - 2..count, count as u32);
            let numbers = table.numbers();
            assert_eq!((numbers.get(count - 1), numbers.get(count - 3)), (Some(count as u32), Some(0)));
            assert_eq!((numbers.get(63), matches!(table.memory, Memory::Large(_))), (Some(64), count * BYTES >= LARGE));
        }
        assert_eq!((table.numbers().get(3 * LARGE / BYTES), Granules::new(8).numbers().get(0)), (None, None));
    }
}

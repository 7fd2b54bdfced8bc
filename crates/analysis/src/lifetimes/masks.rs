//! Which bytes of regions were written.

use std::ops::Range;

use anytrace_core::hash::Map;

/// Longest region that is watched, in bytes.
pub const REGION_BYTES_MAX: u64 = 64 << 20;

/// Bytes of all regions watched at once; a bit of memory each.
pub const MASK_BYTES_MAX: u64 = 2 << 30;

#[derive(Debug, Default)]
pub(super) struct Masks {
    /// By number of the region; bits of bytes that were written. Made at the first write.
    by_region: Map<u64, Mask>,
    bytes: u64,
}

#[derive(Debug)]
struct Mask {
    bytes: u64,
    written: Vec<u64>,
}

/// What of a region that ended was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Bits for 64 bytes each; none where nothing was written.
    Bits(Vec<u64>),
    /// The region was not watched, because it is from `calloc` or too long: all of this many bytes count as written.
    All(u64),
}

impl Masks {
    /// Begins to watch a region; false when it, or all together, are too long.
    pub(super) fn begin(&mut self, region: u64, bytes: u64) -> bool {
        if bytes > REGION_BYTES_MAX || self.bytes + bytes > MASK_BYTES_MAX {
            return false;
        }
        self.bytes += bytes;
        self.by_region.insert(region, Mask { bytes, written: Vec::new() });
        true
    }

    /// Ends watching a region of this many bytes; returns what was written of it.
    pub(super) fn take(&mut self, region: u64, bytes: u64) -> Written {
        // A region without a mask was not watched: to say that it was not written would invent findings.
        let Some(mask) = self.by_region.remove(&region) else { return Written::All(bytes) };
        self.bytes = self.bytes.saturating_sub(mask.bytes);
        Written::Bits(mask.written)
    }

    /// A region begins with what another had, as far as it reaches.
    pub(super) fn inherit(&mut self, region: u64, written: Written) {
        let Some(mask) = self.by_region.get_mut(&region) else { return };
        match written {
            Written::All(bytes) => mask.write(0, bytes),
            Written::Bits(mut bits) => {
                // A longer region has more words, unwritten; of a shorter one the rest is cut off.
                bits.resize(mask.words(), 0);
                mask.written = bits;
            }
        }
    }

    /// Bytes from an offset were written.
    pub(super) fn write(&mut self, region: u64, offset: u64, bytes: u16) {
        let Some(mask) = self.by_region.get_mut(&region) else { return };
        mask.write(offset, u64::from(bytes));
    }

    /// Bytes from an offset count as not written again.
    pub(super) fn unwrite(&mut self, region: u64, offset: u64, bytes: u64) {
        let Some(mask) = self.by_region.get_mut(&region) else { return };
        for (word, bits) in parts(offset, bytes, mask.bytes) {
            if let Some(word) = mask.written.get_mut(word) {
                *word &= !bits;
            }
        }
    }

    /// The bytes that were never written, ascending, as offsets in the region.
    pub(super) fn unwritten(&self, region: u64, offset: u64, bytes: u16) -> impl Iterator<Item = Range<u64>> {
        self.by_region.get(&region).into_iter().flat_map(move |mask| {
            parts(offset, u64::from(bytes), mask.bytes).flat_map(|(word, bits)| {
                let written = mask.written.get(word).copied().unwrap_or(0);
                runs(word as u64 * 64, bits & !written)
            })
        })
    }

    /// True when any of the bytes was never written, as far as the region is watched.
    pub(super) fn is_unwritten(&self, region: u64, offset: u64, bytes: u16) -> bool {
        let Some(mask) = self.by_region.get(&region) else { return false };
        parts(offset, u64::from(bytes), mask.bytes)
            .any(|(word, bits)| mask.written.get(word).copied().unwrap_or(0) & bits != bits)
    }
}

impl Mask {
    fn words(&self) -> usize {
        usize::try_from(self.bytes.div_ceil(64)).unwrap_or(0)
    }

    fn write(&mut self, offset: u64, bytes: u64) {
        // Regions that are only read, or never used, need no bits.
        if self.written.is_empty() {
            self.written = vec![0; self.words()];
        }
        for (word, bits) in parts(offset, bytes, self.bytes) {
            if let Some(word) = self.written.get_mut(word) {
                *word |= bits;
            }
        }
    }
}

/// Words and bits of a range; bytes past the end are left out.
fn parts(offset: u64, bytes: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let last = offset.saturating_add(bytes).min(end);
    // The range must not run backward where the offset is behind the region.
    let words = offset / 64..last.div_ceil(64).max(offset / 64);
    words.filter(move |_| offset < last).filter_map(move |word| {
        let (from, to) = (offset.max(word * 64) - word * 64, last.min(word * 64 + 64) - word * 64);
        let bits = (u64::MAX >> (64 - (to - from))) << from;
        Some((usize::try_from(word).ok()?, bits))
    })
}

/// The ranges of set bits, ascending, counted from `start`.
fn runs(start: u64, mut bits: u64) -> impl Iterator<Item = Range<u64>> {
    std::iter::from_fn(move || {
        let from = bits.trailing_zeros();
        // Without a set bit `from` is 64, and the shift ends the iteration.
        let length = bits.checked_shr(from)?.trailing_ones();
        bits &= !((u64::MAX >> (64 - length)) << from);
        let first = start + u64::from(from);
        Some(first..first + u64::from(length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_one_by_one() {
        let mut masks = Masks::default();
        assert!(masks.begin(7, 200));
        assert!(masks.is_unwritten(7, 0, 1));
        masks.write(7, 60, 10);
        assert!(!masks.is_unwritten(7, 60, 10) && masks.is_unwritten(7, 59, 2) && masks.is_unwritten(7, 69, 2));
        let unwritten = |masks: &Masks, offset, bytes| masks.unwritten(7, offset, bytes).collect::<Vec<_>>();
        assert_eq!(unwritten(&masks, 0, 300), [0..60, 70..128, 128..192, 192..200]);
        assert_eq!(unwritten(&masks, 50, 100), [50..60, 70..128, 128..150]);
        assert!(unwritten(&masks, 60, 10).is_empty() && unwritten(&masks, 300, 8).is_empty());
        masks.write(7, 0, 300);
        masks.unwrite(7, 62, 4);
        assert_eq!(unwritten(&masks, 0, 200), [62..64, 64..66]);
        masks.write(7, 62, 4);
        assert!(!masks.is_unwritten(7, 0, 200) && !masks.is_unwritten(7, 199, 100));
        assert!(!masks.is_unwritten(7, 300, 8) && !masks.is_unwritten(7, 3, 0) && !masks.is_unwritten(8, 0, 1));
        assert!(!masks.begin(8, REGION_BYTES_MAX + 1));
        let written = masks.take(7, 200);
        assert!(masks.bytes == 0 && matches!(&written, Written::Bits(bits) if bits.len() == 4));
        assert!(masks.begin(9, 300));
        masks.inherit(9, written);
        assert!(!masks.is_unwritten(9, 0, 200) && masks.is_unwritten(9, 256, 1));
    }

    #[test]
    fn an_unwatched_region_counts_as_written_up_to_its_end() {
        let mut masks = Masks::default();
        let written = masks.take(7, 70);
        assert_eq!(written, Written::All(70));
        assert!(masks.begin(8, 100));
        masks.inherit(8, written);
        assert!(!masks.is_unwritten(8, 0, 70) && masks.is_unwritten(8, 70, 1));
        assert!(masks.begin(9, 60));
        masks.inherit(9, Written::All(u64::MAX));
        assert!(!masks.is_unwritten(9, 0, 60));
    }
}

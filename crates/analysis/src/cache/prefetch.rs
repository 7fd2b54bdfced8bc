//! Strides: where a thread's accesses to a region are equally spaced, the next one is predicted.
//!
//! A trace has no program counter, so an entry is for a thread and a region, or a page of 4 KiB where there is no
//! region.

/// Entries of the table, as few as in hardware; others may replace an entry.
const ENTRIES: usize = 1024;

/// How often a distance must repeat before it is used.
const SURE: u8 = 2;

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// `None` before the first use: thread 0 and page 0 are as good a key as any other.
    key: Option<(u32, u64)>,
    latest: u64,
    stride: u64,
    seen: u8,
}

/// The table.
#[derive(Debug)]
pub(super) struct Strides {
    entries: Vec<Entry>,
}

impl Default for Strides {
    fn default() -> Self {
        Self { entries: vec![Entry::default(); ENTRIES] }
    }
}

impl Strides {
    /// Takes an access of a thread to a place; returns the address to prefetch, where the stride is confirmed.
    pub(super) fn access(&mut self, thread: u32, place: u64, address: u64) -> Option<u64> {
        let hash = (place ^ u64::from(thread) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let entry = self.entries.get_mut((hash >> 54) as usize % ENTRIES)?;
        let key = Some((thread, place));
        if entry.key != key {
            *entry = Entry { key, latest: address, stride: 0, seen: 0 };
            return None;
        }
        let stride = address.wrapping_sub(entry.latest);
        if stride == 0 {
            return None;
        }
        entry.seen = if stride == entry.stride { entry.seen.saturating_add(1) } else { 0 };
        (entry.latest, entry.stride) = (address, stride);
        (entry.seen >= SURE).then(|| address.wrapping_add(stride))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_foreseen_once_it_was_seen_thrice() {
        let mut strides = Strides::default();
        let foreseen: Vec<_> = (0..5).map(|n| strides.access(1, 7, 1000 - n * 24)).collect();
        assert_eq!(foreseen, [None, None, None, Some(904), Some(880)]);
        assert_eq!(strides.access(1, 7, 904), None);
    }

    #[test]
    fn the_first_page_of_the_first_thread_is_as_new_as_any_other() {
        let mut strides = Strides::default();
        let foreseen: Vec<_> = (1..5).map(|n| strides.access(0, 0, n * 64)).collect();
        assert_eq!(foreseen, [None, None, None, Some(320)]);
    }
}

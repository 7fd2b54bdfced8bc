//! The appearance of the records before damage: the measure for those that may follow it.

use crate::wire::record::{Body, Layout, Record, Tag, Width, is_canonical, is_usual_size};

/// Longest type name of a plausible record.
pub(crate) const NAME_BYTES_MAX: usize = 4096;

/// Most threads and most pieces of 64 KiB that are remembered.
const THREADS_MAX: usize = 16;
const PIECES_MAX: usize = 64;

/// A thread id beyond 32 bits is accepted once it was seen this often.
const LARGE_THREAD_MIN: u32 = 4;

/// The score of a record that resembles the earlier ones in every way.
pub(crate) const LIKE_OTHERS: u32 = 7;

/// Threads and places seen lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct Likeness {
    threads: Vec<(u64, u32)>,
    pieces: Vec<u64>,
}

impl Likeness {
    /// Threads with how often they were seen, and pieces: what a mark stores.
    pub(crate) fn parts(&self) -> (&[(u64, u32)], &[u64]) {
        (&self.threads, &self.pieces)
    }

    /// The inverse of [`Self::parts`]; `None` where there are more than are ever remembered.
    pub(crate) fn from_parts(threads: Vec<(u64, u32)>, pieces: Vec<u64>) -> Option<Self> {
        (threads.len() <= THREADS_MAX && pieces.len() <= PIECES_MAX).then_some(Self { threads, pieces })
    }

    /// Learns from a record that was read.
    pub(crate) fn learn(&mut self, record: &Record<'_>, layout: Layout) {
        if !has_plausible_fields(record, layout) {
            return;
        }
        match self.threads.iter_mut().find(|(thread, _)| *thread == record.thread) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => push_bounded(&mut self.threads, (record.thread, 1), THREADS_MAX),
        }
        let piece = record.address >> 16;
        if !self.pieces.contains(&piece) {
            push_bounded(&mut self.pieces, piece, PIECES_MAX);
        }
    }

    fn knows_thread(&self, thread: u64) -> bool {
        let needed = if thread > u64::from(u32::MAX) { LARGE_THREAD_MIN } else { 1 };
        self.threads.iter().any(|(known, count)| *known == thread && *count >= needed)
    }

    fn is_near(&self, address: u64) -> bool {
        self.pieces.iter().any(|piece| piece.abs_diff(address >> 16) <= 1)
    }

    /// True for records that a program can have made.
    pub(crate) fn is_plausible(&self, record: &Record<'_>, layout: Layout) -> bool {
        let has_thread = record.thread <= u64::from(u32::MAX) || self.knows_thread(record.thread);
        has_thread && has_plausible_fields(record, layout)
    }

    /// How much a record resembles earlier ones: 0 for implausible ones, at most [`LIKE_OTHERS`].
    pub(crate) fn score(&self, record: &Record<'_>, layout: Layout) -> u32 {
        if !self.is_plausible(record, layout) {
            return 0;
        }
        // Without earlier records every plausible one scores the same.
        let is_new = self.threads.is_empty();
        let thread = match record.thread {
            thread if is_new || self.knows_thread(thread) => 3,
            thread => u32::from(thread < 1 << 16),
        };
        let place = if is_new || self.is_near(record.address) { 2 } else { 0 };
        let is_fit = match record.body {
            Body::Access { size } => record.tag.is_unaligned() || record.address.is_multiple_of(u64::from(size.max(1))),
            Body::Add { name, .. } => name.iter().all(|byte| (b' '..=b'~').contains(byte)),
            Body::Remove => true,
        };
        1 + thread + place + u32::from(is_fit)
    }
}

fn push_bounded<T>(list: &mut Vec<T>, item: T, max: usize) {
    if list.len() >= max {
        list.remove(0);
    }
    list.push(item);
}

/// Everything but the thread.
fn has_plausible_fields(record: &Record<'_>, layout: Layout) -> bool {
    let has_address = record.address >= 0x1000 || (record.address == 0 && record.body == Body::Remove);
    let is_possible = layout.width == Width::Four || is_canonical(record.address);
    has_address
        && is_possible
        && match record.body {
            Body::Access { size } => is_usual_size(size),
            Body::Add { elemsize, elemcount, name } => {
                let has_name = !name.is_empty() && name.len() < NAME_BYTES_MAX;
                let Tag(tag) = record.tag;
                tag & Tag::FLAGS == 0 && elemsize < 1 << 28 && elemcount < 1 << 28 && has_name
            }
            Body::Remove => !record.tag.has_flags(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: u64, thread: u64) -> Record<'static> {
        Record { tag: Tag(0), address, thread, body: Body::Access { size: 8 } }
    }

    #[test]
    fn near_addresses_and_known_threads_score_highest() {
        let layout = Layout::default();
        let mut likeness = Likeness::default();
        assert_eq!(likeness.score(&read(0x5555_0000, 9), layout), LIKE_OTHERS);
        likeness.learn(&read(0x5555_0000, 1), layout);
        assert_eq!(likeness.score(&read(0x5555_8008, 1), layout), LIKE_OTHERS);
        assert_eq!(likeness.score(&read(0x5555_8008, 2), layout), LIKE_OTHERS - 2);
        assert_eq!(likeness.score(&read(0x7777_8008, 1), layout), LIKE_OTHERS - 2);
        assert_eq!(likeness.score(&read(0x8000_0000_0000, 1), layout), 0);
    }

    #[test]
    fn large_thread_ids_are_believed_when_they_were_seen_before() {
        let (layout, pthread) = (Layout::default(), 0x7f12_3456_7700);
        let mut likeness = Likeness::default();
        for _ in 0..LARGE_THREAD_MIN {
            assert!(!likeness.is_plausible(&read(0x5555_0000, pthread), layout));
            likeness.learn(&read(0x5555_0000, pthread), layout);
        }
        assert!(likeness.is_plausible(&read(0x5555_0000, pthread), layout));
    }
}

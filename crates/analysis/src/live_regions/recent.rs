//! Earlier look-ups, as a shadow of memory: one number for each granule of 16 bytes of the pages that were looked up.
//!
//! A granule's number identifies a region only together with the region's own bounds. Memory from `malloc` begins on
//! such a boundary, so that few granules are left out.

use std::hint::select_unpredictable;

use anytrace_core::hash;

use super::LiveRegion;
use super::granules::Granules;

/// log2 of a granule's bytes: what `malloc` aligns to.
const GRANULE_BITS: u32 = 4;

/// log2 of a page's bytes.
const PAGE_BITS: u32 = 14;

/// Granules of a page.
const GRANULES: usize = 1 << (PAGE_BITS - GRANULE_BITS);

/// log2 of the places for pages, at least and at most; their granules are 64 MiB at most.
const PAGES_BITS: (u32, u32) = (4, 14);

/// Threads whose latest answer is kept; others share a place.
const THREADS: usize = 64;

/// Answer of a look-up: no region.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Answer of a look-up: no region, but one was removed there.
pub(super) const REMOVED_SLOT: u32 = u32::MAX - 2;

/// A granule nobody looked up.
pub(super) const UNKNOWN: u32 = u32::MAX - 3;

/// Which page a place of the table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    page: u64,
    /// Pages of other generations are invalid; that of 0 is never current.
    generation: u32,
    /// The place of its granules; it keeps them when it is reused for another page.
    frame: u32,
}

/// A place that no page has used yet.
const FREE: Key = Key { page: 0, generation: 0, frame: u32::MAX };

/// The latest answer for a thread, valid as long as no region is added or removed.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    first: u64,
    last: u64,
    slot: u32,
    /// 0 is never current.
    version: u64,
}

/// Pages forgotten one by one; for a larger region everything is forgotten: a large region that is often added and
/// removed would otherwise cost its size each time.
const FORGOTTEN_PAGES_MAX: u64 = 512;

/// The answers.
#[derive(Debug)]
pub(super) struct Recent {
    keys: Vec<Key>,
    /// Those of the pages in use, side by side.
    granules: Granules,
    frames: u32,
    bits: u32,
    /// The key that places pages: a trace cannot choose pages that evict each other.
    secret: hash::Key,
    /// Pages that evicted another since the table grew.
    pushed_out: usize,
    generation: u32,
    version: u64,
    threads: [Latest; THREADS],
}

impl Default for Recent {
    fn default() -> Self {
        let mut recent = Self {
            keys: Vec::new(),
            granules: Granules::new(0),
            frames: 0,
            bits: PAGES_BITS.0,
            secret: hash::Key::new(),
            pushed_out: 0,
            generation: 1,
            version: 1,
            threads: [Latest::default(); THREADS],
        };
        recent.clear();
        recent
    }
}

impl Recent {
    /// The number of an address's granule, or [`UNKNOWN`]. It is the answer if it is not a slot; if it is one, the
    /// region's bounds must be checked too.
    #[inline]
    pub(super) fn number(&self, address: u64) -> u32 {
        self.granules.numbers().get(self.granule_of(address) as usize).unwrap_or(UNKNOWN)
    }

    /// Number of an address's granule among those kept; out of range where its page is not known.
    #[inline(always)]
    fn granule_of(&self, address: u64) -> u32 {
        let page = address >> PAGE_BITS;
        let granule = (address >> GRANULE_BITS) as usize % GRANULES;
        let key = self.keys.get(self.place(page)).copied().unwrap_or(FREE);
        let is_known = (key.page == page) & (key.generation == self.generation);
        // There are few enough for small numbers.
        select_unpredictable(is_known, key.frame.wrapping_mul(GRANULES as u32) | granule as u32, u32::MAX)
    }

    /// [`Self::number`] for many addresses. The places are found first, and then read in a loop so short that the
    /// processor waits for many of them at once.
    pub(super) fn numbers(&self, addresses: impl Iterator<Item = u64>, numbers: &mut Vec<u32>) {
        numbers.clear();
        numbers.extend(addresses.map(|address| self.granule_of(address)));
        let granules = self.granules.numbers();
        for number in numbers {
            *number = granules.get(*number as usize).unwrap_or(UNKNOWN);
        }
    }

    /// The latest answer for a thread.
    pub(super) fn latest(&self, thread: u32, address: u64) -> Option<u32> {
        let latest = self.threads.get(thread as usize % THREADS)?;
        let is_it = latest.version == self.version && latest.first <= address && address <= latest.last;
        is_it.then_some(latest.slot)
    }

    /// Keeps an answer that is valid for `first..=last`, which includes `address`; `region` is that of the slot.
    pub(super) fn put(&mut self, thread: u32, address: u64, range: (u64, u64), slot: u32, region: Option<&LiveRegion>) {
        let (first, last) = range;
        if let Some(latest) = self.threads.get_mut(thread as usize % THREADS) {
            *latest = Latest { first, last, slot, version: self.version };
        }
        let page = address >> PAGE_BITS;
        let frame = self.frame_for(page);
        let page_first = page << PAGE_BITS;
        let page_last = page_first | ((1 << PAGE_BITS) - 1);
        // Outside its bounds a region is not the answer, and the bounds are checked: a granule may be set where nothing
        // covers the region in it.
        let (first, last) = match region {
            Some(region) => (
                if region.start == first { first & !GRANULE_MASK } else { first },
                if region.last == Some(last) { last | GRANULE_MASK } else { last },
            ),
            None => (first, last),
        };
        let (from, to) = (first.max(page_first), last.min(page_last));
        let granule = |at: u64| ((at - page_first) >> GRANULE_BITS) as usize;
        // Only granules that are entirely in the range.
        let begin = granule(from) + usize::from(from & GRANULE_MASK != 0);
        let end = granule(to) + usize::from(to & GRANULE_MASK == GRANULE_MASK);
        let base = frame as usize * GRANULES;
        if begin < end {
            self.granules.set_range(base + begin..base + end, slot);
        }
    }

    /// Forgets the answers for `first..=last`.
    pub(super) fn forget(&mut self, first: u64, last: u64) {
        // Invalidates the latest answer of every thread at once.
        self.version += 1;
        let (from, to) = (first >> PAGE_BITS, last >> PAGE_BITS);
        if to - from >= FORGOTTEN_PAGES_MAX.min(self.keys.len() as u64) {
            return self.forget_all();
        }
        for page in from..=to {
            let key = self.keys.get(self.place(page)).copied().unwrap_or(FREE);
            if key.page != page || key.generation != self.generation {
                continue;
            }
            let page_first = page << PAGE_BITS;
            let within = |at: u64| ((at - page_first) >> GRANULE_BITS) as usize;
            let begin = if page == from { within(first) } else { 0 };
            let end = if page == to { within(last) + 1 } else { GRANULES };
            let base = key.frame as usize * GRANULES;
            self.granules.set_range(base + begin..base + end, UNKNOWN);
        }
    }

    fn forget_all(&mut self) {
        match self.generation.checked_add(1) {
            Some(next) => self.generation = next,
            None => self.clear(),
        }
    }

    fn clear(&mut self) {
        self.keys = vec![FREE; 1 << self.bits];
        self.granules = Granules::new(GRANULES << PAGES_BITS.1);
        self.frames = 0;
        self.generation = 1;
        self.pushed_out = 0;
    }

    /// The frame of a page, which is assigned to the page; the table grows where pages evict each other.
    fn frame_for(&mut self, page: u64) -> u32 {
        let (place, generation) = (self.place(page), self.generation);
        let Some(key) = self.keys.get_mut(place) else { return 0 };
        if key.page == page && key.generation == generation {
            return key.frame;
        }
        // Only a page that is still valid is evicted; a stale one costs nothing.
        self.pushed_out += usize::from(key.generation == generation);
        if key.frame == FREE.frame {
            key.frame = self.frames;
            self.frames += 1;
        }
        // The frame stays with the place, so that frames never move and never leak.
        *key = Key { page, generation, ..*key };
        let frame = key.frame;
        if self.pushed_out > self.keys.len() / 4 && self.bits < PAGES_BITS.1 {
            self.bits += 2;
            self.clear();
            return self.frame_for(page);
        }
        let first = frame as usize * GRANULES;
        self.granules.reach(first + GRANULES);
        self.granules.set_range(first..first + GRANULES, UNKNOWN);
        frame
    }

    #[inline]
    fn place(&self, page: u64) -> usize {
        self.secret.place(page, self.bits)
    }
}

/// Low bits of an address in a granule.
const GRANULE_MASK: u64 = (1 << GRANULE_BITS) - 1;

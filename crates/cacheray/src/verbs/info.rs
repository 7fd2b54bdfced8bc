//! `info`: counts everything in one pass.
//!
//! One table takes tag, size and place in the cache line of an access at once, so that the hot loop is
//! four loads, a few bit operations and one increment a record; all sums are made from it at the end.

use std::collections::HashMap;

use anytrace_core::{Error, Limits, Place, Sink, Tally};

use crate::verbs::regions::regions_max;
use crate::verbs::types::TypeTable;
use crate::wire::parse::{NOT_ACCESS, access, with_layout};
use crate::wire::reader::Visit;
use crate::wire::record::{Body, Kind, Layout, Record, Tag, is_canonical, is_usual_size};

/// Bytes of a cache line, for line crossings.
const LINE_BYTES: usize = 64;

/// Place in the line (6 bits), size (8), write, atomic, unaligned (1 each, as a tag rotated by two has them).
const CELLS: usize = 1 << 17;

/// Accesses decoded side by side.
const LANES: usize = 4;

/// Everything `info` counts.
pub(crate) struct Counts {
    layout: Layout,
    cells: Box<[u64; CELLS]>,
    threads: Tally,
    /// How many thread ids were taken over from others, at most.
    thread_ids: usize,
    thread_ids_max: usize,
    rtta_tags: [u64; 256],
    addresses: Addresses,
    live: LiveCounts,
    types: TypeTable,
}

/// The counts, ready to be shown.
#[derive(Debug)]
pub(crate) struct Sums {
    /// Records by tag, flags included.
    pub(crate) tags: [u64; 256],
    /// Accesses by size.
    pub(crate) sizes: [u64; 256],
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Accesses that cross a line of 64 bytes.
    pub(crate) straddles: u64,
    /// Accesses of a usual size that are misaligned and not flagged so.
    pub(crate) misaligned_without_flag: u64,
    /// Accesses of a usual size that are aligned and flagged unaligned all the same.
    pub(crate) aligned_with_flag: u64,
    /// Lowest and highest address accessed.
    pub(crate) addresses: Option<(u64, u64)>,
    /// Accesses to addresses no machine of today has.
    pub(crate) not_canonical: u64,
    /// Records by thread, by number.
    pub(crate) threads: Vec<(String, u64)>,
    pub(crate) live: LiveCounts,
    pub(crate) types: TypeTable,
}

impl Counts {
    pub(crate) fn new(layout: Layout, limits: Limits) -> Self {
        let cells = vec![0; CELLS].into_boxed_slice();
        Self {
            layout,
            cells: cells.try_into().expect("the vector has just this length"),
            threads: Tally::new(limits.distinct_max),
            thread_ids: 0,
            thread_ids_max: limits.distinct_max,
            rtta_tags: [0; 256],
            addresses: Addresses::NONE,
            live: LiveCounts::new(regions_max(limits)),
            types: TypeTable::new(limits),
        }
    }

    /// True when adding `other`'s counts leaves every thread counted separately, whatever the order.
    pub(crate) fn can_absorb(&mut self, other: &Self) -> bool {
        let (ids, others) = other.threads.clone().finish();
        self.thread_ids += ids.len();
        others == 0 && self.thread_ids <= self.thread_ids_max
    }

    /// Adds the accesses and threads that another counted.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (ours, theirs) in self.cells.iter_mut().zip(other.cells.iter()) {
            *ours += theirs;
        }
        let (ids, _) = other.threads.finish();
        ids.into_iter().for_each(|(thread, count)| self.threads.add(thread, count));
        if other.addresses.min <= other.addresses.max {
            self.addresses.widen(other.addresses.min);
            self.addresses.widen(other.addresses.max);
        }
        self.addresses.not_canonical += other.addresses.not_canonical;
    }

    /// Sums the table up.
    pub(crate) fn finish(self) -> Sums {
        let Addresses { min, max, not_canonical, .. } = self.addresses;
        let mut sums = Sums {
            tags: self.rtta_tags,
            sizes: [0; 256],
            bytes_read: 0,
            bytes_written: 0,
            straddles: 0,
            misaligned_without_flag: 0,
            aligned_with_flag: 0,
            addresses: (min <= max).then_some((min, max)),
            not_canonical,
            threads: self.threads.into_rows(|thread| thread.to_string()),
            live: self.live,
            types: self.types,
        };
        for (cell, count) in self.cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            sums.add_cell(cell, *count);
        }
        sums
    }

    /// Counts the accesses a window starts with; returns their bytes.
    pub(crate) fn count_accesses(&mut self, window: &[u8]) -> usize {
        with_layout!(self.layout, count_run, self, window)
    }

    /// Counts a record for its thread.
    pub(crate) fn count_thread(&mut self, thread: u64) {
        self.threads.add(thread, 1);
    }

    /// Counts an RTTA record, except for its thread.
    pub(crate) fn count_rtta(&mut self, record: &Record<'_>) {
        self.rtta_tags[usize::from(record.tag.0)] += 1;
        match record.body {
            Body::Add { elemsize, elemcount, name } => {
                self.live.add(record.address);
                self.types.add(name, elemsize, elemcount);
            }
            _ => self.live.remove(record.address),
        }
    }

    fn count_run<const STRIDE: usize, const BIG: bool>(&mut self, window: &[u8]) -> usize {
        let (records, _) = window.as_chunks::<STRIDE>();
        let mut hot = Hot { cells: &mut self.cells, addresses: self.addresses };
        let mut threads = Threads { tally: &mut self.threads, last: 0, run: 0 };
        let mut counted = 0;
        if let Some(first) = records.first().filter(|record| record[0] & NOT_ACCESS == 0) {
            hot.addresses.widen(access::<STRIDE, BIG>(first).1);
        }
        for block in records.as_chunks::<LANES>().0 {
            if block.iter().fold(0, |tags, record| tags | record[0]) & NOT_ACCESS != 0 {
                break;
            }
            let accesses = std::array::from_fn(|lane| access::<STRIDE, BIG>(&block[lane]));
            hot.count(accesses.map(|(tag, address, size, _)| (tag, address, size)));
            threads.add_block(accesses.map(|(_, _, _, thread)| thread));
            counted += LANES;
        }
        for record in records.iter().skip(counted).take_while(|record| record[0] & NOT_ACCESS == 0) {
            let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
            hot.count([(tag, address, size)]);
            threads.add(thread);
            counted += 1;
        }
        threads.finish();
        self.addresses = hot.addresses;
        counted * STRIDE
    }
}

impl Sums {
    /// Records by kind, in the order of the tags.
    pub(crate) fn kinds(&self) -> [(&'static str, u64); 4] {
        let with_flags = |kind: Kind| (0..4).map(|flags| self.tags[usize::from(kind.base() | flags << 6)]).sum();
        Kind::ALL.map(|kind| (kind.name(), with_flags(kind)))
    }

    /// Accesses of sizes no compiler emits.
    pub(crate) fn odd_sizes(&self) -> u64 {
        (0..=u8::MAX).zip(self.sizes).filter(|(size, _)| !is_usual_size(*size)).map(|(_, count)| count).sum()
    }

    /// Flags on RTTA tags.
    pub(crate) fn flagged_rtta(&self) -> u64 {
        let is_flagged = |tag: u8| Tag(tag).has_flags() && tag & NOT_ACCESS != 0;
        (0..=u8::MAX).zip(self.tags).filter(|(tag, _)| is_flagged(*tag)).map(|(_, count)| count).sum()
    }

    fn add_cell(&mut self, cell: usize, count: u64) {
        let at = cell % LINE_BYTES;
        let size = cell / LINE_BYTES % 256;
        let tag = u8::try_from(cell / LINE_BYTES / 256).unwrap_or(0).rotate_right(2);
        self.tags[usize::from(tag)] += count;
        self.sizes[size] += count;
        let bytes = if tag & 1 == 0 { &mut self.bytes_read } else { &mut self.bytes_written };
        *bytes = bytes.saturating_add(count.saturating_mul(size as u64));
        self.straddles += if at + size > LINE_BYTES { count } else { 0 };
        if u8::try_from(size).is_ok_and(is_usual_size) {
            match (at.is_multiple_of(size), Tag(tag).is_unaligned()) {
                (true, true) => self.aligned_with_flag += count,
                (false, false) => self.misaligned_without_flag += count,
                _ => {}
            }
        }
    }
}

/// Lowest and highest address accessed, and how many are impossible.
///
/// The hot loop only tests whether addresses are in the part of that range that is known to be ordinary.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    min: u64,
    max: u64,
    not_canonical: u64,
    /// The length of the known part, from here. Empty once there are other than user addresses.
    known: u64,
    known_bytes: u64,
}

impl Addresses {
    const NONE: Self = Self { min: u64::MAX, max: 0, not_canonical: 0, known: 0, known_bytes: 0 };

    #[inline(always)]
    fn see<const N: usize>(&mut self, addresses: [u64; N]) {
        let furthest = addresses.into_iter().map(|address| address.wrapping_sub(self.known)).fold(0, u64::max);
        if furthest >= self.known_bytes {
            self.see_others(&addresses);
        }
    }

    #[cold]
    fn see_others(&mut self, addresses: &[u64]) {
        for &address in addresses {
            self.not_canonical += u64::from(!is_canonical(address));
            self.widen(address);
        }
    }

    /// Takes an address into the range without counting it.
    fn widen(&mut self, address: u64) {
        self.min = self.min.min(address);
        self.max = self.max.max(address);
        let is_ordinary = self.max >> 47 == 0;
        (self.known, self.known_bytes) = if is_ordinary { (self.min, self.max - self.min + 1) } else { (0, 0) };
    }
}

/// The state of the hot loop.
struct Hot<'a> {
    cells: &'a mut [u64; CELLS],
    addresses: Addresses,
}

impl Hot<'_> {
    #[inline(always)]
    fn count<const N: usize>(&mut self, accesses: [(u8, u64, u8); N]) {
        for (tag, address, size) in accesses {
            let place = address as usize % LINE_BYTES;
            // Write, atomic and unaligned are the three low bits of a tag rotated by two.
            let cell = usize::from(tag.rotate_left(2)) << 14 | usize::from(size) << 6 | place;
            self.cells[cell % CELLS] += 1;
        }
        self.addresses.see(accesses.map(|(_, address, _)| address));
    }
}

/// Counts thread ids by runs of equal ones.
struct Threads<'a> {
    tally: &'a mut Tally,
    last: u64,
    run: u64,
}

impl Threads<'_> {
    #[inline(always)]
    fn add_block(&mut self, ids: [u64; LANES]) {
        if ids.iter().fold(0, |all, id| all | (id ^ self.last)) == 0 {
            self.run += LANES as u64;
        } else {
            ids.into_iter().for_each(|id| self.add(id));
        }
    }

    #[inline(always)]
    fn add(&mut self, id: u64) {
        if id == self.last {
            self.run += 1;
        } else {
            self.tally.add(self.last, self.run);
            (self.last, self.run) = (id, 1);
        }
    }

    fn finish(self) {
        self.tally.add(self.last, self.run);
    }
}

impl Visit for Counts {
    fn run(&mut self, window: &[u8], _at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        Ok(self.count_accesses(window))
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.count_thread(record.thread);
        self.count_rtta(record);
        Ok(())
    }
}

fn count_run<const STRIDE: usize, const BIG: bool>(counts: &mut Counts, window: &[u8]) -> usize {
    counts.count_run::<STRIDE, BIG>(window)
}

/// How many live regions start at each address, and how many do not fit.
#[derive(Default)]
pub(crate) struct LiveCounts {
    starts: HashMap<u64, u32>,
    starts_max: usize,
    /// Live regions now.
    pub(crate) live: u64,
    /// Adds at an address where a live region starts.
    pub(crate) added_at_live: u64,
    /// Removes of address 0.
    pub(crate) null_removes: u64,
    /// Other removes where no live region starts.
    pub(crate) unmatched_removes: u64,
    /// Adds that were not followed because there were too many live regions.
    pub(crate) unfollowed_adds: u64,
    /// Removes whose add may be one of these.
    pub(crate) unfollowed_removes: u64,
}

impl std::fmt::Debug for LiveCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = (self.live, self.added_at_live, self.null_removes, self.unmatched_removes, self.unfollowed_adds);
        f.debug_tuple("LiveCounts").field(&counts).finish()
    }
}

impl LiveCounts {
    fn new(starts_max: usize) -> Self {
        Self { starts_max, ..Self::default() }
    }

    fn add(&mut self, address: u64) {
        let has_room = self.starts.len() < self.starts_max;
        match self.starts.get_mut(&address) {
            Some(count) => {
                *count = count.saturating_add(1);
                self.added_at_live += 1;
            }
            None if has_room => {
                self.starts.insert(address, 1);
            }
            None => {
                self.unfollowed_adds += 1;
                return;
            }
        }
        self.live += 1;
    }

    fn remove(&mut self, address: u64) {
        match self.starts.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => {
                self.starts.remove(&address);
            }
            None if address == 0 => {
                self.null_removes += 1;
                return;
            }
            None if self.unfollowed_adds > 0 => {
                self.unfollowed_removes += 1;
                return;
            }
            None => {
                self.unmatched_removes += 1;
                return;
            }
        }
        self.live -= 1;
    }
}

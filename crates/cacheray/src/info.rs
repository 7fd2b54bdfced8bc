//! `info`: counts everything in one pass.
//!
//! One table takes tag, size, alignment and line crossing of an access at once, so that the hot loop is
//! two loads, a few bit operations and one increment a record; all sums are made from it at the end.

use std::collections::HashMap;

use anytrace_core::{Error, Limits, Sink, Tally};

use crate::parse::{access, with_layout};
use crate::reader::{Place, Visit};
use crate::record::{Body, Kind, Layout, Record, Tag, is_canonical, is_usual_size};
use crate::types::TypeTable;

/// Size (8 bits), write, atomic, unaligned (1 bit each), misaligned, crosses a line.
const CELLS: usize = 1 << 13;
const WRITE: usize = 1 << 8;
const ATOMIC: usize = 1 << 9;
const UNALIGNED: usize = 1 << 10;
const MISALIGNED: usize = 1 << 11;
const STRADDLES: usize = 1 << 12;

/// Accesses are counted in turns, so that one counter is not touched by neighbours.
const LANES: usize = 4;

/// Bytes of a cache line, for line crossings.
const LINE_BYTES: u64 = 64;

/// Everything `info` counts.
pub(crate) struct Counts {
    layout: Layout,
    cells: Box<[[u64; CELLS]; LANES]>,
    threads: Tally,
    rtta_tags: [u64; 256],
    addresses: Span,
    not_canonical: u64,
    live: LiveCounts,
    pub(crate) types: TypeTable,
}

/// Lowest and highest address accessed.
#[derive(Debug, Clone, Copy)]
struct Span {
    min: u64,
    max: u64,
}

impl Counts {
    pub(crate) fn new(layout: Layout, limits: Limits) -> Self {
        Self {
            layout,
            cells: vec![[0; CELLS]; LANES]
                .into_boxed_slice()
                .try_into()
                .unwrap_or_else(|_| Box::new([[0; CELLS]; LANES])),
            threads: Tally::new(limits.distinct_max),
            rtta_tags: [0; 256],
            addresses: Span { min: u64::MAX, max: 0 },
            not_canonical: 0,
            live: LiveCounts { starts: HashMap::new(), ..LiveCounts::new(limits.distinct_max) },
            types: TypeTable::new(limits),
        }
    }

    /// Counts of accesses whose cell satisfies `is_wanted`.
    fn sum(&self, is_wanted: impl Fn(usize) -> bool) -> u64 {
        self.weighted(|cell| u64::from(is_wanted(cell)))
    }

    fn weighted(&self, weight: impl Fn(usize) -> u64) -> u64 {
        (0..CELLS).map(|cell| self.cell(cell) * weight(cell)).sum()
    }

    fn cell(&self, cell: usize) -> u64 {
        self.cells.iter().filter_map(|lane| lane.get(cell)).sum()
    }

    /// Records by kind, in the order of the tags.
    pub(crate) fn kinds(&self) -> [(Kind, u64); 4] {
        let rtta = |kind: Kind| (0..4).map(|flags| self.rtta_tags[usize::from(kind.base() | flags << 6)]).sum();
        [
            (Kind::Read, self.sum(|cell| cell & WRITE == 0)),
            (Kind::Write, self.sum(|cell| cell & WRITE != 0)),
            (Kind::RttaAdd, rtta(Kind::RttaAdd)),
            (Kind::RttaRemove, rtta(Kind::RttaRemove)),
        ]
    }

    /// Records by tag, flags included; zeros left out.
    pub(crate) fn tags(&self) -> Vec<(u8, u64)> {
        let mut counts = self.rtta_tags;
        for kind in [Kind::Read, Kind::Write] {
            for flags in 0..4_u8 {
                let tag = Tag(kind.base() | flags << 6);
                let bits = usize::from(tag.0 & 1) << 8 | usize::from(flags) << 9;
                counts[usize::from(tag.0)] = self.sum(|cell| cell & (WRITE | ATOMIC | UNALIGNED) == bits);
            }
        }
        (0..=u8::MAX).zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// Accesses by size; zeros left out.
    pub(crate) fn sizes(&self) -> Vec<(u8, u64)> {
        let count = |size: u8| self.sum(|cell| cell & 0xff == usize::from(size));
        (0..=u8::MAX).map(|size| (size, count(size))).filter(|(_, count)| *count > 0).collect()
    }

    /// Bytes read and bytes written.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let sum = |bit: usize| self.weighted(|cell| if cell & WRITE == bit { (cell & 0xff) as u64 } else { 0 });
        (sum(0), sum(WRITE))
    }

    /// Accesses that cross a line of 64 bytes.
    pub(crate) fn straddles(&self) -> u64 {
        self.sum(|cell| cell & STRADDLES != 0)
    }

    /// Accesses of a usual size that are misaligned and not flagged so.
    pub(crate) fn misaligned_without_flag(&self) -> u64 {
        self.sum(|cell| has_alignment(cell) && cell & (MISALIGNED | UNALIGNED) == MISALIGNED)
    }

    /// Accesses of a usual size that are aligned and flagged unaligned all the same.
    pub(crate) fn aligned_with_flag(&self) -> u64 {
        self.sum(|cell| has_alignment(cell) && cell & (MISALIGNED | UNALIGNED) == UNALIGNED)
    }

    /// Accesses of sizes no compiler emits.
    pub(crate) fn odd_sizes(&self) -> u64 {
        self.sum(|cell| !has_alignment(cell))
    }

    /// Accesses to addresses no machine of today has.
    pub(crate) fn not_canonical(&self) -> u64 {
        self.not_canonical
    }

    /// Lowest and highest address accessed.
    pub(crate) fn addresses(&self) -> Option<(u64, u64)> {
        let has_any = self.addresses.min <= self.addresses.max;
        has_any.then_some((self.addresses.min, self.addresses.max))
    }

    /// Flag bits on RTTA tags.
    pub(crate) fn flagged_rtta(&self) -> u64 {
        (0..=u8::MAX).zip(self.rtta_tags).filter(|(tag, _)| Tag(*tag).has_flags()).map(|(_, count)| count).sum()
    }

    pub(crate) fn live(&self) -> &LiveCounts {
        &self.live
    }

    /// Rows of threads, by number.
    pub(crate) fn into_threads(self) -> Vec<(String, u64)> {
        self.threads.into_rows(|thread| thread.to_string())
    }

    fn count_run<const STRIDE: usize, const BIG: bool>(&mut self, run: &[u8]) {
        let mut hot = Hot { cells: &mut self.cells, span: self.addresses, not_canonical: 0 };
        let mut threads = Threads { tally: &mut self.threads, last: 0, run: 0 };
        let (blocks, rest) = run.as_chunks::<STRIDE>().0.as_chunks::<LANES>();
        for block in blocks {
            let ids = hot.count_block::<STRIDE, BIG>(block);
            threads.add_block(ids);
        }
        for record in rest {
            let (tag, address, size, thread) = access::<STRIDE, BIG>(record);
            hot.count::<STRIDE>(0, tag, address, size);
            threads.add(thread);
        }
        threads.finish();
        self.addresses = hot.span;
        self.not_canonical += hot.not_canonical;
    }
}

fn has_alignment(cell: usize) -> bool {
    u8::try_from(cell & 0xff).is_ok_and(is_usual_size)
}

/// What the hot loop keeps at hand.
struct Hot<'a> {
    cells: &'a mut [[u64; CELLS]; LANES],
    span: Span,
    not_canonical: u64,
}

impl Hot<'_> {
    #[inline(always)]
    fn count_block<const STRIDE: usize, const BIG: bool>(&mut self, block: &[[u8; STRIDE]; LANES]) -> [u64; LANES] {
        let mut ids = [0; LANES];
        for lane in 0..LANES {
            let (tag, address, size, thread) = access::<STRIDE, BIG>(&block[lane]);
            self.count::<STRIDE>(lane, tag, address, size);
            ids[lane] = thread;
        }
        ids
    }

    #[inline(always)]
    fn count<const STRIDE: usize>(&mut self, lane: usize, tag: u8, address: u64, size: u8) {
        let flags = usize::from(tag & 1) << 8 | usize::from(tag >> 6) << 9;
        let is_misaligned = (address & u64::from(size.wrapping_sub(1))) != 0;
        let crosses = (address & (LINE_BYTES - 1)) + u64::from(size) > LINE_BYTES;
        let cell = usize::from(size) | flags | usize::from(is_misaligned) << 11 | usize::from(crosses) << 12;
        // All parts together fill exactly thirteen bits.
        self.cells[lane][cell & (CELLS - 1)] += 1;
        self.span.min = self.span.min.min(address);
        self.span.max = self.span.max.max(address);
        if STRIDE == 18 {
            self.not_canonical += u64::from(!is_canonical(address));
        }
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
    fn accesses(&mut self, run: &[u8], _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        with_layout!(self.layout, count_run, self, run);
        Ok(())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.rtta_tags[usize::from(record.tag.0)] += 1;
        self.threads.add(record.thread, 1);
        match record.body {
            Body::Add { elemsize, elemcount, name } => {
                self.live.add(record.address);
                self.types.add(name, elemsize, elemcount);
            }
            _ => self.live.remove(record.address),
        }
        Ok(())
    }
}

fn count_run<const STRIDE: usize, const BIG: bool>(counts: &mut Counts, run: &[u8]) {
    counts.count_run::<STRIDE, BIG>(run);
}

/// How many live regions start at each address, and what does not fit.
#[derive(Debug, Default)]
pub(crate) struct LiveCounts {
    starts: HashMap<u64, u32>,
    starts_max: usize,
    /// Regions live now.
    pub(crate) live: u64,
    /// Adds at an address where a live region starts.
    pub(crate) added_at_live: u64,
    /// Removes of address 0.
    pub(crate) null_removes: u64,
    /// Other removes where no live region starts.
    pub(crate) unmatched_removes: u64,
    /// True once a region was not followed because there were too many.
    pub(crate) is_over: bool,
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
                self.is_over = true;
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
            None => {
                self.unmatched_removes += 1;
                return;
            }
        }
        self.live -= 1;
    }
}

//! Cache lines that threads take from each other: how often, which fields of which types, and whether they really share
//! data (true sharing) or only the line (false sharing).
//!
//! The model: each core, by default each thread, has one private write-back cache with write allocation and LRU; copies
//! follow the MESI protocol (Papamarcos & Patel 1984), accesses happen in the order of records. A miss is a coherence
//! miss where the core's copy was invalidated by another's write; it is true sharing where bytes of the access were
//! written by others since, else false sharing.
//!
//! Memory follows the distinct lines, some 110 bytes each; a line that two cores touch takes some 600.
//!
//! ```
//! use anytrace_analysis::sharing::{Sharing, SharingOptions};
//! use anytrace_core::access::{Access, AccessFlags, AccessKind, AccessSink};
//!
//! let mut sharing = Sharing::new(SharingOptions::default(), None);
//! let write = |seq, thread, address| {
//!     Access { address, seq, thread, bytes: 8, kind: AccessKind::Write, flags: AccessFlags::NONE }
//! };
//! sharing.thread(0, Some(0)).unwrap();
//! sharing.thread(1, Some(1)).unwrap();
//! sharing.accesses(&[write(0, 0, 0x1000), write(1, 1, 0x1008), write(2, 0, 0x1000)]).unwrap();
//! let found = sharing.finish();
//! assert_eq!((found.stats.coherence.invalidations, found.stats.coherence.false_sharing_misses), (2, 1));
//! ```

mod cache;
mod fields;
#[cfg(test)]
mod lifetime_tests;
mod lines;
mod pairs;
mod proposals;
mod results;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::HashMap;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::layout::Layouts;

use crate::mesi::CoherenceCounts;
use cache::Cache;
pub use fields::FieldName;
use fields::{Fields, Touch};
use lines::{Copy, CopyState, Entry, EntryKind, SharedLine, Solo, Uses};
pub use pairs::{ALL_CORES, Pair, Side};
use pairs::{Cost, Pairs};
pub use proposals::Proposal;
pub use results::{ContendedLine, LineCore, MesiStats, SharingResults};
pub use trial::{Tried, try_all};

/// Longest lines, in bytes.
pub const LINE_BYTES_MAX: u64 = 128;

/// Highest number of a core in a map.
pub const CORE_MAX: u32 = 65_535;

/// Most sets and ways of a cache.
pub const SETS_MAX: u64 = 1 << 20;

/// The model's machine.
#[derive(Debug, Clone)]
pub struct SharingOptions {
    /// Bytes of a line: a power of two up to [`LINE_BYTES_MAX`].
    pub line_bytes: u64,
    /// Bytes per core's cache.
    pub cache_bytes: u64,
    /// Lines per set.
    pub ways: u64,
    /// Which core a thread runs on.
    pub cores: Cores,
}

impl Default for SharingOptions {
    fn default() -> Self {
        Self { line_bytes: 64, cache_bytes: 4096, ways: 4, cores: Cores::PerThread }
    }
}

impl SharingOptions {
    /// Sets of each core's cache.
    pub fn sets(&self) -> u64 {
        (self.cache_bytes / self.line_bytes.max(1) / self.ways.max(1)).clamp(1, SETS_MAX)
    }
}

/// Which core a thread runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cores {
    /// Each on its own.
    PerThread,
    /// On this many cores in turn, in the order in which threads appear.
    Count(u32),
    /// By the thread's id, up to [`CORE_MAX`]; each thread that is not in the list has a core of its own.
    Map(Vec<(u64, u32)>),
}

/// Finds lines that cores take from each other.
pub struct Sharing<'a> {
    options: SharingOptions,
    sets: u64,
    ways: usize,
    /// Id and core of each thread, and whether it touched anything.
    threads: Vec<(Option<u64>, u32, bool)>,
    caches: Vec<Cache>,
    entries: Vec<Entry>,
    by_number: HashMap<u64, u32>,
    latest: Option<(u64, u32)>,
    fields: Fields<'a>,
    pairs: Pairs,
    stats: MesiStats,
    /// Coherence misses in whose copy's lifetime an access touched bytes that others had written.
    true_misses: u64,
    zero_size: u64,
}

/// A touch of one line by an access.
struct LineTouch<'a> {
    access: &'a Access,
    core: u32,
    number: u64,
    /// The bytes of the line it has, a bit each.
    mask: u128,
    is_straddling: bool,
}

impl<'a> Sharing<'a> {
    /// Where `layouts` has a type, its fields have names, and a region recorded as one element of a multiple of the
    /// type's size is an array. A line size that is not a power of two is rounded up to one.
    pub fn new(options: SharingOptions, layouts: Option<&'a mut dyn Layouts>) -> Self {
        let line_bytes = options.line_bytes.clamp(1, LINE_BYTES_MAX).next_power_of_two();
        let options = SharingOptions { line_bytes, ..options };
        Self {
            sets: options.sets(),
            ways: usize::try_from(options.ways.clamp(1, SETS_MAX)).unwrap_or(1),
            options,
            threads: Vec::new(),
            caches: Vec::new(),
            entries: Vec::new(),
            by_number: HashMap::new(),
            latest: None,
            fields: Fields::new(layouts),
            pairs: Pairs::default(),
            stats: MesiStats::default(),
            true_misses: 0,
            zero_size: 0,
        }
    }

    /// Begins for counts only: pairs have no names.
    pub(crate) fn counting(options: SharingOptions) -> Self {
        Self { fields: Fields::nameless(), ..Self::new(options, None) }
    }

    /// Misses of all cores.
    pub(crate) fn misses(&self) -> u64 {
        self.stats.read_misses + self.stats.write_misses
    }

    fn core_of(&self, number: ThreadNumber, id: Option<u64>) -> u32 {
        match &self.options.cores {
            Cores::PerThread => number,
            Cores::Count(cores) => number % (*cores).max(1),
            Cores::Map(map) => {
                let listed = map.iter().find(|(thread, _)| Some(*thread) == id).map(|(_, core)| (*core).min(CORE_MAX));
                // Past all cores of the list.
                let free = map.iter().map(|(_, core)| *core).max().unwrap_or(0).min(CORE_MAX) + 1;
                listed.unwrap_or(free.saturating_add(number))
            }
        }
    }

    fn take(&mut self, access: &Access) -> Result<(), Error> {
        let Some((_, core, is_active)) = self.threads.get_mut(access.thread as usize) else { return Ok(()) };
        let core = *core;
        *is_active = true;
        if access.bytes == 0 {
            self.zero_size += 1;
            return Ok(());
        }
        let line_bytes = self.options.line_bytes;
        let shift = line_bytes.trailing_zeros();
        let mut offset = access.address & (line_bytes - 1);
        let mut left = u64::from(access.bytes);
        let is_straddling = offset + left > line_bytes;
        let mut number = access.address >> shift;
        while left > 0 {
            let bytes = left.min(line_bytes - offset);
            let mask = (u128::MAX >> (128 - bytes)) << offset;
            self.touch(&LineTouch { access, core, number, mask, is_straddling })?;
            left -= bytes;
            offset = 0;
            // Lines are numbered around the end of the address space.
            number = number.wrapping_add(1) & (u64::MAX >> shift);
        }
        Ok(())
    }

    /// The entry of a line; a new one has a copy of this core that was never filled.
    fn entry(&mut self, number: u64, touch: Touch) -> Result<(u32, bool), Error> {
        if let Some((latest, at)) = self.latest
            && latest == number
        {
            return Ok((at, false));
        }
        let next = u32::try_from(self.entries.len()).map_err(|_| Error::limit("more than 2^32 distinct lines"))?;
        let at = *self.by_number.entry(number).or_insert(next);
        if at == next {
            let solo = Solo { state: CopyState::Invalid, uses: Uses::default(), last: touch };
            self.entries.push(Entry { number, kind: EntryKind::Solo(solo) });
        }
        self.latest = Some((number, at));
        Ok((at, at == next))
    }

    fn touch(&mut self, touch: &LineTouch<'_>) -> Result<(), Error> {
        // Another core may take the line next, when the region that is there now may have been removed.
        let this = self.fields.touch(touch.access, touch.core, touch.is_straddling);
        let (at, is_new) = self.entry(touch.number, this)?;
        let Some(entry) = self.entries.get_mut(at as usize) else { return Ok(()) };
        if let EntryKind::Solo(copy) = &mut entry.kind {
            if copy.last.core == touch.core {
                copy.last = this;
                let is_hit = copy.state != CopyState::Invalid;
                let is_write = touch.access.is_write();
                copy.uses.count(is_write, touch.mask);
                copy.state = match (is_write, is_hit) {
                    (true, _) => CopyState::Modified,
                    (false, false) => CopyState::Exclusive,
                    (false, true) => copy.state,
                };
                self.count_access(is_write, is_hit);
                if !is_hit && is_new {
                    self.stats.coherence.cold_misses += 1;
                } else if !is_hit {
                    self.stats.coherence.replacement_misses += 1;
                }
                self.use_cache(touch.core, touch.number, at, is_hit);
                return Ok(());
            }
            entry.kind = EntryKind::Shared(Box::new(SharedLine::new(copy)));
        }
        self.touch_shared(touch, this, at);
        Ok(())
    }

    fn count_access(&mut self, is_write: bool, is_hit: bool) {
        let count = match (is_write, is_hit) {
            (false, true) => &mut self.stats.read_hits,
            (false, false) => &mut self.stats.read_misses,
            (true, true) => &mut self.stats.write_hits,
            (true, false) => &mut self.stats.write_misses,
        };
        *count += 1;
    }

    /// Touches the line in the core's cache, or loads it.
    fn use_cache(&mut self, core: u32, number: u64, at: u32, is_hit: bool) {
        let Some(cache) = self.caches.get_mut(core as usize) else { return };
        if is_hit {
            return cache.touch(number, at, self.sets);
        }
        let Some(gone) = cache.insert(number, at, self.sets, self.ways) else { return };
        self.stats.evictions += 1;
        let Some(entry) = self.entries.get_mut(gone as usize) else { return };
        let (state, open) = match &mut entry.kind {
            EntryKind::Solo(copy) => (std::mem::replace(&mut copy.state, CopyState::Invalid), None),
            EntryKind::Shared(line) => line.release(core),
        };
        if let Some(pair) = open {
            self.pairs.settle(pair, entry.number.wrapping_mul(self.options.line_bytes));
        }
        self.stats.coherence.writebacks += u64::from(state == CopyState::Modified);
    }

    fn touch_shared(&mut self, touch: &LineTouch<'_>, this: Touch, at: u32) {
        let line_address = touch.number.wrapping_mul(self.options.line_bytes);
        let is_write = touch.access.is_write();
        let Some(Entry { kind: EntryKind::Shared(line), .. }) = self.entries.get_mut(at as usize) else { return };
        let (place, is_new) = line.place(&this);
        line.atomics += u64::from(this.is_atomic());
        line.straddles += u64::from(touch.is_straddling);
        let Some(copy) = line.copy(place) else { return };
        copy.uses.count(is_write, touch.mask);
        copy.last = this;
        let before = copy.state;
        let is_hit = before != CopyState::Invalid;
        let is_resolved = is_hit && copy.resolves(touch.mask);
        if is_resolved || !is_hit {
            let mut miss = Miss {
                counts: &mut self.stats.coherence,
                true_misses: &mut self.true_misses,
                pairs: &mut self.pairs,
                fields: &mut self.fields,
                line_address,
            };
            miss.classify(line, place, &this, touch.mask, is_new);
        }
        let state = if is_write {
            self.stats.coherence.upgrades += u64::from(before == CopyState::Shared);
            invalidate_others(line, place, &this, &mut self.stats.coherence, |other| {
                if let Some(cache) = self.caches.get_mut(other.core as usize) {
                    cache.drop_line(touch.number, at, self.sets);
                }
                if let Some(pair) = other.open_pair() {
                    self.pairs.settle(pair, line_address);
                }
                self.pairs.count(&mut self.fields, [&this, &other.last], Cost::Invalidation, line_address);
            });
            line.write(touch.mask, this);
            CopyState::Modified
        } else if is_hit {
            before
        } else {
            share_with_others(line, place, &mut self.stats.coherence)
        };
        if let Some(copy) = line.copy(place) {
            copy.state = state;
        }
        if !is_hit {
            line.hold(place);
        }
        self.count_access(is_write, is_hit);
        self.use_cache(touch.core, touch.number, at, is_hit);
    }

    /// Ends the lifetimes of all copies: what no access made true sharing is false sharing.
    fn settle_all(&mut self) {
        for entry in &self.entries {
            let EntryKind::Shared(line) = &entry.kind else { continue };
            for pair in line.copies.iter().filter_map(Copy::open_pair) {
                self.pairs.settle(pair, entry.number.wrapping_mul(self.options.line_bytes));
            }
        }
    }

    /// The result.
    pub fn finish(mut self) -> SharingResults {
        self.settle_all();
        let shared = self.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Shared(_))).count() as u64;
        let lines = self.entries.len() as u64;
        let line_bytes = self.options.line_bytes;
        let contended = self.entries.into_iter().filter_map(|entry| match entry.kind {
            EntryKind::Shared(line) if line.invalidations > 0 => Some(contended(entry.number, *line, line_bytes)),
            _ => None,
        });
        let mut contended: Vec<_> = contended.collect();
        let cost = |line: &ContendedLine| (line.misses(), line.invalidations);
        contended.sort_by_key(|line| (std::cmp::Reverse(cost(line)), line.line));
        let (mut pairs, other_pairs) = self.pairs.finish(&mut self.fields);
        let proposals = proposals::proposals(&mut pairs, self.stats.coherence.coherence_misses, line_bytes);
        SharingResults {
            line_bytes,
            cache_bytes: self.options.cache_bytes,
            ways: self.options.ways,
            threads: self
                .threads
                .into_iter()
                .filter(|(.., is_active)| *is_active)
                .map(|(id, core, _)| (id, core))
                .collect(),
            stats: self.stats,
            true_misses: self.true_misses,
            lines,
            lines_shared: shared,
            contended,
            pairs,
            proposals,
            other_pairs,
            zero_size: self.zero_size,
        }
    }
}

/// A miss of a line that several cores touch, or the access that makes an earlier one true sharing; and where it is
/// counted.
struct Miss<'a, 'f> {
    counts: &'a mut CoherenceCounts,
    true_misses: &'a mut u64,
    pairs: &'a mut Pairs,
    fields: &'a mut Fields<'f>,
    line_address: u64,
}

impl Miss<'_, '_> {
    fn classify(&mut self, line: &mut SharedLine, place: u32, this: &Touch, mask: u128, is_new: bool) {
        let Some(loss) = line.take_loss(place) else {
            let count = if is_new { &mut self.counts.cold_misses } else { &mut self.counts.replacement_misses };
            *count += 1;
            return;
        };
        let by = loss.by();
        if by.is_some() {
            self.counts.coherence_misses += 1;
            line.coherence_misses += 1;
        }
        let written = line.written_since(&loss, this.core, mask);
        match (written, by) {
            (Some(writer), _) => {
                *self.true_misses += 1;
                line.true_misses += 1;
                if by.is_some() {
                    self.counts.true_sharing_misses += 1;
                    line.true_at_once += 1;
                }
                self.pairs.count(self.fields, [this, &writer], Cost::TrueMiss, self.line_address);
            }
            (None, Some(by)) => {
                // Decided by the first access so far; the entire lifetime decides about the line and the pair.
                self.counts.false_sharing_misses += 1;
                let pair = self.pairs.open(self.fields, [this, &by]);
                line.open(place, &loss, pair);
            }
            (None, None) => {}
        }
    }
}

/// Takes all other copies for a write.
fn invalidate_others(
    line: &mut SharedLine,
    place: u32,
    by: &Touch,
    counts: &mut CoherenceCounts,
    mut taken: impl FnMut(&Copy),
) {
    let mut keeps = false;
    let mut holders = std::mem::take(&mut line.holders);
    for holder in holders.drain(..) {
        if holder == place {
            keeps = true;
            continue;
        }
        let Some(copy) = line.copy(holder) else { continue };
        taken(copy);
        if copy.state == CopyState::Modified {
            counts.interventions += 1;
            counts.writebacks += 1;
            line.handovers += 1;
        }
        line.lose(holder, by);
        counts.invalidations += 1;
        line.invalidations += 1;
    }
    // The same memory again: lines go back and forth all the time.
    line.holders = holders;
    if keeps {
        line.hold(place);
    }
}

/// The state of a copy that is read, and the effect of the read on the other copies.
fn share_with_others(line: &mut SharedLine, place: u32, counts: &mut CoherenceCounts) -> CopyState {
    let mut state = CopyState::Exclusive;
    // At most one copy is modified or exclusive, and then there is no other.
    let alone = if line.holders.len() == 1 { line.holders.first().copied() } else { None };
    if line.holders.iter().any(|holder| *holder != place) {
        state = CopyState::Shared;
    }
    if let Some(copy) = alone.and_then(|holder| line.copy(holder)) {
        let before = std::mem::replace(&mut copy.state, CopyState::Shared);
        if before == CopyState::Modified {
            counts.interventions += 1;
            counts.writebacks += 1;
            line.handovers += 1;
        }
    }
    state
}

fn contended(number: u64, line: SharedLine, line_bytes: u64) -> ContendedLine {
    let mut cores: Vec<_> = line
        .copies
        .into_iter()
        .map(|copy| LineCore {
            core: copy.core,
            reads: copy.uses.reads,
            writes: copy.uses.writes,
            read_bytes: copy.uses.read_bytes.mask(),
            written_bytes: copy.uses.written_bytes.mask(),
        })
        .collect();
    cores.sort_unstable_by_key(|core| core.core);
    ContendedLine {
        line: number.wrapping_mul(line_bytes),
        cores,
        false_misses: line.coherence_misses - line.true_misses,
        true_misses: line.true_misses,
        true_at_once: line.true_at_once,
        invalidations: line.invalidations,
        handovers: line.handovers,
        atomics: line.atomics,
        straddles: line.straddles,
    }
}

impl AccessSink for Sharing<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        let core = self.core_of(number, id);
        self.threads.push((id, core, false));
        if core as usize >= self.caches.len() {
            // Not more than the greatest core number of the options, and one a thread.
            self.caches.resize_with(core as usize + 1, Cache::default);
        }
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.fields.add_type(name);
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.fields.add(region)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.fields.remove(region);
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().try_for_each(|access| self.take(access))
    }
}

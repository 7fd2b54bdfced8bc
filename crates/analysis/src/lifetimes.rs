//! The lifetimes of typed memory and its proper use: lifetimes, leaks, regions never touched, accesses after the
//! remove, reads of memory that nothing has written.
//!
//! Time counts records. Reads before the first write are searched in regions that the trace records as one element, as
//! for `malloc`. Memory from `calloc` is written by it, but a single element of it looks as if it came from `malloc`. A
//! remove that is followed by an add of the same type is a `realloc`, which keeps what was written, by `calloc` too;
//! regions that were not watched count as written. Where the recorder's name of a place says more (module `origin`),
//! that decides: `(calloc)` is written, `(realloc)` keeps what the thread removed last, and memory allocated by code
//! whose writes are not recorded is unknown. Memory use follows live and removed regions and, for the bytes written,
//! the size of the regions, up to [`MASK_BYTES_MAX`]. Reads that only copy bytes do not count as reads (module
//! `copies`), and memory of code whose accesses are not recorded never counts as untouched.

mod copies;
mod masks;
mod origin;
mod places;
mod results;
mod running;
mod stacks;
mod unwritten;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::{Map, Set};
use anytrace_core::layout::Layouts;

use crate::elements::TypeTable;
use crate::live_regions::{LiveRegion, LiveRegions};
use crate::type_profile::region_bytes;
use copies::{Copies, Early};
pub use masks::{MASK_BYTES_MAX, REGION_BYTES_MAX};
use masks::{Masks, Written};
use origin::Origin;
use places::Graves;
pub use results::{AfterRemove, Amount, Leftover, Lifetimes, StrayKind, StrayRemove, TypeLife, UnwrittenRead};
use running::{Living, Running};
pub use stacks::{StackLife, by_stack, stack_name};

/// Most findings of a kind that are kept with their place; all are counted.
pub const FINDINGS_MAX: usize = 10_000;

/// The state of a live region besides its place.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    is_touched: bool,
    is_read: bool,
    /// By an access, or by the allocation.
    is_written: bool,
    is_foreign: bool,
    element_bytes: u64,
}

/// A region that was removed.
#[derive(Debug)]
struct Removed {
    seq: u64,
    type_number: TypeNumber,
    /// What of it was written.
    written: Written,
}

/// Most threads whose last added and last removed region are remembered.
const THREADS_MAX: usize = 4096;

/// The engine.
pub struct LifetimeWatch<'a> {
    layouts: &'a mut dyn Layouts,
    table: TypeTable,
    types: Vec<Running>,
    regions: LiveRegions,
    uses: Map<u64, Use>,
    masks: Masks,
    graves: Graves,
    /// The region that each thread removed last, until it adds one.
    latest: Map<ThreadNumber, Removed>,
    /// The region that each thread added last.
    newest: Map<ThreadNumber, u64>,
    /// By type number.
    origins: Vec<Origin>,
    /// Where variables and stacks begin, which have no lifetime to look at.
    statics: Set<u64>,
    live: Living,
    records: u64,
    after_remove: Vec<AfterRemove>,
    after_remove_count: u64,
    unwritten: Map<(TypeNumber, u64, u16), UnwrittenRead>,
    unwritten_count: u64,
    copied_count: u64,
    copies: Copies,
    unknown_count: u64,
    unwatched: u64,
    untouched: Vec<Leftover>,
    stray: Vec<StrayRemove>,
    stray_counts: std::collections::BTreeMap<StrayKind, u64>,
    added_again: u64,
}

impl<'a> LifetimeWatch<'a> {
    /// Begins.
    pub fn new(layouts: &'a mut dyn Layouts) -> Self {
        Self {
            layouts,
            table: TypeTable::default(),
            types: Vec::new(),
            regions: LiveRegions::new(),
            uses: Map::default(),
            masks: Masks::default(),
            graves: Graves::default(),
            latest: Map::default(),
            newest: Map::default(),
            origins: Vec::new(),
            statics: Set::default(),
            live: Living::default(),
            records: 0,
            after_remove: Vec::new(),
            after_remove_count: 0,
            unwritten: Map::default(),
            unwritten_count: 0,
            copied_count: 0,
            copies: Copies::default(),
            unknown_count: 0,
            unwatched: 0,
            untouched: Vec::new(),
            stray: Vec::new(),
            stray_counts: std::collections::BTreeMap::new(),
            added_again: 0,
        }
    }

    /// The result.
    pub fn finish(mut self) -> Lifetimes {
        self.end_all_runs();
        let mut leaked = Vec::new();
        for region in self.regions.live() {
            let left = leftover(&region);
            if leaked.len() < FINDINGS_MAX {
                leaked.push(left);
            }
            self.bury(&region);
            self.masks.take(region.id, left.bytes);
            if let Some(one) = self.types.get_mut(region.type_number as usize) {
                one.leaked += 1;
                one.leaked_bytes = one.leaked_bytes.saturating_add(left.bytes);
            }
        }
        let last = self.records.saturating_sub(1);
        self.live.series.put(last, self.live.bytes);
        let mut unwritten: Vec<_> = self.unwritten.into_values().collect();
        unwritten.sort_unstable_by_key(|one| (one.first.seq, one.type_number, one.offset_bytes, one.bytes));
        self.untouched.sort_unstable_by_key(|left| (left.added_at, left.start));
        let peak = self.live.peaks;
        Lifetimes {
            table: self.table,
            types: self.types.into_iter().map(|one| one.finish(last, peak)).collect(),
            records: self.records,
            live: self.live.series,
            live_bytes_peak: self.live.peak,
            peak_at: self.live.peak_at,
            after_remove: self.after_remove,
            after_remove_count: self.after_remove_count,
            unwritten,
            unwritten_count: self.unwritten_count,
            copied_count: self.copied_count,
            unknown_count: self.unknown_count,
            unwatched: self.unwatched,
            leaked,
            untouched: self.untouched,
            stray: self.stray,
            stray_counts: self.stray_counts.into_iter().collect(),
            added_again: self.added_again,
        }
    }

    /// Takes note of a region that ends: was it used?
    fn bury(&mut self, region: &LiveRegion) -> Use {
        let used = self.uses.remove(&region.id).unwrap_or_default();
        let bytes = region_bytes(region);
        if let Some(one) = self.types.get_mut(region.type_number as usize).filter(|_| !used.is_foreign && bytes > 0) {
            if !used.is_read {
                one.unread.count(bytes);
            }
            if !used.is_written {
                one.unwritten.count(bytes);
            }
        }
        if !used.is_touched && !used.is_foreign && region.last.is_some() {
            let left = leftover(region);
            if let Some(one) = self.types.get_mut(region.type_number as usize) {
                one.untouched += 1;
                one.untouched_bytes = one.untouched_bytes.saturating_add(left.bytes);
            }
            if self.untouched.len() < FINDINGS_MAX {
                self.untouched.push(left);
            }
        }
        used
    }

    fn access(&mut self, access: &Access) {
        if access.kind == AccessKind::Fetch {
            return;
        }
        // Before the access itself: what another thread copied must be settled before this one uses it.
        if let Some(run) = self.copies.turn_to(access.thread) {
            self.end_run(&run);
        }
        if let Some(run) = self.copies.access(access) {
            self.end_run(&run);
        }
        let Some(region) = self.regions.find(access.thread, access.address).copied() else {
            if self.regions.is_removed(access.address) {
                self.late(access);
            }
            return;
        };
        let Some(used) = self.uses.get_mut(&region.id) else { return };
        // An access of no bytes touches its region, too.
        used.is_touched = true;
        used.is_written |= access.is_write();
        used.is_read |= !access.is_write();
        let Use { element_bytes, is_foreign, .. } = *used;
        let offset = access.address.wrapping_sub(region.start);
        if access.is_write() {
            self.masks.write(region.id, offset, access.bytes);
        } else if self.masks.is_unwritten(region.id, offset, access.bytes) {
            if is_foreign {
                self.unknown_count += 1;
                return;
            }
            let early = Early {
                access: *access,
                type_number: region.type_number,
                offset_bytes: offset.checked_rem(element_bytes).unwrap_or(offset),
                region_start: region.start,
                added_at: region.seq,
            };
            let holes = self.masks.unwritten(region.id, offset, access.bytes);
            let at = |offset| region.start.wrapping_add(offset);
            self.copies.read_early(early, holes.map(|hole| at(hole.start)..at(hole.end)));
        }
    }

    /// An access to a removed region.
    fn late(&mut self, access: &Access) {
        self.after_remove_count += 1;
        let Some(grave) = self.graves.find(access.address) else { return };
        if let Some(one) = self.types.get_mut(grave.region.type_number as usize) {
            one.after_remove += 1;
        }
        if self.after_remove.len() >= FINDINGS_MAX {
            return;
        }
        let offset_bytes = access.address.wrapping_sub(grave.region.start);
        self.after_remove.push(AfterRemove {
            access: *access,
            type_number: grave.region.type_number,
            region_start: grave.region.start,
            added_at: grave.region.seq,
            removed_at: grave.removed_at,
            offset_bytes,
            offset_in_element: offset_bytes.checked_rem(grave.element_bytes).unwrap_or(offset_bytes),
        });
    }

    /// `realloc` is recorded as a remove and an add: its contents stay written. Where the name does not identify a
    /// `realloc`, the two must be of one type and follow each other directly.
    fn inherit(&mut self, id: u64, region: &RegionAdded, is_resized: bool) {
        match self.latest.remove(&region.thread) {
            Some(Removed { seq, type_number, written })
                if is_resized || (region.seq == seq + 1 && type_number == region.type_number) =>
            {
                self.masks.inherit(id, written);
            }
            // The state of the region before the trace began is unknown.
            None if is_resized => self.masks.inherit(id, Written::All(u64::MAX)),
            _ => {}
        }
    }

    fn stray_kind(&mut self, removed: &RegionRemoved) -> StrayKind {
        if removed.address == 0 {
            StrayKind::Null
        } else if self.regions.find(removed.thread, removed.address).is_some() {
            StrayKind::Inside
        } else if self.graves.find(removed.address).is_some_and(|grave| grave.region.start == removed.address) {
            StrayKind::Again
        } else {
            StrayKind::Unknown
        }
    }
}

fn leftover(region: &LiveRegion) -> Leftover {
    Leftover { type_number: region.type_number, start: region.start, bytes: region_bytes(region), added_at: region.seq }
}

impl AccessSink for LifetimeWatch<'_> {
    fn thread(&mut self, _number: ThreadNumber, _id: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.table.push(name);
        self.types.push(Running::default());
        self.origins.push(name.map(Origin::of).unwrap_or_default());
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.records = self.records.max(region.seq.saturating_add(1));
        let origin = self.origins.get(region.type_number as usize).copied().unwrap_or_default();
        if origin.is_static {
            if let Some(last) = region.last() {
                self.graves.cover(region.address, last);
            }
            self.statics.insert(region.address);
            return Ok(());
        }
        let element_bytes = self.table.with_elements(region, self.layouts).element_bytes;
        // Looked up before the region is added: afterwards it would find itself.
        let is_covered = self
            .regions
            .find(region.thread, region.address)
            .is_some_and(|below| below.start == region.address && region.element_bytes > 0);
        self.added_again += u64::from(is_covered);
        let id = self.regions.add(region)?;
        let (is_foreign, is_written) = (origin.is_foreign, origin.is_zeroed || origin.is_resized);
        self.uses.insert(id, Use { is_foreign, is_written, element_bytes, ..Use::default() });
        if self.newest.len() >= THREADS_MAX {
            self.newest.clear();
        }
        self.newest.insert(region.thread, id);
        let bytes = region.last().map_or(0, |last| (last - region.address).saturating_add(1));
        if let Some(last) = region.last() {
            // The addresses live again, so that an access there is not one after the remove.
            self.graves.cover(region.address, last);
            let is_watched = region.elements == 1 && !origin.is_zeroed && self.masks.begin(id, bytes);
            self.unwatched += u64::from(!is_watched);
            self.inherit(id, region, origin.is_resized);
        }
        if let Some(one) = self.types.get_mut(region.type_number as usize) {
            one.regions += 1;
            one.bytes = one.bytes.saturating_add(bytes);
            one.change(region.seq, one.live.bytes.saturating_add(bytes), self.live.peaks);
        }
        // After the type: where this is a new maximum, the type has its bytes at it.
        self.live.change(region.seq, self.live.bytes.saturating_add(bytes));
        Ok(())
    }

    fn region_removed(&mut self, removed: &RegionRemoved) -> Result<(), Error> {
        self.end_thread_run(removed.thread);
        self.records = self.records.max(removed.seq.saturating_add(1));
        if self.statics.remove(&removed.address) {
            return Ok(());
        }
        let Some(region) = self.regions.remove(removed) else {
            let kind = self.stray_kind(removed);
            *self.stray_counts.entry(kind).or_default() += 1;
            if self.stray.len() < FINDINGS_MAX {
                self.stray.push(StrayRemove { seq: removed.seq, address: removed.address, kind });
            }
            return Ok(());
        };
        let used = self.bury(&region);
        if let Some(last) = region.last {
            self.graves.dig(region, last, removed.seq, used.element_bytes);
        }
        let bytes = region_bytes(&region);
        let written = self.masks.take(region.id, bytes);
        // Forgetting all is rare and costs only some inheritances of `realloc`.
        if self.latest.len() >= THREADS_MAX {
            self.latest.clear();
        }
        // Kept by thread, since another thread may free in between a `realloc`'s two records.
        self.latest.insert(removed.thread, Removed { seq: removed.seq, type_number: region.type_number, written });
        self.live.change(removed.seq, self.live.bytes.saturating_sub(bytes));
        let Some(one) = self.types.get_mut(region.type_number as usize) else { return Ok(()) };
        one.lifetimes.push(removed.seq.saturating_sub(region.seq));
        one.change(removed.seq, one.live.bytes.saturating_sub(bytes), self.live.peaks);
        if self.newest.get(&removed.thread) == Some(&region.id) {
            one.short_lived.count(bytes);
        }
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        if let Some(last) = batch.last() {
            self.records = self.records.max(last.seq.saturating_add(1));
        }
        batch.iter().for_each(|access| self.access(access));
        if self.copies.is_full() {
            self.end_all_runs();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Which typed region is live at an address: the latest that was added and contains the byte.
//!
//! A remove drops the most recent live region that starts exactly there; what it had covered becomes visible again.
//! Regions may nest, overlap in part, have no bytes, and reach to the end of the address space, beyond which they never
//! wrap.
//!
//! Look-ups are answered from a small table of recent answers, else from a map of the visible pieces of regions, in
//! time O(log n). What a removed region had covered is determined only when asked for, in a tree over all regions that
//! were ever covered: no order of adds and removes costs more than O(log n) each, whatever the depth of overlaps.
//! Memory follows the number of live regions, and of removed ones that nothing has overlapped since; both together are
//! limited to [`REGIONS_MAX`].

mod granules;
mod pieces;
mod recent;
mod removed;
mod stabbing;
#[cfg(test)]
mod tests;

use std::collections::hash_map::{Entry, HashMap};

use anytrace_core::Error;
use anytrace_core::access::{Access, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};

use pieces::Pieces;
use recent::{NO_SLOT, REMOVED_SLOT, Recent};
use removed::Removed;

/// Most regions kept, live and removed: about 3 GiB of memory.
pub const REGIONS_MAX: usize = 1 << 24;

/// A live region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRegion {
    /// First address.
    pub start: u64,
    /// Last address, not wrapping; `None` for a region of no bytes, which no address is in.
    pub last: Option<u64>,
    /// Bytes of an element, as recorded.
    pub element_bytes: u64,
    /// Elements.
    pub elements: u64,
    /// Type of an element.
    pub type_number: TypeNumber,
    /// The thread that added it.
    pub thread: ThreadNumber,
    /// Number of the record that added it.
    pub seq: u64,
    /// Number of the region: how many were added before it.
    pub id: u64,
}

impl LiveRegion {
    /// Place of an address of the region in its element.
    #[inline]
    pub fn offset_in_element(&self, address: u64) -> u64 {
        let offset = address.wrapping_sub(self.start);
        // Divisions of short numbers are fast; the processor could not predict a branch around them.
        match ((offset | self.element_bytes) >> 32, self.element_bytes) {
            (_, 0) => 0,
            (0, element_bytes) => u64::from(offset as u32 % element_bytes as u32),
            (_, element_bytes) => offset % element_bytes,
        }
    }
}

/// The region at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located<'a> {
    /// A region.
    Region(&'a LiveRegion),
    /// None, but one was removed there, and no later add has overlapped it.
    Removed,
    /// None.
    Nothing,
}

/// A region, in a cache line of its own: looking regions up is mostly waiting for memory.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Slot {
    region: LiveRegion,
}

/// The state of the region in a slot, besides the region itself.
#[derive(Debug, Clone)]
struct SlotState {
    /// The live region with the same start that was added before it.
    below: u32,
    is_live: bool,
}

/// All live regions.
#[derive(Debug, Default)]
pub struct LiveRegions {
    slots: Vec<Slot>,
    slot_states: Vec<SlotState>,
    free: Vec<u32>,
    /// The latest live region that starts at an address.
    by_start: HashMap<u64, u32>,
    pieces: Pieces,
    removed: Removed,
    recent: Recent,
    next_id: u64,
}

impl LiveRegions {
    /// Begins with no region.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a live region; returns its number.
    ///
    /// # Errors
    /// A limit when there would be more than [`REGIONS_MAX`] regions.
    pub fn add(&mut self, added: &RegionAdded) -> Result<u64, Error> {
        // Checked before anything changes: a refused region leaves the tables as they were.
        if self.len() + self.removed.len() >= REGIONS_MAX {
            return Err(Error::limit(format!("more than {REGIONS_MAX} live regions at record {}", added.seq)));
        }
        let id = self.next_id;
        self.next_id += 1;
        let region = LiveRegion {
            start: added.address,
            last: added.last(),
            element_bytes: added.element_bytes,
            elements: added.elements,
            type_number: added.type_number,
            thread: added.thread,
            seq: added.seq,
            id,
        };
        let slot = self.place(region);
        if let Some(last) = region.last {
            let recent = &mut self.recent;
            self.removed.take_again(region.start, last, |from, to| recent.forget(from, to));
            let slots = &self.slots;
            // Recent answers are forgotten after the pieces have changed, for the entire region: any of them may be
            // another's now.
            self.pieces.cover(region.start, last, slot, |slot| extent(slots, slot));
            self.recent.forget(region.start, last);
        }
        Ok(id)
    }

    /// Drops the most recent live region that starts exactly there, and returns it; `None` when there is none.
    pub fn remove(&mut self, removed: &RegionRemoved) -> Option<LiveRegion> {
        let Entry::Occupied(mut entry) = self.by_start.entry(removed.address) else { return None };
        let number = *entry.get();
        let slot_state = self.slot_states.get_mut(number as usize)?;
        // Regions with one start form a list from the latest to the first; removing takes its head.
        if slot_state.below == NO_SLOT {
            entry.remove();
        } else {
            entry.insert(slot_state.below);
        }
        slot_state.is_live = false;
        // The slot's contents stay until it is used again, so that the region can still be returned.
        self.free.push(number);
        let region = self.slots.get(number as usize)?.region;
        if let Some(last) = region.last {
            self.pieces.uncover(region.start, last, region.id, number);
            self.removed.insert(region.start, last);
            self.recent.forget(region.start, last);
        }
        Some(region)
    }

    /// The region that contains an address. The thread only selects which recent answer is tried first.
    #[inline]
    pub fn find(&mut self, thread: ThreadNumber, address: u64) -> Option<&LiveRegion> {
        match self.locate(thread, address) {
            Located::Region(region) => Some(region),
            Located::Removed | Located::Nothing => None,
        }
    }

    /// As [`Self::find`], and where no region is live, whether one was removed there.
    #[inline]
    pub fn locate(&mut self, thread: ThreadNumber, address: u64) -> Located<'_> {
        let slot = self.recent.number(address);
        let is_known = slot != recent::UNKNOWN && self.is_in(slot, address);
        let slot = if is_known { slot } else { self.look_up(thread, address) };
        self.located(slot)
    }

    /// [`Self::locate`] for many accesses at once, which is faster: the processor waits for several of them together.
    /// `numbers` is memory to be reused.
    #[inline]
    pub fn locate_all(
        &mut self,
        batch: &[Access],
        numbers: &mut Vec<u32>,
        mut visit: impl FnMut(&Access, Located<'_>),
    ) {
        self.recent.numbers(batch.iter().map(|access| access.address), numbers);
        // Regions are touched in a loop so short that the processor waits for many of them at once.
        let last = self.slots.len().saturating_sub(1);
        let start_of = |number: &u32| self.slots.get((*number as usize).min(last)).map_or(0, |slot| slot.region.start);
        std::hint::black_box(numbers.iter().map(start_of).fold(0, |sum, start| sum ^ start));
        for (access, number) in batch.iter().zip(numbers) {
            let slot = *number;
            let is_known = slot != recent::UNKNOWN && self.is_in(slot, access.address);
            let slot = if is_known { slot } else { self.look_up(access.thread, access.address) };
            visit(access, self.located(slot));
        }
    }

    #[inline]
    fn located(&self, slot: u32) -> Located<'_> {
        match self.slots.get(slot as usize) {
            Some(slot) => Located::Region(&slot.region),
            None if slot == REMOVED_SLOT => Located::Removed,
            None => Located::Nothing,
        }
    }

    /// True when an address is in a removed region that no later add has overlapped. Valid only where [`Self::find`]
    /// returns none.
    pub fn is_removed(&self, address: u64) -> bool {
        self.removed.contains(address)
    }

    /// Number of live regions, including those of no bytes.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when there is no live region.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The live regions, in the order in which they were added.
    pub fn live(&self) -> Vec<LiveRegion> {
        let slots = self.slots.iter().zip(&self.slot_states);
        let mut live: Vec<_> =
            slots.filter(|(_, slot_state)| slot_state.is_live).map(|(slot, _)| slot.region).collect();
        live.sort_unstable_by_key(|region| region.id);
        live
    }

    fn place(&mut self, region: LiveRegion) -> u32 {
        let number = match self.free.pop() {
            Some(number) => number,
            None => u32::try_from(self.slots.len()).expect("REGIONS_MAX fits 32 bits"),
        };
        // The new region goes on top of those with the same start.
        let below = self.by_start.insert(region.start, number).unwrap_or(NO_SLOT);
        let (slot, slot_state) = (Slot { region }, SlotState { below, is_live: true });
        match (self.slots.get_mut(number as usize), self.slot_states.get_mut(number as usize)) {
            (Some(place), Some(of)) => (*place, *of) = (slot, slot_state),
            _ => {
                self.slots.push(slot);
                self.slot_states.push(slot_state);
            }
        }
        number
    }

    /// True where a recent answer is right: the number of a region is right within the region's bounds.
    #[inline]
    fn is_in(&self, slot: u32, address: u64) -> bool {
        let Some(Slot { region }) = self.slots.get(slot as usize) else { return true };
        // A region of no bytes is never an answer.
        region.start <= address && address <= region.last.unwrap_or(0)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, thread: ThreadNumber, address: u64) -> u32 {
        // Threads walk through large regions: the last answer often covers more than one granule.
        if let Some(slot) = self.recent.latest(thread, address) {
            return slot;
        }
        let (mut first, mut last, mut slot) = self.pieces.find(address);
        if slot == NO_SLOT {
            let (from, to, is_removed) = self.removed.around(address);
            // The answer must be the same in the entire range, whether it was removed there included.
            (first, last) = (first.max(from), last.min(to));
            slot = if is_removed { REMOVED_SLOT } else { NO_SLOT };
        }
        let region = self.slots.get(slot as usize).map(|slot| &slot.region);
        self.recent.put(thread, address, (first, last), slot, region);
        slot
    }
}

/// Start, last address and number of the region in a slot.
fn extent(slots: &[Slot], slot: u32) -> Option<(u64, u64, u64)> {
    let region = &slots.get(slot as usize)?.region;
    Some((region.start, region.last?, region.id))
}

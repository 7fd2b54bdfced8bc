//! Simulates another layout of a type: an adapter in front of any engine that emits the trace as it would be with
//! fields at other offsets, elements of another size, parts of an element apart from each other.
//!
//! All regions of such a type move to addresses that no program has, where they are placed as by a common allocator:
//! 16-byte alignment, 8 bytes of its own before each block, freed blocks of a size used again, the latest first; each
//! part of an element from a pool of its own. A type that keeps its size stays in place. An access over several fields
//! becomes one for each piece. Where a part is behind a pointer, that pointer is read first.

mod heap;

use anytrace_core::Error;
use anytrace_core::access::{
    Access, AccessFlags, AccessKind, AccessSink, BATCH_ACCESSES, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber,
};
use anytrace_core::hash::Map;
use anytrace_core::layout::{bare_name, canonical_name};

use crate::live_regions::{LiveRegion, LiveRegions};
use heap::Heap;

/// Most parts of an element.
pub const PARTS_MAX: usize = 256;

/// Most pieces that are moved.
pub const MOVES_MAX: usize = 1 << 16;

/// Bytes of a pointer between parts.
pub const POINTER_BYTES: u16 = 8;

/// One part of an element: all elements of a region have theirs one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Bytes of one element's.
    pub bytes: u64,
    /// Alignment of the first, a power of two.
    pub align: u64,
}

/// Bytes of an element that go elsewhere together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// Where they were.
    pub from: u64,
    /// How many.
    pub bytes: u64,
    /// Number of the part they are in.
    pub part: usize,
    /// Where they are in it.
    pub to: u64,
}

/// A type's new layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypePlan {
    /// Name as in the trace; `struct.A`, `struct A` and `A` are the same.
    pub name: String,
    /// Bytes of an element as it was: only regions with such elements change.
    pub old_bytes: u64,
    /// The new parts; a single one where nothing is split.
    pub parts: Vec<Part>,
    /// The new place of each byte. Bytes without a move, usually padding, stay near their old place.
    pub moves: Vec<Move>,
    /// Offset in the first part of a pointer to the others, where they are not reached otherwise.
    pub pointer: Option<u64>,
    /// True when regions move even if the size stays: as a base for comparison with plans that move regions.
    pub always_moves: bool,
}

impl TypePlan {
    /// Rejects impossible plans and sorts the moves.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn checked(mut self) -> Result<Self, String> {
        let name = self.name.clone();
        let wrong = |what: String| Err(format!("{name}: {what}"));
        if self.old_bytes == 0 {
            return wrong("the element size is unknown".to_owned());
        }
        if self.parts.is_empty() || self.parts.len() > PARTS_MAX || self.moves.len() > MOVES_MAX {
            return wrong(format!("expected 1 to {PARTS_MAX} parts and at most {MOVES_MAX} fields"));
        }
        if let Some(part) = self.parts.iter().find(|part| !part.align.is_power_of_two() || part.bytes > 1 << 40) {
            return wrong(format!("a part of {} bytes cannot be aligned to {}", part.bytes, part.align));
        }
        // `place` searches by offset, and the check for two moves of one byte needs neighbors.
        self.moves.sort_unstable();
        let mut end = 0;
        for one in &self.moves {
            let Some(next) = one.from.checked_add(one.bytes).filter(|next| *next <= self.old_bytes) else {
                return wrong(format!("offset {} of {} bytes is past its end", one.from, one.bytes));
            };
            // Sorted by offset, a move that begins before the previous one ends shares bytes with it.
            if one.from < end {
                return wrong(format!("offset {} is moved twice", one.from));
            }
            end = next;
            let room = self.parts.get(one.part).map_or(0, |part| part.bytes);
            if one.to.checked_add(one.bytes).is_none_or(|end| end > room) {
                return wrong(format!("new offset {} of {} bytes is past the end, {room}", one.to, one.bytes));
            }
        }
        let mut places: Vec<_> = self.moves.iter().map(|one| (one.part, one.to, one.to + one.bytes)).collect();
        if let Some(at) = self.pointer {
            places.push((0, at, at.saturating_add(u64::from(POINTER_BYTES))));
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            if let [(part, _, end), (other, start, _)] = pair
                && part == other
                && start < end
            {
                return wrong(format!("two fields share new offset {start}"));
            }
        }
        Ok(self)
    }

    /// True when elements keep their size and stay together.
    fn stays(&self) -> bool {
        !self.always_moves
            && self.parts.len() == 1
            && self.parts.first().is_some_and(|part| part.bytes == self.old_bytes)
    }

    /// The new place of a byte, and how many of the following bytes move with it.
    fn place(&self, offset: u64) -> (usize, u64, u64) {
        // The move before the partition point is the only one that can contain the offset.
        let next = self.moves.partition_point(|one| one.from <= offset);
        if let Some(one) = next.checked_sub(1).and_then(|at| self.moves.get(at)) {
            let inside = offset - one.from;
            if inside < one.bytes {
                return (one.part, one.to + inside, one.bytes - inside);
            }
        }
        let end = self.moves.get(next).map_or(self.old_bytes, |one| one.from);
        let room = self.parts.first().map_or(0, |part| part.bytes);
        // At least one byte, so that the loop over pieces makes progress; in the first part, which every element has.
        (0, offset.min(room.saturating_sub(1)), end.saturating_sub(offset).max(1))
    }
}

/// Where a region is now.
#[derive(Debug)]
struct Moved {
    plan: usize,
    /// First address of each part.
    bases: Vec<u64>,
}

/// The adaptor.
pub struct Remap<'a> {
    plans: Vec<TypePlan>,
    by_name: Map<String, usize>,
    inner: &'a mut dyn AccessSink,
    /// By type number of the trace: the number passed on, and the plan.
    types: Vec<(TypeNumber, Option<usize>)>,
    type_count: TypeNumber,
    regions: LiveRegions,
    moved: Map<u64, Moved>,
    /// A pool for each part, so that parts of one element do not share lines.
    heaps: Vec<Heap>,
    out: Vec<Access>,
    /// What accesses to types with a plan are marked with.
    mark: AccessFlags,
    done: RemapDone,
}

/// What became of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemapDone {
    /// Regions that changed.
    pub regions: u64,
    /// Regions of the types whose elements do not have the size in the plan: they stayed.
    pub other_sizes: u64,
    /// Accesses emitted at another place.
    pub accesses: u64,
}

impl<'a> Remap<'a> {
    /// Emits the trace to `inner` as if types were as planned. Of several plans for a type the last counts.
    pub fn new(plans: Vec<TypePlan>, inner: &'a mut dyn AccessSink) -> Self {
        let by_name = plans.iter().enumerate().map(|(at, plan)| (canonical_name(bare_name(&plan.name)), at)).collect();
        Self {
            plans,
            by_name,
            inner,
            types: Vec::new(),
            type_count: 0,
            regions: LiveRegions::new(),
            moved: Map::default(),
            heaps: Vec::new(),
            out: Vec::with_capacity(BATCH_ACCESSES + 8),
            mark: AccessFlags::NONE,
            done: RemapDone::default(),
        }
    }

    /// The same, with a mark on all accesses to types that have a plan.
    pub(crate) fn marking(plans: Vec<TypePlan>, mark: AccessFlags, inner: &'a mut dyn AccessSink) -> Self {
        Self { mark, ..Self::new(plans, inner) }
    }

    /// The changes so far.
    pub fn done(&self) -> RemapDone {
        self.done
    }

    fn flush(&mut self) -> Result<(), Error> {
        if !self.out.is_empty() {
            self.inner.accesses(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn push(&mut self, access: Access) -> Result<(), Error> {
        self.out.push(access);
        if self.out.len() >= BATCH_ACCESSES { self.flush() } else { Ok(()) }
    }

    fn access(&mut self, access: &Access, found: Option<LiveRegion>) -> Result<(), Error> {
        let has_plan =
            |region: &LiveRegion| self.types.get(region.type_number as usize).is_some_and(|(_, plan)| plan.is_some());
        let Some(region) = found.filter(has_plan) else { return self.push(*access) };
        let access = &Access { flags: AccessFlags(access.flags.0 | self.mark.0), ..*access };
        if !self.moved.contains_key(&region.id) {
            return self.push(*access);
        }
        self.done.accesses += 1;
        let mut left = u64::from(access.bytes);
        let mut address = access.address;
        // A program keeps the pointer in a register: one read for each access, however many pieces it has.
        let mut has_read_pointer = false;
        loop {
            let Some(piece) = self.piece(&region, address) else {
                // Bytes past the end of the region stay in place.
                return self.push(Access { address, bytes: short(left), ..*access });
            };
            if let Some(pointer) = piece.pointer.filter(|_| !has_read_pointer) {
                has_read_pointer = true;
                let (kind, flags) = (AccessKind::Read, self.mark);
                self.push(Access { address: pointer, bytes: POINTER_BYTES, kind, flags, ..*access })?;
            }
            let bytes = piece.bytes.min(left);
            self.push(Access { address: piece.address, bytes: short(bytes), ..*access })?;
            left -= bytes;
            if left == 0 {
                return Ok(());
            }
            // Elements of one region lie one after the other, so the next piece may be in the next element.
            address = address.wrapping_add(bytes);
        }
    }

    fn piece(&self, region: &LiveRegion, address: u64) -> Option<Piece> {
        if !region.last.is_some_and(|last| (region.start..=last).contains(&address)) {
            return None;
        }
        let moved = self.moved.get(&region.id)?;
        let plan = self.plans.get(moved.plan)?;
        let inside = address - region.start;
        let (index, offset) = (inside.checked_div(plan.old_bytes)?, inside.checked_rem(plan.old_bytes)?);
        let (part, to, bytes) = plan.place(offset);
        let place = |number: usize, offset: u64| {
            let base = *moved.bases.get(number)?;
            let part = plan.parts.get(number)?;
            Some(base.wrapping_add(index.wrapping_mul(part.bytes)).wrapping_add(offset))
        };
        let pointer = plan.pointer.filter(|_| part > 0).and_then(|offset| place(0, offset));
        // A piece ends with the element at the latest.
        let bytes = bytes.min(plan.old_bytes - offset);
        Some(Piece { address: place(part, to)?, bytes, pointer })
    }
}

fn short(bytes: u64) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

/// Where the next bytes of an access are.
struct Piece {
    address: u64,
    bytes: u64,
    /// The pointer read before.
    pointer: Option<u64>,
}

impl Remap<'_> {
    /// Room for the parts of a region; `None` where it stays.
    fn settle(&mut self, number: usize, region: &RegionAdded) -> Option<Vec<u64>> {
        let plan = self.plans.get(number)?;
        if region.element_bytes != plan.old_bytes || region.elements == 0 {
            self.done.other_sizes += 1;
            return None;
        }
        self.done.regions += 1;
        if plan.stays() {
            return Some(vec![region.address]);
        }
        // Plans share the pools by number: the first part of all types is in the first pool, as with a common
        // allocator.
        while self.heaps.len() < plan.parts.len() {
            self.heaps.push(Heap::new(self.heaps.len() as u64));
        }
        let room = plan.parts.iter().zip(&mut self.heaps);
        Some(room.map(|(part, heap)| heap.take(part.bytes.saturating_mul(region.elements), part.align)).collect())
    }

    /// A region begins to live, whose number the caller knows.
    fn add(&mut self, region: &RegionAdded, id: u64) -> Result<(), Error> {
        self.flush()?;
        let (type_number, plan) = self.types.get(region.type_number as usize).copied().unwrap_or((0, None));
        let added = RegionAdded { type_number, ..*region };
        let Some((plan_number, bases)) = plan.and_then(|plan| Some((plan, self.settle(plan, region)?))) else {
            return self.inner.region_added(&added);
        };
        let parts = self.plans.get(plan_number).map(|plan| plan.parts.clone()).unwrap_or_default();
        for ((base, part), number) in bases.iter().zip(&parts).zip(0..) {
            let type_number = type_number + number;
            let part = RegionAdded { address: *base, element_bytes: part.bytes, type_number, ..*region };
            self.inner.region_added(&part)?;
        }
        self.moved.insert(id, Moved { plan: plan_number, bases });
        Ok(())
    }

    /// The region of a remove, where there is one, goes.
    fn remove(&mut self, removed: &RegionRemoved, region: Option<LiveRegion>) -> Result<(), Error> {
        self.flush()?;
        let Some((region, moved)) = region.and_then(|region| Some((region, self.moved.remove(&region.id)?))) else {
            return self.inner.region_removed(removed);
        };
        let Some(plan) = self.plans.get(moved.plan) else { return Ok(()) };
        for (number, (base, part)) in moved.bases.iter().zip(&plan.parts).enumerate() {
            self.inner.region_removed(&RegionRemoved { address: *base, ..*removed })?;
            if let Some(heap) = self.heaps.get_mut(number).filter(|_| !plan.stays()) {
                heap.give(*base, part.bytes.saturating_mul(region.elements), part.align);
            }
        }
        Ok(())
    }
}

impl AccessSink for Remap<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.inner.thread(number, id)
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        let text = name.map(|name| String::from_utf8_lossy(name).into_owned());
        let plan = text.as_deref().and_then(|name| self.by_name.get(&canonical_name(bare_name(name))).copied());
        self.types.push((self.type_count, plan));
        self.inner.type_name(self.type_count, name)?;
        self.type_count += 1;
        let parts = plan.and_then(|plan| self.plans.get(plan)).map_or(1, |plan| plan.parts.len());
        for part in 1..parts {
            let name = format!("{} (part {})", text.as_deref().unwrap_or_default(), part + 1);
            self.inner.type_name(self.type_count, Some(name.as_bytes()))?;
            self.type_count += 1;
        }
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        let id = self.regions.add(region)?;
        self.add(region, id)
    }

    fn region_removed(&mut self, removed: &RegionRemoved) -> Result<(), Error> {
        let region = self.regions.remove(removed);
        self.remove(removed, region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        for access in batch {
            let found = self.regions.find(access.thread, access.address).copied();
            self.access(access, found)?;
        }
        self.flush()
    }
}

/// Several adaptors for one trace, each given all of it: which region an access is in is looked up once.
#[derive(Default)]
pub(crate) struct Remaps<'a> {
    all: Vec<Remap<'a>>,
    regions: LiveRegions,
    /// Regions of a batch's accesses; memory that is used again.
    found: Vec<Option<LiveRegion>>,
}

impl<'a> Remaps<'a> {
    pub(crate) fn new(all: Vec<Remap<'a>>) -> Self {
        Self { all, ..Self::default() }
    }
}

impl AccessSink for Remaps<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.all.iter_mut().try_for_each(|one| one.thread(number, id))
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.all.iter_mut().try_for_each(|one| one.type_name(number, name))
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        let id = self.regions.add(region)?;
        self.all.iter_mut().try_for_each(|one| one.add(region, id))
    }

    fn region_removed(&mut self, removed: &RegionRemoved) -> Result<(), Error> {
        let region = self.regions.remove(removed);
        self.all.iter_mut().try_for_each(|one| one.remove(removed, region))
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        let Self { all, regions, found } = self;
        found.clear();
        found.extend(batch.iter().map(|access| regions.find(access.thread, access.address).copied()));
        for one in all {
            batch.iter().zip(&*found).try_for_each(|(access, region)| one.access(access, *region))?;
            one.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Per type and per offset of its elements: reads, writes, bytes, which cache served them, and live bytes over time.

mod rows;
mod series;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;
use anytrace_core::layout::Layouts;

use crate::cache::Simulation;
use crate::cache::results::Results;
use crate::elements::TypeTable;
use crate::grain::Grain;
use crate::live_regions::{LiveRegion, LiveRegions};
pub use rows::{Row, RowKind, rows_of};
pub use series::Series;

/// Most offsets counted separately, over all types; further accesses are counted for their type only.
pub const OFFSETS_MAX: usize = 1 << 20;

/// Most element sizes of a type that are counted separately.
const SIZES_MAX: usize = 64;

/// Counts of accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Records that read.
    pub reads: u64,
    /// Records that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Records that the first level did not serve.
    pub misses: u64,
    /// Records that memory served.
    pub memory: u64,
    /// Records that touch more than one line of the first level.
    pub straddles: u64,
}

impl Counts {
    /// Reads and writes.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    fn take(&mut self, access: &Access, is_straddle: bool) {
        let bytes = u64::from(access.bytes);
        if access.is_write() {
            self.writes += 1;
            self.written_bytes += bytes;
        } else {
            self.reads += 1;
            self.read_bytes += bytes;
        }
        self.straddles += u64::from(is_straddle);
    }

    /// Adds the counts of others.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.misses += other.misses;
        self.memory += other.memory;
        self.straddles += other.straddles;
    }
}

/// One type.
#[derive(Debug, Clone, Default)]
pub struct TypeCounts {
    /// Accesses whose first byte is in a region of it.
    pub counts: Counts,
    /// Regions that began.
    pub regions: u64,
    /// Elements of all of them; saturates.
    pub elements: u64,
    /// Live regions now, and their maximum so far.
    pub live_regions: u64,
    /// The most that lived at once.
    pub live_regions_peak: u64,
    /// Live bytes now.
    pub live_bytes: u64,
    /// The most that lived at once, in bytes.
    pub live_bytes_peak: u64,
    /// Record of that.
    pub peak_at: u64,
    /// Live bytes over time.
    pub live: Series,
    /// True where elements were counted in parts, since no fields are known.
    pub has_parts: bool,
    /// Sizes of elements, with how many regions have each.
    pub element_bytes: Vec<(u64, u64)>,
    /// Elements that begin in the middle of a line although they would fit into fewer lines.
    pub straddling_elements: u64,
    /// Offsets that were not counted apart.
    pub others: Counts,
}

/// Result of a pass.
#[derive(Debug)]
pub struct TypeProfile {
    /// Names and layouts.
    pub table: TypeTable,
    /// By type number.
    pub types: Vec<TypeCounts>,
    /// By type, offset in the element and bytes, ascending. Long elements without known fields are counted in parts,
    /// by their first byte.
    pub offsets: Vec<((TypeNumber, u64, u16), Counts)>,
    /// Accesses in no region.
    pub untyped: Counts,
    /// Of these, in regions that were removed.
    pub after_remove: u64,
    /// Accesses that begin in a region and end past it.
    pub past_end: u64,
    /// The end of the time axis in records: one more than the last seen.
    pub records: u64,
    /// Accesses of no bytes, which touch nothing.
    pub zero_size: u64,
    /// Instruction fetches, which are left out.
    pub fetches: u64,
    /// The results of the caches in total.
    pub caches: Option<Results>,
}

impl TypeProfile {
    /// Takes the misses that the simulation counted for types and offsets.
    fn take_misses(&mut self, results: &Results) {
        let Some(found) = results.configs.first().and_then(|config| config.types.as_ref()) else { return };
        self.untyped.misses = found.untyped.first_level_misses();
        self.untyped.memory = found.untyped.memory();
        // The simulation leaves out types without accesses, in the same order.
        let names = self.table.types().iter().map(|one| one.name.as_ref().map(|name| name.as_bytes()));
        let mut numbers: Map<Option<Vec<u8>>, TypeNumber> = Map::default();
        for (name, number) in names.zip(0..) {
            // Types are joined by name: the simulation numbers only those with accesses.
            numbers.insert(name.map(<[u8]>::to_vec), number);
        }
        for one in &found.types {
            let name = one.name.as_ref().map(|name| String::from_utf8_lossy(name).into_owned().into_bytes());
            let Some(&number) = numbers.get(&name) else { continue };
            let Some(counts) = self.types.get_mut(number as usize) else { continue };
            counts.counts.misses += one.total.first_level_misses();
            counts.counts.memory += one.total.memory();
            for ((offset, bytes), tally) in &one.fields {
                let found = self.offsets.binary_search_by_key(&(number, *offset, *bytes), |(key, _)| *key);
                let Some((_, counts)) = found.ok().and_then(|at| self.offsets.get_mut(at)) else { continue };
                counts.misses += tally.first_level_misses();
                counts.memory += tally.memory();
            }
        }
    }
}

/// The engine.
pub struct TypeProfiler<'a> {
    layouts: &'a mut dyn Layouts,
    simulation: Simulation,
    line_bytes: u64,
    regions: LiveRegions,
    offsets: Map<(TypeNumber, u64, u16), Counts>,
    grains: Vec<Grain>,
    profile: TypeProfile,
}

impl<'a> TypeProfiler<'a> {
    /// The simulation has one configuration and counts by type; `line_bytes` is that of its first level.
    pub fn new(layouts: &'a mut dyn Layouts, simulation: Simulation, line_bytes: u64) -> Self {
        let profile = TypeProfile {
            table: TypeTable::default(),
            types: Vec::new(),
            offsets: Vec::new(),
            untyped: Counts::default(),
            after_remove: 0,
            past_end: 0,
            records: 0,
            zero_size: 0,
            fetches: 0,
            caches: None,
        };
        let (regions, offsets) = (LiveRegions::new(), Map::default());
        Self { layouts, simulation, line_bytes: line_bytes.max(1), regions, offsets, grains: Vec::new(), profile }
    }

    /// The result.
    ///
    /// # Errors
    /// As the sink's.
    pub fn finish(mut self) -> Result<TypeProfile, Error> {
        let results = self.simulation.finish()?;
        let records = self.profile.records;
        for one in &mut self.profile.types {
            one.live.finish(records, one.live_bytes);
            one.element_bytes.sort_unstable_by_key(|(bytes, regions)| (std::cmp::Reverse(*regions), *bytes));
        }
        self.profile.offsets = self.offsets.into_iter().collect();
        self.profile.offsets.sort_unstable_by_key(|(key, _)| *key);
        self.profile.take_misses(&results);
        self.profile.caches = Some(results);
        Ok(self.profile)
    }

    /// A region with elements as this engine has them.
    pub(crate) fn with_elements(&mut self, region: &RegionAdded) -> RegionAdded {
        self.profile.table.with_elements(region, self.layouts)
    }

    /// True where elements of a type are counted in parts.
    pub(crate) fn has_parts(&self, number: TypeNumber, element_bytes: u64) -> bool {
        self.grains.get(number as usize).is_some_and(|grain| grain.has_parts(element_bytes))
    }

    fn see(&mut self, seq: u64) {
        self.profile.records = self.profile.records.max(seq.saturating_add(1));
    }

    fn access(&mut self, access: &Access) {
        if access.kind == AccessKind::Fetch {
            self.profile.fetches += 1;
            return;
        }
        if access.bytes == 0 {
            self.profile.zero_size += 1;
            return;
        }
        // An access that wraps around the end of the address space ends in the first line, another one.
        let is_straddle = access.address / self.line_bytes != access.last() / self.line_bytes;
        let Some(region) = self.regions.find(access.thread, access.address) else {
            self.profile.untyped.take(access, is_straddle);
            self.profile.after_remove += u64::from(self.regions.is_removed(access.address));
            return;
        };
        let last = access.last();
        self.profile.past_end += u64::from(last < access.address || region.last.is_some_and(|end| last > end));
        let grain = self.grains.get(region.type_number as usize).copied().unwrap_or(Grain::FIELDS);
        let offset = region.offset_in_element(access.address);
        let (offset, bytes) = grain.place(offset, access.bytes, region.element_bytes);
        let key = (region.type_number, offset, bytes);
        let Some(one) = self.profile.types.get_mut(key.0 as usize) else { return };
        one.counts.take(access, is_straddle);
        if let Some(counts) = self.offsets.get_mut(&key) {
            counts.take(access, is_straddle);
        } else if self.offsets.len() < OFFSETS_MAX {
            // After the limit known offsets are still counted exactly; only new ones are not.
            self.offsets.entry(key).or_default().take(access, is_straddle);
        } else {
            one.others.take(access, is_straddle);
        }
    }

    fn straddling(&self, region: &RegionAdded) -> u64 {
        let (bytes, line) = (region.element_bytes, self.line_bytes);
        if bytes == 0 {
            return 0;
        }
        // Places in lines repeat after as many elements as a line has bytes.
        let period = region.elements.min(line);
        let fewest = bytes.div_ceil(line);
        let crosses = |index: u64| {
            let start = region.address.wrapping_add(index.wrapping_mul(bytes)) % line;
            (u128::from(start) + u128::from(bytes)).div_ceil(u128::from(line)) > u128::from(fewest)
        };
        let in_period = (0..period).filter(|index| crosses(*index)).count() as u64;
        let in_rest = (0..region.elements % period.max(1)).filter(|index| crosses(*index)).count() as u64;
        in_period.saturating_mul(region.elements / period.max(1)).saturating_add(in_rest)
    }
}

/// Bytes of a region that is or was in memory.
pub(crate) fn region_bytes(region: &LiveRegion) -> u64 {
    region.last.map_or(0, |last| last.saturating_sub(region.start).saturating_add(1))
}

impl AccessSink for TypeProfiler<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.simulation.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.profile.table.push(name);
        self.profile.types.push(TypeCounts::default());
        self.grains.push(Grain::of(name));
        self.simulation.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.see(region.seq);
        let region = self.profile.table.with_elements(region, self.layouts);
        let number = region.type_number;
        if let Some(grain) = self.grains.get_mut(number as usize)
            && *grain != Grain::FIELDS
            && self.profile.table.has_fields(number)
        {
            *grain = Grain::FIELDS;
            self.simulation.fields_known(number)?;
        }
        self.regions.add(&region)?;
        self.simulation.region_added(&region)?;
        let straddling = self.straddling(&region);
        let bytes = region.last().map_or(0, |last| (last - region.address).saturating_add(1));
        let has_parts = self.has_parts(number, region.element_bytes);
        let Some(one) = self.profile.types.get_mut(number as usize) else { return Ok(()) };
        one.regions += 1;
        one.has_parts |= has_parts;
        one.elements = one.elements.saturating_add(region.elements);
        one.straddling_elements = one.straddling_elements.saturating_add(straddling);
        let has_room = one.element_bytes.len() < SIZES_MAX;
        match one.element_bytes.iter_mut().find(|(bytes, _)| *bytes == region.element_bytes) {
            Some((_, count)) => *count += 1,
            None if has_room => one.element_bytes.push((region.element_bytes, 1)),
            None => {}
        }
        one.live.put(region.seq, one.live_bytes);
        one.live_regions += 1;
        one.live_regions_peak = one.live_regions_peak.max(one.live_regions);
        one.live_bytes = one.live_bytes.saturating_add(bytes);
        one.live.put(region.seq, one.live_bytes);
        if one.live_bytes > one.live_bytes_peak {
            (one.live_bytes_peak, one.peak_at) = (one.live_bytes, region.seq);
        }
        Ok(())
    }

    fn region_removed(&mut self, removed: &RegionRemoved) -> Result<(), Error> {
        self.see(removed.seq);
        self.simulation.region_removed(removed)?;
        let Some(region) = self.regions.remove(removed) else { return Ok(()) };
        let Some(one) = self.profile.types.get_mut(region.type_number as usize) else { return Ok(()) };
        one.live.put(removed.seq, one.live_bytes);
        one.live_regions = one.live_regions.saturating_sub(1);
        one.live_bytes = one.live_bytes.saturating_sub(region_bytes(&region));
        one.live.put(removed.seq, one.live_bytes);
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        if let Some(last) = batch.last() {
            self.see(last.seq);
        }
        batch.iter().for_each(|access| self.access(access));
        self.simulation.accesses(batch)
    }
}

#[cfg(test)]
mod tests;

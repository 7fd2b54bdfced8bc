//! The first pass: fields with their misses, which fields are used together, on which elements' lines threads meet.

use std::collections::BTreeMap;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;
use anytrace_core::layout::Layouts;

use super::affinity::Affinity;
use crate::cache::Simulation;
use crate::elements::TypeTable;
use crate::live_regions::LiveRegions;
use crate::type_profile::{TypeProfile, TypeProfiler};

/// Most lines of which the last thread is remembered.
const LINES_MAX: usize = 1 << 22;

/// The pass.
pub struct Survey<'a> {
    profiler: TypeProfiler<'a>,
    /// Elements as in the profiler, which reports them after each add.
    regions: LiveRegions,
    affinity: Affinity,
    lines: Map<u64, Last>,
    line_bytes: u64,
    sharing: BTreeMap<TypeNumber, Sharing>,
    most_elements: Map<TypeNumber, u64>,
    threads: u32,
}

/// The latest access to a line.
#[derive(Debug, Clone, Copy)]
struct Last {
    thread: ThreadNumber,
    region: u64,
    element: u64,
    offset: u64,
    is_write: bool,
}

/// Accesses to a line that another thread had last, with a write on either side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharing {
    /// To another element.
    pub between_elements: u64,
    /// To another field of the same element: offsets, the lower first, with how often.
    pub between_fields: BTreeMap<(u64, u64), u64>,
}

/// The results.
#[derive(Debug)]
pub struct Surveyed {
    /// Types and offsets with their misses.
    pub profile: TypeProfile,
    /// Pairs of offsets used close to each other, by type number.
    pub pairs: Vec<Vec<((u64, u64), u64)>>,
    /// Lines that threads share, by type number.
    pub sharing: BTreeMap<TypeNumber, Sharing>,
    /// Elements of the longest region of each type, by number.
    pub most_elements: Vec<u64>,
    /// Threads of the trace.
    pub threads: u32,
    /// Bytes of a line.
    pub line_bytes: u64,
}

impl<'a> Survey<'a> {
    /// The simulation has one configuration and counts by type.
    pub fn new(layouts: &'a mut dyn Layouts, simulation: Simulation, line_bytes: u64) -> Self {
        Self {
            profiler: TypeProfiler::new(layouts, simulation, line_bytes),
            regions: LiveRegions::new(),
            affinity: Affinity::default(),
            lines: Map::default(),
            line_bytes: line_bytes.max(1),
            sharing: BTreeMap::new(),
            most_elements: Map::default(),
            threads: 0,
        }
    }

    /// The result.
    ///
    /// # Errors
    /// As the sink's.
    pub fn finish(self) -> Result<Surveyed, Error> {
        let profile = self.profiler.finish()?;
        let numbers = || (0..).zip(&profile.types).map(|(number, _)| number);
        let pairs = self.affinity.by_type(profile.types.len());
        let most_elements = numbers().map(|number| self.most_elements.get(&number).copied().unwrap_or(0)).collect();
        let (sharing, threads, line_bytes) = (self.sharing, self.threads, self.line_bytes);
        Ok(Surveyed { profile, pairs, sharing, most_elements, threads, line_bytes })
    }

    fn access(&mut self, access: &Access) {
        if access.bytes == 0 || access.kind == AccessKind::Fetch {
            return;
        }
        let found = self.regions.find(access.thread, access.address).copied();
        let Some(region) = found else { return };
        let inside = access.address.wrapping_sub(region.start);
        let element = inside.checked_div(region.element_bytes).unwrap_or(0);
        let offset = region.offset_in_element(access.address);
        // What is counted in parts gets no proposal.
        if !self.profiler.has_parts(region.type_number, region.element_bytes) {
            self.affinity.touch(region.type_number, region.id, element, offset);
        }
        if self.threads < 2 {
            return;
        }
        let last = Last { thread: access.thread, region: region.id, element, offset, is_write: access.is_write() };
        let line = access.address / self.line_bytes;
        let has_room = self.lines.len() < LINES_MAX;
        let before = match self.lines.get_mut(&line) {
            Some(before) => Some(std::mem::replace(before, last)),
            None if has_room => self.lines.insert(line, last),
            None => None,
        };
        let Some(before) = before.filter(|one| one.thread != last.thread && (one.is_write || last.is_write)) else {
            return;
        };
        let sharing = self.sharing.entry(region.type_number).or_default();
        if (before.region, before.element) != (last.region, last.element) {
            sharing.between_elements += 1;
        } else if before.offset != offset && sharing.between_fields.len() < 4096 {
            let pair = (before.offset.min(offset), before.offset.max(offset));
            *sharing.between_fields.entry(pair).or_default() += 1;
        }
    }
}

impl AccessSink for Survey<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.threads = self.threads.max(number.saturating_add(1));
        self.profiler.thread(number, id)
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.profiler.type_name(number, name)
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.profiler.region_added(region)?;
        let region = self.profiler.with_elements(region);
        let most = self.most_elements.entry(region.type_number).or_default();
        *most = region.elements.max(*most);
        self.regions.add(&region).map(drop)
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.regions.remove(region);
        self.profiler.region_removed(region)
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().for_each(|access| self.access(access));
        self.profiler.accesses(batch)
    }
}

/// The types of a survey.
impl Surveyed {
    /// Names and layouts.
    pub fn table(&self) -> &TypeTable {
        &self.profile.table
    }
}

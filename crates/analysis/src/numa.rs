//! Memory of machines with several nodes: which accesses leave the node of their thread, under a given placement of
//! threads.
//!
//! The model: a page lies on the node of the thread that touches it first, as Linux does by default, and stays there.
//! Pages that lie entirely in a removed region of [`GIVEN_BACK_BYTES`] or more are given back to the system, as the C
//! library does with such blocks, and are placed anew. Each thread has a private cache with LRU, without coherence: what
//! it misses goes to memory, and is remote where the page lies on another node.
//!
//! Each access counts where its first byte is. Memory follows the distinct pages: some 60 bytes each and 8 for each node;
//! a private cache takes an eighth of the bytes that it simulates.
//!
//! ```
//! use anytrace_analysis::numa::{Nodes, Numa, NumaOptions};
//! use anytrace_core::access::{Access, AccessFlags, AccessKind, AccessSink};
//!
//! let mut numa = Numa::new(NumaOptions { nodes: Nodes::Count(2), ..NumaOptions::default() });
//! numa.thread(0, Some(0)).unwrap();
//! numa.thread(1, Some(1)).unwrap();
//! let write = |seq, thread, address| {
//!     Access { address, seq, thread, bytes: 8, kind: AccessKind::Write, flags: AccessFlags::NONE }
//! };
//! numa.accesses(&[write(0, 0, 0x1000), write(1, 1, 0x1040), write(2, 1, 0x2000)]).unwrap();
//! let found = numa.finish();
//! assert_eq!((found.total.accesses, found.total.remote_misses), (3, 1));
//! ```

mod cache;
mod pages;
mod results;
#[cfg(test)]
mod tests;

use anytrace_core::hash::Map;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};

use crate::live_regions::{LiveRegion, LiveRegions};
use cache::PrivateCache;
use pages::Pages;
pub use results::{NumaResults, NumaTouches, RegionTouches, ThreadTouches, TypeTouches};

/// Most nodes.
pub const NODES_MAX: u32 = 64;

/// Removed regions of so many bytes are given back to the system: glibc's default for its own mappings (`mallopt(3)`,
/// `M_MMAP_THRESHOLD`).
pub const GIVEN_BACK_BYTES: u64 = 128 << 10;

/// Most regions whose counts are kept once they are removed: those with most remote misses.
pub const REGIONS_KEPT: usize = 10_000;

/// Lines, in bytes.
const LINE_BYTES: u64 = 64;

/// The model's machine.
#[derive(Debug, Clone)]
pub struct NumaOptions {
    /// Which node a thread runs on.
    pub nodes: Nodes,
    /// Bytes of a page: a power of two from 64.
    pub page_bytes: u64,
    /// Bytes of each thread's cache.
    pub cache_bytes: u64,
    /// Lines per set of it.
    pub ways: u64,
}

impl Default for NumaOptions {
    fn default() -> Self {
        Self { nodes: Nodes::Count(2), page_bytes: 4096, cache_bytes: 256 << 10, ways: 8 }
    }
}

/// Which node a thread runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// On this many nodes in turn, in the order in which threads appear.
    Count(u32),
    /// By the thread's id, first to last, the first entry that has it; threads in no entry run on node 0.
    Map(Vec<(std::ops::RangeInclusive<u64>, u32)>),
}

impl Nodes {
    /// How many there are.
    pub fn count(&self) -> u32 {
        match self {
            Self::Count(count) => (*count).clamp(1, NODES_MAX),
            Self::Map(map) => map.iter().map(|(_, node)| node + 1).max().unwrap_or(1).clamp(1, NODES_MAX),
        }
    }

    fn of(&self, number: ThreadNumber, id: Option<u64>) -> u32 {
        let node = match self {
            Self::Count(_) => number % self.count(),
            Self::Map(map) => {
                let found = id.and_then(|id| map.iter().find(|(ids, _)| ids.contains(&id)));
                found.map_or(0, |(_, node)| *node)
            }
        };
        node.min(NODES_MAX - 1)
    }
}

/// Counts accesses and misses by the node of their thread and that of their page.
pub struct Numa {
    options: NumaOptions,
    nodes: usize,
    threads: Vec<ThreadTouches>,
    caches: Vec<PrivateCache>,
    pages: Pages,
    regions: LiveRegions,
    /// By the region's number.
    live: Map<u64, RegionTouches>,
    removed: results::Largest,
    types: Vec<TypeTouches>,
    /// Accesses outside of all regions.
    untyped: TypeTouches,
    /// Misses, by the thread's node and that of the page.
    matrix: Vec<u64>,
    total: NumaTouches,
    zero_size: u64,
    records: u64,
}

impl Numa {
    /// Begins. A page size that is not a power of two is rounded up to one.
    pub fn new(options: NumaOptions) -> Self {
        let nodes = options.nodes.count() as usize;
        let page_bytes = options.page_bytes.clamp(LINE_BYTES, 1 << 40).next_power_of_two();
        Self {
            nodes,
            threads: Vec::new(),
            caches: Vec::new(),
            pages: Pages::new(page_bytes, nodes),
            regions: LiveRegions::new(),
            live: Map::default(),
            removed: results::Largest::new(REGIONS_KEPT),
            types: Vec::new(),
            untyped: TypeTouches::new(None),
            matrix: vec![0; nodes * nodes],
            total: NumaTouches::default(),
            zero_size: 0,
            records: 0,
            options: NumaOptions { page_bytes, ..options },
        }
    }

    /// The results.
    pub fn finish(self) -> NumaResults {
        let mut regions = self.removed;
        self.live.into_values().for_each(|region| regions.put(region));
        let best_remote_misses = self.pages.best_remote_misses();
        let mut types = self.types;
        types.push(self.untyped);
        NumaResults {
            options: self.options,
            nodes: self.nodes,
            pages_by_node: self.pages.by_node(),
            best_remote_misses,
            threads: self.threads,
            regions: regions.into_sorted(),
            types,
            matrix: self.matrix,
            total: self.total,
            zero_size: self.zero_size,
            records: self.records,
        }
    }

    fn take(&mut self, access: &Access) {
        let at = access.thread as usize;
        let (Some(thread), Some(cache)) = (self.threads.get_mut(at), self.caches.get_mut(at)) else { return };
        self.records = self.records.max(access.seq + 1);
        if access.bytes == 0 {
            self.zero_size += 1;
            return;
        }
        let node = thread.node as usize;
        let (page, is_first) = self.pages.touch(access.address, node);
        let home = self.pages.home(page);
        let is_missed = cache.touch(access.address / LINE_BYTES);
        let one = NumaTouches::of(home != node, is_missed);
        if is_first {
            thread.first_pages += 1;
        }
        thread.touches.add(&one);
        self.total.add(&one);
        if is_missed {
            self.pages.miss(page, node);
            if let Some(cell) = self.matrix.get_mut(node * self.nodes + home) {
                *cell += 1;
            }
        }
        let found = self.regions.find(access.thread, access.address).copied();
        let of_type = match &found {
            Some(region) => self.types.get_mut(region.type_number as usize).unwrap_or(&mut self.untyped),
            None => &mut self.untyped,
        };
        of_type.touches.add(&one);
        if is_missed {
            of_type.miss(node, home, self.nodes);
        }
        if let Some(region) = found
            && is_missed
        {
            let nodes = self.nodes;
            let touches = self.live.entry(region.id).or_insert_with(|| RegionTouches::new(&region, home, nodes));
            touches.miss(node, home);
        }
    }

    fn end(&mut self, region: &LiveRegion) {
        if let Some(touches) = self.live.remove(&region.id) {
            self.removed.put(touches);
        }
        if let Some(last) = region.last
            && last - region.start >= GIVEN_BACK_BYTES - 1
        {
            self.pages.give_back(region.start, last);
        }
    }
}

impl AccessSink for Numa {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        let node = self.options.nodes.of(number, id);
        self.threads.push(ThreadTouches { id, node, ..ThreadTouches::default() });
        self.caches.push(PrivateCache::new(self.options.cache_bytes / LINE_BYTES, self.options.ways));
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        let name = name.map_or_else(|| "(other types)".to_owned(), |name| String::from_utf8_lossy(name).into_owned());
        self.types.push(TypeTouches::new(Some(name)));
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.records = self.records.max(region.seq + 1);
        self.regions.add(region)?;
        Ok(())
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.records = self.records.max(region.seq + 1);
        if let Some(region) = self.regions.remove(region) {
            self.end(&region);
        }
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().for_each(|access| self.take(access));
        Ok(())
    }
}

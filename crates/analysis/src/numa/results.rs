//! What was counted.

use super::NumaOptions;
use crate::live_regions::LiveRegion;
use anytrace_core::access::TypeNumber;

/// Accesses and misses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NumaTouches {
    /// Accesses.
    pub accesses: u64,
    /// Of these, to pages of other nodes.
    pub remote_accesses: u64,
    /// Accesses that the thread's cache does not serve.
    pub misses: u64,
    /// Of these, to pages of other nodes.
    pub remote_misses: u64,
}

impl NumaTouches {
    pub(super) fn of(is_remote: bool, is_missed: bool) -> Self {
        Self {
            accesses: 1,
            remote_accesses: u64::from(is_remote),
            misses: u64::from(is_missed),
            remote_misses: u64::from(is_remote && is_missed),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.accesses += other.accesses;
        self.remote_accesses += other.remote_accesses;
        self.misses += other.misses;
        self.remote_misses += other.remote_misses;
    }
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadTouches {
    /// Its id in the trace; `None` for all threads beyond the limit.
    pub id: Option<u64>,
    /// The node that it runs on.
    pub node: u32,
    /// What it did.
    pub touches: NumaTouches,
    /// Pages that it touched first.
    pub first_pages: u64,
}

/// Misses of something, by the nodes of threads and pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeTouches {
    /// The type's name in the trace; `None` for accesses in no region.
    pub name: Option<String>,
    /// All threads.
    pub touches: NumaTouches,
    /// Misses by the node of their thread; empty without misses.
    pub by_node: Vec<u64>,
    /// Misses by the node of their page; empty without misses.
    pub by_home: Vec<u64>,
}

impl TypeTouches {
    pub(super) fn new(name: Option<String>) -> Self {
        Self { name, ..Self::default() }
    }

    pub(super) fn miss(&mut self, node: usize, home: usize, nodes: usize) {
        // Most types of a trace with very many have no accesses.
        self.by_node.resize(nodes, 0);
        self.by_home.resize(nodes, 0);
        count(&mut self.by_node, node);
        count(&mut self.by_home, home);
    }
}

/// A region with misses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionTouches {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Type.
    pub type_number: TypeNumber,
    /// Record that added it.
    pub added_at: u64,
    /// The node of the page of its first miss.
    pub home: u32,
    /// Misses by the node of their thread.
    pub by_node: Vec<u64>,
    /// Misses.
    pub misses: u64,
    /// Of these, to pages of other nodes.
    pub remote_misses: u64,
}

impl RegionTouches {
    pub(super) fn new(region: &LiveRegion, home: usize, nodes: usize) -> Self {
        Self {
            start: region.start,
            bytes: region.last.map_or(0, |last| (last - region.start).saturating_add(1)),
            type_number: region.type_number,
            added_at: region.seq,
            home: home as u32,
            by_node: vec![0; nodes],
            misses: 0,
            remote_misses: 0,
        }
    }

    pub(super) fn miss(&mut self, node: usize, home: usize) {
        count(&mut self.by_node, node);
        self.misses += 1;
        self.remote_misses += u64::from(node != home);
    }
}

fn count(counts: &mut [u64], node: usize) {
    if let Some(count) = counts.get_mut(node) {
        *count += 1;
    }
}

/// Result of a pass.
#[derive(Debug)]
pub struct NumaResults {
    /// The machine.
    pub options: NumaOptions,
    /// Its nodes.
    pub nodes: usize,
    /// Pages by the node that they lie on. What was given back and touched again counts again.
    pub pages_by_node: Vec<u64>,
    /// Misses that would be remote if each page were on the node that misses in it most.
    pub best_remote_misses: u64,
    /// Threads in the order of their numbers.
    pub threads: Vec<ThreadTouches>,
    /// Regions with remote misses, those with most of them first; at most [`super::REGIONS_KEPT`].
    pub regions: Vec<RegionTouches>,
    /// Types by number; the last are accesses in no region.
    pub types: Vec<TypeTouches>,
    /// Misses by the thread's node, then by the page's: `nodes` times `nodes`.
    pub matrix: Vec<u64>,
    /// All accesses.
    pub total: NumaTouches,
    /// Accesses of no bytes, which are not among them.
    pub zero_size: u64,
    /// Records seen.
    pub records: u64,
}

impl NumaResults {
    /// The name of a type; `None` for accesses in no region.
    pub fn type_name(&self, number: TypeNumber) -> Option<&str> {
        self.types.get(number as usize)?.name.as_deref()
    }

    /// Misses that would be remote, on average, if pages were on all nodes in turn (`numactl --interleave=all`).
    pub fn interleaved_remote_misses(&self) -> u64 {
        let nodes = self.nodes as u64;
        (u128::from(self.total.misses) * u128::from(nodes - 1) / u128::from(nodes)) as u64
    }
}

/// Regions with most remote misses.
#[derive(Debug)]
pub(super) struct Largest {
    regions: Vec<RegionTouches>,
    limit: usize,
}

impl Largest {
    pub(super) fn new(limit: usize) -> Self {
        Self { regions: Vec::new(), limit }
    }

    pub(super) fn put(&mut self, region: RegionTouches) {
        if region.remote_misses == 0 {
            return;
        }
        self.regions.push(region);
        // Now and then, so that each region is sorted a few times only.
        if self.regions.len() > 2 * self.limit {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.regions.sort_by_key(|region| (std::cmp::Reverse(region.remote_misses), region.added_at));
        self.regions.truncate(self.limit);
    }

    pub(super) fn into_sorted(mut self) -> Vec<RegionTouches> {
        self.cut();
        self.regions
    }
}

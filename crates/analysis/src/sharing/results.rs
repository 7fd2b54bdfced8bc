//! The result: lines that cores take from each other.

use super::pairs::Pair;
use super::proposals::Proposal;
use crate::mesi::CoherenceCounts;

/// Counts of the model, each a touch of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MesiStats {
    /// Reads that found a copy.
    pub read_hits: u64,
    /// Reads that did not.
    pub read_misses: u64,
    /// Writes that found a copy, a shared one too.
    pub write_hits: u64,
    /// Writes that did not.
    pub write_misses: u64,
    /// Lines that had to go for others.
    pub evictions: u64,
    /// Coherence between the cores' copies.
    pub coherence: CoherenceCounts,
}

impl MesiStats {
    /// The counters by the names of the oracle's keys.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let own = [
            ("read_hits", self.read_hits),
            ("read_misses", self.read_misses),
            ("write_hits", self.write_hits),
            ("write_misses", self.write_misses),
            ("evictions", self.evictions),
        ];
        own.into_iter().chain(self.coherence.named())
    }
}

/// The accesses of a core to a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCore {
    /// The core's number.
    pub core: u32,
    /// Touches that read.
    pub reads: u64,
    /// Touches that write.
    pub writes: u64,
    /// Bytes read, a bit each.
    pub read_bytes: u128,
    /// Bytes written, a bit each.
    pub written_bytes: u128,
}

/// A line that cores took from each other.
#[derive(Debug, Clone, PartialEq)]
pub struct ContendedLine {
    /// Its address.
    pub line: u64,
    /// The cores that touched it, by number.
    pub cores: Vec<LineCore>,
    /// Misses after a write by another core, where no access before the next loss touched what others had written.
    pub false_misses: u64,
    /// Misses of which one did.
    pub true_misses: u64,
    /// Of these, those of which the first access did.
    pub true_at_once: u64,
    /// Copies taken by writes.
    pub invalidations: u64,
    /// Touches that needed what another core had just changed: the line went from cache to cache.
    pub handovers: u64,
    /// Touches by atomic accesses, once several cores had touched the line.
    pub atomics: u64,
    /// Touches by accesses that reach from a line into the next, once several cores had touched the line.
    pub straddles: u64,
}

impl ContendedLine {
    /// Misses after another's write.
    pub fn misses(&self) -> u64 {
        self.false_misses + self.true_misses
    }

    /// Touches of the line.
    pub fn accesses(&self) -> u64 {
        self.cores.iter().map(|core| core.reads + core.writes).sum()
    }

    /// Touches for which the line went from cache to cache, of a hundred: 0 to 100.
    pub fn ping_pong(&self) -> f64 {
        self.handovers as f64 * 100.0 / self.accesses().max(1) as f64
    }
}

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct SharingResults {
    /// The machine.
    pub line_bytes: u64,
    /// Bytes per core's cache.
    pub cache_bytes: u64,
    /// Lines per set.
    pub ways: u64,
    /// Threads that touched memory: their ids, `None` for those beyond the limit; and the core of each.
    pub threads: Vec<(Option<u64>, u32)>,
    /// The counters of the model; there true and false sharing are decided by the first access of each miss.
    pub stats: MesiStats,
    /// Coherence misses that are true sharing by the accesses of the copy's entire lifetime.
    pub true_misses: u64,
    /// Distinct lines.
    pub lines: u64,
    /// Lines that several cores touched.
    pub lines_shared: u64,
    /// Lines that cores took from each other, the most expensive first.
    pub contended: Vec<ContendedLine>,
    /// Pairs of fields and threads, the dearest first.
    pub pairs: Vec<Pair>,
    /// Changes worth trying, those about most false sharing first.
    pub proposals: Vec<Proposal>,
    /// How often pairs beyond the limit of those counted had a cost.
    pub other_pairs: u64,
    /// Accesses of no bytes.
    pub zero_size: u64,
}

impl SharingResults {
    /// Coherence misses that are false sharing by the accesses of the copy's entire lifetime.
    pub fn false_misses(&self) -> u64 {
        self.stats.coherence.coherence_misses - self.true_misses
    }

    /// Ids of the threads that run on a core.
    pub fn threads_of(&self, core: u32) -> impl Iterator<Item = Option<u64>> {
        self.threads.iter().filter(move |(_, of)| *of == core).map(|(id, _)| *id)
    }
}

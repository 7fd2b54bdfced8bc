//! Transitions of the MESI protocol (Papamarcos & Patel 1984) between private caches, as both models count them:
//! [`crate::cache`] with hierarchies of any shape, [`crate::sharing`] with one small cache per core and the names of
//! the sharers.

/// What MESI did between private caches, each a touch of a line; by the definitions of the corpus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoherenceCounts {
    /// Misses of a core that never had the line.
    pub cold_misses: u64,
    /// Misses of a core that evicted the line.
    pub replacement_misses: u64,
    /// Misses of a core that lost the line to another's write.
    pub coherence_misses: u64,
    /// Of these, misses whose access touches no byte that others had written since.
    pub false_sharing_misses: u64,
    /// Of these, the others.
    pub true_sharing_misses: u64,
    /// Writes to a line that others had too.
    pub upgrades: u64,
    /// Copies invalidated.
    pub invalidations: u64,
    /// Misses that another core's modified copy served.
    pub interventions: u64,
    /// Lines written back for that.
    pub writebacks: u64,
}

impl CoherenceCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cold_misses += other.cold_misses;
        self.replacement_misses += other.replacement_misses;
        self.coherence_misses += other.coherence_misses;
        self.false_sharing_misses += other.false_sharing_misses;
        self.true_sharing_misses += other.true_sharing_misses;
        self.upgrades += other.upgrades;
        self.invalidations += other.invalidations;
        self.interventions += other.interventions;
        self.writebacks += other.writebacks;
    }

    /// The counters by the names of the oracle's keys.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("cold_misses", self.cold_misses),
            ("replacement_misses", self.replacement_misses),
            ("coherence_misses", self.coherence_misses),
            ("false_sharing_misses", self.false_sharing_misses),
            ("true_sharing_misses", self.true_sharing_misses),
            ("upgrades", self.upgrades),
            ("invalidations", self.invalidations),
            ("interventions", self.interventions),
            ("writebacks", self.writebacks),
        ]
    }
}

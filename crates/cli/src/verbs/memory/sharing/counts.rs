//! What one order of the threads costs.

use anytrace_analysis::interleave::Schedule;
use anytrace_analysis::sharing::SharingResults;

/// What one order costs.
pub(super) struct Counts {
    pub(super) schedule: Schedule,
    pub(super) misses: u64,
    pub(super) coherence_misses: u64,
    pub(super) false_misses: u64,
    pub(super) true_misses: u64,
    pub(super) invalidations: u64,
}

impl Counts {
    pub(super) fn of(schedule: Schedule, found: &SharingResults) -> Self {
        let stats = &found.stats;
        Self {
            schedule,
            misses: stats.read_misses + stats.write_misses,
            coherence_misses: stats.coherence.coherence_misses,
            false_misses: found.false_misses(),
            true_misses: found.true_misses,
            invalidations: stats.coherence.invalidations,
        }
    }

    /// All numbers with their names.
    pub(super) fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("misses", self.misses),
            ("coherence_misses", self.coherence_misses),
            ("false_sharing_misses", self.false_misses),
            ("true_sharing_misses", self.true_misses),
            ("invalidations", self.invalidations),
        ]
    }
}

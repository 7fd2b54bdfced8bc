//! Layouts that would miss less: proposals from the behavior in a trace, each tried by simulating the trace with it.
//!
//! Three passes over a trace: a [`Survey`] counts fields, which fields are used together and which threads share lines;
//! [`candidates`] derives proposals from that; a [`Trial`] simulates all of them at once. Proposals without a gain are
//! kept as tried. The gain in run time is not estimated, only what the caches miss.

mod affinity;
mod propose;
mod survey;
mod trial;
mod units;

pub use propose::{Candidate, Kind, candidates, unchanged};
pub use survey::{Survey, Surveyed};
pub use trial::{Measured, Trial, weight};
pub use units::Unit;

use crate::remap::TypePlan;

/// A proposal that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// What is proposed.
    pub candidate: Candidate,
    /// With the present layout.
    pub before: Measured,
    /// The same, but with the regions of the type moved as those of the proposal are: what of a gain is due to the move
    /// alone.
    pub moved: Measured,
    /// With the proposal.
    pub after: Measured,
    /// Share of the weighted misses that disappears, relative to the better of `before` and `moved`; below 0 it is
    /// worse.
    pub gain: f64,
}

impl Tried {
    /// Puts the figures of a proposal together.
    pub fn new(candidate: Candidate, before: Measured, moved: Measured, after: Measured) -> Self {
        let best = before.weighted().min(moved.weighted());
        let gain = if best > 0.0 { (best - after.weighted()) / best } else { 0.0 };
        Self { candidate, before, moved, after, gain }
    }

    /// True when it gains enough to be worth a change: half a percent of all misses, and some.
    pub fn is_advice(&self) -> bool {
        const SHARE_MIN: f64 = 0.005;
        const LINES_MIN: f64 = 8.0;
        let best = self.before.weighted().min(self.moved.weighted());
        self.gain >= SHARE_MIN && best - self.after.weighted() >= LINES_MIN * weight(0)
    }
}

/// Sorts proposals, the greatest gain first; those that gain the same in the order they were made.
pub fn rank(tried: &mut [Tried]) {
    tried.sort_by(|a, b| b.gain.total_cmp(&a.gain));
}

/// The best advice for each type, to be tried together.
pub fn best_of_each(tried: &[Tried]) -> Vec<TypePlan> {
    let mut plans: Vec<TypePlan> = Vec::new();
    for one in tried.iter().filter(|one| one.is_advice()) {
        if !plans.iter().any(|plan| plan.name == one.candidate.plan.name) {
            plans.push(one.candidate.plan.clone());
        }
    }
    plans
}

#[cfg(test)]
mod tests;

//! Delta debugging: leaves out records as long as the checker still gives the same verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::steps::{Outcome, Step, Verdict};
use crate::model::{Checker, Options};
use crate::wire::record::{Kind, Transition};

/// Entries and words that a step may look at for the price of a record.
const LOOKS_PER_RECORD: u64 = 16;

/// Records that are copied for the price of a checked one.
const COPIES_PER_RECORD: u64 = 8;

/// What the checker says of some of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    /// The same verdict.
    Same,
    /// Another violation comes first, at this step.
    Other { at: usize, location: Option<u64> },
    /// No violation, or the verdict is unknown.
    Nothing,
}

pub(super) struct Search<'a> {
    pub(super) steps: &'a [Step],
    pub(super) options: Options,
    pub(super) wanted: Verdict,
    pub(super) candidates: u64,
    /// Records checked, including the cost of long walks.
    pub(super) work: u64,
    pub(super) work_max: u64,
}

/// Divides records into units, by number.
type Units = fn(&[Step], &[usize]) -> Vec<u64>;

impl Search<'_> {
    /// True when the budget is used up.
    pub(super) fn is_over(&self) -> bool {
        self.work >= self.work_max
    }

    /// Checks some of the records. It ends early when the budget is used up.
    pub(super) fn check(&mut self, kept: &[usize]) -> Trial {
        self.candidates += 1;
        let mut checker = Checker::new(self.options);
        let before = self.work;
        for (records, at) in kept.iter().enumerate() {
            let Some(step) = self.steps.get(*at) else { continue };
            checker.step(step.thread, &step.transition);
            self.work = before.saturating_add(records as u64 + 1).saturating_add(checker.work / LOOKS_PER_RECORD);
            if checker.found().is_empty() {
                if self.is_over() {
                    return Trial::Nothing;
                }
                continue;
            }
            match Outcome::of(&checker) {
                Outcome::Nothing => {}
                Outcome::Doubt(_) => return Trial::Nothing,
                Outcome::Violation(verdict) if verdict == self.wanted => return Trial::Same,
                Outcome::Violation(Verdict { location, .. }) => return Trial::Other { at: *at, location },
            }
        }
        Trial::Nothing
    }

    fn holds(&mut self, kept: &[usize]) -> bool {
        self.check(kept) == Trial::Same
    }

    /// Leaves out records until none can be left out, or the budget is used up.
    pub(super) fn reduce(&mut self, mut kept: Vec<usize>) -> Vec<usize> {
        loop {
            let before = kept.len();
            for units in [by_thread, by_page, by_round, by_kind] {
                kept = self.without_units(kept, units);
            }
            kept = self.without_runs(kept);
            if kept.len() == before || self.is_over() {
                return kept;
            }
        }
    }

    /// Leaves out units, in halves, quarters and so on, then one by one.
    fn without_units(&mut self, mut kept: Vec<usize>, units: Units) -> Vec<usize> {
        let of = units(self.steps, &kept);
        let mut names: Vec<u64> = of.clone();
        names.sort_unstable();
        names.dedup();
        let unit: BTreeMap<usize, u64> = kept.iter().copied().zip(of).collect();
        let mut size = names.len().div_ceil(2);
        while size > 0 && !self.is_over() {
            let mut at = 0;
            while at < names.len() && !self.is_over() {
                self.work += 1 + kept.len() as u64 / COPIES_PER_RECORD;
                let end = (at + size).min(names.len());
                let gone: BTreeSet<u64> = names[at..end].iter().copied().collect();
                let is_kept = |step: &usize| unit.get(step).is_none_or(|unit| !gone.contains(unit));
                let rest: Vec<usize> = kept.iter().copied().filter(is_kept).collect();
                if rest.len() < kept.len() && self.holds(&rest) {
                    kept = rest;
                    names.drain(at..end);
                } else {
                    at = end;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        kept
    }

    /// Leaves out runs of records, ever shorter.
    fn without_runs(&mut self, mut kept: Vec<usize>) -> Vec<usize> {
        let mut size = kept.len().div_ceil(2);
        while size > 0 && !self.is_over() {
            let mut end = kept.len();
            let mut has_shrunk = false;
            // From the end: later steps depend on earlier ones.
            while end > 0 && !self.is_over() {
                self.work += 1 + kept.len() as u64 / COPIES_PER_RECORD;
                let start = end.saturating_sub(size);
                let rest: Vec<usize> = kept[..start].iter().chain(&kept[end..]).copied().collect();
                if self.holds(&rest) {
                    kept = rest;
                    has_shrunk = true;
                }
                end = start;
            }
            if size == 1 && has_shrunk {
                continue;
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        kept
    }
}

impl Step {
    /// The page that the step concerns, if there is one.
    fn page(&self) -> Option<u64> {
        match self.transition {
            Transition::MemWrite { address, .. }
            | Transition::MemAtomic { address, .. }
            | Transition::MemRead { address, .. }
            | Transition::MemInit { address, .. }
            | Transition::MemFree { address, .. }
            | Transition::MemSet { address, .. }
            | Transition::Lock { address }
            | Transition::Unlock { address }
            | Transition::Trylock { address } => Some(address >> 12),
            Transition::Hint { location, .. } => Some(location >> 12),
            Transition::SysregWrite { value, .. } => Some((value & 0xffff_ffff_ffff) >> 12),
            _ => None,
        }
    }
}

fn by_thread(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    kept.iter().map(|at| u64::from(steps[*at].thread)).collect()
}

fn by_page(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    let mut none = 1 << 60;
    let of = |at: &usize| {
        none += 1;
        // A record that concerns no page is a unit of its own.
        steps[*at].page().unwrap_or(none)
    };
    kept.iter().map(of).collect()
}

fn by_kind(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    kept.iter().map(|at| steps[*at].transition.kind() as u64).collect()
}

/// From a lock to the unlock of the same thread; records outside are units of their own.
fn by_round(steps: &[Step], kept: &[usize]) -> Vec<u64> {
    let mut open: BTreeMap<u32, u64> = BTreeMap::new();
    let mut next = 0;
    let mut units = Vec::with_capacity(kept.len());
    for at in kept {
        let step = &steps[*at];
        next += 1;
        let unit = match step.transition.kind() {
            Kind::Lock | Kind::Trylock => *open.entry(step.thread).or_insert(next),
            Kind::Unlock => open.remove(&step.thread).unwrap_or(next),
            _ => open.get(&step.thread).copied().unwrap_or(next),
        };
        units.push(unit);
    }
    units
}

//! `casemate minimise`: the smallest trace with the same verdict, by a causal slice and delta debugging.
//!
//! First, the records that can have led to the violation are collected (`slice`), few at first and more as long as the
//! checker does not give the same verdict on them. Then, complete units are removed: threads, pages, rounds under a lock,
//! kinds; then runs of records, ever shorter, until no single record can be removed. A candidate counts when its first
//! violation breaks the same rule at the same location.

mod search;
mod slice;
mod steps;
#[cfg(test)]
mod tests;

use anytrace_core::{Error, Input, OpenOptions, Sink};

use crate::model::Options;
use search::{Search, Trial};
use slice::{Index, Seed, Slice, unclean_below};
use steps::{Failing, Steps};

/// The depth of the first slice, and by how much it grows.
const DEPTH: usize = 4;
const DEEPER: usize = 4;

/// Slices that are tried before the complete trace.
const SLICES_MAX: usize = 32;

/// Records that are left out of one slice because they break another rule first.
const LEFT_OUT_MAX: usize = 32;

/// A trace made smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minimised {
    /// The records as they are in the trace, one per line.
    pub bytes: Vec<u8>,
    /// How many records there are.
    pub records: usize,
    /// How many records there were.
    pub records_before: usize,
    /// The reference's message.
    pub message: &'static str,
    /// The location of the violation.
    pub location: Option<u64>,
    /// How many candidates were checked.
    pub candidates: u64,
    /// Records checked for that; walks over long tables count as several.
    pub work: u64,
    /// True when no single record can be removed; false when the budget was used up before.
    pub is_minimal: bool,
}

/// What there is to minimize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smallest {
    /// The trace breaks no rule.
    NoViolation,
    /// The verdict is unknown, for these reasons: what follows may be caused by what is missing.
    Unknown(Vec<&'static str>),
    /// A smaller trace.
    Found(Minimised),
}

/// Minimizes a trace. `work_max` bounds the records that are checked in candidates, so that the result is the same on
/// every machine. Memory grows with the trace up to its first violation, about 300 bytes per record.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn minimise(
    input: Input,
    open: &OpenOptions,
    options: Options,
    work_max: u64,
    sink: &mut dyn Sink,
) -> Result<Smallest, Error> {
    let options = Options { goes_on: false, ..options };
    let steps = match steps::read(input, open, options, sink)? {
        Failing::No => return Ok(Smallest::NoViolation),
        Failing::Unknown(reasons) => return Ok(Smallest::Unknown(reasons)),
        Failing::Yes(steps) => steps,
    };
    let mut search = Search { steps: &steps.all, options, wanted: steps.verdict, candidates: 0, work: 0, work_max };
    let kept = sliced(&mut search, &steps).unwrap_or_else(|| (0..steps.all.len()).collect());
    let kept = search.reduce(kept);
    Ok(Smallest::Found(Minimised {
        bytes: steps.text(&kept),
        records: kept.len(),
        records_before: steps.all.len(),
        message: steps.verdict.message,
        location: steps.verdict.location,
        candidates: search.candidates,
        work: search.work,
        is_minimal: !search.is_over(),
    }))
}

/// The first slice with the same verdict; none if slices become as long as the trace.
fn sliced(search: &mut Search<'_>, steps: &Steps) -> Option<Vec<usize>> {
    let index = Index::new(steps);
    let end = steps.all.len().checked_sub(1)?;
    let mut seeds: Vec<Seed> = vec![(steps.verdict.location, end)];
    seeds.extend(unclean_below(steps).into_iter().map(|cell| (Some(cell), end)));
    let (mut depth, mut before) = (DEPTH, 0);
    for _ in 0..SLICES_MAX {
        let mut kept = Slice::of(&index, &seeds, depth);
        if kept.len() >= steps.all.len() || search.is_over() {
            return None;
        }
        // A slice that did not grow gives the same answer.
        let has_grown = kept.len() > before;
        before = kept.len();
        match if has_grown { tried(search, &mut kept) } else { Trial::Nothing } {
            Trial::Same => return Some(kept),
            // Something about the location of the other violation is missing.
            Trial::Other { at, location } if !seeds.contains(&(location, at)) => seeds.push((location, at)),
            _ => depth = depth.saturating_mul(DEEPER),
        }
    }
    None
}

/// Checks a slice. Records that break another rule first, because what led to them is not in the slice, are left out as
/// long as that helps. Otherwise the first of them is the answer.
fn tried(search: &mut Search<'_>, kept: &mut Vec<usize>) -> Trial {
    let first = search.check(kept);
    let mut trial = first;
    for _ in 0..LEFT_OUT_MAX {
        let Trial::Other { at, .. } = trial else { break };
        if kept.last() == Some(&at) {
            break;
        }
        kept.retain(|other| *other != at);
        trial = search.check(kept);
    }
    if trial == Trial::Same { trial } else { first }
}

//! Finds where damage really began, when an unknown tag is only its late symptom.
//!
//! Bytes lost inside a record put all later ones out of step. Most bytes are zero or small, so many of the misread
//! records have known tags, until one does not. Records out of step are implausible, and the true ones can be read
//! among them: only both together distinguish them from odd records.

use crate::wire::likeness::Likeness;
use crate::wire::parse::parse_record;
use crate::wire::record::Layout;
use crate::wire::resync::{ODD_MAX, Resume, Trust, find};

/// How far before an unknown tag damage is searched.
pub(crate) const BYTES: usize = 4096;

/// This many consecutive ordinary records were read in step.
const IN_STEP: usize = 4;

/// Lower scores are out of character.
const SCORE_MIN: u32 = 4;

/// Most offsets at which other records are tried: bounds the work on bytes that read as records at nearly every offset.
const TRIES_MAX: usize = 256;

/// Fewest plausible records that replace others at the end of the data.
const RECORDS_MIN: usize = 4;

/// The records before the place where framing ends.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// Where the records begin, up to [`BYTES`] back, in order.
    starts: Vec<usize>,
}

impl Before {
    /// The records of `window` from a boundary to `end`, as far as they are near enough.
    pub(crate) fn of(window: &[u8], end: usize, layout: Layout) -> Self {
        let mut starts = Vec::new();
        let mut at = 0;
        while at < end
            && let Some(Ok((_, used))) = window.get(at..).map(|rest| parse_record(rest, layout))
        {
            if end - at <= BYTES {
                starts.push(at);
            }
            at += used;
        }
        Self { starts }
    }

    /// Lets `likeness` learn from the records up to `end`.
    pub(crate) fn teach(&self, likeness: &mut Likeness, window: &[u8], end: usize, layout: Layout) {
        for &at in self.starts.iter().take_while(|at| **at < end) {
            if let Some(Ok((record, _))) = window.get(at..).map(|rest| parse_record(rest, layout)) {
                likeness.learn(&record, layout);
            }
        }
    }

    /// The record in which reading fell out of step and how many were misread from there to `end`, where framing ends;
    /// or `None`, where the records before `end` were read correctly.
    pub(crate) fn out_of_step(
        &self,
        window: &[u8],
        end: usize,
        is_end: bool,
        layout: Layout,
        likeness: &Likeness,
    ) -> Option<(usize, usize)> {
        let mut trust = Trust { layout, likeness: likeness.clone() };
        let middle = self.starts.get(self.starts.len() / 2).copied().unwrap_or(0);
        self.teach(&mut trust.likeness, window, middle, layout);
        let first = self.first_odd(window, &trust)?;
        let mut from = 1;
        for _ in 0..TRIES_MAX {
            let Resume::At(found) = find(window.get(first..)?, from, is_end, &trust) else { return None };
            let found = first + found;
            // Records resume only after the place where framing ends: nothing before it was misread.
            if found >= end {
                return None;
            }
            let broken = self.starts.iter().rposition(|at| *at < found)?;
            let damage = *self.starts.get(broken)?;
            let misread = self.starts.get(broken..)?;
            if outlasts(window, found, end, &trust) && is_better(window, (found, end), misread, &trust) {
                return Some((damage, misread.len()));
            }
            // The next offset: records there did not explain the bytes better than those that were read.
            from = found - first + 1;
        }
        None
    }

    /// The first of the atypical records that lead to the end.
    fn first_odd(&self, window: &[u8], trust: &Trust) -> Option<usize> {
        let mut first = None;
        let mut in_step = 0;
        // Backward from the end, until several ordinary records in a row say that reading was in step there.
        for &at in self.starts.iter().rev() {
            let (record, _) = parse_record(window.get(at..)?, trust.layout).ok()?;
            if trust.likeness.score(&record, trust.layout) < SCORE_MIN {
                first = Some(at);
                in_step = 0;
            } else {
                in_step += 1;
            }
            if in_step >= IN_STEP {
                break;
            }
        }
        first
    }
}

/// True when records from `at` on lead past `end`, or complete ones to the end of the data, with few odd ones.
fn outlasts(window: &[u8], mut at: usize, end: usize, trust: &Trust) -> bool {
    let (mut records, mut odd) = (0, 0);
    while at <= end {
        let Some(rest) = window.get(at..).filter(|rest| !rest.is_empty()) else { return records >= RECORDS_MIN };
        let Ok((record, used)) = parse_record(rest, trust.layout) else { return false };
        records += 1;
        odd += usize::from(!trust.likeness.is_plausible(&record, trust.layout));
        at += used;
    }
    odd <= ODD_MAX.max(records / 8)
}

/// True when the records from `found` up to `end` score better than those that were misread.
fn is_better(window: &[u8], (found, end): (usize, usize), misread: &[usize], trust: &Trust) -> bool {
    let score = |at: usize| {
        let (record, used) = parse_record(window.get(at..)?, trust.layout).ok()?;
        Some((u64::from(trust.likeness.score(&record, trust.layout)), used))
    };
    let old: u64 = misread.iter().filter_map(|at| score(*at)).map(|(score, _)| score).sum();
    let (mut new, mut records, mut at) = (0, 0, found);
    while at < end
        && let Some((score, used)) = score(at)
    {
        new += score;
        records += 1;
        at += used;
    }
    // Averages are compared as products, exactly.
    new * misread.len() as u64 > old * records
}

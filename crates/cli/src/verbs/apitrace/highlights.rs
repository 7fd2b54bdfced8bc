//! What is worth knowing about a trace of graphics calls: the frame with most work, and state that is set again.

use std::path::Path;

use anytrace_apitrace::tools::stats::{By, Row, Statistics, StatsOptions, stats};

use crate::Verdict;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::units::{counted, percent};
use crate::verbs::highlights::{Highlight, Highlights};

/// The highlights of an apitrace trace.
pub(crate) fn highlights(path: &Path, input: &InputArguments) -> Result<Highlights, Failure> {
    let mut opened = match super::opening::open_reader(path, input)? {
        Ok(opened) => opened,
        Err(nothing) => return Ok((Vec::new(), nothing.verdict)),
    };
    let found = stats(&mut opened.reader, &StatsOptions::default(), &mut opened.reporter)
        .map_err(|error| Failure::of(&opened.name, &error))?;
    let verdict: Verdict = opened.verdict()?;
    Ok(([heaviest(&found), redundant(&found)].into_iter().flatten().collect(), verdict))
}

/// The frame with most calls.
fn heaviest(found: &Statistics) -> Option<Highlight> {
    let rows: Vec<&Row> = found.rows(By::Frame).iter().collect();
    let most = rows.iter().max_by_key(|row| (row.figures.calls, std::cmp::Reverse(row.first)))?;
    let mut calls: Vec<u64> = rows.iter().map(|row| row.figures.calls).collect();
    calls.sort_unstable();
    let median = calls.get(calls.len() / 2).copied().unwrap_or_default();
    let text = format!(
        "Frame {} has most calls: {} with {} (median of {}: {median}).",
        most.label,
        most.figures.calls,
        counted(most.figures.draws, "draw"),
        counted(rows.len() as u64, "frame"),
    );
    Some(Highlight::new(text, "apitrace stats --by frame"))
}

/// The state that is set most often to the value it has.
fn redundant(found: &Statistics) -> Option<Highlight> {
    let total = found.total;
    let most = |by| {
        let rows = found.rows(by).iter().filter(|row| row.figures.redundant > 0);
        rows.max_by_key(|row| (row.figures.redundant, std::cmp::Reverse(row.first)))
    };
    let (state, frame) = (most(By::State)?, most(By::Frame)?);
    let text = format!(
        "{} of {} ({}) set a value that is already set: {} {}, and frame {} has most, {}.",
        total.redundant,
        counted(total.state_changes, "state change"),
        percent(total.redundant as f64, total.state_changes as f64),
        state.label,
        counted(state.figures.redundant, "time"),
        frame.label,
        frame.figures.redundant
    );
    Some(Highlight::new(text, "apitrace stats --by state --sort redundant"))
}

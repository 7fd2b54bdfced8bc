//! A trace's sharing: simulated in one or more orders of its threads, and again with each change worth trying.

use std::cell::RefCell;
use std::path::Path;

use anytrace_analysis::interleave::{Interleaved, Interleaver, Schedule};
use anytrace_analysis::runs::{RunLengths, Runs};
use anytrace_analysis::sharing::{Sharing, SharingOptions, SharingResults, Tried, try_all};
use anytrace_core::access::DataOnly;
use anytrace_core::layout::Layouts;
use anytrace_core::{AccessSink, Collect, Error, text};

use super::SharingArguments;
use super::counts::Counts;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::verbs::memory::opening;
use crate::verbs::memory::type_data::SharedLayouts;
use crate::{Verdict, open, paint};

/// One trace's result.
pub(super) struct Outcome {
    /// Of the order with most false sharing.
    pub(super) found: SharingResults,
    /// That order.
    pub(super) schedule: Schedule,
    /// Every order's counts, that of the trace first.
    pub(super) schedules: Vec<Counts>,
    pub(super) runs: Runs,
    pub(super) interleaved: Interleaved,
    /// The changes worth trying, simulated; `None` where the trace cannot be read again.
    pub(super) tried: Option<Vec<Tried>>,
}

impl Outcome {
    /// The changes that gain, those that gain most first.
    pub(super) fn advice(&self) -> Vec<&Tried> {
        self.tried.as_deref().map(advice).unwrap_or_default()
    }
}

/// The changes that gain, those that gain most first.
pub(in super::super) fn advice(tried: &[Tried]) -> Vec<&Tried> {
    let mut advice: Vec<_> = tried.iter().filter(|one| one.is_advice()).collect();
    advice.sort_by_key(|one| std::cmp::Reverse(one.gain()));
    advice
}

pub(super) fn find(
    file: &Path,
    options: &SharingArguments,
    layouts: &mut dyn Layouts,
) -> Result<(Outcome, Verdict), Failure> {
    let name = file.display().to_string();
    let opened = opening::open(file, &options.input)?;
    let (model, schedules) = (options.model(), options.schedules.schedules());
    let own: &mut dyn Layouts = &mut *layouts;
    let shared = RefCell::new(own);
    let mut types: Vec<SharedLayouts<'_, '_>> = schedules.iter().map(|_| SharedLayouts(&shared)).collect();
    let mut engines: Vec<Sharing<'_>> = types.iter_mut().map(|own| Sharing::new(model.clone(), Some(own))).collect();
    let (read, runs, interleaved) = if let [only] = engines.as_mut_slice() {
        let mut lengths = RunLengths::new(only);
        (opened.read_data(&mut lengths)?, lengths.finish(), Interleaved::default())
    } else {
        let ways = schedules.iter().copied().zip(engines.iter_mut().map(|engine| engine as &mut dyn AccessSink));
        let mut interleaver = Interleaver::new(ways);
        let mut lengths = RunLengths::new(&mut interleaver);
        let read = opened.read_data(&mut lengths)?;
        let runs = lengths.finish();
        (read, runs, interleaver.finish().map_err(|error| Failure::of(&name, &error))?)
    };
    options.schedules.complain(&name, &runs, &interleaved);
    let found: Vec<SharingResults> = engines.into_iter().map(Sharing::finish).collect();
    drop(types);
    let counts: Vec<Counts> = schedules.iter().zip(&found).map(|(one, found)| Counts::of(*one, found)).collect();
    let cost = |(at, one): &(usize, SharingResults)| (one.false_misses(), one.true_misses, std::cmp::Reverse(*at));
    let worst = found.into_iter().enumerate().max_by_key(cost);
    let (at, found) = worst.expect("the order of the trace is always simulated");
    let schedule = schedules.get(at).copied().unwrap_or(Schedule::Recorded);
    let tried = try_changes(file, &options.input, (&model, schedule), &found, layouts)?;
    Ok((Outcome { found, schedule, schedules: counts, runs, interleaved, tried }, read.verdict))
}

/// Simulates the trace again with each change that may help.
pub(in super::super) fn try_changes(
    file: &Path,
    input: &InputArguments,
    (model, schedule): (&SharingOptions, Schedule),
    found: &SharingResults,
    layouts: &mut dyn Layouts,
) -> Result<Option<Vec<Tried>>, Failure> {
    if found.proposals.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let name = file.display().to_string();
    if open::is_read_once(file) {
        let what = "advice needs a second pass over the trace: give a file, not a pipe";
        paint::complain("note", format!("{}: {what}", text::printable(&name)));
        return Ok(None);
    }
    let opened = opening::open(file, input)?;
    let emit = |sink: &mut dyn AccessSink| {
        // Damage was reported by the first reading.
        let mut silent = Collect::default();
        let Some(trace) = opened.trace else { return Ok(()) };
        if schedule == Schedule::Recorded {
            return trace.accesses(&mut DataOnly::new(sink), &mut silent).map(drop);
        }
        let mut interleaver = Interleaver::new([(schedule, sink)]);
        trace.accesses(&mut DataOnly::new(&mut interleaver), &mut silent)?;
        interleaver.finish().map(drop)
    };
    let tried = try_all(model, found.proposals.clone(), layouts, emit);
    tried.map(Some).map_err(|error: Error| Failure::of(&name, &error))
}

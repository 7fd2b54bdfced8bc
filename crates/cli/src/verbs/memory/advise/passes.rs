//! The passes over a trace: the survey, then all proposals tried.

use std::path::Path;

use anytrace_analysis::advise::{Candidate, Measured, Survey, Surveyed, Trial, Tried, unchanged};
use anytrace_analysis::cache::CorePlan;
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::remap::TypePlan;
use anytrace_core::layout::Layouts;
use anytrace_core::{AccessSink, Collect};

use super::super::caches::typed_simulation;
use super::super::opening;
use super::AdviseArguments;
use crate::Verdict;
use crate::failure::Failure;

/// The first pass; the configuration may change: with several threads each has caches of its own.
pub(super) fn survey(
    path: &Path,
    options: &AdviseArguments,
    config: &Config,
    layouts: &mut dyn Layouts,
) -> Result<(Surveyed, Config, &'static str, Verdict), Failure> {
    let config = with_own_caches(config.clone());
    let opened = opening::open(path, &options.input)?;
    let (simulation, line_bytes) = typed_simulation(&config)?;
    let mut survey = Survey::new(layouts, simulation, line_bytes);
    let read = opened.read(&mut survey)?;
    let surveyed = survey.finish().map_err(|error| Failure::of(&path.display().to_string(), &error))?;
    Ok((surveyed, config, read.format, read.verdict))
}

/// Threads have first levels of their own, where the configuration does not say who shares what.
fn with_own_caches(mut config: Config) -> Config {
    if !config.levels.iter().any(|level| level.is_private) {
        let private = config.levels.len().saturating_sub(1).max(1);
        config.levels.iter_mut().take(private).for_each(|level| level.is_private = true);
    }
    config
}

/// Most bytes that all caches of a pass take.
const PASS_BYTES_MAX: u64 = 1 << 30;

/// About so many bytes describe a cache line.
const LINE_STATE_BYTES: u64 = 16;

/// How many plans a pass simulates at once.
fn plans_max(config: &Config) -> usize {
    let lines: u64 = config.levels.iter().map(|level| level.size / level.line.max(1)).sum();
    usize::try_from(PASS_BYTES_MAX / (lines.max(1) * LINE_STATE_BYTES)).unwrap_or(1).clamp(1, 512)
}

/// The passes after the first.
pub(super) struct Again<'a> {
    pub(super) path: &'a Path,
    pub(super) options: &'a AdviseArguments,
    pub(super) config: &'a Config,
    pub(super) layouts: &'a mut dyn Layouts,
}

impl Again<'_> {
    /// Tries each proposal, and each type moved without a change.
    pub(super) fn try_all(&mut self, proposals: Vec<Candidate>, before: &Measured) -> Result<Vec<Tried>, Failure> {
        if proposals.is_empty() {
            return Ok(Vec::new());
        }
        let mut moved: Vec<(String, u64)> =
            proposals.iter().map(|one| (one.plan.name.clone(), one.plan.old_bytes)).collect();
        moved.dedup();
        let mut plans: Vec<Vec<TypePlan>> = moved.iter().map(|(name, bytes)| vec![unchanged(name, *bytes)]).collect();
        plans.extend(proposals.iter().map(|one| vec![one.plan.clone()]));
        let found = self.simulate(plans)?;
        let (of_moved, of_proposals) = found.split_at(moved.len().min(found.len()));
        let pairs = proposals.into_iter().zip(of_proposals);
        let tried = pairs.map(|(candidate, after)| {
            let at = moved.iter().position(|(name, _)| *name == candidate.plan.name);
            let same = at.and_then(|at| of_moved.get(at)).unwrap_or(before);
            Tried::new(candidate, before.clone(), same.clone(), after.clone())
        });
        Ok(tried.collect())
    }

    /// Simulates the trace with each of the plans, in as many passes as bounded memory takes.
    pub(super) fn simulate(&mut self, plans: Vec<Vec<TypePlan>>) -> Result<Vec<Measured>, Failure> {
        let mut all = Vec::new();
        let mut rest = plans.into_iter().peekable();
        while rest.peek().is_some() {
            all.extend(self.pass(rest.by_ref().take(plans_max(self.config)).collect())?);
        }
        Ok(all)
    }

    fn pass(&mut self, plans: Vec<Vec<TypePlan>>) -> Result<Vec<Measured>, Failure> {
        let name = self.path.display().to_string();
        let trial = Trial::new(self.config, &CorePlan::default(), plans).map_err(|error| Failure::bare(&error))?;
        let opened = opening::open(self.path, &self.options.input)?;
        let emit = |sink: &mut dyn AccessSink| {
            // The first pass reported the damage.
            let mut silent = Collect::default();
            opened.trace.map_or(Ok(()), |trace| trace.accesses(sink, &mut silent).map(drop))
        };
        trial.run(self.layouts, emit).map_err(|error: anytrace_core::Error| Failure::of(&name, &error))
    }
}

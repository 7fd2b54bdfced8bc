//! `anytrace cacheray advise`.

mod json;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_analysis::advise::{
    Candidate, Measured, Survey, Surveyed, Trial, Tried, best_of_each, candidates, rank, unchanged,
};
use anytrace_analysis::cache::CorePlan;
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::remap::TypePlan;
use anytrace_core::layout::Layouts;
use anytrace_core::{AccessSink, Collect};
use clap::Args;

use super::caches::{CacheArguments, typed_simulation};
use super::opening;
use super::type_data::TypeDataArguments;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, terminal};

/// `cacheray advise`.
#[derive(Debug, Args)]
pub(crate) struct AdviseArguments {
    /// Traces, read three times each: files, not pipes
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// How many types are thought about, those with most misses first
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    top: usize,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    caches: CacheArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What is printed of one trace.
struct Advice {
    name: String,
    format: &'static str,
    config: Config,
    surveyed: Surveyed,
    before: Measured,
    tried: Vec<Tried>,
    /// With the best advice for each type, when there are several.
    together: Option<(Vec<TypePlan>, Measured)>,
}

pub(crate) fn run(options: &AdviseArguments) -> Result<Verdict, Failure> {
    let config = options.caches.load()?;
    options.type_data.with(|layouts| {
        let mut objects = Vec::new();
        let mut is_first = true;
        let verdict = for_each_file(&options.files, |path| {
            let (advice, verdict) = advise(path, options, &config, layouts)?;
            if options.format == ResultForm::Json {
                objects.push(json::object(&advice));
            } else {
                let gap = if is_first { "" } else { "\n" };
                write!(terminal::stdout(), "{gap}{}", text::page(&advice))?;
            }
            is_first = false;
            Ok(verdict)
        })?;
        if options.format == ResultForm::Json {
            print_json(objects, options.files.len() > 1)?;
        }
        Ok(verdict)
    })
}

fn advise(
    path: &Path,
    options: &AdviseArguments,
    config: &Config,
    layouts: &mut dyn Layouts,
) -> Result<(Advice, Verdict), Failure> {
    let name = path.display().to_string();
    if !path.is_file() {
        return Err(Failure::usage(format!("{name}: advise reads a trace three times: it needs a file, not a pipe")));
    }
    let (surveyed, config, format, verdict) = survey(path, options, config, layouts)?;
    let before = surveyed.profile.caches.as_ref().map(Measured::of).unwrap_or_default();
    let proposals = candidates(&surveyed, options.top);
    let mut again = Again { path, options, config: &config, layouts };
    let mut tried = again.try_all(proposals, &before)?;
    rank(&mut tried);
    let best = best_of_each(&tried);
    let all = if best.len() > 1 { again.simulate(vec![best.clone()])?.pop() } else { None };
    let together = all.map(|found| (best, found));
    let advice = Advice { name, format, config, surveyed, before, tried, together };
    Ok((advice, verdict))
}

/// The first pass; the configuration may change: with several threads each has caches of its own.
fn survey(
    path: &Path,
    options: &AdviseArguments,
    config: &Config,
    layouts: &mut dyn Layouts,
) -> Result<(Surveyed, Config, &'static str, Verdict), Failure> {
    let config = with_own_caches(config.clone());
    let opened = opening::open(path, &options.input)?;
    let (simulation, line_bytes) = typed_simulation(&config)?;
    let mut survey = Survey::new(layouts, simulation, line_bytes);
    let told = opened.tell(&mut survey)?;
    let surveyed = survey.finish().map_err(|error| Failure::of(&path.display().to_string(), &error))?;
    Ok((surveyed, config, told.format, told.verdict))
}

/// Threads have first levels of their own, where the configuration does not say who shares what.
fn with_own_caches(mut config: Config) -> Config {
    if !config.levels.iter().any(|level| level.is_private) {
        let private = config.levels.len().saturating_sub(1).max(1);
        config.levels.iter_mut().take(private).for_each(|level| level.is_private = true);
    }
    config
}

/// The passes after the first.
struct Again<'a> {
    path: &'a Path,
    options: &'a AdviseArguments,
    config: &'a Config,
    layouts: &'a mut dyn Layouts,
}

impl Again<'_> {
    /// Tries each proposal, and each type moved without a change.
    fn try_all(&mut self, proposals: Vec<Candidate>, before: &Measured) -> Result<Vec<Tried>, Failure> {
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

    fn simulate(&mut self, plans: Vec<Vec<TypePlan>>) -> Result<Vec<Measured>, Failure> {
        let name = self.path.display().to_string();
        let trial = Trial::new(self.config, &CorePlan::default(), plans).map_err(|error| Failure::bare(&error))?;
        let opened = opening::open(self.path, &self.options.input)?;
        let tell = |sink: &mut dyn AccessSink| {
            // What is damaged was told by the first pass.
            let mut silent = Collect::default();
            opened.trace.map_or(Ok(()), |trace| trace.accesses(sink, &mut silent).map(drop))
        };
        trial.run(self.layouts, tell).map_err(|error: anytrace_core::Error| Failure::of(&name, &error))
    }
}

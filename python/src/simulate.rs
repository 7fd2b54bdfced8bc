//! Misses in caches: `memory sim`.

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::next_use::{Foreseen, NextUse};
use anytrace_analysis::cache::presets::{PRESETS, Preset};
use anytrace_analysis::cache::{CorePlan, Cores, Options, Simulation, config_file};
use anytrace_analysis::json::{FieldNames, SimulationReport, simulation};
use anytrace_analysis::runs::RunLengths;
use anytrace_core::{AccessSink, Collect, Error};
use pyo3::prelude::*;
use serde_json::json;

use crate::failure::{Damage, Failure};
use crate::opening::{Opening, workers};
use crate::source::Answer;
use crate::work::{Stop, StoppableFindings};

/// What is simulated and reported.
#[derive(FromPyObject)]
pub(crate) struct Request {
    /// A preset's name; `None` where `text` has the configurations.
    #[pyo3(item)]
    preset: Option<String>,
    /// Configurations as a file has them, and the name of one that has none.
    #[pyo3(item)]
    text: Option<(String, String)>,
    #[pyo3(item)]
    cores: Option<usize>,
    #[pyo3(item)]
    fetches: bool,
    #[pyo3(item)]
    types: bool,
    #[pyo3(item)]
    classes: bool,
    #[pyo3(item)]
    per_set: bool,
    #[pyo3(item)]
    per_thread: bool,
}

impl Request {
    fn configs(&self) -> Result<Vec<Config>, Failure> {
        let mut configs = match (&self.preset, &self.text) {
            (Some(name), _) => {
                let known = || PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
                let unknown = || Failure::usage(format!("{name}: neither a file nor a preset; presets: {}", known()));
                vec![Preset::of_name(name).ok_or_else(unknown)?.config()]
            }
            (None, Some((text, name))) => {
                let found = config_file::parse(text, name);
                found.map_err(|wrong| Failure::usage(format!("{name}: {wrong}")))?.configs
            }
            (None, None) => Vec::new(),
        };
        if self.cores.is_some() {
            configs.iter_mut().for_each(Config::make_private);
        }
        Ok(configs)
    }

    fn cores(&self) -> CorePlan {
        self.cores.map_or(CorePlan::PerThread, CorePlan::Count)
    }
}

/// The object of `memory sim --format json`.
pub(crate) fn simulate(opening: &Opening, stop: &Stop, request: &Request) -> Result<Answer, Failure> {
    let configs = request.configs()?;
    if opening.format.is_some_and(|format| !format.has_accesses()) {
        let error = Error::usage(format!("{} traces have no memory accesses", opening.format_name()));
        return Err(opening.failed(error));
    }
    let options = Options {
        cores: request.cores(),
        with_types: request.types,
        with_classes: request.classes,
        with_fetches: request.fetches,
        threads: workers(0),
        foreseen: foresee(opening, &configs, request)?,
    };
    let mut caches = Simulation::new(configs, options).map_err(Failure::Bare)?;
    let mut lengths = RunLengths::new(&mut caches);
    let mut sink = StoppableFindings::new(0, stop);
    opening.checked(read(opening, &mut lengths, &mut sink))?;
    let runs = lengths.finish();
    let results = caches.finish().map_err(|error| opening.failed(error))?;
    let no_names: FieldNames = Box::new(|_, _, _| None);
    let report = SimulationReport { per_set: request.per_set, per_thread: request.per_thread };
    let mut object = simulation(&opening.name, opening.format_name(), &results, &no_names, report, &runs);
    object["lost"] = json!(sink.findings.lost());
    Ok((object, Damage::of(&sink.findings, opening.noun())))
}

fn read(opening: &Opening, out: &mut dyn AccessSink, sink: &mut dyn anytrace_core::Sink) -> Result<(), Error> {
    opening.trace(0, sink)?.map_or(Ok(()), |trace| trace.accesses(out, sink).map(drop))
}

/// Reads the trace once before, where a configuration has to know the future.
fn foresee(opening: &Opening, configs: &[Config], request: &Request) -> Result<Foreseen, Failure> {
    let Some(mut next_use) = NextUse::new(configs, Cores::new(request.cores()), request.fetches) else {
        return Ok(Foreseen::default());
    };
    // The second reading reports damage.
    opening.checked(read(opening, &mut next_use, &mut Collect::default()))?;
    Ok(next_use.finish())
}

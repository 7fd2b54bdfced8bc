//! Proposals tried: the trace simulated as it would be with each.

use anytrace_core::Error;
use anytrace_core::access::AccessSink;
use anytrace_core::layout::Layouts;

use crate::cache::config::Config;
use crate::cache::results::Results;
use crate::cache::{ByMark, CorePlan, MARKED, Options};
use crate::elements::Elements;
use crate::remap::{Remap, Remaps, TypePlan};

/// The weight of a miss of a level relative to other levels: each further level costs about three times as much,
/// starting at 10.
pub fn weight(level: usize) -> f64 {
    10.0 * 3.0_f64.powi(i32::try_from(level.min(16)).unwrap_or(16))
}

/// The misses of the caches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// Names of levels with their missed lines.
    pub levels: Vec<(String, u64)>,
    /// Records of each type that the first level did not serve, by name as in the trace; only that of the plan where
    /// one was tried.
    pub types: Vec<(String, u64)>,
}

impl Measured {
    /// The results of a simulation of one configuration.
    pub fn of(results: &Results) -> Self {
        let Some(config) = results.configs.first() else { return Self::default() };
        let types = config.types.iter().flat_map(|types| &types.types).map(|one| {
            let name = one.name.as_deref().unwrap_or(b"(other types)");
            (String::from_utf8_lossy(name).into_owned(), one.total.first_level_misses())
        });
        Self { levels: Self::levels(results), types: types.collect() }
    }

    fn levels(results: &Results) -> Vec<(String, u64)> {
        let levels = results.configs.iter().take(1).flat_map(|config| &config.levels);
        levels.map(|level| (level.name.clone(), level.counts.misses())).collect()
    }

    /// All misses, weighed.
    pub fn weighted(&self) -> f64 {
        self.levels.iter().enumerate().map(|(at, (_, misses))| *misses as f64 * weight(at)).sum()
    }

    /// Misses of a type and of the parts it was split into.
    pub fn of_type(&self, name: &str) -> u64 {
        let part = format!("{name} (part ");
        let own = self.types.iter().filter(|(one, _)| one == name || one.starts_with(&part));
        own.map(|(_, misses)| misses).sum()
    }
}

/// Several sets of plans, tried in one pass.
pub struct Trial {
    simulations: Vec<ByMark>,
    plans: Vec<Vec<TypePlan>>,
}

impl Trial {
    /// Begins; each set of plans is one simulation.
    ///
    /// # Errors
    /// Usage, when the configuration is wrong.
    pub fn new(config: &Config, cores: &CorePlan, plans: Vec<Vec<TypePlan>>) -> Result<Self, Error> {
        let simulations = plans
            .iter()
            .map(|_| {
                let options = Options { cores: cores.clone(), threads: 1, ..Options::default() };
                ByMark::new(config, options)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { simulations, plans })
    }

    /// Calls `emit` to emit the trace, and returns the results of each simulation.
    ///
    /// # Errors
    /// Those of `emit`.
    pub fn run<E: From<Error>>(
        mut self,
        layouts: &mut dyn Layouts,
        emit: impl FnOnce(&mut dyn AccessSink) -> Result<(), E>,
    ) -> Result<Vec<Measured>, E> {
        let plans = std::mem::take(&mut self.plans);
        let names: Vec<Option<String>> = plans
            .iter()
            .map(|plans| if let [plan] = plans.as_slice() { Some(plan.name.clone()) } else { None })
            .collect();
        let remaps = self.simulations.iter_mut().zip(plans);
        let remaps = remaps.map(|(simulation, plans)| Remap::marking(plans, MARKED, simulation));
        let mut all = Remaps::new(remaps.collect());
        emit(&mut Elements::new(layouts, &mut all))?;
        drop(all);
        let mut found = Vec::new();
        for (simulation, name) in self.simulations.into_iter().zip(names) {
            let (results, marked) = simulation.finish()?;
            found.push(Measured {
                levels: Measured::levels(&results),
                types: name.map(|name| (name, marked)).into_iter().collect(),
            });
        }
        Ok(found)
    }
}

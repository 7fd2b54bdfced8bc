//! A trace's simulation, in its own order and in others.

use std::path::Path;

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::next_use::Foreseen;
use anytrace_analysis::cache::results::Results;
use anytrace_analysis::cache::{Options, Simulation};
use anytrace_analysis::elements::TypeTable;
use anytrace_analysis::interleave::{Interleaved, Interleaver, Schedule};
use anytrace_analysis::json::FieldNames;
use anytrace_analysis::runs::{RunLengths, Runs};
use anytrace_core::AccessSink;

use super::super::configs::ConfigArguments;
use super::super::opening;
use super::super::schedules::ScheduleArguments;
use super::field_names::field_names;
use super::foresight::foresee;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, paint};

/// One trace's results.
pub(in crate::verbs::memory) struct Simulated {
    pub(in crate::verbs::memory) name: String,
    /// The format's name; "unknown" for an empty file.
    pub(super) format: &'static str,
    /// Of the trace in its own order.
    pub(in crate::verbs::memory) results: Results,
    /// Of every order that was asked for, that of the trace first; empty where it is the only one.
    pub(super) others: Vec<(Schedule, Results)>,
    pub(super) runs: Runs,
    pub(super) interleaved: Interleaved,
    pub(in crate::verbs::memory) verdict: Verdict,
    /// Names of fields.
    pub(super) names: FieldNames,
}

/// Simulates one trace in its own order; what is reported by type and of why lines were missed is in `with`.
pub(in crate::verbs::memory) fn simulate(
    path: &Path,
    configs: &[Config],
    caches: &ConfigArguments,
    with: (bool, bool),
    input: &InputArguments,
) -> Result<Simulated, Failure> {
    simulate_in(path, configs, caches, with, input, &ScheduleArguments::default())
}

/// The same in several orders of its threads.
pub(super) fn simulate_in(
    path: &Path,
    configs: &[Config],
    caches: &ConfigArguments,
    with: (bool, bool),
    input: &InputArguments,
    schedules: &ScheduleArguments,
) -> Result<Simulated, Failure> {
    let name = path.display().to_string();
    let failed = |error| Failure::of(&name, &error);
    let orders = schedules.schedules();
    let foreseen = foresee(path, configs, caches, input)?;
    let make = |(at, _): (usize, &Schedule)| {
        let options = Options {
            cores: caches.cores(),
            // Of other orders, only counts are reported.
            with_types: with.0 && at == 0,
            with_classes: with.1 && at == 0,
            with_fetches: caches.fetches,
            threads: if orders.len() > 1 { 1 } else { threads(input) },
            foreseen: if at == 0 { foreseen.clone() } else { Foreseen::default() },
        };
        Simulation::new(configs.to_vec(), options).map_err(|error| Failure::bare(&error))
    };
    let mut simulations = orders.iter().enumerate().map(make).collect::<Result<Vec<_>, _>>()?;
    let mut opened = opening::open(path, input)?;
    let (mut table, mut runs, mut interleaved) = (TypeTable::default(), Runs::default(), Interleaved::default());
    if let Some(trace) = opened.trace {
        if let [only] = simulations.as_mut_slice() {
            let mut lengths = RunLengths::new(only);
            table = caches.what_if.emit((path, input), trace, &mut lengths, &mut opened.reporter)?;
            runs = lengths.finish();
        } else {
            let ways = orders.iter().copied().zip(simulations.iter_mut().map(|one| one as &mut dyn AccessSink));
            let mut interleaver = Interleaver::new(ways);
            let mut lengths = RunLengths::new(&mut interleaver);
            table = caches.what_if.emit((path, input), trace, &mut lengths, &mut opened.reporter)?;
            runs = lengths.finish();
            interleaved = interleaver.finish().map_err(failed)?;
        }
    }
    drop(opened.progress);
    opened.reporter.print_rest()?;
    let mut all = Vec::new();
    for (order, simulation) in orders.iter().zip(simulations) {
        all.push((*order, simulation.finish().map_err(failed)?));
    }
    let results = all.first().map(|(_, results)| results.clone()).expect("the order of the trace is always simulated");
    let others = if all.len() > 1 { all } else { Vec::new() };
    complain(&name, &results);
    if has_private(&results) {
        schedules.complain(&name, &runs, &interleaved);
    }
    let (names, verdict, format) = (field_names(&table), opened.reporter.verdict(), opened.format);
    Ok(Simulated { name, format, results, others, runs, interleaved, verdict, names })
}

/// True where cores have caches of their own, so that the order of threads matters most.
fn has_private(results: &Results) -> bool {
    results.configs.iter().any(|config| config.config.levels.iter().any(|level| level.is_private))
}

/// Threads to simulate on, unless the options say so.
fn threads(input: &InputArguments) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    input.threads.unwrap_or_else(available)
}

fn complain(name: &str, results: &Results) {
    let name = anytrace_core::text::printable(name);
    if results.fetches_left_out > 0 {
        let fetches = results.fetches_left_out;
        paint::complain(
            "note",
            format!("{name}: {fetches} instruction fetches ignored; use --fetches to include them"),
        );
    }
    let threads = results.configs.first().map_or(0, |config| config.threads.len());
    if has_private(results) && threads > results.cores {
        paint::complain("note", format!("{name}: {threads} threads share {} cores", results.cores));
    }
}

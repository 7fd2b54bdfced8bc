//! `anytrace cacheray sim`: which types and fields miss, in which caches.

mod csv;
mod json;
mod schedules;
mod text;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::next_use::{Foreseen, NextUse};
use anytrace_analysis::cache::results::Results;
use anytrace_analysis::cache::{Cores, Options, Simulation};
use anytrace_analysis::elements::TypeTable;
use anytrace_analysis::interleave::{Interleaved, Interleaver, Schedule};
use anytrace_analysis::runs::{RunLengths, Runs};
use anytrace_core::{AccessSink, Collect};
use clap::{Args, ValueEnum};

use super::configs::{ConfigArguments, preset_list};
use super::opening;
use super::schedules::ScheduleArguments;
use crate::arguments::{CsvArguments, InputArguments};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, paint, terminal};

/// `cacheray sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Traces, each simulated on its own; - is standard input
    #[arg(required_unless_present = "list_presets", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    caches: ConfigArguments,
    #[command(flatten)]
    schedules: ScheduleArguments,
    #[command(flatten)]
    tell: TellArguments,
    /// How to print
    #[arg(long, value_enum, default_value_t = SimForm::Text)]
    format: SimForm,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What is told.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is told")]
struct TellArguments {
    /// By type and field: an offset in an element and the bytes accessed
    #[arg(long)]
    types: bool,
    /// Misses of all sets, instead of a map and the worst
    #[arg(long)]
    per_set: bool,
    /// By thread
    #[arg(long)]
    per_thread: bool,
    /// Why lines were missed: compulsory, capacity or conflict
    #[arg(long)]
    classes: bool,
    /// Most rows of each table in text
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

/// Forms of `sim`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SimForm {
    /// Tables for people
    Text,
    /// Everything, for programs, with a version field
    Json,
    /// One line a counter, for spreadsheets
    Csv,
}

/// What an offset in a type and the bytes accessed there are called, where type data know it.
pub(super) type FieldNames = Box<dyn Fn(&[u8], u64, u16) -> Option<String>>;

/// One trace's results.
pub(super) struct Simulated {
    pub(super) name: String,
    /// The format's name; "unknown" for an empty file.
    pub(super) format: &'static str,
    /// Of the trace in its own order.
    pub(super) results: Results,
    /// Of every order that was asked for, that of the trace first; empty where it is the only one.
    others: Vec<(Schedule, Results)>,
    runs: Runs,
    interleaved: Interleaved,
    pub(super) verdict: Verdict,
    /// Names of fields.
    pub(super) names: FieldNames,
}

pub(crate) fn run(options: &SimArguments) -> Result<Verdict, Failure> {
    if options.caches.list_presets {
        put(&preset_list())?;
        return Ok(Verdict::Fine);
    }
    let configs = options.caches.load()?;
    if options.schedules.is_any() {
        schedules::refuse(&configs, options.format)?;
    }
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let tell = &options.tell;
        let with = (tell.types, tell.classes);
        let simulated = simulate_in(path, &configs, &options.caches, with, &options.input, &options.schedules)?;
        match options.format {
            SimForm::Json => objects.push(json::object(&simulated, tell)),
            SimForm::Csv => put(&csv::lines(&simulated, tell, options.csv.cells(), is_first))?,
            SimForm::Text => put(&text::page(&simulated, tell, is_first))?,
        }
        is_first = false;
        Ok(simulated.verdict)
    })?;
    if options.format == SimForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

/// Prints to standard output.
pub(super) fn put(text: &str) -> Result<(), Failure> {
    let mut out = terminal::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Simulates one trace in its own order; what is reported by type and of why lines were missed is in `with`.
pub(super) fn simulate(
    path: &Path,
    configs: &[Config],
    caches: &ConfigArguments,
    with: (bool, bool),
    input: &InputArguments,
) -> Result<Simulated, Failure> {
    simulate_in(path, configs, caches, with, input, &ScheduleArguments::default())
}

/// The same in several orders of its threads.
fn simulate_in(
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
            table = caches.what_if.tell(&name, trace, &mut lengths, &mut opened.reporter)?;
            runs = lengths.finish();
        } else {
            let ways = orders.iter().copied().zip(simulations.iter_mut().map(|one| one as &mut dyn AccessSink));
            let mut interleaver = Interleaver::new(ways);
            let mut lengths = RunLengths::new(&mut interleaver);
            table = caches.what_if.tell(&name, trace, &mut lengths, &mut opened.reporter)?;
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

/// Names of fields as type data have them; without them no field has one.
fn field_names(table: &TypeTable) -> FieldNames {
    let known = table.types().iter().filter_map(|one| Some((one.name.as_ref()?, one.layout.as_ref()?)));
    let layouts: BTreeMap<_, _> = known.map(|(name, layout)| (name.clone().into_bytes(), Arc::clone(layout))).collect();
    Box::new(move |name, offset, bytes| {
        let called = layouts.get(name)?.describe(offset, u64::from(bytes));
        Some(called).filter(|name| !name.is_empty())
    })
}

/// Threads to simulate on, unless the options say so.
fn threads(input: &InputArguments) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    input.threads.unwrap_or_else(available)
}

/// Reads the trace once before, where a configuration has to know the future.
fn foresee(
    path: &Path,
    configs: &[Config],
    caches: &ConfigArguments,
    input: &InputArguments,
) -> Result<Foreseen, Failure> {
    let Some(mut next_use) = NextUse::new(configs, Cores::new(caches.cores()), caches.fetches) else {
        return Ok(Foreseen::default());
    };
    if !path.is_file() {
        return Err(Failure::usage("the policy opt reads a trace twice: it needs a file, not a pipe"));
    }
    let opened = opening::open(path, input)?;
    if let Some(trace) = opened.trace {
        // Damage is told by the second reading.
        let mut silent = Collect::default();
        trace.accesses(&mut next_use, &mut silent).map_err(|error| Failure::of(&path.display().to_string(), &error))?;
    }
    Ok(next_use.finish())
}

fn complain(name: &str, results: &Results) {
    let name = anytrace_core::text::printable(name);
    if results.fetches_left_out > 0 {
        let fetches = results.fetches_left_out;
        paint::complain("note", format!("{name}: {fetches} instruction fetches are left out; --fetches takes them"));
    }
    let threads = results.configs.first().map_or(0, |config| config.threads.len());
    if has_private(results) && threads > results.cores {
        paint::complain("note", format!("{name}: {threads} threads run on {} cores", results.cores));
    }
}

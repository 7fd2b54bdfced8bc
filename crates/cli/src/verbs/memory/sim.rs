//! `anytrace memory sim`: which types and fields miss, in which caches.

mod csv;
mod field_names;
mod foresight;
mod schedules;
mod simulated;
mod split;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::configs::{ConfigArguments, preset_list};
use super::live::{OfProgram, ProgramArguments};
use super::schedules::ScheduleArguments;
use crate::arguments::{CsvArguments, InputArguments, TOP, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, terminal};
use anytrace_analysis::json::{SimulationReport, simulation};
use serde_json::Value;
use simulated::simulate_in;
use split::SplitArguments;

pub(super) use simulated::{Simulated, simulate};

/// `memory sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// Traces, each simulated separately; - is standard input
    #[arg(required_unless_present_any = ["list_presets", "program"], value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    program: ProgramArguments,
    #[command(flatten)]
    caches: ConfigArguments,
    #[command(flatten)]
    split: SplitArguments,
    #[command(flatten)]
    schedules: ScheduleArguments,
    #[command(flatten)]
    report: ReportArguments,
    /// How to print
    #[arg(long, value_enum, default_value_t = SimForm::Text)]
    format: SimForm,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

impl OfProgram for SimArguments {
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments) {
        (&mut self.files, &self.program)
    }
}

/// Report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
struct ReportArguments {
    /// Report misses by type and field: offset in an element and bytes accessed
    #[arg(long)]
    types: bool,
    /// Report misses of all sets instead of a map and the worst sets
    #[arg(long)]
    per_set: bool,
    /// By thread
    #[arg(long)]
    per_thread: bool,
    /// Classify misses: compulsory, capacity or conflict
    #[arg(long)]
    classes: bool,
    /// Rows of each table
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "20",
          help = format!("{TOP} (text only)"))]
    top: usize,
}

/// Forms of `sim`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SimForm {
    /// Tables for people
    Text,
    /// Everything, for programs; has a version field
    Json,
    /// One line per counter, for spreadsheets
    Csv,
}

pub(crate) fn run(options: &SimArguments) -> Result<Verdict, Failure> {
    if options.caches.list_presets {
        terminal::put(&preset_list())?;
        return Ok(Verdict::Fine);
    }
    if let Some(config) = options.split.config() {
        return split::run(options, &config);
    }
    let configs = options.caches.load()?;
    if options.schedules.is_any() {
        schedules::refuse(&configs, options.format)?;
    }
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let report = &options.report;
        let with = (report.types, report.classes);
        let simulated = simulate_in(path, &configs, &options.caches, with, &options.input, &options.schedules)?;
        match options.format {
            SimForm::Json => objects.push(object(&simulated, report)),
            SimForm::Csv => terminal::put(&csv::lines(&simulated, report, options.csv.cells(), is_first))?,
            SimForm::Text => terminal::put(&text::page(&simulated, report, is_first))?,
        }
        is_first = false;
        Ok(simulated.verdict)
    })?;
    if options.format == SimForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

/// One trace's object.
fn object(simulated: &Simulated, report: &ReportArguments) -> Value {
    let shown = SimulationReport { per_set: report.per_set, per_thread: report.per_thread };
    let Simulated { name, format, results, names, runs, .. } = simulated;
    let mut object = simulation(name, format, results, names, shown, runs);
    schedules::add(&mut object, simulated);
    object
}

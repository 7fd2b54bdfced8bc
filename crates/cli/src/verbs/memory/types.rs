//! `anytrace memory types`.

mod csv;
mod json;
mod layouts;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::type_profile::{TypeProfile, TypeProfiler};
use anytrace_core::access::TypeNumber;
use anytrace_core::layout::{Layouts, Origin, bare_name, canonical_name};
use anytrace_export::json::VERSION;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::caches::{CacheArguments, typed_simulation};
use super::live::{OfProgram, ProgramArguments};
use super::opening;
use super::places::Places;
use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use crate::arguments::{CsvArguments, InputArguments, TOP, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, terminal};

pub(super) use json::series;
pub(super) use text::READS_NOTE;
pub(super) use text::fields::{label as field_label, offset as field_offset, size as field_size};

/// `memory types`.
#[derive(Debug, Args)]
pub(crate) struct TypesArguments {
    /// Traces; - is standard input
    #[arg(required_unless_present_any = ["layouts", "program"], value_name = "TRACE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    program: ProgramArguments,
    /// Only these types; may be repeated. `Foo` also means `struct.Foo` and the like
    #[arg(long = "type", value_name = "NAME")]
    types: Vec<String>,
    /// Types with their fields
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "5",
          help = format!("{TOP} (types shown with their fields, those with most misses first)"))]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// Print the layouts of all types of --program, without a trace; --program accepts the JSON form
    #[arg(long, requires = "binary", conflicts_with = "files")]
    layouts: bool,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    caches: CacheArguments,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

impl OfProgram for TypesArguments {
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments) {
        (&mut self.files, &self.program)
    }
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables for people
    Text,
    /// For programs; has a version field
    Json,
    /// One row per field
    Csv,
}

/// What is printed of one trace.
struct Results {
    name: String,
    format: &'static str,
    config: Config,
    profile: TypeProfile,
    /// Types that are wanted, those with most misses first.
    shown: Vec<TypeNumber>,
    places: Places,
}

pub(crate) fn run(options: &TypesArguments) -> Result<Verdict, Failure> {
    if options.layouts {
        return layouts::run(options);
    }
    let config = options.caches.load()?;
    let traces = Traces { files: &options.files, input: &options.input };
    options.type_data.with(traces, |layouts| {
        let mut out = terminal::stdout();
        let mut objects: Vec<Value> = Vec::new();
        let mut is_first = true;
        let verdict = for_each_file(&options.files, |path| {
            let (results, verdict) = one(path, options, &config, layouts)?;
            match options.format {
                Form::Json => objects.push(json::object(&results)),
                Form::Csv => out.write_all(csv::lines(&results, options.csv.cells(), is_first).as_bytes())?,
                Form::Text => {
                    let gap = if is_first { "" } else { "\n" };
                    write!(out, "{gap}{}", text::page(&results, options.top, !options.types.is_empty()))?;
                }
            }
            is_first = false;
            Ok(verdict)
        })?;
        if options.format == Form::Json {
            print_json(objects, options.files.len() > 1)?;
        }
        out.flush()?;
        Ok(verdict)
    })
}

fn one(
    path: &Path,
    options: &TypesArguments,
    config: &Config,
    layouts: &mut dyn Layouts,
) -> Result<(Results, Verdict), Failure> {
    let name = path.display().to_string();
    let opened = opening::open(path, &options.input)?;
    let (simulation, line_bytes) = typed_simulation(config)?;
    let mut profiler = TypeProfiler::new(layouts, simulation, line_bytes);
    let read = opened.read(&mut profiler)?;
    let profile = profiler.finish().map_err(|error| Failure::of(&name, &error))?;
    let shown = shown(&profile, &options.types);
    if shown.is_empty() && !options.types.is_empty() {
        let names: Vec<_> =
            (0..).zip(profile.types.iter().take(20)).map(|(number, _)| profile.table.name(number)).collect();
        let has = if names.is_empty() { "no types at all".to_owned() } else { names.join(", ") };
        return Err(Failure::usage(format!(
            "{name}: unknown type {}; the trace has {has}",
            options.types.join(" or ")
        )));
    }
    let places = Places::of(&profile.table, &options.type_data.binary)?;
    Ok((Results { name, format: read.format, config: config.clone(), profile, shown, places }, read.verdict))
}

/// The types that are wanted, those with most misses first, then most accesses.
fn shown(profile: &TypeProfile, wanted: &[String]) -> Vec<TypeNumber> {
    let mut shown: Vec<TypeNumber> = (0..).zip(&profile.types).map(|(number, _)| number).collect();
    shown.retain(|number| wanted.is_empty() || wanted.iter().any(|name| is_wanted(profile, *number, name)));
    shown.sort_by_key(|number| {
        let counts = profile.types.get(*number as usize).map(|one| one.counts).unwrap_or_default();
        (std::cmp::Reverse((counts.misses, counts.accesses())), *number)
    });
    shown
}

/// True for a type that is called so, and for allocations whose elements are.
fn is_wanted(profile: &TypeProfile, number: TypeNumber, wanted: &str) -> bool {
    let of_elements = profile.table.layout(number).filter(|layout| layout.origin != Origin::Named);
    is_called(profile.table.name(number), wanted) || of_elements.is_some_and(|layout| is_called(&layout.name, wanted))
}

/// True when a name of a trace is meant.
pub(super) fn is_called(in_trace: &str, wanted: &str) -> bool {
    in_trace == wanted || canonical_name(bare_name(in_trace)) == canonical_name(bare_name(wanted))
}

/// The version of results as JSON.
const JSON_VERSION: u64 = VERSION;

//! `anytrace memory annotate`: which lines, functions and instructions of the program miss, in which types.

mod callgrind;
mod html;
mod json;
mod levels;
mod text;

use std::path::{Path, PathBuf};

use anytrace_analysis::annotate::{Annotated, By, Order, annotate};
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::results::Codes;
use anytrace_analysis::cache::{ByCode, Options};
use anytrace_core::access::TypeNumber;
use anytrace_core::access::codes::{Codes as CodesOfTrace, CodesRead, Module, Place};
use anytrace_core::text::{printable, shown};
use anytrace_symbols::CodeFiles;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::caches::CacheArguments;
use super::opening;
use super::types::is_called;
use crate::arguments::{InputArguments, TOP, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::symbols::ManglingArguments;
use crate::{Verdict, for_each_file, paint, terminal};

pub(super) use levels::misses;

/// `memory annotate`.
#[derive(Debug, Args)]
pub(crate) struct AnnotateArguments {
    /// Traces
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// What has a row
    #[arg(long, value_enum, default_value_t = ByWord::Line, value_name = "WHAT")]
    by: ByWord,
    /// Only accesses to these types; may be repeated. `Foo` also means `struct.Foo` and the like
    #[arg(long = "type", value_name = "NAME")]
    types: Vec<String>,
    /// What comes first
    #[arg(long, value_enum, default_value_t = OrderWord::Misses, value_name = "FIGURE")]
    sort: OrderWord,
    /// Rows
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "20",
          help = format!("{TOP} (text only)"))]
    top: usize,
    /// Lines of source shown around each of them
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=100))]
    context: u8,
    /// File with the code addresses of the accesses [default: TRACE.pc]
    #[arg(long, value_name = "FILE")]
    pc: Option<PathBuf>,
    /// Program or library that made the accesses; may be repeated. Needed where the trace does not say which there
    /// were, or where they are elsewhere now
    #[arg(short = 'm', long = "program", value_name = "PROGRAM", alias = "binary")]
    programs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    #[command(flatten)]
    mangling: ManglingArguments,
    #[command(flatten)]
    caches: CacheArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What has a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByWord {
    /// Lines of source files, with their text
    Line,
    /// Functions, with the types that miss in them
    Function,
    /// Instructions
    Instruction,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OrderWord {
    /// Misses of the first level
    Misses,
    /// Accesses that memory serves
    Memory,
    /// Reads and writes
    Accesses,
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables and source for people
    Text,
    /// For programs; has a version field
    Json,
    /// For KCachegrind and callgrind_annotate
    Callgrind,
    /// A page for a browser, with the whole text of the files
    Html,
}

/// What is printed of one trace.
struct Results {
    name: String,
    format: &'static str,
    by: ByWord,
    config: Config,
    found: Annotated,
    /// Names of types by number.
    types: Vec<String>,
}

impl Results {
    /// A type's name, for people and programs alike.
    fn type_name(&self, number: Option<TypeNumber>) -> Option<&str> {
        self.types.get(number? as usize).map(String::as_str)
    }
}

pub(crate) fn run(options: &AnnotateArguments) -> Result<Verdict, Failure> {
    if options.files.len() > 1 && (options.pc.is_some() || matches!(options.format, Form::Html | Form::Callgrind)) {
        return Err(Failure::usage("--pc, --format html and --format callgrind are of one trace"));
    }
    let config = options.caches.load()?;
    let mut objects: Vec<Value> = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let (results, verdict) = one(path, options, &config)?;
        match options.format {
            Form::Json => objects.push(json::object(&results)),
            Form::Html => terminal::put(&html::page(&results, options.top))?,
            Form::Callgrind => terminal::put(&callgrind::lines(&results))?,
            Form::Text => {
                let gap = if is_first { "" } else { "\n" };
                let page = text::page(&results, options.top, usize::from(options.context));
                terminal::put(&format!("{gap}{page}"))?;
            }
        }
        is_first = false;
        Ok(verdict)
    })?;
    if options.format == Form::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn one(path: &Path, options: &AnnotateArguments, config: &Config) -> Result<(Results, Verdict), Failure> {
    let name = path.display().to_string();
    let failed = |error| Failure::of(&name, &error);
    let opened = opening::open(path, &options.input)?;
    let mut source = CodesOfTrace::of(path, options.pc.as_deref()).map_err(|error| Failure::bare(&error))?;
    let mut engine = ByCode::new(vec![config.clone()], simulated(&options.input), &mut source).map_err(failed)?;
    let read = opened.read(&mut engine)?;
    let (_, mut codes) = engine.finish().map_err(failed)?;
    let codes = codes.pop().unwrap_or_default();
    let (modules, read_codes) = source.finish();
    let own = complain(&name, &read_codes);
    let has_codes = codes.rows.iter().any(|row| row.code != 0);
    if !has_codes && !codes.rows.is_empty() {
        let name = printable(&name);
        let what = "no access has a code address: `anytrace cacheray record` writes them to OUT.pc, beside the trace";
        paint::complain("note", format!("{name}: {what}"));
    }
    let types = type_names(&codes);
    let wanted = wanted_types(&name, &types, &options.types)?;
    let found = annotated(&codes, &modules, options, &wanted)?;
    let by = options.by;
    Ok((Results { name, format: read.format, by, config: config.clone(), found, types }, read.verdict.max(own)))
}

/// Reports what is wrong with the code addresses of a trace.
pub(super) fn complain(name: &str, read: &CodesRead) -> Verdict {
    if let Some(shortfall) = read.shortfall() {
        paint::complain("note", format!("{}: {shortfall}", printable(name)));
    }
    for fault in &read.faults {
        paint::complain("error", printable(fault));
    }
    if read.faults.is_empty() { Verdict::Fine } else { Verdict::Breach }
}

pub(super) fn simulated(input: &InputArguments) -> Options {
    let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    Options { threads: input.threads.unwrap_or_else(available), ..Options::default() }
}

pub(super) fn type_names(codes: &Codes) -> Vec<String> {
    let name = |name: &Option<Vec<u8>>| {
        name.as_ref().map_or_else(|| "(other types)".to_owned(), |name| shown(name).into_owned())
    };
    codes.types.iter().map(name).collect()
}

/// Of each type, whether its accesses count.
fn wanted_types(trace: &str, types: &[String], wanted: &[String]) -> Result<Vec<bool>, Failure> {
    let is_wanted = |name: &String| wanted.is_empty() || wanted.iter().any(|one| is_called(name, one));
    let found: Vec<bool> = types.iter().map(is_wanted).collect();
    if !wanted.is_empty() && !found.contains(&true) {
        let has: Vec<_> = types.iter().take(20).map(String::as_str).collect();
        let has = if has.is_empty() { "no types at all".to_owned() } else { has.join(", ") };
        return Err(Failure::usage(format!("{trace}: unknown type {}; the trace has {has}", wanted.join(" or "))));
    }
    Ok(found)
}

/// Where the instructions are, as far as programs are at hand.
pub(super) fn places(
    codes: &Codes,
    modules: &[Module],
    programs: &[PathBuf],
    mangling: ManglingArguments,
) -> Result<Vec<Place>, Failure> {
    let addresses: Vec<u64> = codes.rows.iter().map(|row| row.code).collect();
    let files = CodeFiles { modules, programs, mangling: mangling.mangling() };
    let (places, notes) = files.places(&addresses).map_err(|error| Failure::bare(&error))?;
    for note in notes {
        paint::complain("note", printable(&note));
    }
    if modules.is_empty() && programs.is_empty() && addresses.iter().any(|code| *code != 0) {
        paint::complain("note", "addresses have no names: name the program with -m");
    }
    Ok(places)
}

fn annotated(
    codes: &Codes,
    modules: &[Module],
    options: &AnnotateArguments,
    wanted: &[bool],
) -> Result<Annotated, Failure> {
    let places = places(codes, modules, &options.programs, options.mangling)?;
    let by = match options.by {
        ByWord::Line => By::Line,
        ByWord::Function => By::Function,
        ByWord::Instruction => By::Instruction,
    };
    let order = match options.sort {
        OrderWord::Misses => Order::Misses,
        OrderWord::Memory => Order::Memory,
        OrderWord::Accesses => Order::Accesses,
    };
    let counts = |of: Option<TypeNumber>| match of {
        Some(number) => wanted.get(number as usize).copied().unwrap_or(false),
        None => options.types.is_empty(),
    };
    Ok(annotate(codes, &places, by, order, &counts))
}

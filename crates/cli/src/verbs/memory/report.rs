//! `anytrace memory report`: one page about a trace, which needs nothing else.

mod caches;
mod code;
mod footprint;
mod heat;
mod leaks;
mod lifetimes;
mod links;
mod page;
mod passes;
mod shared;
mod summary;
mod table;
mod types;

use std::io::Write;
use std::path::PathBuf;

use anytrace_analysis::annotate::Annotated;
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::heat::Heat;
use anytrace_analysis::lifetimes::{Lifetimes, StackLife};
use anytrace_analysis::reuse::ReuseResults;
use anytrace_analysis::sharing::{SharingResults, Tried};
use anytrace_analysis::type_profile::TypeProfile;
use clap::Args;

use super::caches::CacheArguments;
use super::places::Places;
use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use crate::Verdict;
use crate::arguments::{InputArguments, OutputArguments, TOP, rows};
use crate::failure::Failure;
use crate::output::Output;
use crate::symbols::ManglingArguments;

/// `memory report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Trace; - is standard input, which is read once: sharing advice is left out
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
    /// Rows
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "20",
          help = format!("{TOP} (of each table)"))]
    top: usize,
    /// File with the code addresses of the accesses [default: TRACE.pc]
    #[arg(long, value_name = "FILE")]
    pc: Option<PathBuf>,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    mangling: ManglingArguments,
    #[command(flatten)]
    caches: CacheArguments,
    #[command(flatten)]
    input: InputArguments,
}

/// What is on the page.
struct Contents {
    /// The file as it was named.
    name: String,
    /// The format's name.
    format: &'static str,
    config: Config,
    /// Rows of each table.
    top: usize,
    profile: TypeProfile,
    reuse: ReuseResults,
    lifetimes: Lifetimes,
    stacks: Vec<StackLife>,
    places: Places,
    sharing: SharingResults,
    /// The changes against false sharing, simulated; `None` where the trace cannot be read again.
    tried: Option<Vec<Tried>>,
    heat: Heat,
    /// `None` where no access has a code address.
    code: Option<Code>,
    damage: Damage,
}

/// Accesses by place in the program.
struct Code {
    lines: Annotated,
    functions: Annotated,
    /// Names of types by number.
    types: Vec<String>,
}

/// What is wrong with the trace.
#[derive(Default)]
struct Damage {
    /// The first diagnostics.
    texts: Vec<String>,
    /// How many there are.
    count: u64,
}

pub(crate) fn run(options: &ReportArguments) -> Result<Verdict, Failure> {
    // Check that the output can be written before the trace is read, which may take long.
    let mut out = Output::create(&options.output.output, options.output.force)?;
    let config = options.caches.load()?;
    let traces = Traces { files: std::slice::from_ref(&options.file), input: &options.input };
    let (contents, verdict) = options.type_data.with(traces, |layouts| passes::read(options, config, layouts))?;
    out.write_all(page::html(&contents).as_bytes())?;
    out.flush()?;
    out.commit(verdict)
}

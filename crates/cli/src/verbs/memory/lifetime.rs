//! `anytrace memory lifetime`.

mod json;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anytrace_analysis::lifetimes::{LifetimeWatch, Lifetimes, StackLife, by_stack};
use clap::{Args, ValueEnum};

use super::live::{OfProgram, ProgramArguments};
use super::opening;
use super::places::Places;
use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use crate::arguments::{InputArguments, ResultForm, TOP, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, terminal};

/// `memory lifetime`.
#[derive(Debug, Args)]
pub(crate) struct LifetimeArguments {
    /// Traces; - is standard input
    #[arg(required_unless_present = "program", value_name = "TRACE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    program: ProgramArguments,
    /// What has a row in the table of leaks, short-lived and unused memory
    #[arg(long, value_enum, default_value_t = By::Type)]
    by: By,
    /// Findings of a kind
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, default_value = "10",
          help = format!("{TOP} (up to 10,000 findings per kind are kept; counts are exact)"))]
    top: usize,
    /// Exit with 1 if memory is accessed after removal or read before it is written
    #[arg(long)]
    fail: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    input: InputArguments,
}

impl OfProgram for LifetimeArguments {
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments) {
        (&mut self.files, &self.program)
    }
}

/// What leaks and short-lived regions are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Types, as the trace names them
    Type,
    /// Stacks that allocate, with all callers that the trace has; types that are not named after one
    Stack,
}

/// What is printed of one trace.
struct Results {
    name: String,
    format: &'static str,
    found: Lifetimes,
    stacks: Vec<StackLife>,
    places: Places,
    by: By,
    top: usize,
}

pub(crate) fn run(options: &LifetimeArguments) -> Result<Verdict, Failure> {
    let traces = Traces { files: &options.files, input: &options.input };
    options.type_data.with(traces, |layouts| {
        let mut objects = Vec::new();
        let mut is_first = true;
        let verdict = for_each_file(&options.files, |path| {
            let name = path.display().to_string();
            let opened = opening::open(path, &options.input)?;
            let mut watch = LifetimeWatch::new(layouts);
            let read = opened.read(&mut watch)?;
            let found = watch.finish();
            let places = Places::of(&found.table, &options.type_data.binary)?;
            let (stacks, by, top) = (by_stack(&found), options.by, options.top);
            let results = Results { name, format: read.format, found, stacks, places, by, top };
            if options.format == ResultForm::Json {
                objects.push(json::object(&results));
            } else {
                let gap = if is_first { "" } else { "\n" };
                write!(terminal::stdout(), "{gap}{}", text::page(&results))?;
            }
            is_first = false;
            let is_misused = results.found.after_remove_count > 0 || results.found.unwritten_count > 0;
            let own = if options.fail && is_misused { Verdict::Breach } else { Verdict::Fine };
            Ok(read.verdict.max(own))
        })?;
        if options.format == ResultForm::Json {
            print_json(objects, options.files.len() > 1)?;
        }
        Ok(verdict)
    })
}

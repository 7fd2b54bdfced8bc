//! `anytrace memory sharing`.

mod counts;
mod json;
mod outcome;
mod text;
mod threads;

use std::io::Write;
use std::path::PathBuf;

use anytrace_analysis::sharing::{CORE_MAX, Cores, LINE_BYTES_MAX, SETS_MAX, SharingOptions};
use anytrace_core::layout::Layouts;
use clap::Args;

pub(super) use outcome::{advice, try_changes};
pub(super) use threads::{core_name, note};

use super::live::{OfProgram, ProgramArguments};
use super::schedules::ScheduleArguments;
use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use crate::arguments::{InputArguments, ResultForm, TOP, byte_count, rows};
use crate::failure::Failure;
use crate::{Verdict, for_each_file, paint, terminal};

/// `memory sharing`.
#[derive(Debug, Args)]
pub(crate) struct SharingArguments {
    /// Traces; - is standard input
    #[arg(required_unless_present = "program", value_name = "TRACE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    program: ProgramArguments,
    /// Bytes per cache line: a power of two up to 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_bytes)]
    line: u64,
    /// Bytes per core's cache
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = byte_count)]
    size: u64,
    /// Lines per set
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=SETS_MAX))]
    ways: u64,
    /// Assign threads to N cores in turn, in order of appearance [default: one core per thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cores: Option<u32>,
    /// Assign threads to cores; each thread not named gets a separate core
    #[arg(long, value_name = "THREAD=CORE,…", value_parser = core, value_delimiter = ',', conflicts_with = "cores")]
    core_map: Vec<(u64, u32)>,
    #[command(flatten)]
    schedules: ScheduleArguments,
    /// Pairs and lines
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, help = format!("{TOP} [default: 10 in text, all in JSON]"))]
    top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    input: InputArguments,
}

impl OfProgram for SharingArguments {
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments) {
        (&mut self.files, &self.program)
    }
}

fn line_bytes(text: &str) -> Result<u64, String> {
    let is_good = |bytes: &u64| bytes.is_power_of_two() && *bytes <= LINE_BYTES_MAX;
    byte_count(text).ok().filter(is_good).ok_or_else(|| "expected a power of two up to 128".to_owned())
}

fn core(text: &str) -> Result<(u64, u32), String> {
    let (thread, core) = text.split_once('=').ok_or("expected THREAD=CORE")?;
    let core = core.parse().ok().filter(|core| *core <= CORE_MAX).ok_or("a core is a number up to 65535")?;
    Ok((thread.parse().map_err(|_| "a thread is a number")?, core))
}

pub(crate) fn run(options: &SharingArguments) -> Result<Verdict, Failure> {
    let sets = options.size / options.line / options.ways;
    if !(1..=SETS_MAX).contains(&sets) {
        return Err(Failure::usage(format!("--size, --line and --ways give {sets} sets; expected 1 to {SETS_MAX}")));
    }
    let used = sets * options.ways * options.line;
    if used != options.size {
        let (size, ways, line) = (options.size, options.ways, options.line);
        let made = format!("--size {size} is not a multiple of a set of {ways} lines of {line} bytes");
        paint::complain("note", format!("{made}: simulating {used} bytes in {sets} sets"));
    }
    let traces = Traces { files: &options.files, input: &options.input };
    options.type_data.with(traces, |layouts| run_with(options, layouts))
}

fn run_with(options: &SharingArguments, layouts: &mut dyn Layouts) -> Result<Verdict, Failure> {
    let mut objects = Vec::new();
    let verdict = for_each_file(&options.files, |file| {
        let (outcome, verdict) = outcome::find(file, options, layouts)?;
        if options.format == ResultForm::Json {
            objects.push(json::object(file, &outcome, options));
            return Ok(verdict);
        }
        let mut out = std::io::BufWriter::new(terminal::stdout());
        if options.files.first().is_some_and(|first| first != file) {
            writeln!(out)?;
        }
        text::write(file, &outcome, options, &mut out)?;
        out.flush()?;
        Ok(verdict)
    })?;
    if options.format == ResultForm::Json {
        crate::results::print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

impl SharingArguments {
    fn model(&self) -> SharingOptions {
        SharingOptions {
            line_bytes: self.line,
            cache_bytes: self.size,
            ways: self.ways,
            cores: match self.cores {
                Some(cores) => Cores::Count(cores),
                None if self.core_map.is_empty() => Cores::PerThread,
                None => Cores::Map(self.core_map.clone()),
            },
        }
    }

    fn top<'a, T>(&self, all: &'a [T], usual: usize) -> &'a [T] {
        all.get(..self.top.unwrap_or(usual)).unwrap_or(all)
    }

    fn is_by_thread(&self) -> bool {
        self.cores.is_none() && self.core_map.is_empty()
    }
}

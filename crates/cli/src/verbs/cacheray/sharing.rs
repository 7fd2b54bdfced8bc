//! `anytrace cacheray sharing`.

mod json;
mod outcome;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anytrace_analysis::sharing::{
    ALL_CORES, CORE_MAX, Cores, LINE_BYTES_MAX, SETS_MAX, SharingOptions, SharingResults,
};
use anytrace_core::layout::Layouts;
use clap::Args;

use super::schedules::ScheduleArguments;
use super::type_data::TypeDataArguments;
use crate::arguments::{InputArguments, ResultForm, byte_count};
use crate::failure::Failure;
use crate::{Verdict, for_each_file, paint, terminal};

/// `cacheray sharing`.
#[derive(Debug, Args)]
pub(crate) struct SharingArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Bytes of a cache line: a power of two up to 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_bytes)]
    line: u64,
    /// Bytes of each core's cache
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = byte_count)]
    size: u64,
    /// Lines of a set
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=SETS_MAX))]
    ways: u64,
    /// Threads run on so many cores in turn, in the order in which they appear [default: each on its own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cores: Option<u32>,
    /// Which thread runs on which core; threads not named have a core each
    #[arg(long, value_name = "THREAD=CORE,…", value_parser = core, value_delimiter = ',', conflicts_with = "cores")]
    core_map: Vec<(u64, u32)>,
    #[command(flatten)]
    schedules: ScheduleArguments,
    /// Only so many pairs and lines; 0 is all [default: 10 in text, all in JSON]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    type_data: TypeDataArguments,
    #[command(flatten)]
    input: InputArguments,
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
        return Err(Failure::usage(format!(
            "--size, --line and --ways make {sets} sets; 1 to {SETS_MAX} are possible"
        )));
    }
    let used = sets * options.ways * options.line;
    if used != options.size {
        let (size, ways, line) = (options.size, options.ways, options.line);
        let made = format!("--size {size} is no whole number of sets of {ways} lines of {line} bytes");
        paint::complain("note", format!("{made}: {used} bytes are simulated, in {sets} sets"));
    }
    options.type_data.with(|layouts| run_with(options, layouts))
}

fn run_with(options: &SharingArguments, layouts: &mut dyn Layouts) -> Result<Verdict, Failure> {
    let mut told = Vec::new();
    let verdict = for_each_file(&options.files, |file| {
        let (outcome, verdict) = outcome::find(file, options, layouts)?;
        if options.format == ResultForm::Json {
            told.push(json::object(file, &outcome, options));
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
        crate::results::print_json(told, options.files.len() > 1)?;
    }
    Ok(verdict)
}

/// Why nothing can be said, in a sentence, where that is so.
fn note(found: &SharingResults) -> Option<String> {
    match found.threads.as_slice() {
        [] => Some("no thread touches memory: nothing can be said about sharing".to_owned()),
        [(Some(0), _)] => Some(
            "there is only thread 0: either the program has one thread, or the recorder did not tell threads apart, as the \
             original one never does; nothing can be said about sharing"
                .to_owned(),
        ),
        [(id, _)] => Some(format!("there is only {}: nothing can be said about sharing", thread(*id))),
        all if all.iter().all(|(_, core)| Some(*core) == all.first().map(|(_, first)| *first)) => {
            Some("all threads run on one core: nothing can be said about sharing".to_owned())
        }
        _ => None,
    }
}

fn thread(id: Option<u64>) -> String {
    id.map_or_else(|| "other threads".to_owned(), |id| format!("thread {id}"))
}

/// A core as people know it: by its threads.
fn core_name(found: &SharingResults, core: u32) -> String {
    if core == ALL_CORES {
        return "any".to_owned();
    }
    let mut threads = found.threads_of(core);
    match (threads.next(), threads.next()) {
        (Some(Some(id)), None) => id.to_string(),
        (Some(None), None) => "others".to_owned(),
        _ => format!("core {core}"),
    }
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
        let most = match self.top {
            None => usual,
            Some(0) => usize::MAX,
            Some(top) => top,
        };
        all.get(..most).unwrap_or(all)
    }

    fn is_by_thread(&self) -> bool {
        self.cores.is_none() && self.core_map.is_empty()
    }
}

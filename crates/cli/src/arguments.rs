//! Options that verbs share, and those of the verbs for any format.

mod convert;
mod csv;
mod index;
mod merge;
pub(crate) mod own;
mod place;
mod query;
mod spans;
mod values;
mod view;

use std::path::PathBuf;

use anytrace_core::{Endian, NameMatch, Selection, TargetOptions, TimeBound};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

pub(crate) use convert::{TableOutputArguments, TimelineOutputArguments};
pub(crate) use csv::CsvArguments;
pub(crate) use index::{IndexArguments, IndexUseArguments};
pub(crate) use merge::MergeVerbArguments;
use own::OwnArguments;
pub(crate) use place::{MergeArguments, PlaceArguments};
pub(crate) use query::{QueryArguments, QueryForm};
pub(crate) use spans::{
    ByArgument, FlameArguments, FlameForm, SpanArguments, StatsArguments, StatsForm, TimelineArguments, WeightArgument,
    matching,
};
pub(crate) use values::{RANGE, TOP, byte_count, range_of, rows, threshold, time_bound};
use values::{number_range, thread_id, time_range};
pub(crate) use view::{ReportArguments, ViewArguments};

/// How inputs are read; the same in every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct InputArguments {
    /// Read the input as this format instead of detecting it
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(format_names()))]
    pub(crate) input_format: Option<String>,
    /// Byte order of the input, where detection is wrong
    #[arg(long, value_name = "little|big", value_parser = one_of(["little", "big"], endian))]
    pub(crate) endian: Option<Endian>,
    #[command(flatten)]
    pub(crate) own: OwnArguments<own::Read>,
    /// Longest single record, in bytes; suffixes k, M, G [default: 16M]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) record_limit: Option<u64>,
    /// Read the file instead of mapping it, for files that may be truncated while they are read
    #[arg(long)]
    pub(crate) no_mmap: bool,
    /// Threads to use, 1 to 64 [default: one per processor, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) threads: Option<usize>,
    /// Show at most N diagnostics per file; 0 shows all. Counts are always exact
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u64,
}

/// Which records.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection (all conditions must hold)")]
pub(crate) struct SelectionArguments {
    /// Record numbers from 0
    #[arg(long, value_name = "A..B", value_parser = number_range, help = format!("Record numbers from 0: {RANGE}"))]
    records: Option<std::ops::Range<u64>>,
    /// A thread (Heph: a stream); may be repeated
    #[arg(long = "thread", value_name = "ID", value_parser = thread_id)]
    thread: Vec<u64>,
    /// Times
    #[arg(long, value_name = "A..B", value_parser = time_range, help = format!("Times {RANGE}: with ns, us, ms, s since \
          the trace's earliest time (in a stream of more than 64 MiB: since its first time); plain numbers are the \
          trace's own times"))]
    time: Option<(TimeBound, TimeBound)>,
    /// Names that match: function, description, call, type or transition
    #[arg(long, value_name = "REGEX", aliases = ["function", "description", "call", "type"])]
    name: Option<regex::bytes::Regex>,
    #[command(flatten)]
    own: OwnArguments<own::Select>,
}

impl SelectionArguments {
    /// The library's selection.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            records: self.records.clone(),
            threads: self.thread.clone(),
            time: self.time,
            name: self.name.clone().map(|regex| Box::new(move |name: &[u8]| regex.is_match(name)) as NameMatch),
            own: self.own.0.clone(),
            start: None,
        }
    }
}

/// The form written.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Written form (properties not given are kept)")]
pub(crate) struct TargetArguments {
    /// Format version to write
    #[arg(long = "version", alias = "to-version", value_name = "N")]
    version: Option<u32>,
    /// Byte order to write
    #[arg(long, value_name = "little|big", value_parser = one_of(["little", "big"], endian))]
    to_endian: Option<Endian>,
    #[command(flatten)]
    own: OwnArguments<own::Write>,
}

impl TargetArguments {
    /// The library's options.
    pub(crate) fn target(&self, to: Option<&str>) -> TargetOptions {
        TargetOptions {
            to: to.map(str::to_owned),
            version: self.version,
            endian: self.to_endian,
            own: self.own.0.clone(),
        }
    }
}

/// Where output goes.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArguments {
    /// File to write; - is standard output. It is written completely or not at all
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultForm {
    /// For people
    Text,
    /// For programs; has a version field
    Json,
}

/// Forms of `dump`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormArgument {
    /// One record per line, for people
    Text,
    /// One JSON object per record with every field; `convert` reads it back
    Jsonl,
}

/// Forms of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckForm {
    /// For people
    Text,
    /// For programs; has a version field
    Json,
    /// SARIF 2.1.0, for code review and CI annotations
    Sarif,
    /// JUnit XML, for CI test reports
    Junit,
}

/// `info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    pub(crate) format: ResultForm,
    /// Only recognize the format; do not read the file. With an index, also what it contains of the trace
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = DumpFormArgument::Text)]
    pub(crate) format: DumpFormArgument,
    /// Show the byte offset of each record
    #[arg(long)]
    pub(crate) offsets: bool,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = CheckForm::Text)]
    pub(crate) format: CheckForm,
    /// Check FILE while it is written, and print each diagnostic at once, as text or lines of JSON. FILE is a growing
    /// file, - for standard input, a pipe, or an address to listen on for one connection: unix:PATH or
    /// tcp://127.0.0.1:PORT. A file is followed until Ctrl-C or SIGTERM, everything else until it ends
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `repair`.
#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// Trace; - is standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Exit with 0 even if fewer than half of the bytes, or no records, could be recovered
    #[arg(long)]
    pub(crate) allow_loss: bool,
    /// How to print what was lost
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    pub(crate) format: ResultForm,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `convert`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConvertArguments {
    /// Trace or JSON lines; - is standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// More traces: timelines show all as one, on a common axis; for tables OUT is a folder with a folder for each table,
    /// and in it one for each trace
    #[arg(value_name = "MORE")]
    pub(crate) more: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Form to write; `anytrace formats` lists them [default: by OUT's extension, else the input's form]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(target_names()))]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) table_output: TableOutputArguments,
    #[command(flatten)]
    pub(crate) timeline_output: TimelineOutputArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `trim`.
#[derive(Debug, Args)]
pub(crate) struct TrimArguments {
    /// Trace; - is standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// First trace; - is standard input
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Second trace; - is standard input
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    pub(crate) format: ResultForm,
    /// Ignore this field; may be repeated. Field names are those of `dump --format jsonl`
    #[arg(long, value_name = "FIELD")]
    pub(crate) ignore: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `rules`.
#[derive(Debug, Args)]
pub(crate) struct RulesArguments {
    /// Only the rules of this format
    #[arg(value_name = "FORMAT", value_parser = PossibleValuesParser::new(format_names()))]
    pub(crate) format: Option<String>,
}

/// `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write anytrace.1 and one anytrace-VERB.1 per verb to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Replace existing pages
    #[arg(long, requires = "dir")]
    pub(crate) force: bool,
}

/// A parser that completions can list the values of. `read` knows each of them.
fn one_of<const N: usize, T: Clone + Send + Sync + 'static>(
    names: [&'static str; N],
    read: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |name| read(&name).ok_or("an unknown value"))
}

/// The names of the formats.
pub(crate) fn format_names() -> Vec<&'static str> {
    anytrace_formats::all().iter().map(|format| format.name()).collect()
}

/// Every name that some format's `--to` takes.
fn target_names() -> Vec<&'static str> {
    let own = anytrace_formats::all().iter().flat_map(|format| format.targets()).map(|(name, _)| *name);
    let timelines = anytrace_export::timeline::OUTPUTS.iter().map(|output| output.name);
    let accesses = anytrace_export::accesses::OUTPUTS.iter().map(|output| output.name);
    let tables = anytrace_export::tables::OUTPUTS.iter().map(|output| output.name);
    let names: std::collections::BTreeSet<_> =
        own.chain(timelines).chain(accesses).chain(tables).chain(["html"]).collect();
    names.into_iter().collect()
}

fn endian(text: &str) -> Option<Endian> {
    Endian::from_name(text)
}

#[cfg(test)]
mod tests;

//! Options of the verbs over spans: `stats`, `flame`, `timeline`.

use std::path::{Path, PathBuf};

use anytrace_analysis::accounting::Statistic;
use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::threshold::Threshold;
use anytrace_core::{NameMatch, TimeBound};
use clap::{ArgGroup, Args, ValueEnum};

use super::{
    CsvArguments, IndexUseArguments, InputArguments, MergeArguments, RANGE, TOP, number_range, rows, thread_id,
    time_bound, time_range,
};
use crate::symbols::SymbolArguments;

/// Which spans, and what they are called.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Spans (all conditions must hold)")]
pub(crate) struct SpanArguments {
    /// A thread (Heph: a stream); may be repeated
    #[arg(long = "thread", value_name = "ID", value_parser = thread_id)]
    thread: Vec<u64>,
    /// Times
    #[arg(long, value_name = "A..B", value_parser = time_range, help = format!("Spans that begin in {RANGE}: with ns, \
          us, ms, s since the trace's earliest time; plain numbers are the trace's own times"))]
    pub(crate) time: Option<(TimeBound, TimeBound)>,
    /// Spans whose name matches
    #[arg(long, value_name = "REGEX", alias = "function")]
    name: Option<regex::bytes::Regex>,
    /// Nesting depths
    #[arg(long, value_name = "A..B", value_parser = number_range,
          help = format!("Only spans at these nesting depths (0 is outermost): {RANGE}"))]
    depth: Option<std::ops::Range<u64>>,
    /// Nest the target of a tail call inside its caller
    #[arg(long)]
    pub(crate) tail_chains: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
}

impl SpanArguments {
    /// All spans, with these names.
    pub(crate) fn all(symbols: SymbolArguments) -> Self {
        Self { thread: Vec::new(), time: None, name: None, depth: None, tail_chains: false, symbols }
    }

    /// The same for one of several traces: with the names that are for it.
    pub(crate) fn of_trace<'a>(&self, trace: &Path, traces: impl Iterator<Item = &'a PathBuf>) -> Self {
        Self { symbols: self.symbols.of_trace(trace, traces), ..self.clone() }
    }

    /// True when `--time` has plain numbers: the trace's own times, which may begin anywhere.
    pub(crate) fn has_plain_time(&self) -> bool {
        let is_plain = |bound| matches!(bound, TimeBound::Native(_));
        self.time.is_some_and(|(from, to)| is_plain(from) || is_plain(to))
    }

    /// The conditions that are given.
    pub(crate) fn conditions(&self) -> Vec<&'static str> {
        let all = [
            ("--thread", !self.thread.is_empty()),
            ("--time", self.time.is_some()),
            ("--name", self.name.is_some()),
            ("--depth", self.depth.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// The library's filter.
    pub(crate) fn filter(&self, duration: Option<(TimeBound, TimeBound)>) -> SpanFilter {
        SpanFilter {
            threads: self.thread.clone(),
            time: self.time,
            name: self.name.clone().map(matching),
            depth: self.depth.clone(),
            duration,
        }
    }
}

/// The library's form of a pattern.
pub(crate) fn matching(regex: regex::bytes::Regex) -> NameMatch {
    Box::new(move |name: &[u8]| regex.is_match(name))
}

/// Forms of `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsForm {
    /// Tables for people
    Text,
    /// The table of names or threads, for spreadsheets; the column `unit` has the unit of time
    Csv,
    /// Everything, for programs; has a version field
    Json,
}

/// What the rows of `stats` are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArgument {
    /// Names
    Name,
    /// Threads
    Thread,
    /// Names per thread
    #[value(name = "name,thread", alias = "thread,name")]
    NameAndThread,
}

/// Orders of `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortArgument {
    /// Time with at least one of the row's spans open
    Total,
    /// Time in the spans, excluding nested spans
    #[value(name = "self")]
    SelfTime,
    /// Number of spans
    Count,
    /// The shortest
    Min,
    /// The median
    P50,
    /// The 90th percentile
    P90,
    /// The 99th percentile
    P99,
    /// The longest
    Max,
    /// Name, in alphabetical order
    Name,
}

impl SortArgument {
    /// The statistic; `None` for names.
    pub(crate) fn statistic(self) -> Option<Statistic> {
        match self {
            Self::Total => Some(Statistic::Total),
            Self::SelfTime => Some(Statistic::SelfTime),
            Self::Count => Some(Statistic::Count),
            Self::Min => Some(Statistic::Min),
            Self::P50 => Some(Statistic::P50),
            Self::P90 => Some(Statistic::P90),
            Self::P99 => Some(Statistic::P99),
            Self::Max => Some(Statistic::Max),
            Self::Name => None,
        }
    }
}

/// `stats`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("listed").args(["longest", "outliers"]).multiple(true)))]
pub(crate) struct StatsArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = StatsForm::Text)]
    pub(crate) format: StatsForm,
    /// Group rows by
    #[arg(long, value_enum, default_value_t = ByArgument::Name)]
    pub(crate) by: ByArgument,
    /// Sort rows by, largest first
    #[arg(long, value_enum, default_value_t = SortArgument::Total)]
    pub(crate) sort: SortArgument,
    /// Rows
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, help = format!("{TOP} [default: all]"))]
    pub(crate) top: Option<usize>,
    /// Lengths of spans
    #[arg(long, value_name = "A..B", value_parser = time_range, help = format!("Lengths of spans {RANGE}: plain numbers in \
          the trace's unit, or with ns, us, ms, s"))]
    pub(crate) duration: Option<(TimeBound, TimeBound)>,
    /// Show a histogram of durations for each matching name
    #[arg(long, value_name = "NAME-REGEX")]
    pub(crate) histogram: Option<regex::bytes::Regex>,
    /// List the N longest spans with their stacks
    #[arg(long, value_name = "N")]
    pub(crate) longest: Option<usize>,
    /// List the N longest spans of each name with their stacks, beside the median of that name
    #[arg(long, value_name = "N", conflicts_with = "by")]
    pub(crate) outliers: Option<usize>,
    /// With --longest and --outliers: what is long without the spans inside it, in place of what contains others
    #[arg(long = "self", requires = "listed")]
    pub(crate) by_self: bool,
    /// List idle times of at least MIN between a thread's outermost spans (or those at the first depth of --depth)
    #[arg(long, value_name = "MIN", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = time_bound)]
    pub(crate) gaps: Option<TimeBound>,
    /// List each thread's processor migrations
    #[arg(long)]
    pub(crate) migrations: bool,
    /// Summarize events, their payloads and argument values
    #[arg(long)]
    pub(crate) events: bool,
    /// Compare with another trace, by name
    #[arg(long = "against", alias = "compare", value_name = "BASE", conflicts_with_all = ["histogram", "longest", "outliers", "gaps", "migrations", "events"])]
    pub(crate) compare: Option<PathBuf>,
    /// Exit with 1 if any name's statistic grew by more than this since BASE, such as total=10%; may be repeated
    #[arg(long, value_name = "STATISTIC=PERCENT", requires = "compare", value_parser = span_threshold)]
    pub(crate) fail_above: Vec<Threshold<Statistic>>,
    #[command(flatten)]
    pub(crate) csv: CsvArguments,
    #[command(flatten)]
    pub(crate) merge: MergeArguments,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

impl StatsArguments {
    /// True when lists are asked for besides the table.
    pub(crate) fn has_more_than_the_table(&self) -> bool {
        let lists =
            [self.longest.is_some(), self.outliers.is_some(), self.gaps.is_some(), self.migrations, self.events];
        self.histogram.is_some() || lists.contains(&true)
    }
}

fn span_threshold(text: &str) -> Result<Threshold<Statistic>, String> {
    let words = Statistic::ALL.map(Statistic::word);
    super::threshold(Threshold::parse(text, Statistic::from_word), text, &words, "total=10%")
}

/// Forms of `flame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameForm {
    /// Lines such as `main;parse;read 1234`, with the self weight of each stack
    Folded,
    /// An interactive, searchable picture for a browser
    Svg,
}

/// Weights of `flame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightArgument {
    /// Self time
    Time,
    /// Number of calls
    Count,
}

/// `flame`.
#[derive(Debug, Args)]
pub(crate) struct FlameArguments {
    /// Traces, combined; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File to write; - is standard output, and so is none. It is written completely or not at all
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// What to write [default: what OUT's extension says, folded without one]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FlameForm>,
    /// Weight of a stack
    #[arg(long, value_enum, default_value_t = WeightArgument::Time)]
    pub(crate) by: WeightArgument,
    /// Stacks by what caused a span (its parent), whatever threads it ran on; for traces of tracing-heph
    #[arg(long = "async", conflicts_with_all = ["by", "duration"])]
    pub(crate) by_cause: bool,
    /// Add the time in which spans waited; needs lives of spans in the trace
    #[arg(long, requires = "by_cause", conflicts_with = "time")]
    pub(crate) idle: bool,
    /// Compare with this trace: growth is red, shrinkage is blue; may be repeated
    #[arg(long = "against", alias = "diff", value_name = "BASE")]
    pub(crate) diff: Vec<PathBuf>,
    /// Title of the picture
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Reverse stacks to show the callers of expensive functions
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Draw from the top down
    #[arg(long)]
    pub(crate) inverted: bool,
    /// Lengths of spans
    #[arg(long, value_name = "A..B", value_parser = time_range, help = format!("Lengths of spans {RANGE}: plain numbers in \
          the trace's unit, or with ns, us, ms, s"))]
    pub(crate) duration: Option<(TimeBound, TimeBound)>,
    #[command(flatten)]
    pub(crate) merge: MergeArguments,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `timeline`.
#[derive(Debug, Args)]
pub(crate) struct TimelineArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Width of the picture in columns [default: the terminal's width, or 100]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(40..=1000))]
    pub(crate) width: Option<usize>,
    /// Threads
    #[arg(short = 'n', long, alias = "rows", value_name = "N", value_parser = rows, default_value = "40",
          help = format!("{TOP} (the busiest threads)"))]
    pub(crate) top: usize,
    /// Use ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
    #[command(flatten)]
    pub(crate) merge: MergeArguments,
    #[command(flatten)]
    pub(crate) index: IndexUseArguments,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

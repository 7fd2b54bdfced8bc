//! Options of the verbs over spans: `stats`, `flame`, `timeline`.

use std::path::PathBuf;

use anytrace_analysis::accounting::Statistic;
use anytrace_analysis::compare::Threshold;
use anytrace_analysis::filter::SpanFilter;
use anytrace_core::{NameMatch, TimeBound};
use clap::{Args, ValueEnum};

use super::{CsvArguments, InputArguments, number_range, thread_id, time_bound, time_range};
use crate::symbols::SymbolArguments;

/// Which spans, and what they are called.
#[derive(Debug, Args)]
#[command(next_help_heading = "Spans (all conditions must hold)")]
pub(crate) struct SpanArguments {
    /// A thread (Heph: a stream); may be repeated
    #[arg(long = "thread", value_name = "ID", value_parser = thread_id)]
    thread: Vec<u64>,
    /// Spans that begin in A..B: with ns, us, ms, s since the trace's start; plain numbers are the trace's own times
    #[arg(long, value_name = "A..B", value_parser = time_range)]
    time: Option<(TimeBound, TimeBound)>,
    /// Spans whose name matches
    #[arg(long, value_name = "REGEX", visible_alias = "function")]
    name: Option<regex::bytes::Regex>,
    /// Spans with so many around them: A..B (without B), A..=B, A.., ..B or N
    #[arg(long, value_name = "A..B", value_parser = number_range)]
    depth: Option<std::ops::Range<u64>>,
    /// Spans that were left by a jump enclose what was jumped to
    #[arg(long)]
    pub(crate) tail_chains: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArguments,
}

impl SpanArguments {
    /// True when `--time` has plain numbers: the trace's own times, which may begin anywhere.
    pub(crate) fn has_plain_time(&self) -> bool {
        let is_plain = |bound| matches!(bound, TimeBound::Native(_));
        self.time.is_some_and(|(from, to)| is_plain(from) || is_plain(to))
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
    /// The table of names or threads, for spreadsheets; times in the column `unit`
    Csv,
    /// Everything, for programs, with a version field
    Json,
}

/// What makes a row of `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArgument {
    /// Names
    Name,
    /// Threads
    Thread,
    /// Names on threads
    #[value(name = "name,thread", alias = "thread,name")]
    NameAndThread,
}

/// Orders of `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortArgument {
    /// Time with at least one span of the row open
    Total,
    /// Time in the spans and in none inside them
    #[value(name = "self")]
    SelfTime,
    /// Number of spans
    Count,
    /// The shortest
    Min,
    /// The median
    P50,
    /// Nine tenths are shorter
    P90,
    /// 99 of 100 are shorter
    P99,
    /// The longest
    Max,
    /// Name, from a to z
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
pub(crate) struct StatsArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = StatsForm::Text)]
    pub(crate) format: StatsForm,
    /// What makes a row
    #[arg(long, value_enum, default_value_t = ByArgument::Name)]
    pub(crate) by: ByArgument,
    /// Order of the rows, the greatest first
    #[arg(long, value_enum, default_value_t = SortArgument::Total)]
    pub(crate) sort: SortArgument,
    /// Only so many rows [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Spans of such a length: A..B, plain numbers in the trace's unit, or with ns, us, ms, s
    #[arg(long, value_name = "A..B", value_parser = time_range)]
    pub(crate) duration: Option<(TimeBound, TimeBound)>,
    /// How the lengths of each name that matches are distributed
    #[arg(long, value_name = "NAME-REGEX")]
    pub(crate) histogram: Option<regex::bytes::Regex>,
    /// The N longest spans, with their stacks
    #[arg(long, value_name = "N")]
    pub(crate) longest: Option<usize>,
    /// Idle times between outermost spans of a thread (or of the first depth of --depth), of at least MIN
    #[arg(long, value_name = "MIN", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = time_bound)]
    pub(crate) gaps: Option<TimeBound>,
    /// Changes of processor of each thread
    #[arg(long)]
    pub(crate) migrations: bool,
    /// Events, their payloads, and the values of arguments
    #[arg(long)]
    pub(crate) events: bool,
    /// Compare with another trace, name by name
    #[arg(long, value_name = "OTHER", conflicts_with_all = ["histogram", "longest", "gaps", "migrations", "events"])]
    pub(crate) compare: Option<PathBuf>,
    /// Exit with 1 when a statistic of a name has grown by more against --compare, as total=10%; may be repeated
    #[arg(long, value_name = "STATISTIC=PERCENT", requires = "compare", value_parser = threshold)]
    pub(crate) fail_above: Vec<Threshold>,
    #[command(flatten)]
    pub(crate) csv: CsvArguments,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

fn threshold(text: &str) -> Result<Threshold, String> {
    Threshold::parse(text).ok_or_else(|| {
        let words: Vec<_> = Statistic::ALL.iter().map(|statistic| statistic.word()).collect();
        format!("{text:?} is no threshold: one of {}, and how many per cent, as total=10%", words.join(", "))
    })
}

/// Forms of `flame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameForm {
    /// Lines `main;parse;read 1234`, with what each stack weighs without what it calls
    Folded,
    /// A picture to click into and to search, for a browser
    Svg,
}

/// Weights of `flame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightArgument {
    /// Time in a stack and in nothing it calls
    Time,
    /// Number of calls
    Count,
}

/// `flame`.
#[derive(Debug, Args)]
pub(crate) struct FlameArguments {
    /// Traces, taken together; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File to write; - is standard output, and so is none. It appears whole or not at all
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// What to write [default: svg where OUT ends in .svg, else folded]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FlameForm>,
    /// What stacks weigh
    #[arg(long, value_enum, default_value_t = WeightArgument::Time)]
    pub(crate) by: WeightArgument,
    /// Compare with this trace: what has grown is red, what has shrunk is blue; may be repeated
    #[arg(long, value_name = "BASE")]
    pub(crate) diff: Vec<PathBuf>,
    /// Title of the picture
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Begin stacks at the innermost call: who called what takes the time?
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Draw from the top down
    #[arg(long)]
    pub(crate) inverted: bool,
    /// Spans of such a length: A..B, plain numbers in the trace's unit, or with ns, us, ms, s
    #[arg(long, value_name = "A..B", value_parser = time_range)]
    pub(crate) duration: Option<(TimeBound, TimeBound)>,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourArgument {
    /// Where a terminal looks
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// `timeline`.
#[derive(Debug, Args)]
pub(crate) struct TimelineArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Columns of the whole picture [default: the terminal's, 100 without one]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(40..=1000))]
    pub(crate) width: Option<usize>,
    /// Most threads shown: the busiest
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) rows: usize,
    /// Colours for the busiest names
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always", default_value_t = ColourArgument::Auto)]
    pub(crate) color: ColourArgument,
    /// Only ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
    #[command(flatten)]
    pub(crate) spans: SpanArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

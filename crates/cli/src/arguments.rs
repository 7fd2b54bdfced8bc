//! Every option of every verb. Help texts are written for people, with a real example each.

mod convert;
mod spans;

use std::path::PathBuf;

use anytrace_core::{Endian, NameMatch, Radix, Selection, Style, TargetOptions, TimeBound};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use convert::{CsvArguments, TellingArguments};
pub(crate) use spans::{
    ByArgument, ColourArgument, FlameArguments, FlameForm, SpanArguments, StatsArguments, StatsForm, TimelineArguments,
    WeightArgument, matching,
};

/// Read, check, repair, convert, trim and compare program traces of any kind.
#[derive(Debug, Parser)]
#[command(
    name = "anytrace",
    version,
    about,
    max_term_width = 100,
    after_help = format!(
        "Formats: {}; recognised by content,\n\
         also inside gzip or zstd, also on standard input (-). `anytrace formats` lists them.\n\n\
         Exit codes: 0 fine, 1 the trace breaks a rule or the files differ, 2 the command failed.\n\n\
         Example:\n  anytrace info examples/traces/*",
        format_names().join(", ")
    )
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Say what a trace is and what is in it
    #[command(after_help = "Example:\n  anytrace info --format json app.xray | jq .kinds")]
    Info(InfoArguments),
    /// Print the records in wire order, one a line
    #[command(after_help = "Example:\n  anytrace dump --offsets --records 100..120 app.heph\n  \
                            anytrace dump --format jsonl app.heph | jq 'select(.end - .start > 1000000)'")]
    Dump(DumpArguments),
    /// Find every breach of the format's rules
    #[command(
        after_help = "Example:\n  anytrace check app.heph\n  anytrace check --format sarif *.trace > anytrace.sarif"
    )]
    Check(CheckArguments),
    /// Write the valid trace that can be saved, and say what was lost
    #[command(after_help = "Example:\n  anytrace repair crashed.xray -o saved.xray")]
    Repair(RepairArguments),
    /// Write a trace in another form, or the same again without loss
    #[command(
        after_help = "With -o -, bytes go out as they are made; XRay's binary forms only when they are complete.\n\n\
                            Example:\n  anytrace convert app.xray -o app.yaml --to yaml\n  \
                            anytrace convert app.xray -o app.pftrace --to perfetto -m ./app\n  \
                            anytrace convert app.trace -o small.trace --container zstd-seekable\n  \
                            anytrace convert app.cacheray -o app.din --to din\n  \
                            anytrace convert edited.jsonl -o app.heph --to heph"
    )]
    Convert(ConvertArguments),
    /// Write a part of a trace, valid by itself
    #[command(after_help = "Example:\n  anytrace trim app.xray -o part.xray --thread 4711 --time 1ms..5ms\n  \
                            anytrace trim game.trace -o frame.trace --frames 10..12")]
    Trim(TrimArguments),
    /// Compare two traces record by record, aligned by content
    #[command(after_help = "Example:\n  anytrace diff before.heph after.heph --ignore start --ignore end")]
    Diff(DiffArguments),
    /// Say where time goes: statistics of spans by name or thread, for formats whose records begin and end something
    #[command(after_help = "Example:\n  anytrace stats --sort self --top 20 -m ./app app.xray\n  \
                            anytrace stats new.xray --compare old.xray --fail-above total=10%")]
    Stats(StatsArguments),
    /// Draw a flame graph, or print its folded stacks
    #[command(after_help = "Example:\n  anytrace flame app.xray -m ./app -o app.svg\n  \
                            anytrace flame after.xray --diff before.xray -o diff.svg")]
    Flame(FlameArguments),
    /// Show in the terminal which threads were busy when, and with what
    #[command(after_help = "Example:\n  anytrace timeline -m ./app --time 1ms..2ms app.xray")]
    Timeline(TimelineArguments),
    /// apitrace's own verbs, several times faster: dump, edit, diff, leaks, state, stats
    #[command(after_help = "Example:\n  anytrace apitrace dump --calls=frame game.trace")]
    Apitrace(crate::verbs::apitrace::ApitraceArguments),
    /// Memory accesses: cache simulation by type and field, miss-ratio curves, sharing, advice, recording
    #[command(after_help = "Example:\n  anytrace cacheray sim --config zen3 --types --binary ./app app.trace")]
    Cacheray(crate::verbs::cacheray::CacherayArguments),
    /// Casemate's own verbs: the break-before-make checker and what explains it
    #[command(after_help = "Example:\n  anytrace casemate check --compat hyp.log\n  anytrace casemate explain hyp.log")]
    Casemate(crate::verbs::casemate::CasemateArguments),
    /// Heph's own verbs: spans, statistics, loss, live collection, replay
    #[command(after_help = "Example:\n  anytrace heph stats app.heph\n  anytrace heph loss app.heph")]
    Heph(crate::verbs::heph::HephArguments),
    /// `llvm-xray`'s verbs, right on every trace: account, stack, graph, graph-diff, convert, extract, fdr-dump
    #[command(after_help = "Example:\n  anytrace xray account -m ./app -s sum -r dsc -p 10 app.xray")]
    Xray(crate::verbs::xray::XrayArguments),
    /// List the formats and what `convert --to` takes for each
    Formats,
    /// List the rules `check` knows, with their codes
    #[command(after_help = "Example:\n  anytrace rules heph")]
    Rules(RulesArguments),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  anytrace completions bash > /etc/bash_completion.d/anytrace")]
    Completions(CompletionsArguments),
    /// Print the manual page, or write one a verb to a folder
    #[command(after_help = "Example:\n  anytrace man | man -l -\n  anytrace man --dir /usr/local/share/man/man1")]
    Man(ManArguments),
}

/// How inputs are read; the same in every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct InputArguments {
    /// Do not recognise the format: it is this one
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(format_names()))]
    pub(crate) input_format: Option<String>,
    /// Byte order of the input, where detection is wrong
    #[arg(long, value_name = "little|big", value_parser = one_of(["little", "big"], endian))]
    pub(crate) endian: Option<Endian>,
    /// Pointer width of the input in bytes, where detection is wrong
    #[arg(long, value_name = "4|8", value_parser = one_of(["4", "8"], pointer_width))]
    pub(crate) pointer_width: Option<u8>,
    /// Base of numbers without a prefix, in text formats
    #[arg(long = "radix", value_name = "dec|hex", value_parser = one_of(["dec", "hex"], radix))]
    pub(crate) input_radix: Option<Radix>,
    /// Recover values the format cannot express (Heph: arrays of arrays); each is reported
    #[arg(long)]
    pub(crate) recover: bool,
    /// Longest single record, in bytes; suffixes k, M, G [default: 16M]
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub(crate) record_limit: Option<u64>,
    /// Read the file instead of mapping it: for files that may shrink meanwhile
    #[arg(long)]
    pub(crate) no_mmap: bool,
    /// Threads to use, 1 to 64 [default: one a processor, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) threads: Option<usize>,
    /// Most diagnostics shown for one file; 0 is all. Counts are always exact
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u64,
}

/// Which records.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection (all conditions must hold)")]
pub(crate) struct SelectionArguments {
    /// Record numbers from 0: A..B (without B), A..=B, A.., ..B or N
    #[arg(long, value_name = "A..B", value_parser = number_range)]
    records: Option<std::ops::Range<u64>>,
    /// A thread (Heph: a stream); may be repeated
    #[arg(long = "thread", value_name = "ID", value_parser = thread_id)]
    thread: Vec<u64>,
    /// Times A..B: plain numbers in the trace's unit, or with ns, us, ms, s since its start
    #[arg(long, value_name = "A..B", value_parser = time_range)]
    time: Option<(TimeBound, TimeBound)>,
    /// Names that match: function, description, call, type or transition
    #[arg(long, value_name = "REGEX", visible_aliases = ["function", "description", "call", "type"])]
    name: Option<regex::bytes::Regex>,
    /// Buffer numbers from 0 (XRay)
    #[arg(long, value_name = "A..B", visible_alias = "buffer", value_parser = number_range)]
    buffers: Option<std::ops::Range<u64>>,
    /// Frame numbers from 0 (apitrace)
    #[arg(long, value_name = "A..B", visible_alias = "frame", value_parser = number_range)]
    frames: Option<std::ops::Range<u64>>,
}

impl SelectionArguments {
    /// The library's selection.
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            records: self.records.clone(),
            threads: self.thread.clone(),
            time: self.time,
            name: self.name.clone().map(|regex| Box::new(move |name: &[u8]| regex.is_match(name)) as NameMatch),
            buffers: self.buffers.clone(),
            frames: self.frames.clone(),
        }
    }
}

/// The form written.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Written form (what is not given stays as it is)")]
pub(crate) struct TargetArguments {
    /// Format version to write
    #[arg(long = "version", visible_alias = "to-version", value_name = "N")]
    version: Option<u32>,
    /// Byte order to write
    #[arg(long, value_name = "little|big", value_parser = one_of(["little", "big"], endian))]
    to_endian: Option<Endian>,
    /// Pointer width to write, in bytes
    #[arg(long, value_name = "4|8", value_parser = one_of(["4", "8"], pointer_width))]
    to_pointer_width: Option<u8>,
    /// Container to write (apitrace): snappy, gzip, brotli, zstd, zstd-seekable, raw
    #[arg(long, visible_alias = "to-container", value_name = "NAME", value_parser = PossibleValuesParser::new(CONTAINERS))]
    container: Option<String>,
    /// Compression level of the container
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// Layout of a text format
    #[arg(long, value_name = "canonical|positional|pretty", value_parser = one_of(["canonical", "positional", "pretty"], style))]
    style: Option<Style>,
    /// Base of numbers written in a text format
    #[arg(long, value_name = "dec|hex", value_parser = one_of(["dec", "hex"], radix))]
    to_radix: Option<Radix>,
}

impl TargetArguments {
    /// The library's options.
    pub(crate) fn target(&self, to: Option<&str>) -> TargetOptions {
        TargetOptions {
            to: to.map(str::to_owned),
            version: self.version,
            endian: self.to_endian,
            pointer_width: self.to_pointer_width,
            container: self.container.clone(),
            level: self.level,
            style: self.style,
            radix: self.to_radix,
        }
    }
}

/// Where output goes.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// File to write; - is standard output. It appears whole or not at all
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
    /// For programs, with a version field
    Json,
}

/// Forms of `dump`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormArgument {
    /// One record a line, for people
    Text,
    /// One JSON object a record, every field of the wire; `convert` reads it back
    Jsonl,
}

/// Forms of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckForm {
    /// For people
    Text,
    /// For programs, with a version field
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
    /// Only recognise the format; do not read the file
    #[arg(long)]
    pub(crate) quick: bool,
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
    /// Exit with 0 even where less than half of the bytes, or no record, could be saved
    #[arg(long)]
    pub(crate) allow_loss: bool,
    /// How to print what was lost
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    pub(crate) format: ResultForm,
    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// `convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// Trace or JSON lines; - is standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Form to write; `anytrace formats` lists them [default: what OUT's extension says, else the input's own]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(target_names()))]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) telling: TellingArguments,
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
    /// A field that does not count; may be repeated. Names are those of `dump --format jsonl`
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
    /// Only this format's
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
    /// Write anytrace.1 and anytrace-VERB.1 into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Replace pages that are there
    #[arg(long, requires = "dir")]
    pub(crate) force: bool,
}

/// The containers of `convert --container`.
pub(crate) const CONTAINERS: [&str; 6] = ["snappy", "gzip", "brotli", "zstd", "zstd-seekable", "raw"];

/// A parser that completions can list the values of. `read` knows each of them.
fn one_of<const N: usize, T: Clone + Send + Sync + 'static>(
    names: [&'static str; N],
    read: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |name| read(&name).ok_or("an unknown value"))
}

fn format_names() -> Vec<&'static str> {
    anytrace_formats::all().iter().map(|format| format.name()).collect()
}

/// Every name that some format's `--to` takes.
fn target_names() -> Vec<&'static str> {
    let own = anytrace_formats::all().iter().flat_map(|format| format.targets()).map(|(name, _)| *name);
    let timelines = anytrace_export::timeline::OUTPUTS.iter().map(|output| output.name);
    let accesses = anytrace_export::accesses::OUTPUTS.iter().map(|output| output.name);
    let names: std::collections::BTreeSet<_> = own.chain(timelines).chain(accesses).collect();
    names.into_iter().collect()
}

fn endian(text: &str) -> Option<Endian> {
    Endian::from_name(text)
}

fn pointer_width(text: &str) -> Option<u8> {
    text.parse().ok()
}

fn radix(text: &str) -> Option<Radix> {
    match text {
        "dec" => Some(Radix::Decimal),
        "hex" => Some(Radix::Hex),
        _ => None,
    }
}

fn style(text: &str) -> Option<Style> {
    match text {
        "canonical" => Some(Style::Canonical),
        "positional" => Some(Style::Positional),
        "pretty" => Some(Style::Pretty),
        _ => None,
    }
}

pub(crate) fn byte_count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1_u64),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number, with k, M or G behind it or not".to_owned())?;
    number.checked_mul(factor).filter(|n| *n > 0).ok_or_else(|| "expected 1 to 2^64-1 bytes".to_owned())
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is no unsigned number"))
}

/// Thread ids are unsigned on most systems; XRay's are signed 32-bit and may be given so.
fn thread_id(text: &str) -> Result<u64, String> {
    match text.parse::<i32>() {
        Ok(id) if id < 0 => Ok(u64::from(id.cast_unsigned())),
        _ => number(text),
    }
}

fn number_range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let Some((from, to)) = text.split_once("..") else {
        let at = number(text)?;
        return Ok(at..at.checked_add(1).ok_or("too large")?);
    };
    let start = if from.is_empty() { 0 } else { number(from)? };
    let end = match to.strip_prefix('=') {
        _ if to.is_empty() => u64::MAX,
        Some(last) => number(last)?.checked_add(1).ok_or("too large")?,
        None => number(to)?,
    };
    if start > end {
        return Err(format!("{text} is empty: it ends before it starts"));
    }
    Ok(start..end)
}

fn time_range(text: &str) -> Result<(TimeBound, TimeBound), String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B")?;
    let bounds = (time_bound(from)?, time_bound(to)?);
    let is_backward = match bounds {
        (TimeBound::Native(from), TimeBound::Native(to))
        | (TimeBound::Nanoseconds(from), TimeBound::Nanoseconds(to)) => from > to,
        // Which is the later of a count and a time, only the trace knows.
        _ => false,
    };
    if is_backward {
        return Err(format!("{text} is empty: it ends before it starts"));
    }
    Ok(bounds)
}

pub(crate) fn time_bound(text: &str) -> Result<TimeBound, String> {
    if text.is_empty() {
        return Ok(TimeBound::Open);
    }
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000_u64)];
    let Some((digits, factor)) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
    else {
        return number(text)
            .map(TimeBound::Native)
            .map_err(|_| format!("{text:?} is no time: a number, alone or with ns, us, ms or s behind it"));
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut ns = number(whole)?.checked_mul(factor).ok_or("too large")?;
    let mut place = factor;
    for digit in fraction.chars() {
        let digit = digit.to_digit(10).ok_or_else(|| format!("{text:?} is no time"))?;
        place /= 10;
        ns = ns.checked_add(u64::from(digit) * place).ok_or("too large")?;
    }
    Ok(TimeBound::Nanoseconds(ns))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ranges_are_half_open_unless_they_say_so() {
        assert_eq!(number_range("3..5"), Ok(3..5));
        assert_eq!(number_range("3..=5"), Ok(3..6));
        assert_eq!(number_range("..5"), Ok(0..5));
        assert_eq!(number_range("0x10.."), Ok(16..u64::MAX));
        assert_eq!(number_range("7"), Ok(7..8));
        assert!(number_range("5..3").is_err() && number_range("a..b").is_err() && number_range("").is_err());
    }

    #[test]
    fn times_carry_their_unit() {
        assert_eq!(time_range("5..1.5ms"), Ok((TimeBound::Native(5), TimeBound::Nanoseconds(1_500_000))));
        assert_eq!(time_range("2s.."), Ok((TimeBound::Nanoseconds(2_000_000_000), TimeBound::Open)));
        assert!(time_range("5").is_err() && time_range("1.xms..").is_err());
        assert!(time_range("5..1").is_err() && time_range("2us..1999ns").is_err() && time_range("5..5").is_ok());
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(byte_count("64k"), Ok(65_536));
        assert!(byte_count("0").is_err() && byte_count("x").is_err() && byte_count("99999999999G").is_err());
    }
}

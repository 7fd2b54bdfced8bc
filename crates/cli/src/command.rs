//! The command line as one tree: the verbs and the groups of verbs. Help texts are written for people, with a real
//! example each.

use anstream::ColorChoice;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::arguments::{
    CheckArguments, CompletionsArguments, ConvertArguments, DiffArguments, DumpArguments, FlameArguments,
    IndexArguments, InfoArguments, ManArguments, MergeVerbArguments, QueryArguments, RepairArguments, ReportArguments,
    RulesArguments, StatsArguments, TimelineArguments, TrimArguments, ViewArguments, format_names, own,
};
use crate::verbs::apitrace::ApitraceArguments;
use crate::verbs::cacheray::CacherayArguments;
use crate::verbs::casemate::CasemateArguments;
use crate::verbs::demo::DemoArguments;
use crate::verbs::heph::HephArguments;
use crate::verbs::highlights::HighlightsArguments;
use crate::verbs::memory::{self, MemoryArguments};
use crate::verbs::record::RecordArguments;
use crate::verbs::xray::XrayArguments;

/// Read, check, repair, convert, trim and compare program traces of any kind.
#[derive(Debug, Parser)]
#[command(
    name = "anytrace",
    version,
    about,
    max_term_width = 100,
    after_help = format!(
        "Formats: {}; recognized by content,\n\
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
    /// When to use colors
    #[arg(long, global = true, alias = "colour", value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value_t = ColorArgument::Auto, default_missing_value = "always")]
    pub(crate) color: ColorArgument,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArgument {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorArgument {
    /// What the terminal is to do.
    pub(crate) fn choice(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Identify a trace and summarize its contents
    #[command(after_help = "Example:\n  anytrace info --format json app.xray | jq .kinds")]
    Info(InfoArguments),
    /// Write traces of small programs to try the verbs on, and show one in the browser
    #[command(after_help = "Example:\n  anytrace demo -o try")]
    Demo(DemoArguments),
    /// Run a program with the recorder that fits it, and say which that is
    #[command(
        after_help = "What is recorded: calls of OpenGL of what loads a library that draws, functions of what was compiled\n\
                      with -fxray-instrument, accesses to memory of what was compiled by `anytrace cacheray cc`.\n\
                      `anytrace apitrace trace` and `anytrace cacheray record` have more options.\n\n\
                      Beside a trace of functions there is OUT.maps: what was mapped into the program, from which other\n\
                      verbs have the names of its functions and of those of its libraries.\n\n\
                      Exit codes: the program's; 1 also if something could not be recorded, 2 also if nothing was or the\n\
                      command failed.\n\n\
                      Example:\n  anytrace record -- glxgears\n  anytrace record -o app.xray -- ./app input.txt"
    )]
    Record(RecordArguments),
    /// Say what is most worth knowing about each trace, and which command shows more
    #[command(
        after_help = "Example:\n  anytrace highlights examples/traces/*\n  anytrace highlights -m ./app app.xray"
    )]
    Highlights(HighlightsArguments),
    /// Print the records in wire order, one per line
    #[command(after_help = "Example:\n  anytrace dump --offsets --records 100..120 app.heph\n  \
                            anytrace dump --format jsonl app.heph | jq 'select(.end - .start > 1000000)'")]
    Dump(DumpArguments),
    /// Find every violation of the format's rules
    #[command(
        after_help = "Example:\n  anytrace check app.heph\n  anytrace check --format sarif *.trace > anytrace.sarif\n  \
                      anytrace check --follow - < app.heph"
    )]
    Check(CheckArguments),
    /// Write a valid trace from what can be recovered, and report what was lost
    #[command(after_help = "Example:\n  anytrace repair crashed.xray -o saved.xray")]
    Repair(RepairArguments),
    /// Write a trace in another form, or copy it without loss
    #[command(after_help = "With -o -, output is streamed; XRay's binary forms are written only when complete.\n\n\
                            Example:\n  anytrace convert app.xray -o app.yaml --to yaml\n  \
                            anytrace convert app.xray -o app.pftrace --to perfetto -m ./app\n  \
                            anytrace convert app.trace -o small.trace --container zstd-seekable\n  \
                            anytrace convert app.cacheray -o app.din --to din\n  \
                            anytrace convert app.xray -o spans.parquet --table spans\n  \
                            anytrace convert edited.jsonl -o app.heph --to heph")]
    Convert(ConvertArguments),
    /// Write several traces as one timeline, on a common axis of time
    #[command(
        after_help = "Clocks are compared by dates, by the machine's uptime, by counters of one rate; what has none of them\n\
                            begins with the others, or is spread over their time. Standard error says which, and how sure it is.\n\n\
                            Example:\n  anytrace merge app.xray app.heph --offset app.heph=+3ms -o both.json\n  \
                      anytrace merge a.xray b.xray -m a.xray=./a -m b.xray=./b -o both.pftrace"
    )]
    Merge(MergeVerbArguments),
    /// Write part of a trace as a valid trace
    #[command(after_help = "Example:\n  anytrace trim app.xray -o part.xray --thread 28977 --time 2ms..8ms\n  \
                            anytrace trim game.trace -o frame.trace --frames 1..3")]
    Trim(TrimArguments),
    /// Compare two traces record by record, aligned by content
    #[command(after_help = "Example:\n  anytrace diff before.heph after.heph --ignore start --ignore end")]
    Diff(DiffArguments),
    /// Show where time goes: span statistics by name or thread, for formats with spans
    #[command(after_help = "Example:\n  anytrace stats --sort self --top 20 -m ./app app.xray\n  \
                            anytrace stats new.xray --against old.xray --fail-above total=10%")]
    Stats(StatsArguments),
    /// Draw a flame graph, or print its folded stacks
    #[command(after_help = "Example:\n  anytrace flame app.xray -m ./app -o app.svg\n  \
                            anytrace flame after.xray --against before.xray -o diff.svg\n  \
                            anytrace flame app.heph --async --idle -o tasks.svg")]
    Flame(FlameArguments),
    /// Show in the terminal when each thread was busy, and with what
    #[command(after_help = "Example:\n  anytrace timeline -m ./app --time 1ms..2ms app.xray")]
    Timeline(TimelineArguments),
    /// Show traces in the browser: a timeline to zoom, search, statistics, flame graphs, SQL
    #[command(
        after_help = "The address is printed before the traces are read; it is valid on this machine only, as long as \
                            the command runs. Ctrl-C ends it.\n\n\
                            Example:\n  anytrace view -m ./app app.xray\n  anytrace view --no-open --port 8080 app.heph"
    )]
    View(ViewArguments),
    /// Write a page of a trace that needs no server: timeline, flame graph, statistics, damage
    #[command(after_help = "Example:\n  anytrace report -m ./app app.xray -o app.html")]
    Report(ReportArguments),
    /// Answer questions in SQL: every format has tables
    #[command(
        after_help = "Tables are listed by --tables, columns by --describe, named queries by --list. Functions besides \
                            those of DataFusion: bucket, hex, duration, percentile, stack_path, symbol, line, attr.\n\n\
                            Example:\n  anytrace query app.xray \"SELECT name, count(*) FROM calls GROUP BY name\"\n  \
                            anytrace query *.xray \"SELECT file, count(*) FROM calls GROUP BY file\"\n  \
                            anytrace query --run slowest-calls -m ./app app.xray"
    )]
    Query(QueryArguments),
    /// Write an index beside a trace: queries then use all processors and read only what they need
    #[command(after_help = "Without an index, `query` reads a trace from its start on one processor. An index that \
                            does not fit its trace any more is ignored, with a note.\n\n\
                            Example:\n  anytrace index app.xray\n  anytrace index --show app.xray")]
    Index(IndexArguments),
    /// apitrace's commands, several times faster: dump, edit, diff, leaks, state, stats
    #[command(after_help = "Example:\n  anytrace apitrace dump --calls=frame game.trace")]
    Apitrace(ApitraceArguments),
    /// Record a program's memory accesses, and build programs for recording
    #[command(after_help = "The verbs of `anytrace memory` also work in this group.\n\n\
                            Example:\n  anytrace cacheray cc -- gcc -O1 -g -o app app.c\n  \
                            anytrace cacheray record -o app.trace -- ./app")]
    Cacheray(CacherayArguments),
    /// Casemate commands: check break-before-make, explain violations, inspect the machine's state
    #[command(after_help = "Example:\n  anytrace casemate check --compat hyp.log\n  anytrace casemate explain hyp.log")]
    Casemate(CasemateArguments),
    /// Heph commands: spans, statistics, loss, live collection, replay
    #[command(after_help = "Example:\n  anytrace heph stats app.heph\n  anytrace heph loss app.heph")]
    Heph(HephArguments),
    /// Analyze memory accesses: cache simulation by type and field, miss-ratio curves, sharing, layout advice
    #[command(after_help = "Example:\n  anytrace memory sim --config zen3 --types -m ./app app.trace")]
    Memory(MemoryArguments),
    /// `llvm-xray`'s commands, correct on every trace: account, stack, graph, graph-diff, convert, extract, fdr-dump
    #[command(after_help = "Example:\n  anytrace xray account -m ./app -s sum -r dsc -p 10 app.xray")]
    Xray(XrayArguments),
    /// List the formats and the values of `convert --to` for each
    Formats,
    /// List the rules of `check` with their codes
    #[command(after_help = "Example:\n  anytrace rules heph")]
    Rules(RulesArguments),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  anytrace completions bash \\\n    > ~/.local/share/bash-completion/completions/anytrace"
    )]
    Completions(CompletionsArguments),
    /// Print the manual page, or write one page per verb to a folder
    #[command(after_help = "Example:\n  anytrace man | man -l -\n  anytrace man --dir ~/.local/share/man/man1")]
    Man(ManArguments),
}

/// The command line as it is shown and completed.
pub(crate) fn command() -> clap::Command {
    command_for(None)
}

/// The command line as it is parsed, where `verb` is the first word: the other verbs' options are not adapted to their
/// formats then, because nothing shows them. Building the command line is most of what a short run costs.
pub(crate) fn command_for(verb: Option<&str>) -> clap::Command {
    // The verbs of `memory` were `cacheray`'s; they still are, but are listed once.
    let memory: Vec<String> = memory::names();
    let command = own::fit(Arguments::command(), verb);
    command.mut_subcommand("cacheray", |group| {
        memory.into_iter().fold(group, |group, name| group.mut_subcommand(name, |verb| verb.hide(true)))
    })
}

/// Adds the verbs of groups to what is proposed in place of a verb that does not exist.
pub(crate) fn propose(error: &mut clap::Error) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let command = command();
    let groups = command.get_subcommands().flat_map(|group| {
        let verbs = group.get_subcommands().filter(|verb| !verb.is_hide_set());
        verbs.map(move |verb| (verb.get_name(), format!("{} {}", group.get_name(), verb.get_name())))
    });
    let alone = command.get_subcommands().map(|verb| (verb.get_name(), verb.get_name().to_owned()));
    let mut near: Vec<_> = alone.chain(groups).map(|(verb, path)| (strsim::jaro(given, verb), path)).collect();
    near.retain(|(likeness, _)| *likeness > LIKENESS_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = near.first().map_or(0.0, |(likeness, _)| *likeness);
    let names: Vec<_> = near.into_iter().filter(|(likeness, _)| *likeness == best).map(|(_, path)| path).collect();
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
}

/// From here on, of 1, clap proposes a name for another.
const LIKENESS_MIN: f64 = 0.7;

#[cfg(test)]
mod tests;

//! `anytrace xray …`: options and output of `llvm-xray`, one file per verb.

mod account;
mod convert;
mod extract;
mod fdr_dump;
mod graph;
mod graph_diff;
mod reading;
mod spelling;
mod stack;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;
pub(crate) use spelling::normalize;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct XrayArguments {
    /// What to do.
    #[command(subcommand)]
    verb: XrayVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum XrayVerb {
    /// Count each function's calls and how long they take
    #[command(
        after_help = "Exit codes: 0 fine, 1 the trace is damaged (the rest is counted), 2 the command failed.\n\n\
                            Example:\n  anytrace xray account -m ./app -s sum -r dsc -p 10 app.xray"
    )]
    Account(account::AccountArguments),
    /// Sum time and calls by call stack, over all traces given
    #[command(after_help = "Example:\n  anytrace xray stack app.xray\n  \
                            anytrace xray stack --stack-format=flame app.xray | flamegraph.pl > app.svg\n  \
                            anytrace xray stack --format json --unit seconds *.xray")]
    Stack(stack::StackArguments),
    /// Draw the call graph: calls and times of each pair of functions
    #[command(
        after_help = "Example:\n  anytrace xray graph -m ./app -e sum -c sum -v count app.xray |\n    dot -Tsvg > app.svg\n  \
                            anytrace xray graph --format csv app.xray"
    )]
    Graph(graph::GraphArguments),
    /// Compare the call graphs of two traces, matching functions by name; with thresholds for automatic checks
    #[command(
        after_help = "Exit codes: 0 fine, 1 something exceeds a threshold (--fail-above), 2 the command failed.\n\n\
                            Example:\n  anytrace xray graph-diff -m1 ./old -m2 ./new -e sum -c sum old.xray new.xray\n  \
                            anytrace xray graph-diff --format csv --fail-above sum=10% --min-count 100 \\\n    old.xray new.xray"
    )]
    GraphDiff(graph_diff::GraphDiffArguments),
    /// Write a trace, sorted by time, as Basic records, YAML or JSON for trace viewers
    #[command(after_help = "Example:\n  anytrace xray convert -f trace_event -y -m ./app -o app.json app.xray")]
    Convert(convert::ConvertArguments),
    /// Write the instrumentation map of a program or library as YAML
    #[command(after_help = "Exit codes: 0 written, 1 a YAML map is damaged, 2 the command failed.\n\nExample:\n  \
                            anytrace xray extract -s ./app -o app.map.yaml\n  anytrace xray extract -s --no-demangle ./app")]
    Extract(extract::ExtractArguments),
    /// Print the records of an FDR trace, one per line, as they are on the wire
    #[command(after_help = "Example:\n  anytrace xray fdr-dump --verify app.xray | less")]
    FdrDump(fdr_dump::FdrDumpArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &XrayArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        XrayVerb::Account(options) => account::run(options),
        XrayVerb::Stack(options) => stack::run(options),
        XrayVerb::Graph(options) => graph::run(options),
        XrayVerb::GraphDiff(options) => graph_diff::run(options),
        XrayVerb::Convert(options) => convert::run(options),
        XrayVerb::Extract(options) => extract::run(options),
        XrayVerb::FdrDump(options) => fdr_dump::run(options),
    }
}

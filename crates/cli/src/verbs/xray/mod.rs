//! `anytrace xray …`: options and output of `llvm-xray`, one file a verb.

mod account;
mod convert;
mod extract;
mod fdr_dump;
mod graph;
mod graph_diff;
mod reading;
mod stack;

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;

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
        after_help = "Exit codes: 0 accounted for, 1 the trace is damaged (the rest is accounted for), 2 the command failed.\n\n\
                            Example:\n  anytrace xray account -m ./app -s sum -r dsc -p 10 app.xray"
    )]
    Account(account::AccountArguments),
    /// Sum up time and calls by call stack; several traces are added up
    #[command(after_help = "Example:\n  anytrace xray stack app.xray\n  \
                            anytrace xray stack --stack-format=flame app.xray | flamegraph.pl > app.svg\n  \
                            anytrace xray stack --format json --unit seconds *.xray")]
    Stack(stack::StackArguments),
    /// Draw who calls whom: calls and times of each pair of functions
    #[command(
        after_help = "Example:\n  anytrace xray graph -m ./app -e sum -c sum -v count app.xray | dot -Tsvg > app.svg\n  \
                            anytrace xray graph --format csv app.xray"
    )]
    Graph(graph::GraphArguments),
    /// Compare who calls whom in two traces, functions matched by name; with thresholds for automatic checks
    #[command(
        after_help = "Exit codes: 0 fine, 1 something exceeds a threshold (--fail-above), 2 the command failed.\n\n\
                            Example:\n  anytrace xray graph-diff -m1 ./old -m2 ./new -e sum -c sum old.xray new.xray\n  \
                            anytrace xray graph-diff --format csv --fail-above sum=10% --min-count 100 old.xray new.xray"
    )]
    GraphDiff(graph_diff::GraphDiffArguments),
    /// Write a trace, in order of time, as Basic records, YAML or the JSON of trace viewers
    #[command(after_help = "Example:\n  anytrace xray convert -f trace_event -y -m ./app -o app.json app.xray")]
    Convert(convert::ConvertArguments),
    /// Write the instrumentation map of a program or library as YAML
    #[command(after_help = "Exit codes: 0 written, 1 a YAML map is damaged, 2 the command failed.\n\nExample:\n  \
                            anytrace xray extract -s ./app -o app.map.yaml\n  anytrace xray extract -s --no-demangle ./app")]
    Extract(extract::ExtractArguments),
    /// Print the records of an FDR trace, one a line, as they stand on the wire
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

/// Spellings `llvm-xray` takes that clap does not, and ours.
const SPELLINGS: [(&str, &str); 7] = [
    ("all", "all-stacks"),
    ("k1", "keep-going-1"),
    ("k2", "keep-going-2"),
    ("d1", "deduce-sibling-calls-1"),
    ("d2", "deduce-sibling-calls-2"),
    ("m1", "instr-map-1"),
    ("m2", "instr-map-2"),
];

/// Switches without a value here, which LLVM's tools take with one: `-k=true`, `--all-stacks=0`.
const SWITCHES: [&str; 15] = [
    "k",
    "d",
    "keep-going",
    "keep-going-1",
    "keep-going-2",
    "deduce-sibling-calls",
    "deduce-sibling-calls-1",
    "deduce-sibling-calls-2",
    "recursive-calls-only",
    "per-thread-stacks",
    "aggregate-threads",
    "all-stacks",
    "symbolize",
    "demangle",
    "no-demangle",
];

/// Turns the arguments of `anytrace xray …` into what clap reads: long options may have one dash and underscores
/// (`-all-stacks`, `--instr_map`), short ones two dashes, and switches a value, as in every LLVM tool. Other command
/// lines stay as they are.
pub(crate) fn normalise(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|group| group != "xray") {
        return arguments;
    }
    let is_extract = arguments.get(2).is_some_and(|verb| verb == "extract");
    let mut is_option = true;
    let mut normal = Vec::with_capacity(arguments.len());
    for (number, argument) in arguments.into_iter().enumerate() {
        is_option &= argument != "--";
        let text = argument.to_str().filter(|_| is_option && number >= 2);
        match text.map_or(Spelling::AsItIs, |text| respell(text, is_extract)) {
            Spelling::AsItIs => normal.push(argument),
            Spelling::Other(spelled) => normal.push(spelled.into()),
            Spelling::Nothing => {}
        }
    }
    normal
}

/// What an argument becomes.
enum Spelling {
    AsItIs,
    Other(String),
    /// A switch that is off.
    Nothing,
}

fn respell(argument: &str, is_extract: bool) -> Spelling {
    let (name, value) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
    let Some(bare) = name.strip_prefix("--").or_else(|| name.strip_prefix('-')) else { return Spelling::AsItIs };
    if !bare.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Spelling::AsItIs;
    }
    let long = SPELLINGS
        .iter()
        .find(|(theirs, _)| *theirs == bare)
        .map_or_else(|| bare.replace('_', "-"), |(_, ours)| (*ours).to_owned());
    // One letter is a short option; a letter and digits are one of the table.
    let dashes = if long.len() == 1 { "-" } else { "--" };
    let is_switch = SWITCHES.contains(&long.as_str()) || (is_extract && long == "s");
    match value {
        Some("true" | "TRUE" | "True" | "1") if is_switch => Spelling::Other(format!("{dashes}{long}")),
        Some("false" | "FALSE" | "False" | "0") if long == "demangle" => Spelling::Other("--no-demangle".to_owned()),
        Some("false" | "FALSE" | "False" | "0") if is_switch => Spelling::Nothing,
        Some(value) => Spelling::Other(format!("{dashes}{long}={value}")),
        None => Spelling::Other(format!("{dashes}{long}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(line: &str) -> String {
        let words = normalise(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_may_be_spelled_as_llvm_tools_take_them() {
        assert_eq!(
            normalised("anytrace xray stack -all -stack-format=flame --instr_map=a -k - f_g"),
            "anytrace xray stack --all-stacks --stack-format=flame --instr-map=a -k - f_g"
        );
        assert_eq!(
            normalised("anytrace xray graph-diff -k1 -m2=x -- -all"),
            "anytrace xray graph-diff --keep-going-1 --instr-map-2=x -- -all"
        );
    }

    #[test]
    fn short_options_may_have_two_dashes_and_switches_a_value() {
        assert_eq!(
            normalised("anytrace xray graph --k -d=true -k=0 --o=- --keep-going-1=TRUE --demangle=false x"),
            "anytrace xray graph -k -d -o=- --keep-going-1 --no-demangle x"
        );
        assert_eq!(normalised("anytrace xray extract -s=1 --symbolize=0 b"), "anytrace xray extract -s b");
        assert_eq!(
            normalised("anytrace xray convert -s=0 -y=1 -m=k=1 - 1"),
            "anytrace xray convert -s=0 -y=1 -m=k=1 - 1"
        );
        assert_eq!(normalised("anytrace xray stack -- -k=0 --k"), "anytrace xray stack -- -k=0 --k");
    }

    #[test]
    fn other_groups_are_left_alone() {
        assert_eq!(normalised("anytrace info -all x_y"), "anytrace info -all x_y");
    }
}

//! `anytrace casemate …`: the checker's own verbs, one file each.

mod check;
mod collect;
mod diff;
mod explain;
mod follow;
mod highlights;
mod minimise;
mod options;
mod reference;
mod rewrite;
mod rules;
mod state;
mod stats;
mod story_form;
mod timeline;
mod walk;

use std::path::Path;

use anytrace_casemate::tools::At;
use anytrace_core::{Cursor, Input, InputOptions};
use clap::{Args, Subcommand};
pub(crate) use highlights::highlights;

use crate::Verdict;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open::must_be;
use crate::report::{Reporter, Way};

/// The group.
#[derive(Debug, Args)]
pub(crate) struct CasemateArguments {
    /// What to do.
    #[command(subcommand)]
    verb: CasemateVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum CasemateVerb {
    /// Check that page table changes follow break-before-make
    #[command(after_help = "Exit codes: 0 no violation, 1 a violation, a damaged trace or a log that claims a \
                            different verdict, 2 the command failed.\n\nExample:\n  anytrace casemate check hyp.log\n  \
                            anytrace casemate check --compat --format json hyp*.log\n  \
                            anytrace casemate check --bbm 2 hyp.log\n  \
                            anytrace casemate check --all --rule by-id-promoted=on hyp.log\n  \
                            anytrace casemate check --compat -d hyp.log\n  \
                            anytrace casemate check --all --follow unix:uart.sock\n  \
                            anytrace casemate check --follow - --checkpoint hyp.state < hyp.log")]
    Check(check::CheckArguments),
    /// Take a trace out of the ring buffers of a running program, or out of an image of its memory
    #[command(
        after_help = "The program writes by recorders/casemate/include/casemate_trace.h. Records that it dropped, \
                            began and did not finish, and damage are comments in the trace: its check then says \
                            unknown, never ok.\n\nExit codes: 0 all records are in the trace, 1 some are lost, 2 the \
                            command failed.\n\nExample:\n  \
                            anytrace casemate collect --follow /dev/shm/trace -o hyp.log\n  \
                            anytrace casemate collect --follow /dev/shm/trace |\n    \
                            anytrace casemate check --all --follow -\n  \
                            anytrace casemate collect memory.img -o hyp.log"
    )]
    Collect(collect::CollectArguments),
    /// Explain each violation: its cause, the missing step, and near misses
    #[command(after_help = "Exit codes: as check.\n\nExample:\n  anytrace casemate explain hyp.log\n  \
                            anytrace casemate explain --all --format json hyp.log |\n    jq '.stories[].missing'\n  \
                            anytrace casemate explain --all --html hyp.log > hyp.html")]
    Explain(explain::ExplainArguments),
    /// Print each state change of an entry, with record, thread and source line
    #[command(after_help = "Example:\n  anytrace casemate timeline hyp.log --location 0x55c1dba6f000\n  \
                            anytrace casemate timeline hyp.log --all-unclean\n  \
                            anytrace casemate timeline hyp.log --all-unclean --html > hyp.html")]
    Timeline(timeline::TimelineArguments),
    /// Print the machine's state after a record: roots, threads, locks, unclean entries, memory
    #[command(after_help = "Example:\n  anytrace casemate state hyp.log --at 9\n  \
                            anytrace casemate state hyp.log --at 5 --at id:9 --format json")]
    State(state::StateArguments),
    /// Count barriers and TLBIs that change nothing, how long locks are held, and the busiest entries
    #[command(
        after_help = "A barrier or TLBI is unneeded if the trace without it has the same verdict.\n\nExample:\n  \
                            anytrace casemate stats hyp.log --top 5\n  \
                            anytrace casemate stats hyp.log --format json | jq '.maintenance[]'"
    )]
    Stats(stats::StatsArguments),
    /// Translate an address, or print a page table as a tree, after a record or what changed between two
    #[command(after_help = "Example:\n  anytrace casemate walk hyp.log --root 0xaaaaaf200000 --address 0x401234\n  \
                            anytrace casemate walk hyp.log --at 7 --root 0xaaaaaf200000\n  \
                            anytrace casemate walk hyp.log --diff 7..9 --root 0xaaaaaf200000")]
    Walk(walk::WalkArguments),
    /// Write a minimal trace with the same violation
    #[command(
        after_help = "Exit codes: 0 written, 1 no violation or a damaged trace, 2 the command failed.\n\nExample:\n  anytrace casemate minimise hyp.log -o small.log"
    )]
    Minimise(minimise::MinimiseArguments),
    /// Rewrite the records in canonical, positional or pretty style, optionally renumbered
    #[command(after_help = "Example:\n  anytrace casemate rewrite hyp.log -o new.log --style positional --renumber")]
    Rewrite(rewrite::RewriteArguments),
    /// Compare two traces, ignoring differences in addresses
    #[command(after_help = "Exit codes: 0 the same, 1 different, 2 the command failed.\n\nExample:\n  \
                            anytrace casemate diff expected.log hyp.log")]
    Diff(diff::DiffArguments),
    /// List the rules that differ between the rule sets
    Rules(rules::RulesArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &CasemateArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        CasemateVerb::Check(options) => check::run(options),
        CasemateVerb::Collect(options) => collect::run(options),
        CasemateVerb::Explain(options) => explain::run(options),
        CasemateVerb::Timeline(options) => timeline::run(options),
        CasemateVerb::State(options) => state::run(options),
        CasemateVerb::Stats(options) => stats::run(options),
        CasemateVerb::Walk(options) => walk::run(options),
        CasemateVerb::Minimise(options) => minimise::run(options),
        CasemateVerb::Rewrite(options) => rewrite::run(options),
        CasemateVerb::Diff(options) => diff::run(options),
        CasemateVerb::Rules(options) => rules::run(options),
    }
}

/// Opens a file for one of the verbs.
fn open_input(path: &Path, options: &InputArguments) -> Result<Input, Failure> {
    let input = Input::open(path, InputOptions { no_map: options.no_mmap });
    let input = input.map_err(|error| Failure::of("cannot open", &error))?;
    must_be(&path.display().to_string(), &input, options, "casemate")?;
    Ok(input)
}

/// Reads a complete file, decompressed, for verbs that read it more than once.
fn read_complete(path: &Path, options: &InputArguments, damage: &mut Reporter) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let mut cursor = Cursor::new(open_input(path, options)?);
    loop {
        let have = cursor.window().len();
        let more = cursor.fill(have + (have / 2).max(1 << 20)).map_err(|error| Failure::of(&name, &error))?;
        if more == have {
            cursor.report_layers(damage).map_err(|error| Failure::of(&name, &error))?;
            return Ok(cursor.window().to_vec());
        }
    }
}

/// Where damage of the grammar is reported.
fn damage(path: &Path, options: &InputArguments) -> Reporter {
    Reporter::new(&path.display().to_string(), anytrace_formats::by_name("casemate"), Way::Stderr, options.limit)
}

/// An address: hexadecimal, with `0x` or without.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| format!("expected a hexadecimal address, found {text:?}"))
}

/// A record: its number in the trace, or `id:N`.
fn record(text: &str) -> Result<At, String> {
    let bad = |_| format!("expected a record number or id:N, found {text:?}");
    match text.strip_prefix("id:") {
        Some(id) => id.parse().map(At::Id).map_err(bad),
        None => text.parse().map(At::Index).map_err(bad),
    }
}

/// Two records: `FROM..TO`.
fn records(text: &str) -> Result<(At, At), String> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("expected two records FROM..TO, found {text:?}"))?;
    Ok((record(from)?, record(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_records_are_read() {
        assert_eq!((address("0x1f"), address("1f")), (Ok(31), Ok(31)));
        assert_eq!((record("12"), record("id:12")), (Ok(At::Index(12)), Ok(At::Id(12))));
        assert_eq!(records("3..id:7"), Ok((At::Index(3), At::Id(7))));
        assert!(records("3").is_err() && records("3..").is_err() && records("..3").is_err());
        assert!(address("xyz").is_err() && record("id:").is_err() && record("0x1").is_err());
    }
}

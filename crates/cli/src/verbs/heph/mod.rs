//! `anytrace heph …`: spans, loss, live collection, replay; one file a verb.

mod collect;
mod durations;
mod replay;

use clap::{Args, Subcommand};

use crate::Verdict;
use crate::failure::Failure;

/// The group.
#[derive(Debug, Args)]
pub(crate) struct HephArguments {
    /// What to do.
    #[command(subcommand)]
    verb: HephVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum HephVerb {
    /// Receive traces from running programs and keep them as files, with every loss accounted for
    #[command(
        after_help = "What arrives is written unchanged to DIR/source-0001-000001.heph and so on, one series a sender;\n\
                      while a file is being written it is called ….heph.part, and everything received stands in\n\
                      it even when the collector is killed. DIR/index.jsonl lists the files, DIR/loss.json what\n\
                      was lost. Ctrl-C (or SIGTERM) ends the collection and prints the report.\n\n\
                      Exit codes: 0 fine, whatever was lost, 2 the command failed.\n\n\
                      Example:\n  anytrace heph collect --listen udp://127.0.0.1:9300 --listen tcp://127.0.0.1:9300 -o traces\n  \
                      anytrace heph collect --follow app.heph --rotate-bytes 256M --keep 8 -o traces\n  \
                      anytrace heph collect --listen unix:/run/app/heph.sock --summary json -o traces | jq .events_per_s"
    )]
    Collect(collect::CollectArguments),
    /// Send a recording again, with its timing: to a collector, a program, a pipe
    #[command(
        after_help = "Packets go out unchanged, in the order they were recorded, each when its event was over; the\n\
                      epoch goes first. A damaged trace is refused unless --skip-damage is given.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed or nobody listened.\n\n\
                      Example:\n  anytrace heph replay app.heph --to udp://127.0.0.1:9300\n  \
                      anytrace heph replay app.heph --speed max --to tcp://127.0.0.1:9300\n  \
                      anytrace heph replay app.heph --from-time 2s --to-time 5s --to - > part.heph"
    )]
    Replay(replay::ReplayArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &HephArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        HephVerb::Collect(options) => collect::run(options),
        HephVerb::Replay(options) => replay::run(options),
    }
}

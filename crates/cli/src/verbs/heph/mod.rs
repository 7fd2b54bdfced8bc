//! `anytrace heph …`: spans, loss, live collection, replay; one file a verb.

mod collect;
mod convert;
mod durations;
mod loss;
mod opening;
mod replay;
mod spans;
mod stats;

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
    /// Write Chrome trace events in the layout of Heph's own converter, without its faults
    #[command(after_help = "Example:\n  anytrace heph convert --compat app.heph -o app.json")]
    Convert(convert::ConvertArguments),
    /// Say what was lost on the way, by the events' counters
    #[command(after_help = "Exit codes: 0 read, whatever was lost, 1 damaged or above --fail-above, 2 the command \
                            failed.\n\nExample:\n  anytrace heph loss app.heph\n  \
                            anytrace heph loss --datagrams capture.dgrams --fail-above 0.1%")]
    Loss(loss::LossArguments),
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
    /// Print events as a call tree
    #[command(after_help = "Example:\n  anytrace heph spans app.heph\n  \
                            anytrace heph spans app.heph --format json | jq '.spans[] | select(.overlaps)'\n  \
                            anytrace heph spans --streaming --horizon 1s - < app.heph")]
    Spans(spans::SpansArguments),
    /// Say what actors, workers and queues did with the time
    #[command(after_help = "Example:\n  anytrace heph stats app.heph\n  \
                            anytrace heph stats new.heph --compare old.heph --fail-above p99=10%")]
    Stats(stats::StatsArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &HephArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        HephVerb::Collect(options) => collect::run(options),
        HephVerb::Convert(options) => convert::run(options),
        HephVerb::Loss(options) => loss::run(options),
        HephVerb::Replay(options) => replay::run(options),
        HephVerb::Spans(options) => spans::run(options),
        HephVerb::Stats(options) => stats::run(options),
    }
}

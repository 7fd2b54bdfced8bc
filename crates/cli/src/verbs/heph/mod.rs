//! `anytrace heph …`: spans, loss, live collection, replay; one file per verb.

mod collect;
mod convert;
mod loss;
mod open_spans;
mod opening;
mod recover;
mod replay;
mod spans;
mod stats;
mod tasks;

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
    /// Receive traces from running programs and store them in files, accounting for every loss
    #[command(
        after_help = "Received data are written unchanged to DIR/source-0001-000001.heph and so on, one series per\n\
                      sender. While a file is being written, its name ends in .heph.part; it contains everything\n\
                      received, even if the collector is killed. DIR/index.jsonl lists the files, DIR/loss.json the\n\
                      losses. Ctrl-C (or SIGTERM) ends the collection and prints the report.\n\n\
                      Exit codes: 0 fine, even if events were lost, 2 the command failed.\n\n\
                      Example:\n  anytrace heph collect --listen udp://127.0.0.1:9300 \\\n    --listen tcp://127.0.0.1:9300 -o traces\n  \
                      anytrace heph collect --follow app.heph --rotate-bytes 256M --keep 8 -o parts\n  \
                      anytrace heph collect --listen otlp://127.0.0.1:4317 -o spans\n  \
                      anytrace heph collect --listen unix:heph.sock --summary json -o local |\n    jq .events_per_s"
    )]
    Collect(Box<collect::CollectArguments>),
    /// Write Chrome trace events in the layout of Heph's converter, without its bugs
    #[command(after_help = "Example:\n  anytrace heph convert --compat app.heph -o app.json")]
    Convert(convert::ConvertArguments),
    /// Report events lost in transit, using the events' counters
    #[command(after_help = "Exit codes: 0 fine, even if events were lost, 1 damaged or above --fail-above, 2 the \
                            command failed.\n\nExample:\n  anytrace heph loss app.heph\n  \
                            anytrace heph loss --datagrams capture.dgrams --fail-above 0.1%")]
    Loss(loss::LossArguments),
    /// Show the spans that a program has open, or had when it was killed
    #[command(
        after_help = "For recordings of tracing-heph with survive_kill(true): the file TRACE.memory beside a trace has\n\
                            the open spans of the program while it runs, and after it was killed.\n\n\
                            Example:\n  anytrace heph open traces\n  \
                            anytrace heph open app.heph --format json |\n    jq '.spans[] | select(.inside)'"
    )]
    Open(open_spans::OpenArguments),
    /// Make one trace of what a killed program had written and what it had not written yet
    #[command(
        after_help = "For recordings of tracing-heph with survive_kill(true). Nothing is lost but an event that was being\n\
                            recorded. Every verb reads a trace together with TRACE.memory beside it; recover makes one\n\
                            file, with the lives of the spans that were open. A folder is searched for such files.\n\n\
                            Example:\n  anytrace heph recover app.heph -o whole.heph\n  \
                            anytrace heph recover traces"
    )]
    Recover(recover::RecoverArguments),
    /// Resend a recording with its original timing to a collector, a program or a pipe
    #[command(
        after_help = "Packets are sent unchanged and in recorded order, each at the time its event ended; the epoch\n\
                      is sent first. A damaged trace is refused unless --skip-damage is given.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed or nothing was listening.\n\n\
                      Example:\n  anytrace heph replay app.heph --to udp://127.0.0.1:9300\n  \
                      anytrace heph replay app.heph --speed max --to tcp://127.0.0.1:9300\n  \
                      anytrace heph replay app.heph --time 2s..5s --to - > part.heph"
    )]
    Replay(replay::ReplayArguments),
    /// Print events as a call tree
    #[command(after_help = "Example:\n  anytrace heph spans app.heph\n  \
                            anytrace heph spans app.heph --format json | jq '.spans[] | select(.overlaps)'\n  \
                            anytrace heph spans --streaming --horizon 1s - < app.heph")]
    Spans(spans::SpansArguments),
    /// Report how actors, workers and queues spent their time
    #[command(after_help = "Example:\n  anytrace heph stats app.heph\n  \
                            anytrace heph stats new.heph --against old.heph --fail-above p99=10%")]
    Stats(stats::StatsArguments),
    /// List tasks: how often each was polled, how long it was busy and idle
    #[command(
        after_help = "A task is a span recorded by tracing-heph, an actor of Heph's runtime, or a substream. Lives need\n\
                            the recorder's lives(true), wake-ups tokio's tokio_unstable with its feature tracing.\n\n\
                            Warnings: self-wakes, lost-waker, never-yields, long-polls.\n\n\
                            Example:\n  anytrace heph tasks app.heph\n  \
                            anytrace heph tasks app.heph --sort longest --long-poll 1ms\n  \
                            anytrace heph tasks app.heph --format json | jq '.warned[]'\n  \
                            anytrace heph tasks traces/source-0001-000001.heph.part --every 1s"
    )]
    Tasks(tasks::TasksArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &HephArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        HephVerb::Collect(options) => collect::run(options),
        HephVerb::Convert(options) => convert::run(options),
        HephVerb::Loss(options) => loss::run(options),
        HephVerb::Open(options) => open_spans::run(options),
        HephVerb::Recover(options) => recover::run(options),
        HephVerb::Replay(options) => replay::run(options),
        HephVerb::Spans(options) => spans::run(options),
        HephVerb::Stats(options) => stats::run(options),
        HephVerb::Tasks(options) => tasks::run(options),
    }
}

//! `anytrace apitrace …`: options and output of apitrace's tools, one file per verb.

mod arguments;
mod call_sets;
mod diff;
mod diff_images;
mod diff_state;
mod dump;
mod dynamic;
mod edited;
mod frames;
mod from_jsonl;
mod gltrim;
mod highlights;
mod index;
mod info;
mod jsonl;
mod leaks;
mod opening;
mod pickle;
mod printed;
mod repack;
mod replay;
mod replay_bisect;
mod replay_options;
mod replay_seek;
mod replay_sums;
mod replay_timeline;
mod sed;
mod state;
mod stats;
mod to_c;
mod trace;
mod trim;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Verdict;
use crate::failure::Failure;
pub(crate) use arguments::ApitraceArguments;
use arguments::ApitraceVerb;
pub(crate) use highlights::highlights;

/// Records a program that draws.
pub(crate) fn record(output: PathBuf, force: bool, quiet: bool, command: Vec<OsString>) -> Result<Verdict, Failure> {
    trace::run(&trace::TraceArguments::of(output, force, quiet, command))
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &ApitraceArguments) -> Result<Verdict, Failure> {
    if matches!(&options.verb, ApitraceVerb::DumpImages(_) | ApitraceVerb::Frames(_) | ApitraceVerb::Replay(_)) {
        dynamic::need()?;
    }
    match &options.verb {
        ApitraceVerb::Diff(options) => diff::run(options),
        ApitraceVerb::DiffImages(options) => diff_images::run(options),
        ApitraceVerb::DiffState(options) => diff_state::run(options),
        ApitraceVerb::Dump(options) => dump::run(options),
        ApitraceVerb::DumpImages(options) => replay::dump_images(options),
        ApitraceVerb::Frames(options) => frames::run(options),
        ApitraceVerb::FromJsonl(options) => from_jsonl::run(options),
        ApitraceVerb::Gltrim(options) => gltrim::run(options),
        ApitraceVerb::Index(options) => index::run(options),
        ApitraceVerb::Info(options) => info::run(options),
        ApitraceVerb::Jsonl(options) => jsonl::run(options),
        ApitraceVerb::Leaks(options) => leaks::run(options),
        ApitraceVerb::Pickle(options) => pickle::run(options),
        ApitraceVerb::Repack(options) => repack::run(options),
        ApitraceVerb::Replay(options) => replay::run(options),
        ApitraceVerb::Sed(options) => sed::run(options),
        ApitraceVerb::State(options) => state::run(options),
        ApitraceVerb::Stats(options) => stats::run(options),
        ApitraceVerb::ToC(options) => to_c::run(options),
        ApitraceVerb::Trace(options) => trace::run(options),
        ApitraceVerb::Trim(options) => trim::run(options),
    }
}

//! `anytrace apitrace …`: options and output of apitrace's own tools, one file a verb.

mod dump;
mod from_jsonl;
mod info;
mod jsonl;
mod pickle;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_core::Format;
use clap::{Args, Subcommand};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open};

/// The group.
#[derive(Debug, Args)]
pub(crate) struct ApitraceArguments {
    /// What to do.
    #[command(subcommand)]
    verb: ApitraceVerb,
}

/// The group's verbs.
#[derive(Debug, Subcommand)]
enum ApitraceVerb {
    /// Print the calls as `apitrace dump` does, byte for byte
    #[command(
        after_help = "CALLSET: items separated by commas, each @FILE or ranges: N, N-M, N-, * (with /STEP or /KIND) or a\n\
                      KIND: frame, rendertarget or fbo, render or draw. Options given twice are united.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace dump --calls='draw,0-99/10' game.trace\n  \
                      anytrace apitrace dump -v --grep='^glTex' --thread-ids game.trace"
    )]
    Dump(dump::DumpArguments),
    /// Make a trace of JSON lines of calls, edited or not
    #[command(after_help = "Exit codes: 0 fine, 1 a line is no call, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace jsonl game.trace | sed 's/\"GL_LINEAR\",\"value\":9729/\"GL_NEAREST\",\"value\":9728/' |\n    \
                      anytrace apitrace from-jsonl - -o nearest.trace")]
    FromJsonl(from_jsonl::FromJsonlArguments),
    /// Tell version, container, interface and frames as JSON, as `apitrace info` does
    #[command(after_help = "Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                            Example:\n  anytrace apitrace info --dump-frames game.trace")]
    Info(info::InfoArguments),
    /// Write each call as a JSON object in a line, with all that is known of it
    #[command(after_help = "CALLSET: as `anytrace apitrace dump --help` tells.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace jsonl --blobs=sha256 game.trace | jq -r 'select(.flags/8%2==1).name'")]
    Jsonl(jsonl::JsonlArguments),
    /// Write each call as a pickle of Python, as `apitrace pickle` does
    #[command(after_help = "CALLSET: as `anytrace apitrace dump --help` tells.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace pickle --symbolic --plain-pointers game.trace > game.pickles\n  \
                      anytrace apitrace pickle --calls='*/frame' game.trace | python3 my-script.py")]
    Pickle(pickle::PickleArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &ApitraceArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        ApitraceVerb::Dump(options) => dump::run(options),
        ApitraceVerb::FromJsonl(options) => from_jsonl::run(options),
        ApitraceVerb::Info(options) => info::run(options),
        ApitraceVerb::Jsonl(options) => jsonl::run(options),
        ApitraceVerb::Pickle(options) => pickle::run(options),
    }
}

/// An opened trace and where its damage is told.
struct Opened {
    reader: Reader,
    reporter: Reporter,
    name: String,
    /// Length of the file, where it has one, and how much of it was read.
    file_bytes: Option<u64>,
    bytes_read: Arc<AtomicU64>,
    _progress: Progress,
}

impl Opened {
    /// Says how many diagnostics were not shown, and what all of them come to.
    fn verdict(&self) -> Result<Verdict, Failure> {
        self.reporter.print_rest()?;
        Ok(self.reporter.verdict())
    }
}

/// Opens a file for one of the verbs; the verdict where there is nothing to read.
fn open_reader(path: &Path, options: &InputArguments) -> Result<Result<Opened, Verdict>, Failure> {
    let name = path.display().to_string();
    let (format, input) = match open::open_trace(path, options)? {
        Ok(found) => found,
        Err(damage) => {
            let mut reporter = Reporter::new(&name, None, Way::Stderr, options.limit);
            reporter.take(damage)?;
            return Ok(Err(reporter.verdict()));
        }
    };
    if format.name() != anytrace_apitrace::Apitrace.name() {
        return Err(Failure::usage(format!("{name}: no apitrace trace but one of {}", format.name())));
    }
    let reporter = Reporter::new(&name, Some(format), Way::Stderr, options.limit);
    let progress = Progress::watch(&input);
    let (file_bytes, bytes_read) = (input.file_bytes(), input.progress());
    let reader = Reader::new(input, &open::open_options(options)).map_err(|error| Failure::of(&name, &error))?;
    Ok(Ok(Opened { reader, reporter, name, file_bytes, bytes_read, _progress: progress }))
}

/// The set of `--calls`, given any number of times; all calls without it.
fn call_set(texts: &[String]) -> Result<CallSet, Failure> {
    if texts.is_empty() {
        return Ok(CallSet::default());
    }
    let mut read = |name: &str| std::fs::read_to_string(name);
    CallSet::parse(texts.iter().map(String::as_str), &mut read)
        .map_err(|error| Failure::usage(format!("--calls={error}")))
}

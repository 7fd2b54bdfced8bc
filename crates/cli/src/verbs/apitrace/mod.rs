//! `anytrace apitrace …`: options and output of apitrace's own tools, one file a verb.

mod dump;
mod edited;
mod repack;
mod sed;
mod trim;

use std::path::Path;

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
    /// Write a trace in another container: the same raw stream to the byte
    #[command(
        after_help = "-z is gzip, as in apitrace 11.1; later versions take it for Zstandard and have -g for gzip, which is\n\
                      gzip here too. Of several containers the last counts. apitrace 11.1 does not read Zstandard, and no\n\
                      apitrace reads a trace without a container (--container=raw).\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace repack game.trace game.snappy.trace\n  \
                      anytrace apitrace repack --zstd=19 game.trace small.trace"
    )]
    Repack(repack::RepackArguments),
    /// Replace strings, names of enumerations, flags and pointers, and set properties; all else stays as it is
    #[command(after_help = "Without -o the edited game.trace is game-sed.trace.\n\n\
                      EXPRESSION: s/SEARCH/REPLACE/ with any character for the slash; either part may be @file(PATH).\n\
                      Whole values are replaced: strings, names that enumerations show, flags of bit masks (by a flag, a\n\
                      number, several joined by |, or nothing), and pointers where SEARCH is 0x and a number.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace sed -e s/GL_LINEAR/GL_NEAREST/ --calls=100-200 game.trace\n  \
                      anytrace apitrace sed -e 's,@file(old.glsl),@file(new.glsl),' --property=note=shader game.trace")]
    Sed(sed::SedArguments),
    /// Write a part of a trace: some calls, frames or threads, each event as it is
    #[command(
        after_help = "Without -o the part of game.trace is game-trim.trace. Without --calls and --frames all calls are\n\
                      kept; with both, those of either.\n\n\
                      CALLSET: items separated by commas, each @FILE or ranges: N, N-M, N-, * (with /STEP or /KIND) or a\n\
                      KIND: frame, rendertarget or fbo, render or draw. FRAMESET: the same with numbers of frames; a kind\n\
                      chooses among their calls. A call belongs to the frame in which it is left.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace trim --frames=10-19 game.trace\n  \
                      anytrace apitrace trim --calls='*/draw,*/frame' --thread=0 -o draws.trace game.trace"
    )]
    Trim(trim::TrimArguments),
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &ApitraceArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        ApitraceVerb::Dump(options) => dump::run(options),
        ApitraceVerb::Repack(options) => repack::run(options),
        ApitraceVerb::Sed(options) => sed::run(options),
        ApitraceVerb::Trim(options) => trim::run(options),
    }
}

/// An opened trace and where its damage is told.
struct Opened {
    reader: Reader,
    reporter: Reporter,
    name: String,
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
    let reader = Reader::new(input, &open::open_options(options)).map_err(|error| Failure::of(&name, &error))?;
    Ok(Ok(Opened { reader, reporter, name, _progress: progress }))
}

/// The set of `--calls`, given any number of times; all calls without it.
fn call_set(texts: &[String]) -> Result<CallSet, Failure> {
    if texts.is_empty() {
        return Ok(CallSet::default());
    }
    call_set_of(texts, "--calls")
}

/// The set of an option.
fn call_set_of(texts: &[String], option: &str) -> Result<CallSet, Failure> {
    let mut read = |name: &str| std::fs::read_to_string(name);
    CallSet::parse(texts.iter().map(String::as_str), &mut read)
        .map_err(|error| Failure::usage(format!("{option}={error}")))
}

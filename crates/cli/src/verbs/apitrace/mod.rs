//! `anytrace apitrace …`: options and output of apitrace's own tools, one file a verb.

mod dump;
mod edited;
mod index;
mod sed;
mod trim;

use std::path::Path;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::index::Wanted;
use anytrace_apitrace::tools::index::find::{Choice, Found, late_reader};
use anytrace_core::{Format, text};
use clap::{Args, Subcommand};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, paint};

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
    /// Make an index of a trace, so that other verbs find late calls and frames at once
    #[command(
        after_help = "The index lies beside the trace and is found there by the verbs that gain by it; they say so\n\
                      when it does not fit the trace, and read from the start. Snappy, zstd of several frames and no\n\
                      container can be sought.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged or the index does not fit, 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace index game.trace\n  \
                      anytrace apitrace dump --calls=9000000-9000010 game.trace\n  \
                      anytrace apitrace index --show --frames game.trace"
    )]
    Index(index::IndexArguments),
    /// Replace strings, names of enumerations, flags and pointers, and set properties; all else stays as it is
    #[command(after_help = "Without -o the edited game.trace is game-sed.trace.\n\n\
                      EXPRESSION: s/SEARCH/REPLACE/ with any character for the slash; either part may be @file(PATH). Whole values\n\
                      are replaced: strings, names that enumerations show, flags of bit masks (by a flag, a number, several\n\
                      joined by |, or nothing), and pointers where SEARCH is 0x and a number.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace sed -e s/GL_LINEAR/GL_NEAREST/ --calls=100-200 game.trace\n  \
                      anytrace apitrace sed -e 's,@file(old.glsl),@file(new.glsl),' --property=note=shader game.trace")]
    Sed(sed::SedArguments),
    /// Write a part of a trace: some calls, frames or threads, each event as it is
    #[command(
        after_help = "Without -o the part of game.trace is game-trim.trace. Without --calls and --frames all calls are kept; with both,\n\
                      those of either.\n\n\
                      CALLSET: items separated by commas, each @FILE or ranges: N, N-M, N-, * (with /STEP or /KIND) or a\n\
                      KIND: frame, rendertarget or fbo, render or draw. FRAMESET: the same with numbers of frames; a kind\n\
                      chooses among their calls. A call belongs to the frame in which it is left.\n\n\
                      Exit codes: 0 fine, 1 the trace is damaged (what can be read is written), 2 the command failed.\n\n\
                      Example:\n  anytrace apitrace trim --frames=10-19 game.trace\n  \
                      anytrace apitrace trim --calls='*/draw,*/frame' --thread=0 -o draws.trace game.trace"
    )]
    Trim(trim::TrimArguments),
}

/// Which index to use.
#[derive(Debug, Args)]
pub(crate) struct IndexChoice {
    /// Begin late in the trace by its index (see `anytrace apitrace index`): the one beside it, none, or this file
    #[arg(long, value_name = "auto|none|FILE", default_value = "auto", value_parser = parse_choice)]
    index: Choice,
}

fn parse_choice(text: &str) -> Result<Choice, String> {
    Ok(match text {
        "auto" => Choice::Auto,
        "none" => Choice::None,
        "" => return Err("expected auto, none or a file".to_owned()),
        file => Choice::File(file.into()),
    })
}

/// Runs one of the group's verbs.
pub(crate) fn run(options: &ApitraceArguments) -> Result<Verdict, Failure> {
    match &options.verb {
        ApitraceVerb::Dump(options) => dump::run(options),
        ApitraceVerb::Index(options) => index::run(options),
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
    open_reader_late(path, options, &Choice::None, &Wanted::default())
}

/// Opens a file as [`open_reader`] does, close before what is wanted of it where an index allows it.
fn open_reader_late(
    path: &Path,
    options: &InputArguments,
    choice: &Choice,
    wanted: &Wanted,
) -> Result<Result<Opened, Verdict>, Failure> {
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
    let reader = match begin_late(path, options, choice, wanted)? {
        Some(reader) => reader,
        None => Reader::new(input, &open::open_options(options)).map_err(|error| Failure::of(&name, &error))?,
    };
    Ok(Ok(Opened { reader, reporter, name, _progress: progress }))
}

/// A reader that begins late in the trace, where an index allows it.
fn begin_late(
    path: &Path,
    options: &InputArguments,
    choice: &Choice,
    wanted: &Wanted,
) -> Result<Option<Reader>, Failure> {
    let can_seek = path.as_os_str() != "-" && !options.no_mmap;
    let found = match choice {
        Choice::File(_) if !can_seek => Found::Unused("standard input and --no-mmap cannot be sought".to_owned()),
        Choice::Auto if !can_seek => Found::Nothing,
        _ => late_reader(path, choice, &open::open_options(options), wanted).map_err(|error| Failure::bare(&error))?,
    };
    match found {
        Found::Reader(reader) => Ok(Some(*reader)),
        Found::Nothing => Ok(None),
        Found::Unused(why) => {
            let name = path.display().to_string();
            paint::complain("note", format!("{}: the index is not used: {why}", text::printable(&name)));
            Ok(None)
        }
    }
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

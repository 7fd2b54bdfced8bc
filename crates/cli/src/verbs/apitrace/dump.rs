//! `anytrace apitrace dump`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anytrace_apitrace::tools::dump::{DumpOptions, Escape, dump};
use anytrace_core::{Error, NameMatch};
use clap::{Args, ValueEnum};

use super::call_sets::{call_set, parse_call_set};
use super::printed::print_calls;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, open, terminal};

/// `apitrace dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Also show uninteresting calls such as glGetError() = GL_NO_ERROR
    #[arg(short, long)]
    verbose: bool,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Only calls of these frames, counted from 0; with --calls, calls selected by either. May be repeated
    #[arg(long, value_name = "FRAMESET", allow_hyphen_values = true)]
    frames: Vec<String>,
    /// Only functions whose names match; hides properties
    #[arg(long, value_name = "REGEX")]
    grep: Option<regex::bytes::Regex>,
    /// Show thread numbers
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "no",
          default_missing_value = "yes", value_parser = parse_bool)]
    thread_ids: bool,
    /// Show call numbers
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "yes",
          default_missing_value = "yes", value_parser = parse_bool)]
    call_nos: bool,
    /// Show argument names
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "yes",
          default_missing_value = "yes", value_parser = parse_bool)]
    arg_names: bool,
    /// Write blobs to files named blob_callN.bin in the current folder
    #[arg(long)]
    blobs: bool,
    /// Print line breaks in strings verbatim, show backtraces, and add a blank line after each frame
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "yes",
          default_missing_value = "yes", value_parser = parse_bool)]
    multiline: bool,
    /// Escape strings as apitrace does, or so that C and Python read them back
    #[arg(long, value_enum, value_name = "HOW", default_value_t = EscapeArgument::Peer)]
    escape: EscapeArgument,
    #[command(flatten)]
    index: super::opening::IndexChoice,
    #[command(flatten)]
    input: InputArguments,
}

/// How strings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EscapeArgument {
    /// As apitrace 11.1, including its wrong octal numbers
    Peer,
    /// As in C and Python
    C,
}

pub(super) fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

pub(crate) fn run(options: &DumpArguments) -> Result<Verdict, Failure> {
    let threads = open::open_options(&options.input).threads;
    let has_color = terminal::stdout_has_colors();
    let frames = match options.frames.as_slice() {
        [] => None,
        frames => Some(parse_call_set("--frames", frames)?),
    };
    let how = DumpOptions {
        verbose: options.verbose,
        calls: if options.calls.is_empty() && frames.is_some() {
            parse_call_set("--calls", &[])?
        } else {
            call_set(&options.calls)?
        },
        frames,
        grep: options.grep.clone().map(|regex| Box::new(move |name: &[u8]| regex.is_match(name)) as NameMatch),
        has_color,
        has_numbers: options.call_nos,
        has_threads: options.thread_ids,
        has_argument_names: options.arg_names,
        has_lines: options.multiline,
        escape: if options.escape == EscapeArgument::C { Escape::C } else { Escape::Peer },
        workers: threads.saturating_sub(1),
    };
    let wanted = how.wanted(options.blobs.then(|| open::limits(&options.input).record_bytes_max));
    let stdout = || terminal::stdout().with_sequences(how.has_color);
    print_calls(&options.files, (&options.input, &options.index), &wanted, stdout, |reader, out, sink| {
        let mut write = |name: &str, content: &[u8]| write_blob(name, content);
        let blobs = options.blobs.then_some(&mut write as &mut dyn FnMut(&str, &[u8]) -> Result<(), Error>);
        dump(reader, &how, out, blobs, sink)
    })
}

/// Writes a blob. A file that is there already stays when it holds the same, and is never replaced.
fn write_blob(name: &str, content: &[u8]) -> Result<(), Error> {
    let failed = |error| Error::io(format_args!("cannot write {name}"), error);
    match fs::File::create_new(name) {
        Ok(mut file) => file.write_all(content).map_err(|error| {
            // A part of a blob would pass for all of it.
            let _ = fs::remove_file(name);
            failed(error)
        }),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let is_same = fs::read(name).is_ok_and(|there| there == content);
            if is_same { Ok(()) } else { Err(Error::usage(format!("{name} exists with different contents"))) }
        }
        Err(error) => Err(failed(error)),
    }
}

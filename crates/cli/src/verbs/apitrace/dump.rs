//! `anytrace apitrace dump`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anytrace_apitrace::tools::dump::{DumpOptions, Escape, dump};
use anytrace_apitrace::tools::index::Wanted;
use anytrace_core::{Error, NameMatch};
use clap::{Args, ValueEnum};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::{Verdict, for_each_file, open, terminal};

/// `apitrace dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArguments {
    /// Traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    /// Show calls of no interest too, such as glGetError() = GL_NO_ERROR
    #[arg(short, long)]
    verbose: bool,
    /// Only these calls; see below. May be repeated
    #[arg(long, value_name = "CALLSET", allow_hyphen_values = true)]
    calls: Vec<String>,
    /// Only functions whose names match; properties are not shown then
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
    /// Show names of arguments
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "yes",
          default_missing_value = "yes", value_parser = parse_bool)]
    arg_names: bool,
    /// Write blobs to files blob_callN.bin of the current folder
    #[arg(long)]
    blobs: bool,
    /// Line ends in strings as they are, backtraces, an empty line after each frame
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "yes",
          default_missing_value = "yes", value_parser = parse_bool)]
    multiline: bool,
    /// Colours
    #[arg(long, alias = "colour", value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value_t = When::Auto, default_missing_value = "always")]
    color: When,
    /// How strings are written: as apitrace writes them, or so that C and Python read them back
    #[arg(long, value_enum, value_name = "HOW", default_value_t = EscapeArgument::Peer)]
    escape: EscapeArgument,
    #[command(flatten)]
    index: super::opening::IndexChoice,
    #[command(flatten)]
    input: InputArguments,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl When {
    /// True when standard output is to have colours.
    pub(super) fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal::stdout_is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}

/// How strings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EscapeArgument {
    /// As apitrace 11.1: wrong octal numbers and all
    Peer,
    /// As C and Python
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
    let has_colour = options.color.is_on();
    let how = DumpOptions {
        verbose: options.verbose,
        calls: super::opening::call_set(&options.calls)?,
        grep: options.grep.clone().map(|regex| Box::new(move |name: &[u8]| regex.is_match(name)) as NameMatch),
        has_colour,
        has_numbers: options.call_nos,
        has_threads: options.thread_ids,
        has_argument_names: options.arg_names,
        has_lines: options.multiline,
        escape: if options.escape == EscapeArgument::C { Escape::C } else { Escape::Peer },
        workers: threads.saturating_sub(1),
    };
    for_each_file(&options.files, |file| {
        let blob_bytes_max = options.blobs.then(|| open::limits(&options.input).record_bytes_max);
        let wanted = Wanted { first_call: how.calls.first(), first_frame: None, blob_bytes_max };
        let mut opened = match super::opening::open_reader_late(file, &options.input, &options.index.index, &wanted)? {
            Ok(opened) => opened,
            Err(nothing) => return Ok(nothing.verdict),
        };
        let mut out = terminal::stdout().with_sequences(how.has_colour);
        let mut write = |name: &str, content: &[u8]| write_blob(name, content);
        let blobs = options.blobs.then_some(&mut write as &mut dyn FnMut(&str, &[u8]) -> Result<(), Error>);
        dump(&mut opened.reader, &how, &mut out, blobs, &mut opened.reporter)
            .map_err(|error| Failure::of(&opened.name, &error))?;
        out.flush()?;
        opened.verdict()
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
            if is_same { Ok(()) } else { Err(Error::usage(format!("{name} exists and holds something else"))) }
        }
        Err(error) => Err(failed(error)),
    }
}

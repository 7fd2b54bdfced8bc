//! Opens traces for the group's verbs, late where an index allows it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::index::Wanted;
use anytrace_apitrace::tools::index::find::{Choice, IndexLookup, late_reader};
use anytrace_core::{Severity, text};
use clap::Args;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, indexed, open, paint};

/// Which index to use.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct IndexChoice {
    /// Use an index to start late in the trace (see `anytrace index`): the one next to the trace, none, or this file
    #[arg(long, value_name = "auto|none|FILE", default_value = "auto", value_parser = parse_choice)]
    pub(super) index: Choice,
}

fn parse_choice(text: &str) -> Result<Choice, String> {
    Ok(match text {
        "auto" => Choice::Auto,
        "none" => Choice::None,
        "" => return Err("expected auto, none or a file".to_owned()),
        file => Choice::File(file.into()),
    })
}

/// An opened trace and where its damage is reported.
pub(super) struct Opened {
    pub(super) reader: Reader,
    pub(super) reporter: Reporter,
    pub(super) name: String,
    /// Length of the file, where it has one, and how much of it was read.
    pub(super) file_bytes: Option<u64>,
    pub(super) bytes_read: Arc<AtomicU64>,
    pub(super) progress: Progress,
}

impl Opened {
    /// Says how many diagnostics were not shown, and what all of them come to.
    pub(super) fn verdict(&self) -> Result<Verdict, Failure> {
        self.reporter.print_rest()?;
        Ok(self.reporter.verdict())
    }

    /// At how many places of what was read the trace lost something: `lost` of JSON results.
    pub(super) fn lost(&self) -> u64 {
        lost(&self.reporter)
    }
}

/// At how many places something was lost.
pub(super) fn lost(reporter: &Reporter) -> u64 {
    reporter.count(Severity::Error)
}

/// Nothing to read: whether damage is to blame, and at how many places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nothing {
    pub(super) verdict: Verdict,
    pub(super) lost: u64,
}

/// Opens a file for one of the verbs, where there is something to read.
pub(super) fn open_reader(path: &Path, options: &InputArguments) -> Result<Result<Opened, Nothing>, Failure> {
    open_reader_late(path, options, &Choice::None, &Wanted::default())
}

/// Opens a file as [`open_reader`] does, close before what is wanted of it where an index allows it.
pub(super) fn open_reader_late(
    path: &Path,
    options: &InputArguments,
    choice: &Choice,
    wanted: &Wanted,
) -> Result<Result<Opened, Nothing>, Failure> {
    let name = path.display().to_string();
    let (format, input) = match open::open_trace(path, options)? {
        Ok(found) => found,
        Err(damage) => {
            let mut reporter = Reporter::new(&name, None, Way::Stderr, options.limit);
            reporter.take(damage)?;
            return Ok(Err(Nothing { verdict: reporter.verdict(), lost: lost(&reporter) }));
        }
    };
    open::must_be_one_of(&name, format, options, |one| one.name() == "apitrace")?;
    let reporter = Reporter::new(&name, Some(format), Way::Stderr, options.limit);
    let progress = Progress::watch(&input);
    let (file_bytes, bytes_read) = (input.file_bytes(), input.progress());
    let reader = match begin_late(path, options, choice, wanted)? {
        Some(reader) => reader,
        None => Reader::new(input, &open::open_options(options)).map_err(|error| Failure::of(&name, &error))?,
    };
    Ok(Ok(Opened { reader, reporter, name, file_bytes, bytes_read, progress }))
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
        Choice::File(_) if !can_seek => {
            IndexLookup::Unused("standard input and --no-mmap do not support seeking".to_owned())
        }
        Choice::Auto if !can_seek => IndexLookup::Nothing,
        _ => {
            let folder = indexed::folder();
            late_reader(path, choice, folder.as_deref(), &open::open_options(options), wanted)
                .map_err(|error| Failure::bare(&error))?
        }
    };
    match found {
        IndexLookup::Reader(reader) => Ok(Some(*reader)),
        IndexLookup::Nothing => Ok(None),
        IndexLookup::Unused(why) => {
            let name = path.display().to_string();
            paint::complain("note", format!("{}: the index is not used: {why}", text::printable(&name)));
            Ok(None)
        }
    }
}

//! One of the two traces that are compared: its calls, and a file that can be read more than once.

use std::io::Read;
use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_core::{Error, Input, InputOptions};

use super::super::call_sets::call_set;
use super::DiffArguments;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open;
use crate::report::Reporter;

/// Calls the peer compares by default.
const PEER_CALLS: &str = "0-10000";

/// Which calls of a side.
pub(super) fn calls(options: &DiffArguments, own: &[String]) -> Result<CallSet, Failure> {
    match (own, options.calls.as_slice()) {
        ([], []) if options.compat => call_set(&[PEER_CALLS.to_owned()]),
        ([], all) => call_set(all),
        (own, _) => call_set(own),
    }
}

/// A trace is read more than once: what comes from a pipe is kept in a file meanwhile.
pub(super) fn keep(path: &Path) -> Result<Option<tempfile::NamedTempFile>, Failure> {
    let is_file = std::fs::metadata(path).map(|meta| meta.is_file() || meta.is_dir());
    if path.as_os_str() != "-" && is_file.unwrap_or(true) {
        return Ok(None);
    }
    let mut source: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(std::io::stdin()) } else { Box::new(std::fs::File::open(path)?) };
    let mut file = tempfile::NamedTempFile::new()?;
    crate::output::remove_on_signal(file.path());
    std::io::copy(&mut source, &mut file)?;
    Ok(Some(file))
}

/// Where the trace can be read again.
pub(super) fn path(named: &Path, kept: Option<&tempfile::NamedTempFile>) -> PathBuf {
    kept.map_or_else(|| named.to_owned(), |file| file.path().to_owned())
}

/// Finds out whether a file is a trace of this format. An empty one has no calls.
pub(super) fn check(
    path: &Path,
    shown: &Path,
    options: &InputArguments,
    reporter: &mut Reporter,
) -> Result<(), Failure> {
    match open::open_trace(path, options)? {
        Err(damage) => reporter.take(damage),
        Ok((format, _)) => {
            open::must_be_one_of(&shown.display().to_string(), format, options, |one| one.name() == "apitrace")
        }
    }
}

/// Reads the trace from its start.
pub(super) fn reopen(path: &Path, options: &InputArguments) -> Result<Reader, Error> {
    let input = Input::open(path, InputOptions { no_map: options.no_mmap })?;
    Reader::new(input, &open::open_options(options))
}

//! What the group's verbs share: opening traces, and telling what was met in them.

use std::io::{self, Write};
use std::path::Path;

use anytrace_core::{Input, InputOptions, text};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::paint;
use crate::report::{Reporter, Way};

/// Opens a file for one of the verbs.
pub(super) fn open_input(path: &Path, options: &InputArguments) -> Result<Input, Failure> {
    Input::open(path, InputOptions { no_map: options.no_mmap }).map_err(|error| Failure::bare(&error))
}

/// Where damage is told.
pub(super) fn reporter(path: &Path, options: &InputArguments) -> Reporter {
    Reporter::new(&path.display().to_string(), anytrace_formats::by_name("xray"), Way::Stderr, options.limit)
}

/// Tells on standard error what was met in a file and dealt with.
pub(super) fn say(file: &str, lines: &[String]) {
    for line in lines {
        paint::complain("note", format!("{}: {line}", text::printable(file)));
    }
}

/// Writes a result to standard output, or to a file that appears whole or not at all.
pub(super) fn put_out(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Ok(write(&mut io::stdout().lock())?);
    }
    let mut output = Output::create(path, force)?;
    write(&mut output)?;
    output.commit()
}

//! What the verbs do that print calls one after another: each file is opened late where an index allows it, and its calls
//! go to standard output.

use std::io::Write;
use std::path::PathBuf;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::index::Wanted;
use anytrace_core::{Error, Sink};

use super::opening::{IndexChoice, open_reader_late};
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::terminal::Stdout;
use crate::{Verdict, for_each_file};

/// Prints the calls of each file by `write`, to what `stdout` makes of standard output.
pub(super) fn print_calls<T>(
    files: &[PathBuf],
    (input, index): (&InputArguments, &IndexChoice),
    wanted: &Wanted,
    stdout: impl Fn() -> Stdout,
    mut write: impl FnMut(&mut Reader, &mut dyn Write, &mut dyn Sink) -> Result<T, Error>,
) -> Result<Verdict, Failure> {
    for_each_file(files, |file| {
        let mut opened = match open_reader_late(file, input, &index.index, wanted)? {
            Ok(opened) => opened,
            Err(nothing) => return Ok(nothing.verdict),
        };
        let mut out = stdout();
        write(&mut opened.reader, &mut out, &mut opened.reporter).map_err(|error| Failure::of(&opened.name, &error))?;
        out.flush()?;
        opened.verdict()
    })
}

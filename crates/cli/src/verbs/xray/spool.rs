//! From a path to an XRay trace; streams go to a temporary file where a verb must look twice.

use std::io::{BufWriter, Write};
use std::path::Path;

use anytrace_core::{Input, InputOptions, Layer};
use tempfile::NamedTempFile;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open;
use crate::report::{Reporter, Way};

/// An XRay trace to read, and where its damage is reported.
pub(crate) struct Opened {
    /// `None` where there are no bytes.
    pub(crate) input: Option<Input>,
    pub(crate) reporter: Reporter,
    /// Keeps what was spooled until it is read.
    _spooled: Option<NamedTempFile>,
}

/// Opens a trace, which must be XRay's.
pub(crate) fn open(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    let xray = anytrace_formats::by_name("xray");
    let mut reporter = Reporter::new(&name, xray, Way::Stderr, options.limit);
    let input = match open::open_trace(path, options)? {
        Ok((format, _)) if format.name() != "xray" => {
            return Err(Failure::usage(format!("{name}: an XRay trace was expected, and this is {}", format.title())));
        }
        Ok((_, input)) => Some(input),
        Err(damage) => {
            reporter.take(damage)?;
            None
        }
    };
    Ok(Opened { input, reporter, _spooled: None })
}

/// As [`open()`], with all bytes at hand: a stream, or a compressed file, is put into a temporary file first.
pub(crate) fn open_at_hand(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    let mut opened = open(path, options)?;
    let Some(input) = opened.input.take() else { return Ok(opened) };
    if input.as_slice().is_some() {
        opened.input = Some(input);
        return Ok(opened);
    }
    let failed = |error: std::io::Error| Failure::usage(format!("{}: cannot be read: {error}", path.display()));
    let layers = input.layers().to_vec();
    let spool = NamedTempFile::new().map_err(failed)?;
    let mut writer = BufWriter::with_capacity(1 << 18, spool.as_file());
    std::io::copy(&mut input.into_read(), &mut writer).map_err(failed)?;
    writer.flush().map_err(failed)?;
    drop(writer);
    opened.reporter.take(layers.iter().filter_map(Layer::damage).collect())?;
    opened.input = Some(Input::open(spool.path(), InputOptions::default()).map_err(|error| Failure::bare(&error))?);
    opened._spooled = Some(spool);
    Ok(opened)
}

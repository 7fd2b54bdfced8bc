//! Looks at a trace that a verb wrote before it gets its name: it must be recognized as what it is. Keeps beside it what is
//! beside the trace that it was made of.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anytrace_core::{Format, Head, Input, InputOptions};
use anytrace_formats::{Recognized, recognize};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::{Verdict, paint};

/// Refuses a trace that no verb would open again. Who named the input's format may have to name it again, which is said,
/// unless there is no record in the trace.
pub(crate) fn must_open(
    output: &mut Output,
    format: &dyn Format,
    records: u64,
    (file, path): (&Path, &Path),
    options: &InputArguments,
) -> Result<(), Failure> {
    if opens(output, format, path)? {
        return Ok(());
    }
    let (file, title) = (file.display(), format.title().trim_end_matches(" trace"));
    if records == 0 || options.input_format.is_none() {
        let why = format!("the result would not be recognized as a {title} trace");
        return Err(Failure::breach(format!("{file}: {why}; nothing was written")));
    }
    let file = file.to_string();
    let file = anytrace_core::text::printable(&file);
    let option = format!("--input-format {}", format.name());
    paint::complain("note", format!("{file}: the output cannot be recognized either; use {option} to open it"));
    Ok(())
}

/// True for a trace of the format, and for one without a byte.
fn opens(output: &mut Output, format: &dyn Format, path: &Path) -> Result<bool, Failure> {
    // What went out already cannot be taken back.
    let Some(staged) = output.staged_file()? else { return Ok(true) };
    let input = Input::open(staged, InputOptions { no_map: true }).map_err(|error| Failure::bare(&error))?;
    let name = path.display().to_string();
    let head = Head { name: &name, ..input.head() };
    Ok(match recognize(&head) {
        Recognized::Empty => true,
        Recognized::Trace(found) => found.name() == format.name(),
        _ => false,
    })
}

/// The file that names functions beside a trace, as `record` keeps it: what is made of the trace needs it too.
pub(crate) struct Beside(Option<Output>);

impl Beside {
    /// Copies it, under a temporary name still, for a trace that is made of a file. Fails where there is one already,
    /// unless `force`.
    pub(crate) fn copy(format: &dyn Format, (file, path): (&Path, &Path), force: bool) -> Result<Self, Failure> {
        let to_file = path.as_os_str() != "-" && fs::metadata(path).map_or(true, |meta| meta.is_file());
        if !to_file {
            return Ok(Self(None));
        }
        let Some(source) = format.symbols_beside(file, &[]) else {
            // Whatever was there before would name what is written now.
            if let Some(old) = format.symbols_beside(path, &[]) {
                let (old, path) = (old.path.display(), path.display());
                paint::complain("note", format!("{old} is from before: names of {path} may be wrong"));
            }
            return Ok(Self(None));
        };
        let Some(place) = place_beside(file, &source.path, path) else { return Ok(Self(None)) };
        let is_itself = || Some(place.canonicalize().ok()? == source.path.canonicalize().ok()?);
        if is_itself() == Some(true) {
            return Ok(Self(None));
        }
        let mut output = Output::create(&place, force)?;
        let copied = File::open(&source.path).and_then(|mut maps| io::copy(&mut maps, &mut output));
        copied.map_err(|error| Failure::usage(format!("cannot copy {}: {error}", source.path.display())))?;
        Ok(Self(Some(output)))
    }

    /// Gives the copy its name.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |output| output.commit(Verdict::Fine).map(|_| ()))
    }
}

/// Where what is beside a trace goes for another one: its name has the same ending.
fn place_beside(trace: &Path, beside: &Path, other: &Path) -> Option<PathBuf> {
    let (name, trace) = (beside.file_name()?.as_encoded_bytes(), trace.file_name()?.as_encoded_bytes());
    let ending = std::str::from_utf8(name.strip_prefix(trace)?).ok()?;
    let mut place = OsString::from(other);
    place.push(ending);
    Some(PathBuf::from(place))
}

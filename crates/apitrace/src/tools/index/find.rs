//! Finds the index next to a trace and starts reading with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anytrace_core::index::{self, Lookup};
use anytrace_core::{Error, Input, OpenOptions};

use crate::tools::index::file::{INDEX_BYTES_MAX, IndexFault};
use crate::tools::index::{Depth, Index, Wanted, parts};
use crate::wire::reader::Reader;

/// Which index to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one next to the trace, if it exists: its own, or else the one that all formats have.
    #[default]
    Auto,
    /// None.
    None,
    /// This file.
    File(PathBuf),
}

/// The result of searching for an index.
pub enum IndexLookup {
    /// It is used: a reader that begins shortly before the requested part.
    Reader(Box<Reader>),
    /// There is none, or it would not help: read from the start.
    Nothing,
    /// It cannot be used, for this reason: read from the start.
    Unused(String),
}

/// The path of a trace's index: next to it, with `.index` appended to its name.
pub fn beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".index");
    PathBuf::from(name)
}

/// Opens a trace shortly before the requested part, if an index allows it: the one that [`super::build`] makes, or the
/// one that all formats have, which may be in `folder`.
///
/// The index must match the trace: its size and samples of its content are compared, or all of it if the trace was
/// modified after the index was made.
///
/// ```no_run
/// use std::path::Path;
/// use anytrace_apitrace::tools::index::{Wanted, find::{Choice, IndexLookup, late_reader}};
/// use anytrace_core::OpenOptions;
///
/// let (trace, wanted) = (Path::new("game.trace"), Wanted::from_call(9_000_000));
/// match late_reader(trace, &Choice::Auto, None, &OpenOptions::default(), &wanted).unwrap() {
///     IndexLookup::Reader(reader) => println!("at call {}", reader.next_call()),
///     IndexLookup::Nothing => println!("from the start"),
///     IndexLookup::Unused(why) => println!("from the start: {why}"),
/// }
/// ```
///
/// # Errors
/// [`anytrace_core::Kind::Io`] if a file that was named does not exist or cannot be read.
pub fn late_reader(
    trace: &Path,
    choice: &Choice,
    folder: Option<&Path>,
    options: &OpenOptions,
    wanted: &Wanted,
) -> Result<IndexLookup, Error> {
    if wanted.is_all() {
        return Ok(IndexLookup::Nothing);
    }
    let (own, parts) = match choice {
        Choice::None => return Ok(IndexLookup::Nothing),
        Choice::Auto => (beside(trace), index::Choice::Auto(folder.map(Path::to_path_buf))),
        Choice::File(path) => (path.clone(), index::Choice::File(path.clone())),
    };
    let refused = match load(&own, *choice == Choice::Auto)? {
        Some(Ok(index)) => return in_calls(trace, &own, &index, options, wanted),
        Some(Err(Refused::Why(why))) => return Ok(IndexLookup::Unused(why)),
        // A file that is not an index of this kind may be one of the other.
        Some(Err(Refused::OtherKind(why))) => Some(why),
        None => None,
    };
    match index::find(trace, "apitrace", &parts)? {
        Lookup::Found(found) => in_parts(trace, &found, options, wanted),
        Lookup::Nothing => Ok(refused.map_or(IndexLookup::Nothing, IndexLookup::Unused)),
        Lookup::Unused(_, why) => Ok(IndexLookup::Unused(why)),
    }
}

fn in_calls(
    trace: &Path,
    path: &Path,
    index: &Index,
    options: &OpenOptions,
    wanted: &Wanted,
) -> Result<IndexLookup, Error> {
    let Some(file) = mapped(trace) else { return Ok(not_mapped()) };
    if let Err(misfit) = index.check(file.as_slice().unwrap_or_default(), depth(trace, path)) {
        return Ok(IndexLookup::Unused(misfit.to_string()));
    }
    begin(index, file, options, wanted)
}

fn in_parts(trace: &Path, found: &index::Index, options: &OpenOptions, wanted: &Wanted) -> Result<IndexLookup, Error> {
    let Some(file) = mapped(trace) else { return Ok(not_mapped()) };
    match parts::index(found, &file, options) {
        Ok(Some(index)) => begin(&index, file, options, wanted),
        Ok(None) => Ok(IndexLookup::Nothing),
        Err(why) => Ok(IndexLookup::Unused(why)),
    }
}

/// An input that cannot be mapped (a pipe, an empty file) is not seekable either.
fn mapped(trace: &Path) -> Option<Input> {
    Input::open_as_is(trace).ok()
}

fn not_mapped() -> IndexLookup {
    IndexLookup::Unused("the trace is not a file that can be mapped".to_owned())
}

fn begin(index: &Index, file: Input, options: &OpenOptions, wanted: &Wanted) -> Result<IndexLookup, Error> {
    if let Some(why) = index.refusal(options, wanted) {
        return Ok(IndexLookup::Unused(why));
    }
    if index.point_before(wanted).is_none() {
        return Ok(IndexLookup::Nothing);
    }
    Ok(match index.reader(file, options, wanted)? {
        Some(reader) => IndexLookup::Reader(Box::new(reader)),
        None => IndexLookup::Unused("it names a place past the end of the trace".to_owned()),
    })
}

/// Why a file is not used.
enum Refused {
    /// It is not one of these indexes.
    OtherKind(String),
    Why(String),
}

/// Reads an index file; the inner error is the reason why it is not one. `None` if it does not exist and may be
/// missing.
fn load(path: &Path, may_be_missing: bool) -> Result<Option<Result<Index, Refused>>, Error> {
    let name = path.display();
    let failed = |error| Error::io(format_args!("cannot read {name}"), error);
    let bytes = match fs::metadata(path) {
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
        Ok(meta) if !meta.is_file() => return Ok(Some(Err(Refused::Why("the index is not a file".to_owned())))),
        Ok(meta) if meta.len() > INDEX_BYTES_MAX => {
            return Ok(Some(Err(Refused::Why("the index is too large".to_owned()))));
        }
        Ok(_) => fs::read(path),
    };
    Ok(Some(Index::decode(&bytes.map_err(failed)?).map_err(|fault| match fault {
        IndexFault::Magic => Refused::OtherKind(fault.to_string()),
        fault => Refused::Why(fault.to_string()),
    })))
}

/// How much of a trace to compare: all of it, unless it is older than the index.
pub fn depth(trace: &Path, index: &Path) -> Depth {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    match (time(trace), time(index)) {
        (Some(trace), Some(index)) if trace < index => Depth::Samples,
        _ => Depth::Full,
    }
}

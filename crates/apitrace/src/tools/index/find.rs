//! Finds the index next to a trace and starts reading with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anytrace_core::{Error, Input, OpenOptions};

use crate::tools::index::file::INDEX_BYTES_MAX;
use crate::tools::index::{Depth, Index, Wanted};
use crate::wire::reader::Reader;

/// Which index to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one next to the trace, if it exists.
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

/// Opens a trace shortly before the requested part, if an index allows it.
///
/// The index must match the trace: its size and samples of its content are compared, or all of it if the trace was
/// modified after the index was made.
///
/// ```no_run
/// use std::path::Path;
/// use anytrace_apitrace::tools::index::{Wanted, find::{Choice, IndexLookup, late_reader}};
/// use anytrace_core::OpenOptions;
///
/// let wanted = Wanted::from_call(9_000_000);
/// match late_reader(Path::new("game.trace"), &Choice::Auto, &OpenOptions::default(), &wanted).unwrap() {
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
    options: &OpenOptions,
    wanted: &Wanted,
) -> Result<IndexLookup, Error> {
    if wanted.is_all() {
        return Ok(IndexLookup::Nothing);
    }
    let path = match choice {
        Choice::None => return Ok(IndexLookup::Nothing),
        Choice::Auto => beside(trace),
        Choice::File(path) => path.clone(),
    };
    let Some(index) = load(&path, *choice == Choice::Auto)? else { return Ok(IndexLookup::Nothing) };
    let index = match index {
        Ok(index) => index,
        Err(why) => return Ok(IndexLookup::Unused(why)),
    };
    // An input that cannot be mapped (a pipe, an empty file) is not seekable either.
    let Ok(file) = Input::open_as_is(trace) else {
        return Ok(IndexLookup::Unused("the trace is not a file that can be mapped".to_owned()));
    };
    if let Err(misfit) = index.check(file.as_slice().unwrap_or_default(), depth(trace, &path)) {
        return Ok(IndexLookup::Unused(misfit.to_string()));
    }
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

/// Reads an index file; the inner error is the reason why it is not one. `None` if it does not exist and may be
/// missing.
fn load(path: &Path, may_be_missing: bool) -> Result<Option<Result<Index, String>>, Error> {
    let name = path.display();
    let failed = |error| Error::io(format_args!("cannot read {name}"), error);
    let bytes = match fs::metadata(path) {
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
        Ok(meta) if !meta.is_file() => return Ok(Some(Err("the index is not a file".to_owned()))),
        Ok(meta) if meta.len() > INDEX_BYTES_MAX => return Ok(Some(Err("the index is too large".to_owned()))),
        Ok(_) => fs::read(path),
    };
    Ok(Some(Index::decode(&bytes.map_err(failed)?).map_err(|fault| fault.to_string())))
}

/// How much of a trace to compare: all of it, unless it is older than the index.
pub fn depth(trace: &Path, index: &Path) -> Depth {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    match (time(trace), time(index)) {
        (Some(trace), Some(index)) if trace < index => Depth::Samples,
        _ => Depth::Full,
    }
}

//! Finding the index beside a trace, and beginning to read with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anytrace_core::{Error, Input, OpenOptions};

use crate::reader::Reader;
use crate::tools::index::file::INDEX_BYTES_MAX;
use crate::tools::index::{Depth, Index, Wanted};

/// Which index to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The one beside the trace, where there is one.
    #[default]
    Auto,
    /// None.
    None,
    /// This file.
    File(PathBuf),
}

/// What came of looking for an index.
pub enum Found {
    /// It is used: a reader that begins close before what is wanted.
    Reader(Box<Reader>),
    /// There is none, or there is nothing to gain: read from the start.
    Nothing,
    /// There is one that cannot be used, for this reason: read from the start.
    Unused(String),
}

/// Where the index of a trace lies: beside it, with `.index` added to its name.
pub fn beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".index");
    PathBuf::from(name)
}

/// Opens a trace close before what is wanted of it, where an index allows it.
///
/// The index must fit the trace: size and samples of its content are compared, all of it when the trace was written to
/// after the index was made.
///
/// ```no_run
/// use std::path::Path;
/// use anytrace_apitrace::tools::index::{Wanted, find::{Choice, Found, late_reader}};
/// use anytrace_core::OpenOptions;
///
/// let wanted = Wanted::from_call(9_000_000);
/// match late_reader(Path::new("game.trace"), &Choice::Auto, &OpenOptions::default(), &wanted).unwrap() {
///     Found::Reader(reader) => println!("at call {}", reader.next_call()),
///     Found::Nothing => println!("from the start"),
///     Found::Unused(why) => println!("from the start: {why}"),
/// }
/// ```
///
/// # Errors
/// [`anytrace_core::Kind::Io`] when a file that was named is not there or cannot be read.
pub fn late_reader(trace: &Path, choice: &Choice, options: &OpenOptions, wanted: &Wanted) -> Result<Found, Error> {
    if wanted.is_all() {
        return Ok(Found::Nothing);
    }
    let path = match choice {
        Choice::None => return Ok(Found::Nothing),
        Choice::Auto => beside(trace),
        Choice::File(path) => path.clone(),
    };
    let Some(index) = load(&path, *choice == Choice::Auto)? else { return Ok(Found::Nothing) };
    let index = match index {
        Ok(index) => index,
        Err(why) => return Ok(Found::Unused(why)),
    };
    // What cannot be mapped (a pipe, an empty file) cannot be sought either.
    let Ok(file) = Input::open_as_is(trace) else {
        return Ok(Found::Unused("the trace is no file that can be mapped".to_owned()));
    };
    if let Err(misfit) = index.check(file.as_slice().unwrap_or_default(), depth(trace, &path)) {
        return Ok(Found::Unused(misfit.to_string()));
    }
    if let Some(why) = index.refusal(options, wanted) {
        return Ok(Found::Unused(why));
    }
    if index.point_before(wanted).is_none() {
        return Ok(Found::Nothing);
    }
    Ok(match index.reader(file, options, wanted)? {
        Some(reader) => Found::Reader(Box::new(reader)),
        None => Found::Unused("it names a place that the trace does not have".to_owned()),
    })
}

/// Reads an index file; the inner error says why it is none. `None` where there may be no file and there is none.
fn load(path: &Path, may_be_missing: bool) -> Result<Option<Result<Index, String>>, Error> {
    let name = path.display();
    let failed = |error| Error::io(format_args!("cannot read {name}"), error);
    let bytes = match fs::metadata(path) {
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
        Ok(meta) if !meta.is_file() => return Ok(Some(Err("the index is no file".to_owned()))),
        Ok(meta) if meta.len() > INDEX_BYTES_MAX => return Ok(Some(Err("the index is too large".to_owned()))),
        Ok(_) => fs::read(path),
    };
    Ok(Some(Index::decode(&bytes.map_err(failed)?).map_err(|fault| fault.to_string())))
}

/// How much of a trace to look at: all of it, unless it is older than the index.
pub fn depth(trace: &Path, index: &Path) -> Depth {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    match (time(trace), time(index)) {
        (Some(trace), Some(index)) if trace < index => Depth::Samples,
        _ => Depth::Whole,
    }
}

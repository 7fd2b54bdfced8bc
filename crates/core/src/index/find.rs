//! Finds the index of a file.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::{Depth, Index, VERSION};
use crate::{Error, Input};

/// Largest index file that is read.
const INDEX_BYTES_MAX: u64 = 1 << 30;

/// Which index to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// `FILE.atx` beside the trace or in this folder, if it exists.
    Auto(Option<PathBuf>),
    /// None.
    #[default]
    None,
    /// This file.
    File(PathBuf),
}

/// The result of searching for an index.
#[derive(Debug)]
pub enum Lookup {
    /// It fits the trace.
    Found(Box<Index>),
    /// There is none.
    Nothing,
    /// It cannot be used, for this reason.
    Unused(PathBuf, String),
}

/// Where the index of a trace is stored: the trace's name with `.atx` appended, beside it or in a folder.
pub fn path_of(trace: &Path, folder: Option<&Path>) -> PathBuf {
    let mut name = OsString::from(folder.map_or(trace.as_os_str(), |_| trace.file_name().unwrap_or_default()));
    name.push(".atx");
    folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name))
}

/// Finds the index of a trace and checks that it fits: length, format, version of the readers and samples of the
/// content; all of the content if the file was changed after the index was made.
///
/// # Errors
/// [`crate::Kind::Io`] if a file that was named does not exist or cannot be read.
pub fn find(trace: &Path, format: &str, choice: &Choice) -> Result<Lookup, Error> {
    let (path, may_be_missing) = match choice {
        Choice::None => return Ok(Lookup::Nothing),
        Choice::Auto(folder) => (path_of(trace, folder.as_deref()), true),
        Choice::File(path) => (path.clone(), false),
    };
    let failed = |error| Error::io(format_args!("cannot read {}", path.display()), error);
    let meta = match fs::metadata(&path) {
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => return Ok(Lookup::Nothing),
        meta => meta.map_err(failed)?,
    };
    let unused = |why: String| Ok(Lookup::Unused(path.clone(), why));
    if !meta.is_file() || meta.len() > INDEX_BYTES_MAX {
        return unused("it is not an index of a trace".to_owned());
    }
    let index = match Index::decode(&fs::read(&path).map_err(failed)?) {
        Ok(index) => index,
        Err(fault) => return unused(fault.to_string()),
    };
    match misfit(&index, trace, format, &meta) {
        Some(why) => unused(why),
        None => Ok(Lookup::Found(Box::new(index))),
    }
}

/// Why an index is not used for a trace.
fn misfit(index: &Index, trace: &Path, format: &str, meta: &Metadata) -> Option<String> {
    if index.version != VERSION {
        return Some(format!("it was made by version {}, this is {VERSION}", index.version));
    }
    if index.format != format {
        return Some(format!("it is of a trace of the format {}, this is one of {format}", index.format));
    }
    let Ok(file) = Input::open_as_is(trace) else {
        return Some("the trace is not a file that can be mapped".to_owned());
    };
    let depth = match fs::metadata(trace) {
        Ok(trace) if is_older(&trace, meta) => Depth::Samples,
        _ => Depth::Full,
    };
    index.pieces.check(file.as_slice().unwrap_or_default(), depth).err().map(|misfit| misfit.to_string())
}

/// True when a trace was changed last before its index was written.
#[cfg(unix)]
fn is_older(trace: &Metadata, index: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // The time of the last change of the file's data or attributes: a program cannot set it back.
    (trace.ctime(), trace.ctime_nsec()) < (index.mtime(), index.mtime_nsec())
        && (trace.mtime(), trace.mtime_nsec()) < (index.mtime(), index.mtime_nsec())
}

#[cfg(not(unix))]
fn is_older(trace: &Metadata, index: &Metadata) -> bool {
    trace.modified().ok().zip(index.modified().ok()).is_some_and(|(trace, index)| trace < index)
}

//! How traces are read: as files, or in whatever way a process has.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_core::index::{self, Choice, Index, Lookup};
use anytrace_core::{Error, Format, Input, InputOptions};

/// How a process reads traces: from where, and which ones it may.
pub trait Access: fmt::Debug + Send + Sync {
    /// The traces of a name, which may be a pattern, in a stable order.
    ///
    /// # Errors
    /// When there is none, and when their place cannot be listed.
    fn expand(&self, name: PathBuf) -> Result<Vec<PathBuf>, Error> {
        Ok(vec![name])
    }

    /// Opens a trace, of which about the bytes before `until` are read.
    ///
    /// # Errors
    /// When it is not there, may not be read, or cannot be.
    fn open(&self, path: &Path, _until: Option<u64>) -> Result<Input, Error> {
        Input::open(path, InputOptions::default())
    }

    /// Length of a trace in bytes.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn bytes(&self, path: &Path) -> Result<u64, Error> {
        // A pipe has no length, and its bytes are counted as they are read.
        Ok(std::fs::metadata(path).map_or(0, |meta| meta.len()))
    }

    /// Finds the index of a trace.
    ///
    /// # Errors
    /// When an index that was named cannot be read.
    fn index(&self, path: &Path, format: &str, choice: &Choice) -> Result<Lookup, Error> {
        index::find(path, format, choice)
    }

    /// The index of a trace that has none beside it: made at the first call, then kept.
    ///
    /// # Errors
    /// When the trace cannot be read.
    fn made_index(&self, path: &Path, _format: &dyn Format) -> Result<Arc<Index>, Error> {
        Err(Error::unsupported(format!("{}: this process makes no index", path.display())))
    }

    /// Begins to write results where no file system is, as at `s3://BUCKET/KEY`.
    ///
    /// # Errors
    /// When this process writes no such place, may not, or something is there that must not be replaced.
    fn create(&self, path: &Path, _is_replaced: bool) -> Result<Box<dyn Place>, Error> {
        Err(Error::unsupported(format!("{}: this process writes files only", path.display())))
    }

    /// A part of a trace of `length` bytes is about to be read; for logs and counters.
    fn note(&self, _path: &Path, _part: &index::Part, _length: u64) {}
}

/// A place that results are written to. Nothing is there before [`Place::commit`], and nothing stays there without it.
pub trait Place: Write + Send {
    /// Makes what was written appear, completely.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn commit(self: Box<Self>) -> io::Result<()>;
}

/// Reads files as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Access for Files {}

//! Files that appear together: all are complete before the first gets its name.

use std::path::PathBuf;

use tempfile::TempPath;

use super::{Output, Place, Staged, Writer};
use crate::failure::Failure;
use crate::unwritable::Unwritable;

/// A complete file that has its temporary name still. Dropped, it is gone.
pub(crate) struct Aside {
    file: TempPath,
    path: PathBuf,
    name: String,
    may_replace: bool,
}

impl Output {
    /// Completes a file without giving it its name: for verbs that write several files. It is closed meanwhile, so that
    /// there may be any number of them.
    pub(crate) fn set_aside(self) -> Result<Aside, Failure> {
        let (Writer::File(writer), Place::File(path)) = (self.writer, self.place) else {
            return Err(Failure::usage("one of the output files is a device or a pipe, not a regular file"));
        };
        let Staged { file, name } = writer.into_inner().map_err(|error| Failure::output(error.error()))?;
        file.as_file().sync_all().map_err(|error| Failure::output(&Unwritable::wrap(&name, error)))?;
        Ok(Aside { file: file.into_temp_path(), path, name, may_replace: self.may_replace })
    }
}

/// Gives all files their names.
pub(crate) fn commit_all(files: Vec<Aside>) -> Result<(), Failure> {
    for Aside { file, path, name, may_replace } in files {
        let persisted = if may_replace { file.persist(&path) } else { file.persist_noclobber(&path) };
        persisted.map_err(|error| Failure::usage(format!("cannot write {name}: {}", error.error)))?;
    }
    Ok(())
}

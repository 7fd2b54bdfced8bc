//! An output that is a folder: it appears with all of its files, or not at all.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use anytrace_core::archive::unpack;
use anytrace_export::timeline::OutputFolder;
use tempfile::{NamedTempFile, TempDir};

use super::{Output, Place, beside, is_packed, remove_on_signal};
use crate::failure::Failure;
use crate::unwritable::Unwritable;

/// A folder being written under a temporary name. Dropped, it is gone.
pub(super) struct Folder {
    staged: TempDir,
    path: PathBuf,
    contents: Contents,
    /// What was there may be replaced: `--force`.
    force: bool,
}

/// What is in the folder.
enum Contents {
    /// What is written, and a second file with its contents.
    Two(OutputFolder, Vec<u8>),
    /// The files of the archive that is written.
    Archive,
}

impl Contents {
    /// Fails where a folder has anything that is no output of this kind: it is somebody's work.
    fn may_replace(&self, path: &Path) -> Result<(), Failure> {
        let (is_such, such) = match self {
            Self::Two(files, _) => (is_one(path, *files), format!("of {} and {}", files.beside, files.main)),
            Self::Archive => (is_traces(path, false, 0), "of traces".to_owned()),
        };
        if is_such {
            Ok(())
        } else {
            Err(Failure::usage(format!("{}: only a folder {such} is replaced", path.display())))
        }
    }
}

/// The file that describes the others beside it and below.
const DESCRIPTION: &str = "metadata";

/// Deepest folders of a trace.
const DEPTH_MAX: usize = 16;

impl Output {
    /// Starts a folder; what is written goes to its main file. An empty folder is taken; another is replaced only with
    /// `force`, and only where it is such an output itself.
    pub(super) fn create_folder(path: &Path, files: OutputFolder, force: bool) -> Result<Self, Failure> {
        Self::stage_folder(path, Contents::Two(files, Vec::new()), force)
    }

    /// Starts a folder of the files of the archive that is written. An empty folder is taken; another is replaced only
    /// with `force`, and only where all of it are traces.
    pub(crate) fn create_unpacked(path: &Path, force: bool) -> Result<Self, Failure> {
        Self::stage_folder(path, Contents::Archive, force)
    }

    fn stage_folder(path: &Path, contents: Contents, force: bool) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        if is_packed(path) {
            return Err(Failure::usage(format!("{}: a folder cannot be compressed", path.display())));
        }
        if path.as_os_str() == "-" {
            return Err(Failure::usage("this form is a folder of two files: use -o to name it"));
        }
        if fs::symlink_metadata(path).is_ok() && !is_empty(path) {
            if !force {
                return Err(Failure::usage(format!("{} exists; use --force to replace it", path.display())));
            }
            contents.may_replace(path)?;
        }
        // `x/` and `x` are the same folder.
        let path: PathBuf = path.components().collect();
        let mut builder = tempfile::Builder::new();
        builder.prefix(".anytrace-").suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let staged = builder.tempdir_in(beside(&path)).map_err(failed)?;
        remove_on_signal(staged.path());
        let folder = Folder { staged, path: path.clone(), contents, force };
        Self::stage(&path, Place::Folder(folder), force)
    }

    /// What is written is an archive, whose files are to be in the folder.
    pub(crate) fn unpack(&mut self) {
        if let Place::Folder(folder) = &mut self.place {
            folder.contents = Contents::Archive;
        }
    }

    /// The contents of the second file of a folder.
    pub(crate) fn put_beside(&mut self, bytes: Vec<u8>) {
        if let Place::Folder(Folder { contents: Contents::Two(_, beside), .. }) = &mut self.place {
            *beside = bytes;
        }
    }
}

impl Folder {
    /// Where its main file is until it has its name.
    pub(super) fn staged(&self) -> &Path {
        self.staged.path()
    }

    /// Completes its files, and gives the folder its name.
    pub(super) fn commit(self, main: NamedTempFile, name: &str) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::output(&Unwritable::wrap(name, error));
        match &self.contents {
            Contents::Two(files, beside) => {
                main.as_file().sync_all().map_err(failed)?;
                main.persist_noclobber(self.staged().join(files.main)).map_err(|error| failed(error.error))?;
                let mut second = File::create_new(self.staged().join(files.beside)).map_err(failed)?;
                second.write_all(beside).and_then(|()| second.sync_all()).map_err(failed)?;
            }
            Contents::Archive => {
                let archive = File::open(main.path()).map_err(failed)?;
                unpack(BufReader::new(archive), self.staged()).map_err(failed)?;
                drop(main);
            }
        }
        // What is replaced keeps another name until the new one is there.
        let old = self.force && self.path.is_dir() && !is_empty(&self.path);
        if old {
            // Again: it may have changed since.
            self.contents.may_replace(&self.path)?;
        }
        let old = old.then(|| self.staged.path().with_extension("old"));
        if let Some(old) = &old {
            fs::rename(&self.path, old).map_err(failed)?;
        }
        if let Err(error) = fs::rename(self.staged(), &self.path) {
            if let Some(old) = &old {
                fs::rename(old, &self.path).map_err(failed)?;
            }
            return Err(failed(error));
        }
        // It has another name now.
        let _ = self.staged.keep();
        old.map_or(Ok(()), |old| fs::remove_dir_all(old).map_err(failed))
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// True for a folder in which every file is beside a description or below one.
fn is_traces(path: &Path, is_described: bool, depth: usize) -> bool {
    let is_described = is_described || path.join(DESCRIPTION).is_file();
    let is_of_one = |entry: io::Result<fs::DirEntry>| {
        let Ok((kind, entry)) = entry.and_then(|entry| Ok((entry.file_type()?, entry))) else { return false };
        if kind.is_dir() {
            return depth < DEPTH_MAX && is_traces(&entry.path(), is_described, depth + 1);
        }
        kind.is_file() && is_described
    };
    fs::read_dir(path).is_ok_and(|entries| entries.into_iter().all(is_of_one))
}

/// True for a folder of these two files and nothing else.
fn is_one(path: &Path, files: OutputFolder) -> bool {
    let is_known = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let is_named = [files.main, files.beside].iter().any(|name| entry.file_name() == *name);
            is_named && entry.file_type().is_ok_and(|kind| kind.is_file())
        })
    };
    !is_empty(path) && fs::read_dir(path).is_ok_and(|entries| entries.into_iter().all(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    const FILES: OutputFolder = OutputFolder { main: "stream", beside: "metadata" };

    fn written(path: &Path, force: bool, bytes: &[u8]) -> Result<Verdict, Failure> {
        let mut output = Output::create_folder(path, FILES, force)?;
        output.write_all(bytes).unwrap();
        output.put_beside(b"about".to_vec());
        output.commit(Verdict::Fine)
    }

    #[test]
    fn what_came_meanwhile_is_not_replaced() {
        let parent = tempfile::tempdir().unwrap();
        for force in [false, true] {
            let path = parent.path().join(format!("out-{force}"));
            for is_archive in [false, true] {
                let mut output = if is_archive {
                    Output::create_unpacked(&path, force).unwrap()
                } else {
                    Output::create_folder(&path, FILES, force).unwrap()
                };
                output.write_all(&anytrace_core::archive::END).unwrap();
                fs::create_dir(&path).unwrap();
                fs::write(path.join("notes"), "mine").unwrap();
                assert!(output.commit(Verdict::Fine).is_err());
                assert_eq!(fs::read(path.join("notes")).unwrap(), b"mine");
                fs::remove_dir_all(&path).unwrap();
            }
        }
        assert_eq!(names(parent.path()).len(), 0);
    }

    #[test]
    fn only_traces_are_replaced_by_an_archive() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("out");
        fs::create_dir_all(path.join("ust/index")).unwrap();
        for name in ["ust/metadata", "ust/c_0", "ust/index/c_0.idx"] {
            fs::write(path.join(name), "x").unwrap();
        }
        let replace = || {
            let mut output = Output::create_unpacked(&path, true)?;
            output.write_all(&anytrace_core::archive::END).unwrap();
            output.commit(Verdict::Fine)
        };
        fs::write(path.join("notes"), "mine").unwrap();
        assert!(replace().is_err());
        fs::remove_file(path.join("notes")).unwrap();
        replace().unwrap();
        assert_eq!(names(&path).len(), 0);
    }

    fn names(path: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_appears_complete_and_replaces_only_its_like() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("out");
        let mut output = Output::create_folder(&path, FILES, false).unwrap();
        output.write_all(b"abc").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(names(parent.path()).len(), 0);
        written(&path, false, b"one").unwrap();
        assert_eq!(
            (names(&path), names(parent.path())),
            (vec!["metadata".into(), "stream".into()], vec!["out".into()])
        );
        assert!(written(&path, false, b"two").is_err());
        assert_eq!(fs::read(path.join("stream")).unwrap(), b"one");
        written(&path.join(""), true, b"two").unwrap();
        assert_eq!(fs::read(path.join("stream")).unwrap(), b"two");
        assert_eq!(fs::read(path.join("metadata")).unwrap(), b"about");
        assert_eq!(names(parent.path()), ["out"]);
        // A folder of anything else is somebody's work.
        fs::write(path.join("notes"), "mine").unwrap();
        assert!(written(&path, true, b"three").is_err());
        assert_eq!(names(&path).len(), 3);
        let empty = parent.path().join("empty");
        fs::create_dir(&empty).unwrap();
        written(&empty, false, b"four").unwrap();
        assert_eq!(fs::read(empty.join("stream")).unwrap(), b"four");
        fs::write(parent.path().join("file"), "x").unwrap();
        assert!(written(&parent.path().join("file"), true, b"five").is_err());
        assert!(written(Path::new("-"), true, b"six").is_err());
    }
}

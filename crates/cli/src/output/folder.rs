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
}

/// What is in the folder.
enum Contents {
    /// What is written, and a second file with its contents.
    Two(OutputFolder, Vec<u8>),
    /// The files of the archive that is written.
    Archive,
}

/// The files by which a folder is known as an output of this kind.
const TRACE: OutputFolder = OutputFolder { main: "stream", beside: "metadata" };

impl Output {
    /// Starts a folder; what is written goes to its main file. An empty folder is taken; another is replaced only with
    /// `force`, and only where it is such an output itself.
    pub(super) fn create_folder(path: &Path, files: OutputFolder, force: bool) -> Result<Self, Failure> {
        let may_replace = |path: &Path| {
            let (main, beside) = (files.main, files.beside);
            let text = format!("{}: only a folder of {beside} and {main} is replaced", path.display());
            if is_one(path, files) { Ok(()) } else { Err(Failure::usage(text)) }
        };
        Self::stage_folder(path, Contents::Two(files, Vec::new()), force, may_replace)
    }

    /// Starts a folder of the files of the archive that is written. An empty folder is taken; another is replaced only
    /// with `force`, and only where it has the description of a trace.
    pub(crate) fn create_unpacked(path: &Path, force: bool) -> Result<Self, Failure> {
        Self::stage_folder(path, Contents::Archive, force, |path| {
            let text = format!("{}: only a folder with a file {} is replaced", path.display(), TRACE.beside);
            if path.join(TRACE.beside).is_file() { Ok(()) } else { Err(Failure::usage(text)) }
        })
    }

    fn stage_folder(
        path: &Path,
        contents: Contents,
        force: bool,
        may_replace: impl Fn(&Path) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
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
            may_replace(path)?;
        }
        // `x/` and `x` are the same folder.
        let path: PathBuf = path.components().collect();
        let mut builder = tempfile::Builder::new();
        builder.prefix(".anytrace-").suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let staged = builder.tempdir_in(beside(&path)).map_err(failed)?;
        remove_on_signal(staged.path());
        let folder = Folder { staged, path: path.clone(), contents };
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
        let old = !is_empty(&self.path) && self.path.is_dir();
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

/// True for a folder of these two files and nothing else.
fn is_one(path: &Path, files: OutputFolder) -> bool {
    let is_known = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| [files.main, files.beside].iter().any(|name| entry.file_name() == *name))
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

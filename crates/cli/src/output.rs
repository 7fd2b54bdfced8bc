//! Output files that are written completely or not at all.

mod aside;
mod folder;
mod packed;
mod spool;
mod stream;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anytrace_core::Target;
use anytrace_export::timeline::TimelineOutput;
pub(crate) use aside::{Aside, commit_all};
use folder::Folder;
pub(crate) use packed::{Packed, is_packed};
pub(crate) use spool::LateSpool;
use stream::Stream;
use tempfile::NamedTempFile;

use crate::Verdict;
use crate::failure::Failure;
use crate::terminal;
use crate::unwritable::Unwritable;

/// A file being written under a temporary name; [`Output::commit`] gives it its own.
///
/// For `-` and for things that are not regular files (a device, a pipe) the bytes are kept in a temporary file and
/// copied at the end, so that these too get all or nothing; unless [`Output::streaming`] sends them to standard output
/// as they come.
///
/// Every verb writes its files through this type, and `commit` asks for the verdict: what a verb that
/// failed has written never replaces anything.
pub(crate) struct Output {
    writer: Writer,
    position: u64,
    place: Place,
    may_replace: bool,
}

enum Writer {
    File(BufWriter<Staged>),
    Stream(Stream),
}

/// The temporary file. Its errors name the output, for the temporary name would only puzzle.
struct Staged {
    file: NamedTempFile,
    /// What the user called the output.
    name: String,
}

impl Staged {
    fn failed(&self, error: io::Error) -> io::Error {
        Unwritable::wrap(&self.name, error)
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes).map_err(|error| self.failed(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush().map_err(|error| self.failed(error))
    }
}

impl Seek for Staged {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.as_file_mut().seek(to).map_err(|error| self.failed(error))
    }
}

enum Place {
    Stdout,
    Device(PathBuf),
    File(PathBuf),
    Folder(Folder),
}

/// The folder that a file is in.
fn beside(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Output {
    /// As [`Self::create`], but standard output gets the bytes as they come: no disk is needed, and whoever reads the
    /// first of them need not wait for the last. For forms whose bytes are never patched.
    pub(crate) fn streaming() -> Self {
        let writer = Writer::Stream(Stream::new());
        Self { writer, position: 0, place: Place::Stdout, may_replace: false }
    }

    /// Starts a file, or a folder where the form is one.
    pub(crate) fn create_form(path: &Path, form: Option<&TimelineOutput>, force: bool) -> Result<Self, Failure> {
        match form.and_then(|form| form.folder) {
            Some(files) => Self::create_folder(path, files, force),
            None => Self::create(path, force),
        }
    }

    /// Starts a trace that is made of another one: of a folder, or of an archive, a folder where the name ends in `/` or
    /// is that of a folder, and of a folder also where the name has no extension; otherwise a file.
    pub(crate) fn create_like(of: &Path, path: &Path, force: bool) -> Result<Self, Failure> {
        let is_archive = of.extension().is_some_and(|extension| extension == "tar") || of.ends_with("metadata");
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir();
        let is_unnamed = of.is_dir() && path.extension().is_none() && !path.exists() && path.as_os_str() != "-";
        if ((of.is_dir() || is_archive) && is_folder) || is_unnamed {
            return Self::create_unpacked(path, force);
        }
        Self::create(path, force)
    }

    /// Starts a file. Refuses to replace one unless `force`.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        let place = match fs::metadata(path) {
            _ if path.as_os_str() == "-" => Place::Stdout,
            Ok(meta) if meta.is_dir() => {
                return Err(Failure::usage(format!("cannot write {}: it is a directory", path.display())));
            }
            Ok(meta) if !meta.is_file() => Place::Device(path.to_owned()),
            Ok(_) if !force => {
                return Err(Failure::usage(format!("{} exists; use --force to replace it", path.display())));
            }
            // A link is followed, so that the file it names is replaced and not the link.
            Ok(_) => Place::File(fs::canonicalize(path).map_err(failed)?),
            Err(_) if fs::symlink_metadata(path).is_ok() => {
                return Err(Failure::usage(format!("cannot write {}: it is a dangling link", path.display())));
            }
            Err(_) => Place::File(path.to_owned()),
        };
        Self::stage(path, place, force)
    }

    /// Starts the temporary file of a place.
    fn stage(path: &Path, place: Place, may_replace: bool) -> Result<Self, Failure> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".anytrace-").suffix(".tmp");
        let file = match &place {
            Place::File(path) => {
                #[cfg(unix)]
                builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
                builder.tempfile_in(beside(path))
            }
            Place::Folder(folder) => {
                #[cfg(unix)]
                builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
                builder.tempfile_in(folder.staged())
            }
            Place::Stdout | Place::Device(_) => builder.tempfile(),
        };
        let file = file.map_err(|error| {
            // The temporary name in the error would only puzzle.
            Failure::usage(format!("cannot write {}: {}", path.display(), error.kind()))
        })?;
        if let (Place::File(path), Ok(old)) = (&place, fs::metadata(path)) {
            // What is replaced keeps its permissions.
            file.as_file().set_permissions(old.permissions()).map_err(|error| {
                Failure::usage(format!("cannot preserve the permissions of {}: {error}", path.display()))
            })?;
        }
        remove_on_signal(file.path());
        let name = match &place {
            Place::Stdout => format!("standard output, by a temporary file in {}", std::env::temp_dir().display()),
            Place::Device(_) => {
                format!("{}, by a temporary file in {}", path.display(), std::env::temp_dir().display())
            }
            Place::File(_) | Place::Folder(_) => path.display().to_string(),
        };
        let writer = Writer::File(BufWriter::with_capacity(1 << 18, Staged { file, name }));
        Ok(Self { writer, position: 0, place, may_replace })
    }

    /// The temporary file with all that was written so far, to be read again.
    pub(crate) fn staged(&mut self) -> Result<&Path, Failure> {
        let unsupported = || Failure::output(&io::Error::from(io::ErrorKind::Unsupported));
        self.staged_file()?.ok_or_else(unsupported)
    }

    /// The same; `None` where the bytes go out as they come.
    pub(crate) fn staged_file(&mut self) -> Result<Option<&Path>, Failure> {
        let Writer::File(writer) = &mut self.writer else { return Ok(None) };
        writer.flush().map_err(|error| Failure::output(&error))?;
        Ok(Some(writer.get_ref().file.path()))
    }

    /// Gives the file its name, or copies it where it belongs, and returns the verdict. Without a result there is
    /// nothing to put anywhere: what was there before stays. The same where an input file was cut short while it was
    /// read.
    pub(crate) fn commit(self, verdict: Verdict) -> Result<Verdict, Failure> {
        if !verdict.has_result() {
            return Ok(verdict);
        }
        if let Some((name, error)) = anytrace_core::cut_short() {
            return Err(Failure::of(&name, &error));
        }
        let writer = match self.writer {
            Writer::Stream(stream) => {
                stream.finish().map_err(|error| Failure::output(&Unwritable::wrap("standard output", error)))?;
                return Ok(verdict);
            }
            Writer::File(writer) => writer,
        };
        let Staged { mut file, name } = writer.into_inner().map_err(|error| Failure::output(error.error()))?;
        match self.place {
            Place::Folder(folder) => folder.commit(file, &name)?,
            Place::Stdout => copy_out(file.as_file_mut(), &mut terminal::stdout(), "standard output")?,
            Place::Device(path) => {
                let name = path.display().to_string();
                let device = File::options().write(true).open(&path);
                let mut device = device.map_err(|error| Failure::output(&Unwritable::wrap(&name, error)))?;
                copy_out(file.as_file_mut(), &mut device, &name)?;
            }
            Place::File(path) => {
                // The name must not outlive the bytes when the machine stops.
                file.as_file().sync_all().map_err(|error| Failure::output(&Unwritable::wrap(&name, error)))?;
                let persisted = if self.may_replace { file.persist(&path) } else { file.persist_noclobber(&path) };
                persisted.map_err(|error| Failure::usage(format!("cannot write {name}: {}", error.error)))?;
            }
        }
        Ok(verdict)
    }
}

/// Refuses a command two results of which would go to standard output, where nobody could take them apart: what is named
/// of them is there.
pub(crate) fn one_on_stdout(results: &[Option<&str>]) -> Result<(), Failure> {
    let mut there = results.iter().flatten();
    match (there.next(), there.next()) {
        (Some(first), Some(second)) => Err(Failure::usage(format!(
            "standard output cannot receive both {first} and {second}; write one of them to a file or leave it out"
        ))),
        _ => Ok(()),
    }
}

/// The temporary files and folders to remove when the user or the system ends the program. Those that are gone by then do no harm.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Sees to it that an interrupted program leaves no temporary file behind.
pub(crate) fn remove_on_signal(path: &Path) {
    let Ok(mut unfinished) = UNFINISHED.lock() else { return };
    let is_first = unfinished.is_empty();
    unfinished.push(path.to_owned());
    drop(unfinished);
    if !is_first {
        return;
    }
    // Without a handler the work still continues; only the cleanup is lost.
    let _ = ctrlc::set_handler(|| {
        if let Ok(unfinished) = UNFINISHED.lock() {
            for path in unfinished.iter() {
                // A file, or a folder.
                let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
            }
        }
        // 128 + SIGINT, as shells report an interrupted program.
        std::process::exit(130);
    });
}

fn copy_out(file: &mut File, out: &mut dyn Write, name: &str) -> Result<(), Failure> {
    let failed = |error| Failure::output(&Unwritable::wrap(name, error));
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = file.read(&mut buffer).map_err(failed)?;
        if n == 0 {
            return out.flush().map_err(failed);
        }
        out.write_all(&buffer[..n]).map_err(failed)?;
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = match &mut self.writer {
            Writer::File(file) => file.write(bytes)?,
            Writer::Stream(stream) => stream.write(bytes)?,
        };
        self.position += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::File(file) => file.flush(),
            Writer::Stream(stream) => stream.flush(),
        }
    }
}

impl Target for Output {
    fn position(&self) -> u64 {
        self.position
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.position) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let Writer::File(file) = &mut self.writer else {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        };
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        file.seek(SeekFrom::Start(self.position))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_before_commit_and_nothing_is_replaced_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut output = Output::create(&path, false).unwrap();
        output.write_all(b"abcdef").unwrap();
        output.patch(1, b"XY").unwrap();
        output.write_all(b"g").unwrap();
        assert!(output.patch(6, b"zz").is_err());
        assert!(!path.exists());
        output.commit(Verdict::Breach).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"aXYdefg");
        assert!(Output::create(&path, false).is_err());
        for verdict in [None, Some(Verdict::NoResult), Some(Verdict::Failed)] {
            let mut output = Output::create(&path, true).unwrap();
            output.write_all(b"new").unwrap();
            match verdict {
                Some(verdict) => assert_eq!(output.commit(verdict).unwrap(), verdict),
                None => drop(output),
            }
        }
        assert_eq!(fs::read(&path).unwrap(), b"aXYdefg");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

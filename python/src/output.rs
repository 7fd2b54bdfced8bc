//! A file that is there when it is complete, and not before.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anytrace_core::{Error, Head, Input, InputOptions, Target};
use tempfile::{Builder, NamedTempFile};

use crate::failure::Failure;
use crate::work::Stop;

/// A file to write. Its name is given by [`Self::commit`]; without that nothing is left of it.
pub(crate) struct Output {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
    may_replace: bool,
    position: u64,
    stop: Stop,
}

impl Output {
    /// Starts a file. What is there is replaced only by `force`.
    pub(crate) fn create(path: &Path, force: bool, stop: &Stop) -> Result<Self, Failure> {
        let name = path.display();
        if !force && path.exists() {
            return Err(Failure::usage(format!("{name} exists; force=True replaces it")));
        }
        if path.is_dir() {
            return Err(Failure::usage(format!("cannot write {name}: it is a folder")));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::metadata(folder).map_err(|error| cannot_write(path, error))?;
        let file = builder().tempfile_in(folder).map_err(|error| cannot_write(path, error))?;
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(Self { file, path: path.to_owned(), may_replace: force, position: 0, stop: stop.clone() })
    }

    /// Gives the file its name.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let (path, may_replace) = (self.path, self.may_replace);
        let failed = |error| cannot_write(&path, error);
        let file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.as_file().sync_all().map_err(failed)?;
        let done = if may_replace { file.persist(&path) } else { file.persist_noclobber(&path) };
        done.map(drop).map_err(|error| cannot_write(&path, error.error))
    }

    /// Looks at the beginning of what was written, under its name to be.
    pub(crate) fn looks_like<T>(&mut self, look: impl FnOnce(&Head<'_>) -> T) -> Result<T, Error> {
        self.file.flush()?;
        let input = Input::open(self.file.get_ref().path(), InputOptions { no_map: true })?;
        let name = self.path.display().to_string();
        Ok(look(&Head { name: &name, ..input.head() }))
    }
}

/// Permissions as every program's new files have them; temporary files are for their owner alone.
#[cfg(unix)]
fn builder() -> Builder<'static, 'static> {
    use std::os::unix::fs::PermissionsExt;
    let mut builder = Builder::new();
    builder.prefix(".anytrace-").permissions(std::fs::Permissions::from_mode(0o666));
    builder
}

#[cfg(not(unix))]
fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".anytrace-");
    builder
}

fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::Bare(Error::io(format_args!("cannot write {}", path.display()), error))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        let n = self.file.write(bytes)?;
        self.position += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
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
        // Seeking writes what is buffered.
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)?;
        self.file.seek(SeekFrom::Start(self.position)).map(drop)
    }
}

/// A temporary file that is made when something is written to it: most outputs need none.
#[derive(Default)]
pub(crate) struct LateSpool(Option<File>);

impl LateSpool {
    fn file(&mut self) -> io::Result<&mut File> {
        if self.0.is_none() {
            self.0 = Some(tempfile::tempfile()?);
        }
        self.0.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Read for LateSpool {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file()?.read(bytes)
    }
}

impl Write for LateSpool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), File::flush)
    }
}

impl Seek for LateSpool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(to)
    }
}

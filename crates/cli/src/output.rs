//! Output files that appear whole or not at all.

mod stream;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anytrace_core::Target;
use stream::Stream;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::terminal;

/// A file being written under a temporary name; [`Output::commit`] gives it its own.
///
/// For `-` and for things that are no regular files (a device, a pipe) the bytes are kept in a
/// temporary file and copied at the end, so that these too get all or nothing; unless [`Output::streaming`] sends them to
/// standard output as they come.
pub(crate) struct Output {
    writer: Writer,
    position: u64,
    place: Place,
    may_replace: bool,
}

enum Writer {
    File(BufWriter<NamedTempFile>),
    Stream(Stream),
}

enum Place {
    Stdout,
    Device(PathBuf),
    File(PathBuf),
}

impl Output {
    /// As [`Self::create`], but standard output gets the bytes as they come: no disk is needed, and whoever reads the
    /// first of them need not wait for the last. For forms whose bytes are never patched.
    pub(crate) fn streaming(path: &Path, force: bool) -> Result<Self, Failure> {
        if path.as_os_str() != "-" {
            return Self::create(path, force);
        }
        let writer = Writer::Stream(Stream::new(terminal::stdout()));
        Ok(Self { writer, position: 0, place: Place::Stdout, may_replace: force })
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
                return Err(Failure::usage(format!("{} exists; --force replaces it", path.display())));
            }
            // A link is followed, so that the file it names is replaced and not the link.
            Ok(_) => Place::File(fs::canonicalize(path).map_err(failed)?),
            Err(_) if fs::symlink_metadata(path).is_ok() => {
                return Err(Failure::usage(format!("cannot write {}: it is a link to nothing", path.display())));
            }
            Err(_) => Place::File(path.to_owned()),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".anytrace-").suffix(".tmp");
        let file = match &place {
            Place::File(path) => {
                #[cfg(unix)]
                builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                builder.tempfile_in(folder)
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
                Failure::usage(format!("cannot keep the permissions of {}: {error}", path.display()))
            })?;
        }
        remove_on_signal(file.path());
        let writer = Writer::File(BufWriter::with_capacity(1 << 18, file));
        Ok(Self { writer, position: 0, place, may_replace: force })
    }

    /// Gives the file its name, or copies it where it belongs.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let writer = match self.writer {
            Writer::Stream(stream) => return Ok(stream.finish()?),
            Writer::File(writer) => writer,
        };
        let mut file = writer.into_inner().map_err(|error| Failure::output(error.error()))?;
        match self.place {
            Place::Stdout => copy_out(file.as_file_mut(), &mut terminal::stdout()),
            Place::Device(path) => {
                let mut device = File::options().write(true).open(path)?;
                copy_out(file.as_file_mut(), &mut device)
            }
            Place::File(path) => {
                // The name must not outlive the bytes when the machine stops.
                file.as_file().sync_all()?;
                let persisted = if self.may_replace { file.persist(&path) } else { file.persist_noclobber(&path) };
                match persisted {
                    Ok(_) => Ok(()),
                    Err(error) => Err(Failure::usage(format!("cannot write {}: {}", path.display(), error.error))),
                }
            }
        }
    }
}

/// The temporary file to remove when the user or the system ends the program.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Sees to it that an interrupted program leaves no temporary file behind.
fn remove_on_signal(path: &Path) {
    let Ok(mut unfinished) = UNFINISHED.lock() else { return };
    let is_first = unfinished.is_none();
    *unfinished = Some(path.to_owned());
    if !is_first {
        return;
    }
    // Without a handler the work still goes on; only the tidying is lost.
    let _ = ctrlc::set_handler(|| {
        if let Ok(Some(path)) = UNFINISHED.lock().as_deref() {
            let _ = fs::remove_file(path);
        }
        // 128 + SIGINT, as shells report an interrupted program.
        std::process::exit(130);
    });
}

fn copy_out(file: &mut File, out: &mut dyn Write) -> Result<(), Failure> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            out.flush()?;
            return Ok(());
        }
        out.write_all(&buffer[..n])?;
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
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"aXYdefg");
        assert!(Output::create(&path, false).is_err());
        let mut output = Output::create(&path, true).unwrap();
        output.write_all(b"new").unwrap();
        drop(output);
        assert_eq!(fs::read(&path).unwrap(), b"aXYdefg");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

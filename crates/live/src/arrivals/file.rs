//! A growing file, read across renaming, truncation and rewriting.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anytrace_core::Error;

use super::Arrival;

/// How often a file at its end is looked at while it grows, and later. A file system that reports changes would not
/// need this, but network file systems do not report them.
const SOON: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(4);

/// How long after the last bytes a file counts as growing.
const GROWING: Duration = Duration::from_secs(1);

/// How often its length and its name are looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// How long a file that was renamed may still be written to by a program that has it open.
const LINGER: Duration = Duration::from_millis(200);

/// Bytes at the beginning, and before a place, by which a file is recognized.
const KNOWN_BYTES: usize = 64;

/// Where reading a file can continue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Offset in the file of the next byte.
    pub position: u64,
    /// The first bytes of the file, at most 64.
    pub head: Vec<u8>,
    /// The bytes before the position, at most 64.
    pub before: Vec<u8>,
}

/// The file. `open` is none until a file with the name exists.
pub(super) struct GrowingFile {
    path: PathBuf,
    open: Option<OpenFile>,
    last_bytes: Instant,
    next_glance: Instant,
}

struct OpenFile {
    file: File,
    inode: (u64, u64),
    position: u64,
    head: Vec<u8>,
    /// When another file was first seen under the name.
    replaced: Option<Instant>,
}

impl GrowingFile {
    pub(super) fn open(path: &Path, place: Option<&Place>) -> Result<Self, Error> {
        let failed = |error| Error::io(format_args!("cannot open {}", path.display()), error);
        let mut open = match OpenFile::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && place.is_none() => None,
            other => Some(other.map_err(failed)?),
        };
        if let (Some(open), Some(place)) = (&mut open, place) {
            open.go_to(place).map_err(failed)?.ok_or_else(|| {
                let at = place.position;
                Error::usage(format!("{}: the bytes before byte {at:#x} are not those read earlier", path.display()))
            })?;
        }
        let now = Instant::now();
        Ok(Self { path: path.to_owned(), open, last_bytes: now, next_glance: now })
    }

    pub(super) fn is_missing(&self) -> bool {
        self.open.is_none()
    }

    pub(super) fn place(&self, unread: u64) -> Option<Place> {
        let open = self.open.as_ref()?;
        let position = open.position.checked_sub(unread)?;
        let start = position.saturating_sub(KNOWN_BYTES as u64);
        let length = usize::try_from(position - start).ok()?;
        Some(Place { position, head: open.front(position), before: bytes_at(&open.file, start, length) })
    }

    pub(super) fn read(&mut self, buffer: &mut [u8], wait: Duration) -> Result<Arrival, Error> {
        let until = Instant::now() + wait;
        loop {
            if let Some(arrival) = self.read_once(buffer)? {
                return Ok(arrival);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(Arrival::Nothing);
            }
            let pause = if now.duration_since(self.last_bytes) < GROWING { SOON } else { LATER };
            thread::sleep(pause.min(until - now));
        }
    }

    fn read_once(&mut self, buffer: &mut [u8]) -> Result<Option<Arrival>, Error> {
        let path = &self.path;
        let failed = |error| Error::io(format_args!("cannot read {}", path.display()), error);
        if self.open.is_none() {
            self.open = OpenFile::open(&self.path).ok();
        }
        let Some(open) = &mut self.open else { return Ok(None) };
        // A rewrite to a greater length looks like growth otherwise.
        if open.has_another_head() {
            open.restart().map_err(failed)?;
            return Ok(Some(Arrival::Truncated));
        }
        match open.file.read(buffer) {
            Ok(0) => {}
            Ok(bytes) => {
                open.position += bytes as u64;
                if open.head.len() < KNOWN_BYTES {
                    open.head = open.front(open.position);
                }
                self.last_bytes = Instant::now();
                return Ok(Some(Arrival::Bytes(bytes)));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let now = Instant::now();
        if now < self.next_glance {
            return Ok(None);
        }
        self.next_glance = now + GLANCE;
        let Some((arrival, open)) = open.glance(path, now).map_err(failed)? else { return Ok(None) };
        if let Some(open) = open {
            self.open = open;
        }
        Ok(Some(arrival))
    }
}

impl OpenFile {
    fn open(path: &Path) -> std::io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(std::io::Error::new(ErrorKind::InvalidInput, "only regular files and pipes can be followed"));
        }
        let file = File::open(path)?;
        let inode = inode(&file.metadata()?);
        Ok(Self { file, inode, position: 0, head: Vec::new(), replaced: None })
    }

    /// At the end of the bytes: is it still the same file? Otherwise what happened, and what to read where that is not
    /// this file.
    fn glance(&mut self, path: &Path, now: Instant) -> std::io::Result<Option<(Arrival, Option<Option<Self>>)>> {
        if self.file.metadata()?.len() < self.position {
            self.restart()?;
            return Ok(Some((Arrival::Truncated, None)));
        }
        // A removed name may reappear; until then the open file remains the current one.
        if !fs::metadata(path).is_ok_and(|meta| inode(&meta) != self.inode) {
            self.replaced = None;
        } else if now.duration_since(*self.replaced.get_or_insert(now)) >= LINGER {
            return Ok(Some((Arrival::Replaced, Some(Self::open(path).ok()))));
        }
        Ok(None)
    }

    /// Moves to a place; none where the file has other bytes there.
    fn go_to(&mut self, place: &Place) -> std::io::Result<Option<()>> {
        let Some(start) = place.position.checked_sub(place.before.len() as u64) else { return Ok(None) };
        let before = bytes_at(&self.file, start, place.before.len().min(KNOWN_BYTES));
        if before != place.before || bytes_at(&self.file, 0, place.head.len().min(KNOWN_BYTES)) != place.head {
            return Ok(None);
        }
        self.file.seek(SeekFrom::Start(place.position))?;
        (self.position, self.head) = (place.position, place.head.clone());
        Ok(Some(()))
    }

    /// Begins again at the first byte.
    fn restart(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.position = 0;
        self.head.clear();
        Ok(())
    }

    /// True when the beginning of the file has changed.
    fn has_another_head(&self) -> bool {
        let front = self.front(self.position);
        !front.is_empty() && !front.starts_with(&self.head)
    }

    /// The first bytes of those before a position.
    fn front(&self, position: u64) -> Vec<u8> {
        bytes_at(&self.file, 0, usize::try_from(position).unwrap_or(KNOWN_BYTES).min(KNOWN_BYTES))
    }
}

/// Up to `length` bytes of a file.
fn bytes_at(file: &File, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let got = file.read_at(&mut bytes, offset).unwrap_or(0);
    bytes.truncate(got);
    bytes
}

fn inode(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    fn text(file: &mut GrowingFile) -> Result<String, Arrival> {
        let mut buffer = [0; 100];
        match file.read(&mut buffer, WAIT).unwrap() {
            Arrival::Bytes(bytes) => Ok(String::from_utf8_lossy(&buffer[..bytes]).into_owned()),
            other => Err(other),
        }
    }

    #[test]
    fn a_file_is_read_as_it_appears_grows_is_truncated_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut file = GrowingFile::open(&path, None).unwrap();
        assert_eq!(file.read(&mut [0; 9], Duration::ZERO).unwrap(), Arrival::Nothing);
        let mut writer = File::create(&path).unwrap();
        writer.write_all(b"one").unwrap();
        assert_eq!(text(&mut file), Ok("one".to_owned()));
        writer.write_all(b"two").unwrap();
        assert_eq!(text(&mut file), Ok("two".to_owned()));
        writer.set_len(0).unwrap();
        assert_eq!(text(&mut file), Err(Arrival::Truncated));
        writer.seek(SeekFrom::Start(0)).unwrap();
        writer.write_all(b"3").unwrap();
        assert_eq!(text(&mut file), Ok("3".to_owned()));
        fs::rename(&path, folder.path().join("a.log.1")).unwrap();
        fs::write(&path, b"four").unwrap();
        writer.write_all(b"late").unwrap();
        assert_eq!(text(&mut file), Ok("late".to_owned()), "the old file is read to its end");
        assert_eq!(text(&mut file), Err(Arrival::Replaced));
        assert_eq!(text(&mut file), Ok("four".to_owned()));
        fs::write(&path, b"rewritten to more").unwrap();
        assert_eq!(text(&mut file), Err(Arrival::Truncated));
        assert_eq!(text(&mut file), Ok("rewritten to more".to_owned()));
    }

    #[test]
    fn reading_continues_only_where_the_bytes_before_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "0123456789".repeat(20)).unwrap();
        let mut file = GrowingFile::open(&path, None).unwrap();
        assert_eq!(text(&mut file).unwrap().len(), 100);
        let place = file.place(3).unwrap();
        assert_eq!((place.position, place.head.len(), place.before.len()), (97, 64, 64));
        let mut again = GrowingFile::open(&path, Some(&place)).unwrap();
        assert!(text(&mut again).unwrap().starts_with("789012"));
        for changed in ["0123456789".repeat(9), format!("x{}", "0123456789".repeat(20)), String::new()] {
            fs::write(&path, changed).unwrap();
            let error = GrowingFile::open(&path, Some(&place)).err().unwrap();
            assert!(error.to_string().contains("the bytes before byte 0x61 are not those"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(GrowingFile::open(&path, Some(&place)).is_err());
        assert!(GrowingFile::open(folder.path(), None).is_err());
    }
}

//! A growing file: read as far as it goes, across truncation, renaming and rewriting.
//!
//! The file is checked every [`GLANCE`]: a few system calls that work on every file system, network file systems
//! included.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anytrace_core::Error;

use crate::feed::{Feed, Got};
use crate::options::{Caps, EndOfFile};
use crate::pool::{Pool, READ_BYTES};
use crate::source::Intake;

/// How often a file at its end is looked at.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// How long a file that was renamed may still be written to by a program that has it open.
const LINGER: Duration = Duration::from_millis(200);

/// Bytes at the beginning by which a file is recognized that was truncated and rewritten to a greater length.
const HEAD_BYTES: usize = 64;

/// A followed file.
pub(crate) struct Follow {
    path: PathBuf,
    open: Option<OpenFile>,
    feed: Feed,
    end_of_file: EndOfFile,
    /// When it is looked at again.
    pub(crate) due: Instant,
    pub(crate) has_ended: bool,
    caps: Caps,
}

struct OpenFile {
    file: File,
    inode: (u64, u64),
    position: u64,
    head: Vec<u8>,
    /// When another file was first seen under the name.
    replaced: Option<Instant>,
    /// True when the last read reached the end.
    is_at_end: bool,
}

impl Follow {
    /// Follows a path; with [`EndOfFile::Waits`] there need not be a file yet.
    pub(crate) fn new(path: &Path, end_of_file: EndOfFile, caps: &Caps, now: Instant) -> Result<Self, Error> {
        let failed = |error| Error::io(path.display(), error);
        let open = match open(path) {
            Ok(open) => Some(open),
            Err(error) if error.kind() == ErrorKind::NotFound && end_of_file == EndOfFile::Waits => None,
            Err(error) => return Err(failed(error)),
        };
        let feed = Feed::new(caps.packet_bytes);
        Ok(Self { path: path.to_owned(), open, feed, end_of_file, due: now, has_ended: false, caps: *caps })
    }

    /// Reads once; true when there was something.
    pub(crate) fn read(
        &mut self,
        scratch: &mut [u8],
        pool: &mut Pool,
        intake: &mut Intake<'_, '_>,
    ) -> Result<bool, Error> {
        let now = intake.shared.now;
        self.due = now + GLANCE;
        if self.open.is_none() {
            self.open = open(&self.path).ok();
        }
        let Some(file) = &mut self.open else { return Ok(false) };
        // Examined only at the end: a rewrite to a greater length looks like growth otherwise.
        if file.is_at_end && file.has_another_head() {
            self.feed.end(pool, intake)?;
            self.feed.leave(pool);
            self.restart()?;
            return Ok(true);
        }
        match self.feed.read(&mut file.file, scratch, READ_BYTES, pool, intake)? {
            Got::Bytes(bytes) => {
                file.position += bytes as u64;
                file.is_at_end = false;
                file.know_head();
                self.due = now;
                Ok(true)
            }
            Got::Nothing | Got::NoRoom => Ok(false),
            Got::End => self.at_end(pool, intake),
        }
    }

    /// What to do at the end of the bytes.
    fn at_end(&mut self, pool: &mut Pool, intake: &mut Intake<'_, '_>) -> Result<bool, Error> {
        let now = intake.shared.now;
        let Some(file) = &mut self.open else { return Ok(false) };
        file.is_at_end = true;
        if self.end_of_file == EndOfFile::Ends {
            self.has_ended = true;
            self.feed.end(pool, intake)?;
            return Ok(false);
        }
        if file.file.metadata().is_ok_and(|meta| meta.len() < file.position) {
            self.feed.end(pool, intake)?;
            self.feed.leave(pool);
            self.restart()?;
            return Ok(true);
        }
        // A removed name may reappear; until then the open file remains the current one.
        let is_replaced = fs::metadata(&self.path).is_ok_and(|meta| inode(&meta) != file.inode);
        // A renamed file is read for a while longer: its writer may not know of the new name yet.
        let since = file.replaced.get_or_insert(now);
        if !is_replaced {
            file.replaced = None;
        } else if now.duration_since(*since) >= LINGER {
            self.feed.end(pool, intake)?;
            self.feed.leave(pool);
            self.feed = Feed::new(self.caps.packet_bytes);
            self.open = open(&self.path).ok();
            return Ok(true);
        }
        if self.feed.is_stale(now, self.caps.idle) && self.feed.holds_a_later_packet(now) {
            self.feed.end(pool, intake)?;
        }
        Ok(false)
    }

    /// The collection ends, not the file: half a packet is not damage.
    pub(crate) fn leave(&mut self, pool: &mut Pool, intake: &mut Intake<'_, '_>) {
        intake.source.unfinished_bytes += self.feed.unfinished();
        self.feed.leave(pool);
    }

    /// Begins again at byte 0 of the same file.
    fn restart(&mut self) -> Result<(), Error> {
        self.feed = Feed::new(self.caps.packet_bytes);
        if let Some(file) = &mut self.open {
            file.file.seek(SeekFrom::Start(0)).map_err(|error| Error::io(self.path.display(), error))?;
            file.position = 0;
            file.head.clear();
            file.is_at_end = false;
        }
        Ok(())
    }
}

impl OpenFile {
    /// Remembers the first bytes.
    fn know_head(&mut self) {
        if self.head.len() < HEAD_BYTES {
            self.head = self.front();
        }
    }

    /// True when the beginning of the file has changed.
    fn has_another_head(&self) -> bool {
        let front = self.front();
        !front.is_empty() && !front.starts_with(&self.head)
    }

    /// The first bytes that were read already.
    fn front(&self) -> Vec<u8> {
        let known = usize::try_from(self.position).unwrap_or(HEAD_BYTES).min(HEAD_BYTES);
        let mut front = vec![0; known];
        let got = self.file.read_at(&mut front, 0).unwrap_or(0);
        front.truncate(got);
        front
    }
}

fn open(path: &Path) -> std::io::Result<OpenFile> {
    // A pipe would hold up everything until somebody opens its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "only regular files can be followed"));
    }
    let file = File::open(path)?;
    let inode = inode(&file.metadata()?);
    Ok(OpenFile { file, inode, position: 0, head: Vec::new(), replaced: None, is_at_end: false })
}

fn inode(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

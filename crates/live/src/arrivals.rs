//! The bytes of one trace as they arrive: from standard input, a pipe, a growing file, or one connection to a socket.

mod file;
mod stream;

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use anytrace_core::Error;

use file::GrowingFile;
pub use file::Place;
use stream::Stream;

use crate::address::Endpoint;

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// So many bytes, at the beginning of the buffer.
    Bytes(usize),
    /// Nothing within the time.
    Nothing,
    /// Nothing more will arrive.
    End,
    /// A program connected; its address where it has one.
    Connected(String),
    /// Another file has the name now. The old one was read to its end, and what follows is the new one.
    Replaced,
    /// The file is shorter than what was read of it, or begins with other bytes: it was truncated. What follows is read
    /// from its first byte; bytes that were written just before may be missing.
    Truncated,
}

/// A source of bytes. Reading waits no longer than it is asked to.
pub struct Arrivals {
    source: Source,
}

enum Source {
    File(GrowingFile),
    Stream(Stream),
}

impl Arrivals {
    /// True for a path that is, or will be, a file that may grow, as opposed to a stream.
    pub fn is_file_name(source: &Path) -> bool {
        let word = source.to_str().unwrap_or_default();
        word != "-" && !word.starts_with("unix:") && !word.starts_with("tcp:") && !is_pipe(source)
    }

    /// Opens a source: `-`, `unix:PATH` and `tcp://HOST:PORT` (listens for one connection, of this machine only), or a
    /// path. A file is read from `place` on, and is waited for where it does not exist and there is no place.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] for addresses that other machines can reach, and for a place in a file that no
    /// longer has the bytes before it; I/O errors.
    pub fn open(source: &Path, place: Option<&Place>) -> Result<Self, Error> {
        if Self::is_file_name(source) {
            return Ok(Self { source: Source::File(GrowingFile::open(source, place)?) });
        }
        let stream = match source.to_str() {
            Some("-") => Stream::standard_input()?,
            _ if is_pipe(source) => Stream::pipe(source)?,
            word => Stream::listen(&word.unwrap_or_default().parse::<Endpoint>()?)?,
        };
        Ok(Self { source: Source::Stream(stream) })
    }

    /// True for a file that may grow.
    pub fn is_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// True for a file that has not appeared yet.
    pub fn is_missing(&self) -> bool {
        matches!(&self.source, Source::File(file) if file.is_missing())
    }

    /// The address on which it listens, with the port the system chose where 0 was asked for.
    pub fn address(&self) -> Option<String> {
        match &self.source {
            Source::File(_) => None,
            Source::Stream(stream) => stream.address(),
        }
    }

    /// Waits for bytes, at most for `wait`.
    ///
    /// # Errors
    /// I/O errors.
    pub fn read(&mut self, buffer: &mut [u8], wait: Duration) -> Result<Arrival, Error> {
        match &mut self.source {
            Source::File(file) => file.read(buffer, wait),
            Source::Stream(stream) => stream.read(buffer, wait),
        }
    }

    /// For a file: the place `unread` bytes before the last byte read, to continue there later.
    pub fn place(&self, unread: u64) -> Option<Place> {
        match &self.source {
            Source::File(file) => file.place(unread),
            Source::Stream(_) => None,
        }
    }
}

/// True for a pipe with a name, or a serial line.
fn is_pipe(path: &Path) -> bool {
    let is_such = |kind: fs::FileType| kind.is_fifo() || kind.is_char_device();
    fs::metadata(path).is_ok_and(|meta| is_such(meta.file_type()))
}

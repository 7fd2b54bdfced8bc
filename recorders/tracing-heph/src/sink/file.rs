//! Files, one or a row of them.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{Head, Outbox, Sink};
use crate::stats::Counts;

/// Numbers that are tried for the name of the next file.
const NAMES_MAX: u32 = 100_000;

/// How a file is made.
#[derive(Debug, Clone)]
pub(crate) struct FileOptions {
    pub(crate) path: PathBuf,
    pub(crate) overwrites: bool,
    /// Bytes after which the next file is begun.
    pub(crate) rotate_bytes: Option<u64>,
    /// Files that are kept, the newest.
    pub(crate) keep_files: Option<usize>,
}

/// Writes each batch of complete packets by one call, so that a program that is killed leaves a readable file.
pub(crate) struct File {
    options: FileOptions,
    head: Head,
    file: fs::File,
    /// Bytes in the file, and how many of them are its head.
    written: u64,
    head_bytes: u64,
    /// Where in the outbox the packets end that belong into this file.
    until: usize,
    number: u32,
    /// Files made so far and still there, oldest first.
    made: VecDeque<PathBuf>,
}

impl File {
    pub(crate) fn create(options: FileOptions, head: Head, counts: &Counts) -> io::Result<Self> {
        let path = options.path.clone();
        // A pipe or a device is neither made nor emptied, and it does not rotate.
        let is_special = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let (file, options) = if is_special {
            let file = OpenOptions::new().write(true).open(&path)?;
            (file, FileOptions { rotate_bytes: None, ..options })
        } else {
            (open(&path, options.overwrites)?, options)
        };
        let made = VecDeque::from([path]);
        let mut this = Self { options, head, file, written: 0, head_bytes: 0, until: 0, number: 0, made };
        this.begin(counts)?;
        Ok(this)
    }

    /// The head is in each file, so that each can be read alone.
    fn begin(&mut self, counts: &Counts) -> io::Result<()> {
        let mut head = Outbox { bytes: self.head.next_file(), ..Outbox::default() };
        let end = head.bytes.len();
        head.write_to(&mut self.file, end, counts)?;
        self.head.begun(self.made.back().map_or(&self.options.path, |path| path));
        self.head_bytes = end as u64;
        self.written = end as u64;
        Ok(())
    }

    fn rotate(&mut self, counts: &Counts) -> io::Result<()> {
        let (path, file) = self.next_file()?;
        self.file = file;
        self.made.push_back(path);
        Counts::add(&counts.renewals, 1);
        self.begin(counts)?;
        let keep = self.options.keep_files.unwrap_or(usize::MAX).max(1);
        while self.made.len() > keep {
            if let Some(path) = self.made.pop_front() {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// `trace.heph` is followed by `trace.1.heph`; a name used by an earlier run is skipped.
    fn next_file(&mut self) -> io::Result<(PathBuf, fs::File)> {
        for number in self.number + 1..=self.number.saturating_add(NAMES_MAX) {
            let path = numbered(&self.options.path, number);
            match open(&path, self.options.overwrites) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let file = opened?;
                    self.number = number;
                    return Ok((path, file));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Sets [`Self::until`] to the end of the packets, after those sent, that fit into this file; false when the next
    /// one belongs into another file. A packet that fits into none has one of its own.
    fn measure(&mut self, out: &Outbox) -> bool {
        let Some(limit) = self.options.rotate_bytes else {
            self.until = out.bytes.len();
            return true;
        };
        self.until = out.sent;
        while let Some(end) = out.packet_end(self.until) {
            let more = (end - out.sent) as u64;
            let is_alone = self.until == out.sent && self.written <= self.head_bytes;
            if self.written + more > limit && !is_alone {
                break;
            }
            self.until = end;
        }
        self.until > out.sent || out.sent == out.bytes.len()
    }
}

impl Sink for File {
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool> {
        while out.sent < out.bytes.len() {
            // A packet of which a part is written must be ended in the same file.
            if self.until <= out.sent && !self.measure(out) {
                self.rotate(counts)?;
                continue;
            }
            let before = out.sent;
            let result = out.write_to(&mut self.file, self.until, counts);
            self.written += (out.sent - before) as u64;
            if !result? {
                return Ok(false);
            }
        }
        self.until = 0;
        Ok(true)
    }
}

fn open(path: &Path, overwrites: bool) -> io::Result<fs::File> {
    if overwrites {
        return fs::File::create(path);
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// `dir/trace.heph` and 3: `dir/trace.3.heph`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_precedes_the_extension() {
        assert_eq!(numbered(Path::new("a.b/trace.heph"), 3), Path::new("a.b/trace.3.heph"));
        assert_eq!(numbered(Path::new("trace"), 12), Path::new("trace.12"));
    }
}

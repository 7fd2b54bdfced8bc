//! The files of a collection, read as they grow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anytrace_core::Error;
use anytrace_heph::{Layout, Need, Record, parse};

use super::spans::{Converter, Source};

/// Bytes read of a file before others have their turn.
const READ_BYTES: usize = 256 << 10;

/// What a file has while it is written.
const PART: &str = "part";

/// The files that are not read to their end.
pub(super) struct Files {
    folder: PathBuf,
    /// Files that were there before, by their final names.
    earlier: BTreeSet<PathBuf>,
    /// By final name.
    open: BTreeMap<PathBuf, Growing>,
    /// Names of files that are read to their end.
    done: BTreeSet<PathBuf>,
}

/// A file that may grow.
struct Growing {
    file: File,
    pending: Vec<u8>,
    source: Source,
    /// It contains something other than packets; the rest is not read.
    is_damaged: bool,
}

impl Files {
    pub(super) fn new(folder: &Path, earlier: Vec<PathBuf>) -> Self {
        let earlier = earlier.into_iter().map(final_name).collect();
        Self { folder: folder.to_owned(), earlier, open: BTreeMap::new(), done: BTreeSet::new() }
    }

    /// Reads what is new, until the converter has enough for a request; true if there may be more at once.
    pub(super) fn read(&mut self, to: &mut Converter) -> Result<bool, Error> {
        let complete = self.discover()?;
        let mut has_more = false;
        let mut ended = Vec::new();
        for (name, growing) in &mut self.open {
            if to.has_enough() {
                return Ok(true);
            }
            let read = growing.read(to)?;
            has_more |= read == READ_BYTES;
            // A complete file that gave nothing is read to its end: it was complete before it was read.
            if read == 0 && complete.contains(name) {
                ended.push(name.clone());
            }
        }
        for name in ended {
            if let Some(growing) = self.open.remove(&name) {
                to.end(&growing.source);
            }
            self.done.insert(name);
        }
        Ok(has_more)
    }

    /// Opens new files; returns the names of those that are complete, or gone.
    fn discover(&mut self) -> Result<BTreeSet<PathBuf>, Error> {
        let failed = |error| Error::io(self.folder.display(), error);
        let (mut complete, mut present) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = final_name(path.clone());
            if name.extension().is_none_or(|extension| extension != "heph") || self.earlier.contains(&name) {
                continue;
            }
            present.insert(name.clone());
            if path == name {
                complete.insert(name.clone());
            }
            if self.open.contains_key(&name) || self.done.contains(&name) {
                continue;
            }
            // It may have got its final name, or be removed, since it was listed: the next look finds that.
            if let Ok(file) = File::open(&path) {
                let growing = Growing { file, pending: Vec::new(), source: Source::default(), is_damaged: false };
                self.open.insert(name, growing);
            }
        }
        // Numbers are not used again, so what is gone need not be remembered.
        self.done.retain(|name| present.contains(name));
        complete.extend(self.open.keys().filter(|name| !present.contains(*name)).cloned());
        Ok(complete)
    }
}

impl Growing {
    /// Reads once and converts the packets that are complete; returns how many bytes were read.
    fn read(&mut self, to: &mut Converter) -> Result<usize, Error> {
        let before = self.pending.len();
        self.pending.resize(before + READ_BYTES, 0);
        let read = self.file.read(self.pending.get_mut(before..).unwrap_or_default());
        self.pending.truncate(before + read.as_ref().map_or(0, |read| *read));
        let read = read?;
        let mut at = 0;
        while !self.is_damaged {
            match parse(self.pending.get(at..).unwrap_or_default(), &Layout { packet_bytes_max: u64::from(u32::MAX) }) {
                Ok((Record::Metadata(metadata), bytes)) => {
                    to.metadata(&mut self.source, &metadata);
                    at += bytes;
                }
                Ok((Record::Event(event), bytes)) => {
                    to.event(&self.source, &event);
                    at += bytes;
                }
                Err(Need::More(_)) => break,
                // A collector writes complete packets alone. One that is none was written by somebody else.
                Err(Need::Bad(_)) => self.is_damaged = true,
            }
        }
        self.pending.drain(..at);
        if self.is_damaged {
            self.pending = Vec::new();
        }
        Ok(read)
    }
}

/// The name that a file has when it is complete.
fn final_name(path: PathBuf) -> PathBuf {
    if path.extension().is_some_and(|extension| extension == PART) { path.with_extension("") } else { path }
}

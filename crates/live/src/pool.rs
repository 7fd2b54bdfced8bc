//! Room for half packets that are long: memory that all streams share, and files for those that find none.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes read at once.
pub(crate) const READ_BYTES: usize = 1 << 17;

/// Memory and disk that half packets share.
#[derive(Debug)]
pub(crate) struct Pool {
    left: usize,
    /// Bytes that may be gathered in files.
    disk_left: usize,
    folder: PathBuf,
    /// True when a stream found no room since the last query.
    is_short: bool,
}

impl Pool {
    /// A pool of so much memory, and so much of the disk that `folder` is on.
    pub(crate) fn new(bytes: usize, disk_bytes: usize, folder: &Path) -> Self {
        Self { left: bytes, disk_left: disk_bytes, folder: folder.to_owned(), is_short: false }
    }

    /// True when a stream found no room since the last call.
    pub(crate) fn was_short(&mut self) -> bool {
        std::mem::take(&mut self.is_short)
    }

    /// Takes memory.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let has_room = bytes <= self.left;
        if has_room {
            self.left -= bytes;
        }
        has_room
    }

    /// Returns memory.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
    }

    /// A file for a half packet of so many bytes. Others hold the memory, perhaps for a slow sender: nobody is to wait
    /// for that.
    pub(crate) fn spill(&mut self, bytes: usize) -> Option<Spilled> {
        let file = (bytes <= self.disk_left).then(|| tempfile::tempfile_in(&self.folder).ok()).flatten();
        self.is_short |= file.is_none();
        let file = file?;
        self.disk_left -= bytes;
        Some(Spilled { file, bytes: 0, reserved: bytes })
    }

    /// Returns the room of a file on the disk.
    pub(crate) fn drop_spilled(&mut self, spilled: Option<Spilled>) {
        self.disk_left += spilled.map_or(0, |spilled| spilled.reserved);
    }
}

/// The front of a half packet, in a file without a name.
#[derive(Debug)]
pub(crate) struct Spilled {
    file: File,
    /// Bytes in the file.
    pub(crate) bytes: usize,
    reserved: usize,
}

impl Spilled {
    /// Moves bytes to the end of the file; all of them or none.
    pub(crate) fn append(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all_at(bytes, self.bytes as u64)?;
        self.bytes += bytes.len();
        bytes.clear();
        bytes.shrink_to(READ_BYTES);
        Ok(())
    }

    /// All of it, with what follows.
    pub(crate) fn with(&self, rest: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::with_capacity(self.bytes + rest.len());
        all.resize(self.bytes, 0);
        self.file.read_exact_at(&mut all, 0)?;
        all.extend_from_slice(rest);
        Ok(all)
    }
}

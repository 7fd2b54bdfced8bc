//! `data.bin`: data too long for C source, each content once.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Vertex arrays are read from here in place: every type of OpenGL may begin at such an offset.
const ALIGNMENT: u64 = 16;

/// Most contents remembered, to store them only once; 24 bytes each.
const SEEN_MAX: usize = 1 << 18;

/// The file and its contents.
pub(super) struct Data {
    out: BufWriter<File>,
    length: u64,
    seen: HashMap<[u8; 16], u64>,
}

impl Data {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { out: BufWriter::with_capacity(1 << 16, File::create(path)?), length: 0, seen: HashMap::new() })
    }

    /// Returns the offset of the bytes, adding them if they are new.
    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let digest = Sha256::digest(bytes);
        // Half of the digest suffices against chance and malice.
        let key: [u8; 16] = digest.first_chunk().copied().unwrap_or_default();
        if let Some(offset) = self.seen.get(&key) {
            return Ok(*offset);
        }
        let padding = self.length.next_multiple_of(ALIGNMENT) - self.length;
        io::copy(&mut io::Read::take(io::repeat(0), padding), &mut self.out)?;
        let offset = self.length + padding;
        self.out.write_all(bytes)?;
        self.length = offset + bytes.len() as u64;
        if self.seen.len() < SEEN_MAX {
            self.seen.insert(key, offset);
        }
        Ok(offset)
    }

    /// Ends the file and returns its length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn equal_content_is_stored_once_and_aligned_for_arrays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.bin");
        let mut data = Data::create(&path).unwrap();
        let offsets = [data.add(b"abc").unwrap(), data.add(b"de").unwrap(), data.add(b"abc").unwrap()];
        assert_eq!((offsets, data.finish().unwrap()), ([0, 16, 0], 18));
        assert_eq!(std::fs::read(path).unwrap(), b"abc\0\0\0\0\0\0\0\0\0\0\0\0\0de");
    }
}

//! Checks whether an index belongs to a file, by digests of the file's pieces.
//!
//! The index must save time, so the file cannot be read completely each time. Its size, its first and last piece and
//! some in between are compared ([`Depth::Samples`]). That detects a different trace, and one that was recorded again.
//! A trace that was modified in place is detected by its time: then every piece is compared ([`Depth::Full`]).

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use twox_hash::XxHash3_64;

use crate::RangeRead;

/// Smallest piece, and most pieces, so that the index stays small however long the file is.
const PIECE_BYTES_MIN: u64 = 1 << 16;
/// Most pieces of a file.
pub const PIECES_MAX: u64 = 1 << 16;

/// How many pieces are compared, spread over the file.
const SAMPLES: usize = 16;

/// How much of a file is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Size, first and last piece, and some in between.
    Samples,
    /// All of it.
    Full,
}

/// Why an index does not belong to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The file has another size.
    Size {
        /// Bytes when the index was made.
        expected: u64,
        /// Bytes now.
        found: u64,
    },
    /// The file's content differs.
    Content {
        /// Offset of the piece.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { expected, found } => {
                write!(f, "the trace has {found} bytes, but the index expects {expected}")
            }
            Self::Content { offset, bytes } => {
                write!(f, "the trace has different contents in the {bytes} bytes at {offset:#x}")
            }
        }
    }
}

/// Digests of a file's pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// Length of the file.
    pub file_bytes: u64,
    /// Length of each piece but the last.
    pub piece_bytes: u64,
    /// XXH3 of each piece.
    pub digests: Vec<u64>,
}

/// The size of pieces for a file of this size.
pub fn piece_bytes(file_bytes: u64) -> u64 {
    file_bytes.div_ceil(PIECES_MAX).next_power_of_two().max(PIECE_BYTES_MIN)
}

impl Pieces {
    /// Compares a file with them.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, file: &[u8], depth: Depth) -> Result<(), Misfit> {
        let read = |start: u64, _: &mut Vec<u8>, length: usize| {
            let start = usize::try_from(start).unwrap_or(file.len()).min(file.len());
            let piece = file.get(start..start.saturating_add(length).min(file.len())).unwrap_or_default();
            Ok::<_, std::convert::Infallible>(XxHash3_64::oneshot(piece))
        };
        match self.check_by(file.len() as u64, depth, read) {
            Ok(fit) => fit,
            Err(never) => match never {},
        }
    }

    /// Compares a file that is read by ranges.
    ///
    /// # Errors
    /// When it cannot be read; the value is the first difference.
    pub fn check_ranges(&self, file: &dyn RangeRead, depth: Depth) -> io::Result<Result<(), Misfit>> {
        self.check_by(file.length(), depth, |start, bytes, length| {
            let left = usize::try_from(file.length().saturating_sub(start)).unwrap_or(usize::MAX);
            bytes.resize(length.min(left), 0);
            let mut have = 0;
            while let Some(rest) = bytes.get_mut(have..).filter(|rest| !rest.is_empty()) {
                match file.read_at(start + have as u64, rest)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => have += more,
                }
            }
            Ok(XxHash3_64::oneshot(bytes))
        })
    }

    /// Compares digests with those that `digest` has of the bytes from an offset on; it may use the buffer.
    fn check_by<E>(
        &self,
        found: u64,
        depth: Depth,
        mut digest: impl FnMut(u64, &mut Vec<u8>, usize) -> Result<u64, E>,
    ) -> Result<Result<(), Misfit>, E> {
        if found != self.file_bytes {
            return Ok(Err(Misfit::Size { expected: self.file_bytes, found }));
        }
        let step = match depth {
            Depth::Full => 1,
            Depth::Samples => self.digests.len().div_ceil(SAMPLES).max(1),
        };
        let last = self.digests.len().saturating_sub(1);
        let mut buffer = Vec::new();
        for at in (0..self.digests.len()).step_by(step).chain([last]) {
            let Some(expected) = self.digests.get(at) else { continue };
            let start = (at as u64).saturating_mul(self.piece_bytes).min(found);
            let bytes = self.piece_bytes.min(found - start);
            let length = usize::try_from(bytes).unwrap_or(usize::MAX);
            if digest(start, &mut buffer, length)? != *expected {
                return Ok(Err(Misfit::Content { offset: start, bytes }));
            }
        }
        Ok(Ok(()))
    }
}

/// Passes bytes on and computes their digests.
pub struct Digester {
    inner: Box<dyn Read + Send>,
    state: Arc<Mutex<DigestState>>,
}

struct DigestState {
    piece_bytes: u64,
    left: u64,
    hash: XxHash3_64,
    pieces: Pieces,
}

/// The digests of a [`Digester`] so far.
#[derive(Clone)]
pub struct Digest(Arc<Mutex<DigestState>>);

impl Digester {
    /// Wraps a reader of a file of this length; the digests appear in the second value as it is read.
    pub fn new(inner: Box<dyn Read + Send>, file_bytes: u64) -> (Self, Digest) {
        let piece_bytes = piece_bytes(file_bytes);
        let pieces = Pieces { file_bytes: 0, piece_bytes, digests: Vec::new() };
        let state = DigestState { piece_bytes, left: piece_bytes, hash: XxHash3_64::new(), pieces };
        let state = Arc::new(Mutex::new(state));
        (Self { inner, state: Arc::clone(&state) }, Digest(state))
    }
}

impl Digest {
    /// The digests of a file that was read to its end.
    pub fn pieces(&self) -> Pieces {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left < state.piece_bytes {
            state.finish_piece();
        }
        state.pieces.clone()
    }
}

impl DigestState {
    fn add(&mut self, mut bytes: &[u8]) {
        self.pieces.file_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(length);
            bytes = later;
            if length as u64 == self.piece_bytes {
                // A complete piece at once avoids the copy that an incremental hash makes.
                self.note(XxHash3_64::oneshot(now));
                continue;
            }
            std::hash::Hasher::write(&mut self.hash, now);
            self.left -= length as u64;
            if self.left == 0 {
                self.finish_piece();
            }
        }
    }

    fn finish_piece(&mut self) {
        let hash = std::mem::replace(&mut self.hash, XxHash3_64::new());
        self.note(std::hash::Hasher::finish(&hash));
        self.left = self.piece_bytes;
    }

    fn note(&mut self, digest: u64) {
        // A file that grows while it is read must not take unbounded memory.
        if (self.pieces.digests.len() as u64) <= PIECES_MAX {
            self.pieces.digests.push(digest);
        }
    }
}

impl Read for Digester {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.add(buffer.get(..n).unwrap_or_default());
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(bytes: &[u8], at_once: usize) -> Pieces {
        let (mut digester, digest) = Digester::new(Box::new(io::Cursor::new(bytes.to_vec())), bytes.len() as u64);
        let mut buffer = vec![0; at_once];
        while digester.read(&mut buffer).unwrap() > 0 {}
        digest.pieces()
    }

    #[test]
    fn digests_do_not_depend_on_how_a_file_is_read() {
        let bytes: Vec<u8> = (0..300_001_u32).map(|n| (n.wrapping_mul(n) % 251) as u8).collect();
        let all = pieces(&bytes, bytes.len());
        assert_eq!((all.digests.len(), all.file_bytes), (5, 300_001));
        for at_once in [999, 65_536, 65_537, 131_072] {
            assert_eq!(pieces(&bytes, at_once), all);
        }
        assert_eq!(all.check(&bytes, Depth::Full), Ok(()));
        assert!(pieces(b"", 10).check(b"", Depth::Full).is_ok());
    }

    #[test]
    fn every_changed_byte_is_found_when_all_is_looked_at() {
        let mut bytes: Vec<u8> = (0..2_500_000_u32).map(|n| (n % 251) as u8).collect();
        let all = pieces(&bytes, 1 << 18);
        for at in (0..bytes.len()).step_by(90_001) {
            bytes[at] ^= 1;
            assert!(matches!(all.check(&bytes, Depth::Full), Err(Misfit::Content { .. })), "{at}");
            bytes[at] ^= 1;
        }
        for at in [0, 65_535, 2_499_999] {
            bytes[at] ^= 1;
            assert!(all.check(&bytes, Depth::Samples).is_err(), "{at}");
            bytes[at] ^= 1;
        }
        assert_eq!(all.check(&bytes, Depth::Samples), Ok(()));
        bytes.pop();
        assert_eq!(all.check(&bytes, Depth::Samples), Err(Misfit::Size { expected: 2_500_000, found: 2_499_999 }));
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        for bytes in [0, 1, 65_536, 1 << 32, (1 << 32) + 1, u64::MAX >> 1] {
            assert!(bytes.div_ceil(piece_bytes(bytes)) <= PIECES_MAX);
        }
    }
}

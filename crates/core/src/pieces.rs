//! Bytes and parts of files, one after the other, as one input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::RangeRead;

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    File(PathBuf, Range<u64>),
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, range) => range.end.saturating_sub(range.start),
        }
    }
}

/// Bytes and parts of files, one after the other: for [`crate::Input::from_ranges`]. Files are opened when they are read.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Each with the offset at which it begins.
    pieces: Vec<(u64, Piece)>,
    length: u64,
    /// The file that was read last.
    open: Mutex<Option<(usize, File)>>,
}

impl Pieces {
    /// Appends bytes.
    pub fn push_bytes(&mut self, bytes: Vec<u8>) {
        self.push(Piece::Bytes(bytes));
    }

    /// Appends a part of a file: the bytes from an offset to another one.
    pub fn push_file(&mut self, path: PathBuf, range: Range<u64>) {
        self.push(Piece::File(path, range));
    }

    fn push(&mut self, piece: Piece) {
        let length = piece.length();
        if length > 0 {
            self.pieces.push((self.length, piece));
            self.length += length;
        }
    }
}

impl RangeRead for Pieces {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.pieces.partition_point(|(start, _)| *start <= offset).saturating_sub(1);
        let Some((start, piece)) = self.pieces.get(at) else { return Ok(0) };
        let inside = offset - start;
        let left = usize::try_from(piece.length().saturating_sub(inside)).unwrap_or(usize::MAX);
        let count = left.min(buffer.len());
        let buffer = buffer.get_mut(..count).unwrap_or_default();
        match piece {
            Piece::Bytes(bytes) => {
                let from = usize::try_from(inside).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
                from.take(count as u64).read(buffer)
            }
            Piece::File(path, range) => {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                if open.as_ref().is_none_or(|(of, _)| *of != at) {
                    *open = Some((at, File::open(path)?));
                }
                let Some((_, file)) = open.as_mut() else { return Ok(0) };
                file.seek(SeekFrom::Start(range.start.saturating_add(inside)))?;
                file.read(buffer)
            }
        }
    }
}

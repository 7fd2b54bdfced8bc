//! A raw stream that comes in pieces from another thread.

use std::sync::mpsc::{Receiver, SyncSender};

use anytrace_core::Diagnostic;

use crate::wire::snappy::Chunk;

/// A piece of the raw stream and what its container found after it.
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    pub(crate) damage: Vec<Diagnostic>,
    /// Bytes are missing after it.
    pub(crate) is_gap: bool,
    /// Bytes of the trace up to here, as it is in the file.
    pub(crate) file_bytes: u64,
}

/// What comes back.
pub(crate) enum Back {
    /// The buffer of a piece.
    Spare(Vec<u8>),
    Found(Diagnostic),
}

/// The side of the thread: where its stream comes from.
pub(crate) struct Pieces {
    pub(crate) pieces: Receiver<Piece>,
    pub(crate) back: SyncSender<Back>,
}

impl Pieces {
    /// Puts the next piece into a buffer.
    pub(crate) fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        at: usize,
        damage: &mut Vec<Diagnostic>,
        file_bytes: &mut u64,
    ) -> Chunk {
        let Ok(mut piece) = self.pieces.recv() else { return Chunk::End };
        damage.append(&mut piece.damage);
        *file_bytes = (*file_bytes).max(piece.file_bytes);
        let length = piece.bytes.len();
        if length > 0 && at == 0 {
            std::mem::swap(buffer, &mut piece.bytes);
        } else if length > 0 {
            buffer.truncate(at);
            buffer.extend_from_slice(&piece.bytes);
        }
        // Nobody waits for it where the copying has ended.
        let _ = self.back.send(Back::Spare(piece.bytes));
        if piece.is_gap { Chunk::Broken(length) } else { Chunk::Data(length) }
    }
}

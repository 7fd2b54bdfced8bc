//! A part of an FDR trace: its records, put in order as far as they are in the part.

use anytrace_core::{Cursor, Error, Sink};

use crate::lanes::blocks::Blocks;
use crate::lanes::state::BufferState;
use crate::wire::fdr::FdrWalk;
use crate::wire::marks::Known;

use super::decode::Decoder;
use super::index::{Index, Indexer};

/// Receives moments, and where they may not follow one another.
pub(crate) trait PieceMoments: Blocks {
    /// The next moment begins a piece: others of its thread may be before it in the trace that are not in the part.
    fn piece(&mut self);
}

/// A part of an FDR trace after its first pass.
pub(crate) struct FdrPart {
    walk: FdrWalk,
    index: Index,
}

impl FdrPart {
    /// Finds the pieces of the part that a walk reads. Damage is reported to the sink.
    pub(crate) fn new(
        mut walk: FdrWalk,
        known: &Known,
        buffer: &BufferState,
        sink: &mut dyn Sink,
    ) -> Result<Self, Error> {
        let mut indexer = Indexer::new(sink, walk.header.version);
        indexer.resume(known.clock, buffer);
        while walk.step(&mut indexer)? {}
        let index = indexer.finish();
        Ok(Self { walk, index })
    }

    /// Emits the moments of each thread in order of time; returns the number of the last record and the cursor.
    pub(crate) fn emit<M: PieceMoments>(self, moments: &mut M) -> Result<(u64, Cursor), Error> {
        let Self { walk, index } = self;
        let all = walk.cursor.as_slice().unwrap_or_default();
        for owner in &index.owners {
            let mut decoder = Decoder::new(walk.layout, walk.header.version, owner);
            for (buffer, piece) in index.pieces(owner) {
                decoder.start(all, buffer, piece);
                moments.piece();
                decoder.emit_blocks(moments)?;
            }
        }
        Ok((walk.seq, walk.cursor))
    }
}

//! Compresses pieces of the raw stream independently, in this thread or in others. The bytes are the same either way.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anytrace_core::Error;

use crate::wire::container::Container;

/// Pieces a worker may have, one in work and one waiting.
const PIECES_EACH: usize = 2;

/// Room beyond 9/8 of the piece. From 85 kB on the compressor writes in place, so this must be at least that.
const GZIP_SPARE_BYTES: usize = 1 << 17;

/// Compresses one piece.
enum Compressor {
    /// A chunk: its length, and a block.
    Snappy(Box<snap::raw::Encoder>),
    /// Deflate blocks that refer to nothing before them. None of them is the last block.
    Gzip(Box<flate2::Compress>),
    /// A frame.
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Compressor {
    fn new(container: Container, level: i32) -> io::Result<Self> {
        Ok(match container {
            Container::Gzip => {
                let level = flate2::Compression::new(u32::try_from(level).unwrap_or(0));
                Self::Gzip(Box::new(flate2::Compress::new(level, false)))
            }
            Container::Zstd | Container::ZstdSeekable => Self::Zstd(Box::new(zstd::bulk::Compressor::new(level)?)),
            _ => Self::Snappy(Box::new(snap::raw::Encoder::new())),
        })
    }

    /// Compresses a piece into `out`, whose previous content is discarded.
    fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        match self {
            Self::Snappy(encoder) => {
                out.resize(4 + snap::raw::max_compress_len(raw.len()), 0);
                let (head, block) = out.split_at_mut(4);
                let length = encoder.compress(raw, block)?;
                head.copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
                out.truncate(4 + length);
            }
            Self::Gzip(compress) => {
                compress.reset();
                loop {
                    // Reserve room for all of it, however badly it compresses. The output bytes depend on where the
                    // compressor stops for lack of room, and reused memory has an arbitrary amount of room.
                    out.reserve(raw.len() + raw.len() / 8 + GZIP_SPARE_BYTES);
                    let done = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
                    let rest = raw.get(done..).unwrap_or_default();
                    compress.compress_vec(rest, out, flate2::FlushCompress::Sync).map_err(io::Error::other)?;
                    // If room is left, all output has been written.
                    if out.len() < out.capacity() && compress.total_in() >= raw.len() as u64 {
                        break;
                    }
                }
            }
            Self::Zstd(compressor) => {
                out.resize(zstd::zstd_safe::compress_bound(raw.len()), 0);
                let length = compressor.compress_to_buffer(raw, out.as_mut_slice())?;
                out.truncate(length);
            }
        }
        Ok(())
    }
}

/// A piece of the raw stream and its compressed bytes.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) raw: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

struct Worker {
    to_do: SyncSender<Piece>,
    done: Receiver<io::Result<Piece>>,
}

/// Compresses pieces and returns them in order.
pub(crate) struct CompressorPool {
    here: Compressor,
    workers: Vec<Worker>,
    spare: Vec<Piece>,
    taken: usize,
    given: usize,
}

impl CompressorPool {
    /// Starts this many threads besides the calling one. With none, pieces are compressed by the caller.
    pub(crate) fn new(container: Container, level: i32, workers: usize) -> Result<Self, Error> {
        let start = |_| {
            let mut compressor = Compressor::new(container, level)?;
            let (to_do, pieces) = sync_channel::<Piece>(PIECES_EACH);
            let (finished, done) = sync_channel(PIECES_EACH);
            // The thread ends when the pool is dropped, which closes both channels.
            thread::Builder::new().name("compress".to_owned()).spawn(move || {
                while let Ok(mut piece) = pieces.recv() {
                    let result = compressor.compress(&piece.raw, &mut piece.bytes);
                    if finished.send(result.map(|()| piece)).is_err() {
                        return;
                    }
                }
            })?;
            Ok(Worker { to_do, done })
        };
        let workers: io::Result<Vec<Worker>> = (0..workers).map(start).collect();
        let workers = workers.map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { here: Compressor::new(container, level)?, workers, spare: Vec::new(), taken: 0, given: 0 })
    }

    /// Takes a piece and leaves an empty one in its place. Returns the oldest piece if it is due.
    pub(crate) fn push(&mut self, raw: &mut Vec<u8>) -> Result<Option<Piece>, Error> {
        let mut piece = self.spare.pop().unwrap_or_default();
        std::mem::swap(&mut piece.raw, raw);
        raw.clear();
        if self.workers.is_empty() {
            self.here.compress(&piece.raw, &mut piece.bytes)?;
            return Ok(Some(piece));
        }
        let due = if self.taken - self.given >= self.workers.len() * PIECES_EACH { self.take()? } else { None };
        let worker = self.workers.get(self.taken % self.workers.len());
        worker.map_or(Ok(()), |worker| worker.to_do.send(piece)).map_err(gone)?;
        self.taken += 1;
        Ok(due)
    }

    /// True when no piece is being compressed.
    pub(crate) fn is_idle(&self) -> bool {
        self.given == self.taken
    }

    /// Returns the oldest piece, waiting for it if necessary.
    pub(crate) fn take(&mut self) -> Result<Option<Piece>, Error> {
        if self.given == self.taken {
            return Ok(None);
        }
        let Some(worker) = self.workers.get(self.given % self.workers.len()) else { return Ok(None) };
        let piece = worker.done.recv().map_err(gone)?;
        // Count a failed piece too: waiting for it again would never end.
        self.given += 1;
        Ok(Some(piece?))
    }

    /// Reuses the memory of a piece that is written.
    pub(crate) fn reuse(&mut self, piece: Piece) {
        self.spare.push(piece);
    }
}

fn gone<T>(_: T) -> Error {
    Error::io("a thread ended early", io::Error::from(io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_do_not_depend_on_the_memory_they_are_put_into() {
        let mut seed = 1_u32;
        let mut noise = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        // Long enough for several blocks, and hard to compress in parts.
        let raw: Vec<u8> = (0..400_000_u32).map(|n| if n / 30_000 % 2 == 0 { noise() } else { noise() & 3 }).collect();
        for container in [Container::Gzip, Container::Zstd, Container::Snappy] {
            let mut compressor = Compressor::new(container, 6).unwrap();
            let mut expected = Vec::new();
            compressor.compress(&raw, &mut expected).unwrap();
            for capacity in (0..600_000).step_by(9_973) {
                let mut out = Vec::with_capacity(capacity);
                compressor.compress(&raw, &mut out).unwrap();
                assert!(out == expected, "{container:?}, {capacity}");
            }
        }
    }

    #[test]
    fn all_pieces_come_back_in_order_whoever_compresses_them() {
        for container in [Container::Gzip, Container::Zstd, Container::Snappy] {
            let mut expected = Vec::new();
            for workers in [0, 1, 2, 8] {
                let mut pool = CompressorPool::new(container, 3, workers).unwrap();
                let mut sizes = Vec::new();
                for n in 0..50_usize {
                    let mut raw = vec![n as u8; n * 1000];
                    if let Some(piece) = pool.push(&mut raw).unwrap() {
                        sizes.push((piece.raw.len(), piece.bytes.clone()));
                        if workers > 0 {
                            pool.reuse(piece);
                        }
                    }
                }
                while workers > 0
                    && let Some(piece) = pool.take().unwrap()
                {
                    sizes.push((piece.raw.len(), piece.bytes));
                }
                if expected.is_empty() {
                    expected = sizes;
                } else {
                    assert!(sizes == expected, "{container:?}, {workers} workers");
                }
            }
        }
    }
}

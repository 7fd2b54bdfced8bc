//! Compresses pieces of the raw stream apart from one another: in this thread or in others, always to the same bytes.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anytrace_core::Error;

use crate::container::Container;

/// Pieces a worker may have, one in work and one waiting.
const PIECES_EACH: usize = 2;

/// Beyond an eighth more than the piece has: at least 85 kB, from which on the compressor writes in place.
const GZIP_SPARE_BYTES: usize = 1 << 17;

/// What compresses one piece.
enum Press {
    /// A chunk: its length, and a block.
    Snappy(Box<snap::raw::Encoder>),
    /// Deflate blocks that refer to nothing before them, none of them the last.
    Gzip(Box<flate2::Compress>),
    /// A frame.
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Press {
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

    /// Compresses a piece; what `out` held is dropped.
    fn press(&mut self, raw: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
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
                    // Room for all of it, however badly it compresses: where the compressor has to stop for room decides
                    // about its bytes, and memory that was used before has room by chance.
                    out.reserve(raw.len() + raw.len() / 8 + GZIP_SPARE_BYTES);
                    let done = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
                    let rest = raw.get(done..).unwrap_or_default();
                    compress.compress_vec(rest, out, flate2::FlushCompress::Sync).map_err(io::Error::other)?;
                    // Room that is left says that all was given out.
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

/// A piece on its way.
#[derive(Debug, Default)]
pub(crate) struct Pressed {
    pub(crate) raw: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

struct Worker {
    to_do: SyncSender<Pressed>,
    done: Receiver<io::Result<Pressed>>,
}

/// Compresses pieces and gives them back in their order.
pub(crate) struct Presses {
    here: Press,
    workers: Vec<Worker>,
    spare: Vec<Pressed>,
    taken: usize,
    given: usize,
}

impl Presses {
    /// With so many threads besides this one; with none, pieces are compressed here.
    pub(crate) fn new(container: Container, level: i32, workers: usize) -> Result<Self, Error> {
        let start = |_| {
            let mut press = Press::new(container, level)?;
            let (to_do, pieces) = sync_channel::<Pressed>(PIECES_EACH);
            let (finished, done) = sync_channel(PIECES_EACH);
            // The thread ends when nobody gives it pieces or takes them.
            thread::Builder::new().name("compress".to_owned()).spawn(move || {
                while let Ok(mut piece) = pieces.recv() {
                    let result = press.press(&piece.raw, &mut piece.bytes);
                    if finished.send(result.map(|()| piece)).is_err() {
                        return;
                    }
                }
            })?;
            Ok(Worker { to_do, done })
        };
        let workers: io::Result<Vec<Worker>> = (0..workers).map(start).collect();
        let workers = workers.map_err(|error| Error::io("cannot start a thread", error))?;
        Ok(Self { here: Press::new(container, level)?, workers, spare: Vec::new(), taken: 0, given: 0 })
    }

    /// Takes a piece and leaves an empty one in its place. Gives back the oldest one, if it is due.
    pub(crate) fn push(&mut self, raw: &mut Vec<u8>) -> Result<Option<Pressed>, Error> {
        let mut piece = self.spare.pop().unwrap_or_default();
        std::mem::swap(&mut piece.raw, raw);
        raw.clear();
        if self.workers.is_empty() {
            self.here.press(&piece.raw, &mut piece.bytes)?;
            return Ok(Some(piece));
        }
        let due = if self.taken - self.given >= self.workers.len() * PIECES_EACH { self.take()? } else { None };
        let worker = self.workers.get(self.taken % self.workers.len());
        worker.map_or(Ok(()), |worker| worker.to_do.send(piece)).map_err(gone)?;
        self.taken += 1;
        Ok(due)
    }

    /// True when no piece is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.given == self.taken
    }

    /// The oldest piece that was not given back.
    pub(crate) fn take(&mut self) -> Result<Option<Pressed>, Error> {
        if self.given == self.taken {
            return Ok(None);
        }
        let Some(worker) = self.workers.get(self.given % self.workers.len()) else { return Ok(None) };
        let piece = worker.done.recv().map_err(gone)?;
        // One that failed was given back too: waiting for it again would never end.
        self.given += 1;
        Ok(Some(piece?))
    }

    /// Takes the memory of a piece that is written.
    pub(crate) fn reuse(&mut self, piece: Pressed) {
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
            let mut press = Press::new(container, 6).unwrap();
            let mut expected = Vec::new();
            press.press(&raw, &mut expected).unwrap();
            for capacity in (0..600_000).step_by(9_973) {
                let mut out = Vec::with_capacity(capacity);
                press.press(&raw, &mut out).unwrap();
                assert!(out == expected, "{container:?}, {capacity}");
            }
        }
    }

    #[test]
    fn all_pieces_come_back_in_order_whoever_compresses_them() {
        for container in [Container::Gzip, Container::Zstd, Container::Snappy] {
            let mut expected = Vec::new();
            for workers in [0, 1, 2, 8] {
                let mut presses = Presses::new(container, 3, workers).unwrap();
                let mut sizes = Vec::new();
                for n in 0..50_usize {
                    let mut raw = vec![n as u8; n * 1000];
                    if let Some(piece) = presses.push(&mut raw).unwrap() {
                        sizes.push((piece.raw.len(), piece.bytes.clone()));
                        if workers > 0 {
                            presses.reuse(piece);
                        }
                    }
                }
                while workers > 0
                    && let Some(piece) = presses.take().unwrap()
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

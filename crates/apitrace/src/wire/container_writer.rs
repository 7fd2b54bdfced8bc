//! Writes the raw stream into a container.

use std::io::Write;

use anytrace_core::Error;

use crate::wire::compress::{CompressorPool, Piece};
use crate::wire::container::Container;
use crate::wire::snappy::SNAPPY_MAGIC;

/// The format's own writer cuts the raw stream into chunks of this size.
const SNAPPY_CHUNK_BYTES: usize = 1 << 20;

/// The size of the format's own zstd frames.
const ZSTD_FRAME_BYTES: usize = 2 << 20;

/// Deflate, no name, no time, unknown system (RFC 1952, 2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Small writes are buffered up to this size.
const BUFFER_BYTES: usize = 256 * 1024;

/// Brotli's window: 4 MiB. The format's own writer takes 16 MiB, at a multiple of the memory.
const BROTLI_WINDOW_LOG: u32 = 22;

/// Writes raw bytes into a container.
pub(crate) struct ContainerWriter<W: Write> {
    form: Form<W>,
    buffer: Vec<u8>,
    flush_at: usize,
}

enum Form<W: Write> {
    Raw(W),
    Brotli(Box<brotli::CompressorWriter<W>>),
    /// Pieces that are compressed independently.
    Pieces(Box<Pieces<W>>),
}

struct Pieces<W> {
    out: W,
    container: Container,
    pool: CompressorPool,
    /// Compressed and raw sizes, for the table of a seekable zstd file.
    sizes: Vec<(u32, u32)>,
    checksum: flate2::Crc,
}

/// The level a container gets by default, and the levels it has.
fn levels(container: Container) -> Option<(i32, std::ops::RangeInclusive<i32>)> {
    match container {
        Container::Gzip => Some((6, 0..=9)),
        Container::Brotli => Some((9, 0..=11)),
        Container::Zstd | Container::ZstdSeekable => Some((3, 1..=22)),
        Container::Snappy | Container::Raw => None,
    }
}

/// The level to use.
fn level(container: Container, asked: Option<i32>) -> Result<i32, Error> {
    match (levels(container), asked) {
        (None, None) => Ok(0),
        (None, Some(_)) => Err(Error::usage(format!("--level does not apply to the container {}", container.name()))),
        (Some((default, _)), None) => Ok(default),
        (Some((_, range)), Some(level)) if range.contains(&level) => Ok(level),
        (Some((_, range)), Some(level)) => Err(Error::usage(format!(
            "--level {level}: expected {} levels {} to {}",
            container.name(),
            range.start(),
            range.end()
        ))),
    }
}

impl<W: Write> ContainerWriter<W> {
    /// Starts a container.
    pub(crate) fn new(out: W, container: Container, asked: Option<i32>) -> Result<Self, Error> {
        Self::with_workers(out, container, asked, 0)
    }

    /// Starts a container whose pieces are compressed by this many other threads. The bytes do not depend on the
    /// number.
    pub(crate) fn with_workers(
        mut out: W,
        container: Container,
        asked: Option<i32>,
        workers: usize,
    ) -> Result<Self, Error> {
        let level = level(container, asked)?;
        let (form, flush_at) = match container {
            Container::Raw => (Form::Raw(out), BUFFER_BYTES),
            Container::Brotli => {
                let quality = u32::try_from(level).unwrap_or(0);
                let encoder = brotli::CompressorWriter::new(out, 64 * 1024, quality, BROTLI_WINDOW_LOG);
                (Form::Brotli(Box::new(encoder)), BUFFER_BYTES)
            }
            Container::Snappy | Container::Gzip | Container::Zstd | Container::ZstdSeekable => {
                match container {
                    Container::Snappy => out.write_all(&SNAPPY_MAGIC)?,
                    Container::Gzip => out.write_all(&GZIP_HEADER)?,
                    _ => {}
                }
                let is_zstd = matches!(container, Container::Zstd | Container::ZstdSeekable);
                let flush_at = if is_zstd { ZSTD_FRAME_BYTES } else { SNAPPY_CHUNK_BYTES };
                let pool = CompressorPool::new(container, level, workers)?;
                let pieces = Pieces { out, container, pool, sizes: Vec::new(), checksum: flate2::Crc::new() };
                (Form::Pieces(Box::new(pieces)), flush_at)
            }
        };
        Ok(Self { form, buffer: Vec::with_capacity(flush_at), flush_at })
    }

    /// Adds raw bytes.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while self.buffer.len() + bytes.len() >= self.flush_at {
            let room = self.flush_at - self.buffer.len();
            let (now, later) = bytes.split_at(room);
            self.buffer.extend_from_slice(now);
            self.flush()?;
            bytes = later;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        match &mut self.form {
            Form::Raw(out) => out.write_all(&self.buffer)?,
            Form::Brotli(encoder) => encoder.write_all(&self.buffer)?,
            Form::Pieces(pieces) => pieces.add(&mut self.buffer)?,
        }
        self.buffer.clear();
        Ok(())
    }

    /// Ends the container and returns what it was written to. If it is to be seekable, a zstd container ends with the
    /// table of its frames.
    pub(crate) fn finish(mut self, is_seekable: bool) -> Result<W, Error> {
        let is_unbegun = match &self.form {
            // An empty zstd file still needs a frame to be recognized as one.
            Form::Pieces(pieces) => pieces.sizes.is_empty() && pieces.pool.is_idle() && pieces.is_zstd(),
            _ => false,
        };
        if !self.buffer.is_empty() || is_unbegun {
            self.flush()?;
        }
        match self.form {
            Form::Raw(mut out) => {
                out.flush()?;
                Ok(out)
            }
            Form::Brotli(mut encoder) => {
                // `into_inner` ends the stream.
                encoder.flush()?;
                let mut out = encoder.into_inner();
                out.flush()?;
                Ok(out)
            }
            Form::Pieces(pieces) => pieces.finish(is_seekable),
        }
    }
}

impl<W: Write> Pieces<W> {
    fn is_zstd(&self) -> bool {
        matches!(self.container, Container::Zstd | Container::ZstdSeekable)
    }

    fn add(&mut self, raw: &mut Vec<u8>) -> Result<(), Error> {
        let due = self.pool.push(raw)?;
        due.map_or(Ok(()), |piece| self.put(piece))
    }

    fn put(&mut self, piece: Piece) -> Result<(), Error> {
        self.out.write_all(&piece.bytes)?;
        if self.container == Container::Gzip {
            self.checksum.update(&piece.raw);
        }
        if self.is_zstd() {
            let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            self.sizes.push((size(&piece.bytes), size(&piece.raw)));
        }
        self.pool.reuse(piece);
        Ok(())
    }

    fn finish(mut self, is_seekable: bool) -> Result<W, Error> {
        while let Some(piece) = self.pool.take()? {
            self.put(piece)?;
        }
        if self.container == Container::Gzip {
            // An empty block that is the last, then checksum and size (RFC 1951, 3.2.6; RFC 1952, 2.3.1).
            self.out.write_all(&[3, 0])?;
            self.out.write_all(&self.checksum.sum().to_le_bytes())?;
            self.out.write_all(&self.checksum.amount().to_le_bytes())?;
        }
        if self.is_zstd() && is_seekable {
            self.out.write_all(&seek_table(&self.sizes))?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The skippable frame at the end of a seekable zstd file.
fn seek_table(frames: &[(u32, u32)]) -> Vec<u8> {
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(17 + frames.len() * 8);
    out.extend_from_slice(&0x184d_2a5e_u32.to_le_bytes());
    out.extend_from_slice(&count.saturating_mul(8).saturating_add(9).to_le_bytes());
    for (compressed, raw) in frames {
        out.extend_from_slice(&compressed.to_le_bytes());
        out.extend_from_slice(&raw.to_le_bytes());
    }
    out.extend_from_slice(&count.to_le_bytes());
    // No checksums.
    out.push(0);
    out.extend_from_slice(&0x8f92_eab1_u32.to_le_bytes());
    out
}

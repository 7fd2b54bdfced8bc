//! Writing the raw stream into a container.

use std::io::Write;

use anytrace_core::{Error, Target};

use crate::container::{Container, SNAPPY_MAGIC};

/// The format's own writer cuts the raw stream into chunks of this size.
const SNAPPY_CHUNK_BYTES: usize = 1 << 20;

/// The size of the format's own zstd frames.
const ZSTD_FRAME_BYTES: usize = 2 << 20;

/// Small writes are gathered up to this size.
const BUFFER_BYTES: usize = 256 * 1024;

/// Brotli's window: 4 MiB. The format's own writer takes 16 MiB, at a multiple of the memory.
const BROTLI_WINDOW_LOG: u32 = 22;

/// Writes raw bytes into a container.
pub(crate) struct Wrapper<'a> {
    form: Form<'a>,
    buffer: Vec<u8>,
    flush_at: usize,
}

enum Form<'a> {
    Raw(&'a mut dyn Target),
    Snappy { out: &'a mut dyn Target, encoder: Box<snap::raw::Encoder>, block: Vec<u8>, has_magic: bool },
    Gzip(Box<flate2::write::GzEncoder<&'a mut dyn Target>>),
    Brotli(Box<brotli::CompressorWriter<&'a mut dyn Target>>),
    Zstd { out: &'a mut dyn Target, compressor: Box<zstd::bulk::Compressor<'static>>, frames: Vec<(u32, u32)> },
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
        (None, Some(_)) => Err(Error::usage(format!("--level means nothing for the container {}", container.name()))),
        (Some((default, _)), None) => Ok(default),
        (Some((_, range)), Some(level)) if range.contains(&level) => Ok(level),
        (Some((_, range)), Some(level)) => Err(Error::usage(format!(
            "--level {level}: {} has levels {} to {}",
            container.name(),
            range.start(),
            range.end()
        ))),
    }
}

impl<'a> Wrapper<'a> {
    /// Starts a container.
    pub(crate) fn new(out: &'a mut dyn Target, container: Container, asked: Option<i32>) -> Result<Self, Error> {
        let level = level(container, asked)?;
        let unsigned = u32::try_from(level).unwrap_or(0);
        let (form, flush_at) = match container {
            Container::Raw => (Form::Raw(out), BUFFER_BYTES),
            Container::Snappy => {
                let encoder = Box::new(snap::raw::Encoder::new());
                let block = vec![0; snap::raw::max_compress_len(SNAPPY_CHUNK_BYTES)];
                (Form::Snappy { out, encoder, block, has_magic: false }, SNAPPY_CHUNK_BYTES)
            }
            Container::Gzip => {
                let encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(unsigned));
                (Form::Gzip(Box::new(encoder)), BUFFER_BYTES)
            }
            Container::Brotli => {
                let encoder = brotli::CompressorWriter::new(out, 64 * 1024, unsigned, BROTLI_WINDOW_LOG);
                (Form::Brotli(Box::new(encoder)), BUFFER_BYTES)
            }
            Container::Zstd | Container::ZstdSeekable => {
                let compressor = Box::new(zstd::bulk::Compressor::new(level)?);
                (Form::Zstd { out, compressor, frames: Vec::new() }, ZSTD_FRAME_BYTES)
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
            Form::Gzip(encoder) => encoder.write_all(&self.buffer)?,
            Form::Brotli(encoder) => encoder.write_all(&self.buffer)?,
            Form::Snappy { out, encoder, block, has_magic } => {
                if !std::mem::replace(has_magic, true) {
                    out.write_all(&SNAPPY_MAGIC)?;
                }
                if !self.buffer.is_empty() {
                    let length = encoder.compress(&self.buffer, block).map_err(|e| Error::io("Snappy", e.into()))?;
                    let head = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
                    out.write_all(&head)?;
                    out.write_all(block.get(..length).unwrap_or_default())?;
                }
            }
            Form::Zstd { out, compressor, frames } => {
                let frame = compressor.compress(&self.buffer)?;
                out.write_all(&frame)?;
                let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                frames.push((size(frame.len()), size(self.buffer.len())));
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// Ends the container; a zstd one gets the table of its frames where it is to be seekable.
    pub(crate) fn finish(mut self, is_seekable: bool) -> Result<(), Error> {
        let is_unbegun = match &self.form {
            Form::Snappy { has_magic, .. } => !has_magic,
            Form::Zstd { frames, .. } => frames.is_empty(),
            _ => false,
        };
        if !self.buffer.is_empty() || is_unbegun {
            self.flush()?;
        }
        match self.form {
            Form::Raw(out) | Form::Snappy { out, .. } => out.flush()?,
            Form::Gzip(encoder) => encoder.finish()?.flush()?,
            Form::Brotli(mut encoder) => {
                // The stream is ended when the writer is taken apart.
                encoder.flush()?;
                encoder.into_inner().flush()?;
            }
            Form::Zstd { out, frames, .. } => {
                if is_seekable {
                    out.write_all(&seek_table(&frames))?;
                }
                out.flush()?;
            }
        }
        Ok(())
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

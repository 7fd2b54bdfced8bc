//! Transparent decompression: gzip and zstd around any trace, recognized by their magic.
//!
//! Damage to a layer is not an error while records are being read: a truncated or corrupt layer ends the data, and
//! [`LayerEnd`] then says how it ended, so that every byte before the damage counts.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Diagnostic, Rule};

/// A compression applied to an entire file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 8878, any number of frames, skippable frames ignored.
    Zstd,
}

impl Compression {
    /// `gzip` or `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Recognizes the compression by its first bytes.
    pub fn detect(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 0x08, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            // A skippable frame first (RFC 8878, 3.1.2); the magic of a data frame may follow later.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// How a layer's data ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LayerEnd {
    /// Not read to its end yet.
    #[default]
    Open,
    /// Ended as its format says.
    Clean,
    /// The compressed data stop too early.
    Truncated,
    /// The compressed data are wrong; the text is the decoder's.
    Corrupt(String),
}

/// One layer of compression, outermost first in [`crate::Input::layers`]. Cheap to clone; its state is shared.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Which compression.
    pub compression: Compression,
    state: Arc<Mutex<LayerState>>,
}

#[derive(Debug, Default)]
struct LayerState {
    end: LayerEnd,
    compressed_bytes: u64,
    decompressed_bytes: u64,
    tail: [u8; 16],
}

impl Layer {
    fn state(&self) -> MutexGuard<'_, LayerState> {
        // A poisoned lock only means that another thread panicked between two plain stores.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How the layer ended; [`LayerEnd::Open`] until all of it has been read.
    pub fn end(&self) -> LayerEnd {
        self.state().end.clone()
    }

    /// Compressed bytes taken so far.
    pub fn compressed_bytes(&self) -> u64 {
        self.state().compressed_bytes
    }

    /// Decompressed bytes returned so far.
    pub fn decompressed_bytes(&self) -> u64 {
        self.state().decompressed_bytes
    }

    /// Marks the layer as begun inside its data, after this many compressed and decompressed bytes: offsets count from
    /// the start.
    pub fn begins_behind(&self, compressed_bytes: u64, decompressed_bytes: u64) {
        let mut state = self.state();
        state.compressed_bytes = state.compressed_bytes.saturating_add(compressed_bytes);
        state.decompressed_bytes = state.decompressed_bytes.saturating_add(decompressed_bytes);
    }

    /// The last 16 compressed bytes read, zero-padded in front: where a seekable zstd file has its footer.
    pub fn tail(&self) -> [u8; 16] {
        self.state().tail
    }

    /// The diagnostic for a layer that did not end cleanly. The offset counts compressed bytes.
    pub fn damage(&self) -> Option<Diagnostic> {
        let state = self.state();
        let (rule, found) = match (&state.end, self.compression) {
            (LayerEnd::Open | LayerEnd::Clean, _) => return None,
            (LayerEnd::Truncated, Compression::Gzip) => (&GZIP_TRUNCATED, "end of data".to_owned()),
            (LayerEnd::Truncated, Compression::Zstd) => (&ZSTD_TRUNCATED, "end of data".to_owned()),
            (LayerEnd::Corrupt(text), Compression::Gzip) => (&GZIP_CORRUPT, text.clone()),
            (LayerEnd::Corrupt(text), Compression::Zstd) => (&ZSTD_CORRUPT, text.clone()),
        };
        let help = format!("the {} bytes that could be decompressed before it were read", state.decompressed_bytes);
        Some(rule.at(state.compressed_bytes).found(found).help(help))
    }

    /// Puts a decoder of this compression around `inner`.
    pub(crate) fn decode(
        compression: Compression,
        inner: Box<dyn Read + Send>,
    ) -> io::Result<(Self, Box<dyn Read + Send>)> {
        let layer = Self { compression, state: Arc::default() };
        let counted = Counted { inner, layer: layer.clone(), failed: Arc::default() };
        let failed = Arc::clone(&counted.failed);
        let decoder: Box<dyn Read + Send> = match compression {
            Compression::Gzip => Box::new(GzipMembers::new(BufReader::with_capacity(1 << 16, counted))),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(1 << 16, counted))?;
                // Windows up to 128 MiB (`zstd --ultra -22`, `--long`) are read; memory then grows by
                // the window its writer chose. Common levels need at most 8 MiB.
                decoder.window_log_max(27)?;
                Box::new(decoder)
            }
        };
        Ok((layer.clone(), Box::new(Watched { decoder, layer, failed, done: false })))
    }
}

/// The rules about files and compression layers, for the tables of every format.
pub fn layer_rules() -> &'static [&'static Rule] {
    static RULES: [&Rule; 5] =
        [&crate::file::CUT_SHORT, &GZIP_TRUNCATED, &GZIP_CORRUPT, &ZSTD_TRUNCATED, &ZSTD_CORRUPT];
    &RULES
}

static GZIP_TRUNCATED: Rule = Rule::error("container/gzip-truncated", "the gzip data end prematurely");
static GZIP_CORRUPT: Rule = Rule::error("container/gzip-corrupt", "the gzip data are damaged");
static ZSTD_TRUNCATED: Rule = Rule::error("container/zstd-truncated", "the zstd data end prematurely");
static ZSTD_CORRUPT: Rule = Rule::error("container/zstd-corrupt", "the zstd data are damaged");

/// Counts compressed bytes, keeps the last sixteen, and records real I/O errors apart from decoder errors.
struct Counted {
    inner: Box<dyn Read + Send>,
    layer: Layer,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(n) => {
                let mut state = self.layer.state();
                state.compressed_bytes = state.compressed_bytes.saturating_add(n as u64);
                let fresh = buffer.get(n.saturating_sub(16)..n).unwrap_or_default();
                state.tail.rotate_left(fresh.len());
                let keep = 16 - fresh.len();
                state.tail[keep..].copy_from_slice(fresh);
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                if let Ok(mut slot) = self.failed.lock() {
                    *slot = Some(error);
                }
                Err(io::Error::other("the input under this layer failed"))
            }
        }
    }
}

/// Turns a decoder's error into the end of the data, recorded in the layer's state.
struct Watched {
    decoder: Box<dyn Read + Send>,
    layer: Layer,
    failed: Arc<Mutex<Option<io::Error>>>,
    done: bool,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.done || buffer.is_empty() {
            return Ok(0);
        }
        let error = match self.decoder.read(buffer) {
            Ok(n) => {
                let mut state = self.layer.state();
                state.decompressed_bytes = state.decompressed_bytes.saturating_add(n as u64);
                if n == 0 {
                    self.done = true;
                    state.end = LayerEnd::Clean;
                }
                return Ok(n);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => error,
        };
        if let Some(real) = self.failed.lock().ok().and_then(|mut slot| slot.take()) {
            return Err(real);
        }
        self.done = true;
        self.layer.state().end = match error.kind() {
            io::ErrorKind::UnexpectedEof => LayerEnd::Truncated,
            _ => LayerEnd::Corrupt(error.to_string()),
        };
        Ok(0)
    }
}

/// Gzip members one after another; zero padding after the last one is legal (as gzip itself treats it).
struct GzipMembers<R: BufRead> {
    current: Option<flate2::bufread::GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(inner: R) -> Self {
        Self { current: Some(flate2::bufread::GzDecoder::new(inner)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.current else { return Ok(0) };
            let n = decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let Some(decoder) = self.current.take() else { return Ok(0) };
            let mut rest = decoder.into_inner();
            if skip_zeros(&mut rest)? {
                return Ok(0);
            }
            // There is a first byte, because `skip_zeros` did not reach the end.
            if rest.fill_buf()?.first() != Some(&0x1f) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "bytes after the last member are not a gzip member",
                ));
            }
            self.current = Some(flate2::bufread::GzDecoder::new(rest));
        }
    }
}

/// Passes over zero bytes; true at the end of the data.
fn skip_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        let zeros = bytes.iter().take_while(|&&b| b == 0).count();
        let all = zeros == bytes.len();
        reader.consume(zeros);
        if !all {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(compression: Compression, bytes: Vec<u8>) -> (Vec<u8>, Layer) {
        let (layer, mut reader) = Layer::decode(compression, Box::new(io::Cursor::new(bytes))).unwrap();
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        (out, layer)
    }

    #[test]
    fn members_and_zero_padding_are_read_to_a_clean_end() {
        let mut bytes = gzip(b"one");
        bytes.extend(gzip(b"two"));
        bytes.extend([0; 100]);
        let (out, layer) = read(Compression::Gzip, bytes);
        assert_eq!((out.as_slice(), layer.end()), (&b"onetwo"[..], LayerEnd::Clean));
    }

    #[test]
    fn a_truncated_layer_yields_its_intact_part_and_is_reported() {
        let plain: Vec<u8> = (0..40_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for (compression, bytes) in
            [(Compression::Gzip, gzip(&plain)), (Compression::Zstd, zstd::encode_all(&plain[..], 1).unwrap())]
        {
            let (out, layer) = read(compression, bytes[..bytes.len() / 2].to_vec());
            assert!(!out.is_empty() && plain.starts_with(&out), "{compression:?}");
            assert_eq!(layer.end(), LayerEnd::Truncated, "{compression:?}");
            assert!(layer.damage().unwrap().code().ends_with("-truncated"));
        }
    }

    #[test]
    fn rubbish_after_a_member_is_corrupt_not_lost_data() {
        let bytes = gzip(b"one");
        for rubbish in [&b"rubbish that is no member"[..], b"x"] {
            let (out, layer) = read(Compression::Gzip, [&bytes, rubbish].concat());
            assert_eq!(out, b"one");
            assert!(matches!(layer.end(), LayerEnd::Corrupt(_)));
        }
    }

    #[test]
    fn the_tail_holds_the_last_compressed_bytes() {
        let bytes = zstd::encode_all(&b"abc"[..], 1).unwrap();
        let expected = bytes[bytes.len() - 4..].to_vec();
        let (_, layer) = read(Compression::Zstd, bytes);
        assert_eq!(layer.tail()[12..], expected);
    }
}

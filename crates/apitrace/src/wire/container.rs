//! The container around the raw stream, and how it is recognized by its first bytes.

use std::io::Read;

use anytrace_core::{Compression, Confidence, Head, Limits};

use crate::wire::record::{Token, VERSION_MAX};
use crate::wire::scan::{Scan, Stop};
use crate::wire::signatures::Signatures;
use crate::wire::snappy::{self, SNAPPY_MAGIC};
use crate::wire::walker::{Walker, is_plausible_name};

/// The containers of the raw stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `at`, then chunks of raw Snappy blocks.
    Snappy,
    /// An ordinary gzip stream.
    Gzip,
    /// A Brotli stream. It has no magic.
    Brotli,
    /// Zstandard frames.
    Zstd,
    /// Zstandard frames of 2 MiB with a table of them at the end.
    ZstdSeekable,
    /// None: the raw stream itself.
    Raw,
}

impl Container {
    /// The containers and their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Snappy, "snappy"),
        (Self::Gzip, "gzip"),
        (Self::Brotli, "brotli"),
        (Self::Zstd, "zstd"),
        (Self::ZstdSeekable, "zstd-seekable"),
        (Self::Raw, "raw"),
    ];

    /// The names alone.
    pub(crate) const NAMES: [&'static str; 6] = ["snappy", "gzip", "brotli", "zstd", "zstd-seekable", "raw"];

    /// `snappy`, `gzip`, `brotli`, `zstd`, `zstd-seekable` or `raw`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(container, _)| *container == self).map_or("raw", |(_, name)| name)
    }

    /// The container with this [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(container, _)| *container)
    }
}

/// How much of a Brotli stream is decompressed to look at it.
const LOOK_BYTES: usize = 16 * 1024;

/// The decompressor emits its output when it asks for more input, so small steps lose little before damage.
const LOOK_STEP_BYTES: usize = 64;

/// What the head of an input suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guess {
    /// The container inside any gzip or zstd layer: Snappy, Brotli or raw.
    pub(crate) own: Container,
    pub(crate) confidence: Confidence,
}

/// Guesses the container from the head of an input.
pub(crate) fn guess(head: &Head<'_>) -> Guess {
    let named = if head.has_extension(&["trace"]) { Confidence::Maybe } else { Confidence::No };
    let bytes = head.bytes;
    if bytes.starts_with(&SNAPPY_MAGIC) {
        return Guess { own: Container::Snappy, confidence: look_at_snappy(bytes, head.is_complete()).max(named) };
    }
    if !bytes.is_empty() && SNAPPY_MAGIC.starts_with(bytes) {
        return Guess { own: Container::Snappy, confidence: named };
    }
    let raw = look_at_raw(bytes, head.is_complete());
    if raw >= Confidence::Likely {
        return Guess { own: Container::Raw, confidence: raw };
    }
    // Inside gzip or zstd is the raw stream. Nobody puts Brotli there.
    if head.layers.is_empty() {
        let (plain, end) = brotli_start(bytes);
        let inner = look_at_raw(&plain, false);
        // A few bytes that are a complete, empty Brotli stream: a trace without events.
        if end && plain.is_empty() && head.is_complete() && (1..=8).contains(&bytes.len()) && raw == Confidence::No {
            return Guess { own: Container::Brotli, confidence: named };
        }
        // A first call with a large blob may not end within the bytes decompressed here.
        if inner > raw {
            return Guess { own: Container::Brotli, confidence: inner };
        }
    }
    Guess { own: Container::Raw, confidence: raw.max(named) }
}

fn look_at_snappy(bytes: &[u8], is_complete: bool) -> Confidence {
    let rest = bytes.get(SNAPPY_MAGIC.len()..).unwrap_or_default();
    if rest.len() < 4 {
        // A program that is killed at once leaves only the magic.
        return if is_complete { Confidence::Likely } else { Confidence::Maybe };
    }
    let plain = snappy_start(rest);
    match plain.first() {
        // A future version is recognized, and refused with a diagnostic.
        Some(version) if u64::from(*version) > VERSION_MAX && *version < 64 => Confidence::Likely,
        Some(_) if look_at_raw(&plain, false) == Confidence::Certain => Confidence::Certain,
        Some(version) if u64::from(*version) <= VERSION_MAX => Confidence::Likely,
        _ => Confidence::Maybe,
    }
}

/// The first raw bytes in the chunks.
fn snappy_start(mut chunks: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    while let Some((length, blocks)) = chunks.split_first_chunk::<4>()
        && plain.len() < LOOK_BYTES
    {
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let block = blocks.get(..length.min(blocks.len())).unwrap_or_default();
        let at = plain.len();
        if snappy::decode_prefix(block, LOOK_BYTES, &mut plain, at).raw == 0 {
            break;
        }
        chunks = blocks.get(length..).unwrap_or_default();
    }
    plain
}

/// The first raw bytes in a Brotli stream, and whether it was decompressed without an error. The decompressor fails
/// where the head is cut. Its output up to there counts.
fn brotli_start(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut plain = Vec::new();
    let end = brotli::Decompressor::new(bytes, LOOK_STEP_BYTES).take(LOOK_BYTES as u64).read_to_end(&mut plain);
    (plain, end.is_ok())
}

/// The header, if it is within the head of the input.
pub(crate) fn peek_header(head: &Head<'_>, own: Container) -> Option<crate::Header> {
    let limits = Limits::default();
    let parsed = match own {
        Container::Snappy => parse_header(&snappy_start(head.bytes.get(SNAPPY_MAGIC.len()..)?), &limits),
        Container::Brotli => parse_header(&brotli_start(head.bytes).0, &limits),
        _ => parse_header(head.bytes, &limits),
    };
    parsed.ok()
}

/// How much the bytes look like the start of a raw stream. They may be cut anywhere unless `is_complete`.
pub(crate) fn look_at_raw(bytes: &[u8], is_complete: bool) -> Confidence {
    let limits = Limits::default();
    let header = match parse_header(bytes, &limits) {
        Ok(header) if header.version <= VERSION_MAX => header,
        Ok(_) => return Confidence::No,
        // Cut inside the properties: a version 6 header that is plausible so far.
        Err(Stop::More(_)) if bytes.starts_with(&[6]) && bytes.len() > 8 => return Confidence::Maybe,
        Err(_) => return Confidence::No,
    };
    if !header.properties.iter().all(|(name, _)| is_plausible_name(name)) {
        return Confidence::No;
    }
    let rest = bytes.get(header.raw.len()..).unwrap_or_default();
    if rest.is_empty() {
        // A header alone: certain with properties, else just a small number.
        return match (header.properties.is_empty(), is_complete) {
            (false, _) => Confidence::Likely,
            (true, true) if header.version == VERSION_MAX => Confidence::Likely,
            _ => Confidence::Maybe,
        };
    }
    let seen = count_events(rest, header.version, &limits);
    match seen {
        // Names that no program uses: the bytes are something else, unless there is much other evidence.
        Seen { odd_names: 1.., events: 0..8, .. } => Confidence::No,
        Seen { odd_names, names, .. } if odd_names > names => Confidence::No,
        Seen { events: 8.., names: 1.., .. } => Confidence::Certain,
        Seen { events: 1.., names: 1.., .. } => Confidence::Likely,
        Seen { events: 0, names: 1.., .. } if !header.properties.is_empty() => Confidence::Likely,
        // A first event without an end may be a long one. Its name is the evidence.
        Seen { events: 0, names: 1.., is_broken: false, .. } => Confidence::Maybe,
        // Small numbers alone can be anything.
        Seen { events: 8.., is_broken: false, .. } => Confidence::Maybe,
        _ if !header.properties.is_empty() => Confidence::Likely,
        _ => Confidence::No,
    }
}

/// What the start of a raw stream contains.
#[derive(Debug, Default)]
struct Seen {
    /// Complete events, up to sixteen.
    events: u32,
    /// Defined functions with plausible names.
    names: u32,
    /// Defined functions with implausible names.
    odd_names: u32,
    /// What follows cannot be an event.
    is_broken: bool,
}

/// Reads complete events, up to sixteen.
fn count_events(bytes: &[u8], version: u64, limits: &Limits) -> Seen {
    let mut signatures = Signatures::default();
    let mut walker = Walker::new(version, limits);
    let (mut at, mut seen) = (0, Seen::default());
    while seen.events < 16 {
        let Some(rest) = bytes.get(at..) else { break };
        match walker.next(rest, &mut signatures) {
            Ok((token, used)) => {
                at += used;
                match token {
                    Token::EndEvent => seen.events += 1,
                    Token::Function(function) if function.definition.is_some() => {
                        let name = signatures.function(function.slot).map(|row| row.name()).unwrap_or_default();
                        match is_plausible_name(name) {
                            true => seen.names += 1,
                            false => seen.odd_names += 1,
                        }
                    }
                    _ => {}
                }
            }
            Err(Stop::More(_)) => break,
            Err(Stop::Bad(_)) => {
                seen.is_broken = true;
                break;
            }
        }
    }
    seen
}

/// Parses the start of the raw stream.
pub(crate) fn parse_header(bytes: &[u8], limits: &Limits) -> Result<crate::Header, Stop> {
    let mut scan = Scan::new(bytes);
    let version = scan.uint()?;
    let mut header = crate::Header { version, semantic_version: version, ..crate::Header::default() };
    if version == crate::wire::record::VERSION_PROPERTIES {
        header.semantic_version = scan.uint()?;
        loop {
            if scan.at as u64 > limits.record_bytes_max {
                return scan.bad(crate::wire::scan::FaultKind::TooLong, 0, scan.at as u64);
            }
            let name = scan.string()?;
            if name.is_empty() {
                break;
            }
            let value = scan.string()?;
            header.properties.push((name.to_vec(), value.to_vec()));
        }
    }
    header.raw = scan.since(0).to_vec();
    Ok(header)
}

/// The container that corresponds to a compression layer.
pub(crate) fn of_layer(compression: Compression) -> Container {
    match compression {
        Compression::Gzip => Container::Gzip,
        Compression::Zstd => Container::Zstd,
    }
}

/// True when the last bytes of a zstd file are the footer of a table of frames.
pub(crate) fn is_seekable(tail: [u8; 16]) -> bool {
    tail.ends_with(&[0xb1, 0xea, 0x92, 0x8f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brotli_is_known_where_the_first_call_is_larger_than_the_look() {
        let mut raw = b"\x06\x06\x00\x00\x00\x00\x0cglBufferData\x01\x04data\x01\x00\x08\xc0\x84\x3d".to_vec();
        raw.resize(raw.len() + 1_000_000, 0);
        raw.push(0);
        let mut packed = Vec::new();
        let parameters = brotli::enc::BrotliEncoderParams::default();
        brotli::BrotliCompress(&mut raw.as_slice(), &mut packed, &parameters).unwrap();
        let head = Head { bytes: &packed, total_bytes: Some(packed.len() as u64), name: "x", layers: &[] };
        assert_eq!(guess(&head), Guess { own: Container::Brotli, confidence: Confidence::Maybe });
    }
}

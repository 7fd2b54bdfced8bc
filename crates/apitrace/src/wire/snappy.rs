//! The Snappy container: decodes chunks, each as far as it can be read.

use anytrace_core::{Cursor, Diagnostic, Error, Input, Limits};

use crate::rules;
use crate::wire::scan::Scan;

/// The first two bytes of the Snappy container.
pub(crate) const SNAPPY_MAGIC: [u8; 2] = *b"at";

/// No byte of a Snappy block holds more: three make a copy of 64. A block that claims more is damaged, and its claim is no
/// reason to allocate.
const RAW_A_BYTE_MAX: usize = 22;

/// The result of one step of reading the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// This many raw bytes.
    Data(usize),
    /// This many raw bytes, after which some are missing.
    Broken(usize),
    /// Nothing more.
    End,
}

/// Reads chunks one after another.
pub(crate) struct Chunks {
    file: Cursor,
    decoder: snap::raw::Decoder,
    raw_bytes_max: usize,
    has_magic: bool,
    is_over: bool,
}

impl Chunks {
    pub(crate) fn new(input: Input, limits: &Limits) -> Self {
        Self {
            file: Cursor::new(input),
            decoder: snap::raw::Decoder::new(),
            raw_bytes_max: usize::try_from(limits.record_bytes_max).unwrap_or(usize::MAX).clamp(1 << 20, 1 << 30),
            has_magic: false,
            is_over: false,
        }
    }

    /// Seeks the chunk at an offset of the file. Returns false if the file is not seekable.
    pub(crate) fn seek(&mut self, offset: u64) -> bool {
        self.has_magic = true;
        offset >= SNAPPY_MAGIC.len() as u64 && self.file.seek(offset)
    }

    /// Bytes of the file read so far.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.offset()
    }

    /// Decodes the next chunk into `buffer[at..]`.
    pub(crate) fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        at: usize,
        damage: &mut Vec<Diagnostic>,
    ) -> Result<Chunk, Error> {
        if self.is_over {
            return Ok(Chunk::End);
        }
        if !self.has_magic {
            if self.file.fill(2)? < 2 {
                return self.cut(damage, "two bytes of magic");
            }
            self.file.advance(SNAPPY_MAGIC.len());
            self.has_magic = true;
        }
        let at_hand = self.file.fill(4)?;
        if at_hand == 0 {
            self.is_over = true;
            return Ok(Chunk::End);
        }
        let Some(length) = self.file.window().first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)) else {
            return self.cut(damage, "four bytes of chunk length");
        };
        if length == 0 {
            return self.end_mark(damage);
        }
        self.block(length as usize, buffer, at, damage)
    }

    fn cut(&mut self, damage: &mut Vec<Diagnostic>, expected: &'static str) -> Result<Chunk, Error> {
        let left = self.file.window().len();
        damage.push(
            rules::CONTAINER_TRUNCATED
                .at(self.file.offset())
                .expected(expected)
                .found(format!("{left} bytes"))
                .skipped(left as u64),
        );
        self.file.advance(left);
        self.is_over = true;
        Ok(Chunk::End)
    }

    /// A chunk of length zero ends the container; nothing but zeros should follow.
    fn end_mark(&mut self, damage: &mut Vec<Diagnostic>) -> Result<Chunk, Error> {
        self.is_over = true;
        let at = self.file.offset();
        self.file.advance(4);
        let (mut total, mut is_zero) = (0_u64, true);
        while self.file.fill(1)? > 0 {
            let window = self.file.window();
            is_zero &= window.iter().all(|byte| *byte == 0);
            let length = window.len();
            total += length as u64;
            self.file.advance(length);
        }
        if total > 0 {
            let severity = if is_zero { anytrace_core::Severity::Warning } else { rules::DATA_AFTER_END.severity };
            let found = format!("{total} {}bytes", if is_zero { "zero " } else { "" });
            damage.push(
                rules::DATA_AFTER_END
                    .at(at)
                    .severity(severity)
                    .expected("the end of the file after a chunk of length 0")
                    .found(found)
                    .skipped(total),
            );
        }
        Ok(Chunk::End)
    }

    fn block(
        &mut self,
        length: usize,
        buffer: &mut Vec<u8>,
        at: usize,
        damage: &mut Vec<Diagnostic>,
    ) -> Result<Chunk, Error> {
        let offset = self.file.offset();
        // The longest block of the largest raw size allowed (Snappy's format description).
        let length_max = 32 + self.raw_bytes_max + self.raw_bytes_max / 6;
        let wanted = length.min(length_max) + 4;
        let at_hand = self.file.fill(wanted)?.min(wanted) - 4;
        let block = self.file.window().get(4..4 + at_hand).unwrap_or_default();
        if at_hand == length
            && let Ok(raw) = snap::raw::decompress_len(block)
            && raw <= self.raw_bytes_max.min(at_hand.saturating_mul(RAW_A_BYTE_MAX))
        {
            let end = at + raw;
            if buffer.len() < end {
                buffer.resize(end, 0);
            }
            if let Some(place) = buffer.get_mut(at..end)
                && self.decoder.decompress(block, place).is_ok()
            {
                self.file.advance(4 + length);
                return Ok(Chunk::Data(raw));
            }
        }
        let prefix = decode_prefix(block, self.raw_bytes_max, buffer, at);
        let (used, found) = match prefix.end {
            // The block itself defines where it ends, so only the length is wrong and nothing is lost.
            PrefixEnd::Complete if prefix.used <= at_hand => (prefix.used, format!("{} bytes of block", prefix.used)),
            _ if at_hand < length.min(length_max) => (at_hand, format!("{at_hand} bytes before the end of the file")),
            _ => (at_hand, prefix.end.text().to_owned()),
        };
        let is_complete = prefix.end == PrefixEnd::Complete;
        let rule = match (is_complete, at_hand < length, length > length_max) {
            (true, ..) | (_, _, true) => &rules::CHUNK_LENGTH,
            (_, true, _) => &rules::CONTAINER_TRUNCATED,
            _ => &rules::CHUNK_CORRUPT,
        };
        let mut diagnostic = rule
            .at(offset)
            .field("chunk")
            .expected(format!("{length} bytes holding {} raw bytes", prefix.declared))
            .found(found)
            .help(format!("the first {} raw bytes of the chunk were read", prefix.raw));
        if !is_complete {
            diagnostic = diagnostic.skipped((at_hand - prefix.used.min(at_hand)) as u64);
        }
        damage.push(diagnostic);
        // An impossible length does not locate the next chunk.
        let to = if length > length_max && !is_complete { self.find_chunk(prefix.used, at_hand) } else { 4 + used };
        self.file.advance(to);
        Ok(if is_complete { Chunk::Data(prefix.raw) } else { Chunk::Broken(prefix.raw) })
    }

    /// Where in the window the next chunk of 1 MiB starts, after an impossible length; otherwise the window's end.
    fn find_chunk(&self, from: usize, at_hand: usize) -> usize {
        let block = self.file.window().get(4..4 + at_hand).unwrap_or_default();
        // A chunk of the usual size: a length below 2 MiB, then 1 MiB as a number.
        let found = block
            .get(from..)
            .unwrap_or_default()
            .windows(7)
            .position(|bytes| matches!(bytes, [_, _, 0..=0x1f, 0, 0x80, 0x80, 0x40]));
        4 + found.map_or(at_hand, |at| at + from)
    }
}

/// How far a damaged block could be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Raw bytes decoded.
    pub(crate) raw: usize,
    /// Raw bytes that the block declares.
    pub(crate) declared: u64,
    /// Bytes of the block used.
    pub(crate) used: usize,
    pub(crate) end: PrefixEnd,
}

/// Why decoding a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefixEnd {
    /// All declared bytes were decoded.
    Complete,
    /// The block ends too early.
    Cut,
    /// A copy reaches before the block's start.
    Copy,
    /// More bytes are decoded than declared.
    Overrun,
    /// The block declares more than the limit.
    Limit,
}

impl PrefixEnd {
    fn text(self) -> &'static str {
        match self {
            Self::Complete => "a whole block",
            Self::Cut => "a block that ends too early",
            Self::Copy => "a copy from before the start of the block",
            Self::Overrun => "more raw bytes than the block declares",
            Self::Limit => "more raw bytes than the limit",
        }
    }
}

/// Decodes one Snappy block into `buffer[at..]` as far as it goes: at most `raw_bytes_max` bytes.
///
/// Slow and simple: it is used only for damaged blocks and probes. Layout: Snappy's `format_description.txt`.
pub(crate) fn decode_prefix(block: &[u8], raw_bytes_max: usize, buffer: &mut Vec<u8>, at: usize) -> Prefix {
    let mut scan = Scan::new(block);
    let Ok(declared) = scan.uint() else {
        return Prefix { raw: 0, declared: 0, used: 0, end: PrefixEnd::Cut };
    };
    let limit = usize::try_from(declared).unwrap_or(usize::MAX).min(raw_bytes_max);
    buffer.truncate(at);
    buffer.resize(at, 0);
    let end = loop {
        let done = buffer.len() - at;
        if done >= limit {
            break if declared > limit as u64 { PrefixEnd::Limit } else { PrefixEnd::Complete };
        }
        let before = scan.at;
        let step = element(&mut scan, buffer, at, limit);
        if let Err(end) = step {
            scan.at = before;
            break end;
        }
    };
    Prefix { raw: buffer.len() - at, declared, used: scan.at.min(block.len()), end }
}

/// Decodes one literal or copy.
fn element(scan: &mut Scan<'_>, buffer: &mut Vec<u8>, at: usize, limit: usize) -> Result<(), PrefixEnd> {
    let cut = |_| PrefixEnd::Cut;
    let tag = scan.byte().map_err(cut)?;
    let high = usize::from(tag >> 2);
    let room = limit - (buffer.len() - at);
    let (offset, length) = match tag & 3 {
        0 => {
            let length = match high {
                0..60 => high + 1,
                _ => {
                    let mut value = [0_u8; 8];
                    for place in value.iter_mut().take(high - 59) {
                        *place = scan.byte().map_err(cut)?;
                    }
                    usize::try_from(u64::from_le_bytes(value)).unwrap_or(usize::MAX).saturating_add(1)
                }
            };
            let literal = scan.rest();
            let literal = literal.get(..length.min(literal.len())).unwrap_or_default();
            buffer.extend_from_slice(literal.get(..room.min(literal.len())).unwrap_or_default());
            scan.at += literal.len();
            return if literal.len() < length {
                Err(PrefixEnd::Cut)
            } else if length > room {
                Err(PrefixEnd::Overrun)
            } else {
                Ok(())
            };
        }
        1 => ((high >> 3) << 8 | usize::from(scan.byte().map_err(cut)?), (high & 7) + 4),
        2 => (usize::from(u16::from_le_bytes(scan.array().map_err(cut)?)), high + 1),
        _ => (u32::from_le_bytes(scan.array().map_err(cut)?) as usize, high + 1),
    };
    if offset == 0 || offset > buffer.len() - at {
        return Err(PrefixEnd::Copy);
    }
    for _ in 0..length.min(room) {
        let byte = buffer.get(buffer.len() - offset).copied().unwrap_or_default();
        buffer.push(byte);
    }
    if length > room { Err(PrefixEnd::Overrun) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<u8>, Vec<u8>) {
        let raw: Vec<u8> = (0..5000_u32).flat_map(|n| (n / 3 * 7).to_le_bytes()).collect();
        let block = snap::raw::Encoder::new().compress_vec(&raw).unwrap();
        (raw, block)
    }

    #[test]
    fn a_complete_block_decodes_as_the_library_does() {
        let (raw, block) = sample();
        let mut out = b"before".to_vec();
        let prefix = decode_prefix(&block, 1 << 20, &mut out, 6);
        assert_eq!((prefix.end, prefix.raw, prefix.used), (PrefixEnd::Complete, raw.len(), block.len()));
        assert_eq!(out[6..], raw);
    }

    #[test]
    fn every_cut_gives_a_true_prefix() {
        let (raw, block) = sample();
        for cut in 0..block.len() {
            let mut out = Vec::new();
            let prefix = decode_prefix(&block[..cut], 1 << 20, &mut out, 0);
            assert!(raw.starts_with(&out) && prefix.raw < raw.len());
        }
    }

    #[test]
    fn what_a_block_claims_allocates_nothing() {
        // A block of 1 GiB, and a chunk of 2 GiB; nearly nothing follows.
        for file in [&b"at\x0a\0\0\0\x80\x80\x80\x80\x04\0aaaa"[..], b"at\xe7\x07\xf7\x7fabc"] {
            let limits = Limits::default().with_record_bytes_max(1 << 30);
            let mut chunks = Chunks::new(Input::from_bytes("x", file.to_vec()), &limits);
            let (mut buffer, mut damage) = (Vec::new(), Vec::new());
            for _ in 0..2 {
                chunks.next(&mut buffer, 0, &mut damage).unwrap();
            }
            assert!(!damage.is_empty() && buffer.capacity() < 1 << 20, "{}", buffer.capacity());
        }
    }

    #[test]
    fn blocks_as_dense_as_they_get_are_read() {
        let raw = vec![7; 1 << 20];
        let block = snap::raw::Encoder::new().compress_vec(&raw).unwrap();
        let file = [b"at", &(block.len() as u32).to_le_bytes()[..], &block].concat();
        let mut chunks = Chunks::new(Input::from_bytes("x", file), &Limits::default());
        let (mut buffer, mut damage) = (Vec::new(), Vec::new());
        assert_eq!(chunks.next(&mut buffer, 0, &mut damage).unwrap(), Chunk::Data(1 << 20));
        assert!(damage.is_empty() && buffer == raw);
    }

    #[test]
    fn a_block_that_claims_too_much_stops_at_the_limit() {
        let mut block = vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0];
        block.extend([b'a', 0xfe, 1, 0].repeat(1000));
        let mut out = Vec::new();
        assert!(decode_prefix(&block, 100, &mut out, 0).raw <= 100);
    }
}

//! The bytes of an index file: sections with checksums of their own, behind a directory.
//!
//! ```text
//! file      = magic (8 bytes), version (4), number of sections (4), directory entry*, checksum of all before (8), section*
//! entry     = kind (4), 0 (4), offset in the file (8), length (8), checksum of the section (8)
//! fit       = file bytes (8), piece bytes (8), digest of each piece (8)*
//! names     = format, version of its readers (texts), threads (8, 8*), kinds (8, texts)
//! chunks    = chunk*
//! chunk     = offset (8), seq (8), rows (8), earliest and latest time (8, 8), threads (8), kinds (8),
//!             offset of its state in the section states (8), length of it (4), flags (4): 1 has times, 2 is damaged
//! states    = bytes of the format
//! shared    = bytes of the format
//! spans     = spans of a chunk*
//! spans of a chunk = flags (8): 1 can begin a part, 2 has threads that `events` has not, 4 has a reach;
//!             reach (8, 8), smallest number (8), number of starts (8), length of the state (8), starts (8, 8)*, state
//! pyramid   = bytes of the viewer, the last section
//! text      = length (8), bytes
//! ```
//!
//! Numbers are little-endian. Checksums are XXH3. Sections of other kinds are ignored.

use std::fmt;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::fit::{PIECES_MAX, piece_bytes};
use super::{Chunk, ChunkSpans, Index, Mark, NAMED_MAX, Pieces};

/// The first bytes. The eighth bit and the line ends reveal a transfer in text mode.
pub(super) const MAGIC: [u8; 8] = *b"\x89atx\r\n\x1a\n";

pub(super) const VERSION: u32 = 3;

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const ENTRY_BYTES: usize = 32;
const CHUNK_BYTES: usize = 72;

/// Most sections.
const SECTIONS_MAX: usize = 64;

// Kinds of sections.
const FIT: u32 = 1;
const NAMES: u32 = 2;
const CHUNKS: u32 = 3;
const STATES: u32 = 4;
const SHARED: u32 = 5;
const SPANS: u32 = 6;

// Flags of a chunk.
const HAS_TIME: u32 = 1;
const IS_DAMAGED: u32 = 2;

/// Why bytes are not an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexFault {
    /// They do not begin like one.
    Magic,
    /// They have an unknown version.
    Version(u32),
    /// They are truncated or changed; the byte offset.
    Checksum(u64),
    /// A section is missing or invalid.
    Content(&'static str),
}

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("it is not an index of a trace"),
            Self::Version(version) => write!(f, "expected index version {VERSION}, found {version}"),
            Self::Checksum(offset) => write!(f, "the index is truncated or damaged in the section at byte {offset:#x}"),
            Self::Content(section) => write!(f, "the index is invalid in its section {section}"),
        }
    }
}

impl std::error::Error for IndexFault {}

impl Index {
    /// The bytes of an index file.
    pub fn encode(&self) -> Vec<u8> {
        let (chunks, states) = self.encode_chunks();
        let mut sections = vec![(FIT, self.encode_fit()), (NAMES, self.encode_names()), (CHUNKS, chunks)];
        sections.push((STATES, states));
        if let Some(shared) = &self.shared {
            sections.push((SHARED, shared.to_vec()));
        }
        if self.has_spans() {
            let mut spans = Vec::new();
            self.chunks.iter().filter_map(|chunk| chunk.spans.as_ref()).for_each(|one| one.encode(&mut spans));
            sections.push((SPANS, spans));
        }
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(u32::try_from(sections.len()).unwrap_or(u32::MAX).to_le_bytes());
        let mut offset = (HEADER_BYTES + sections.len() * ENTRY_BYTES + size_of::<u64>()) as u64;
        for (kind, bytes) in &sections {
            out.extend(u64::from(*kind).to_le_bytes());
            [offset, bytes.len() as u64, XxHash3_64::oneshot(bytes)].iter().for_each(|n| out.extend(n.to_le_bytes()));
            offset += bytes.len() as u64;
        }
        out.extend(XxHash3_64::oneshot(&out).to_le_bytes());
        sections.iter().for_each(|(_, bytes)| out.extend(bytes));
        out
    }

    fn encode_fit(&self) -> Vec<u8> {
        let numbers = [self.pieces.file_bytes, self.pieces.piece_bytes];
        numbers.iter().chain(&self.pieces.digests).flat_map(|number| number.to_le_bytes()).collect()
    }

    fn encode_names(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_text(&mut out, &self.format);
        push_text(&mut out, &self.version);
        out.extend((self.threads.len() as u64).to_le_bytes());
        self.threads.iter().for_each(|thread| out.extend(thread.to_le_bytes()));
        out.extend((self.kinds.len() as u64).to_le_bytes());
        self.kinds.iter().for_each(|kind| push_text(&mut out, kind));
        out
    }

    fn encode_chunks(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut out, mut states) = (Vec::with_capacity(self.chunks.len() * CHUNK_BYTES), Vec::new());
        for chunk in &self.chunks {
            let (low, high) = chunk.time.clone().map_or((0, 0), std::ops::RangeInclusive::into_inner);
            let numbers = [
                chunk.mark.offset,
                chunk.mark.seq,
                chunk.rows,
                low.cast_unsigned(),
                high.cast_unsigned(),
                chunk.threads,
                chunk.kinds,
                states.len() as u64,
            ];
            numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
            let has_time = if chunk.time.is_some() { HAS_TIME } else { 0 };
            let is_damaged = if chunk.is_damaged { IS_DAMAGED } else { 0 };
            out.extend(u32::try_from(chunk.mark.state.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend((has_time | is_damaged).to_le_bytes());
            states.extend_from_slice(&chunk.mark.state);
        }
        (out, states)
    }

    /// Reads an index file.
    ///
    /// # Errors
    /// What is wrong with it. Lengths are bounded by those of the file, offsets of chunks increase.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexFault> {
        let sections = Sections::of(bytes)?;
        let required = |kind, name| sections.get(kind)?.ok_or(IndexFault::Content(name));
        let pieces = fit(required(FIT, "fit")?).ok_or(IndexFault::Content("fit"))?;
        let names = Take(required(NAMES, "names")?);
        let (format, version, threads, kinds) = decode_names(names).ok_or(IndexFault::Content("names"))?;
        let states = required(STATES, "states")?;
        let mut chunks = decode_chunks(required(CHUNKS, "chunks")?, states).ok_or(IndexFault::Content("chunks"))?;
        if let Some(spans) = sections.get(SPANS)? {
            decode_spans(spans, &mut chunks).ok_or(IndexFault::Content("spans"))?;
        }
        let shared = sections.get(SHARED)?.map(Arc::from);
        Ok(Self { format, version, pieces, chunks, threads, kinds, shared })
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The sections of a file whose directory is intact.
pub(super) struct Sections<'a> {
    bytes: &'a [u8],
    directory: &'a [[u8; ENTRY_BYTES]],
}

impl<'a> Sections<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Result<Self, IndexFault> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(IndexFault::Magic)?;
        let cut = IndexFault::Checksum(0);
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(cut)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(IndexFault::Version(version));
        }
        let (count, rest) = rest.split_first_chunk::<4>().ok_or(cut)?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok().filter(|count| *count <= SECTIONS_MAX);
        let length = count.ok_or(cut)? * ENTRY_BYTES;
        let (directory, rest) = rest.split_at_checked(length).ok_or(cut)?;
        let checksum = rest.first_chunk::<8>().ok_or(cut)?;
        let before = bytes.get(..HEADER_BYTES + length).unwrap_or_default();
        if XxHash3_64::oneshot(before) != u64::from_le_bytes(*checksum) {
            return Err(cut);
        }
        Ok(Self { bytes, directory: directory.as_chunks().0 })
    }

    /// The kinds of all sections, in the order of the file.
    pub(super) fn kinds(&self) -> impl Iterator<Item = u32> {
        self.directory.iter().filter_map(|entry| u32::try_from(numbers::<1>(entry)[0]).ok())
    }

    /// The bytes of a section that is intact; `None` where there is none of this kind.
    pub(super) fn get(&self, kind: u32) -> Result<Option<&'a [u8]>, IndexFault> {
        for entry in self.directory {
            let [own, offset, length, checksum] = numbers::<4>(entry);
            if own != u64::from(kind) {
                continue;
            }
            let place = |number: u64| usize::try_from(number).ok();
            let range = place(offset).zip(place(length)).and_then(|(at, length)| Some(at..at.checked_add(length)?));
            let section = range.and_then(|range| self.bytes.get(range));
            let section = section.filter(|section| XxHash3_64::oneshot(section) == checksum);
            return section.map(Some).ok_or(IndexFault::Checksum(offset));
        }
        Ok(None)
    }
}

/// The first numbers of some bytes; 0 where they end.
fn numbers<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut chunks = bytes.as_chunks::<8>().0.iter();
    std::array::from_fn(|_| chunks.next().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

fn fit(bytes: &[u8]) -> Option<Pieces> {
    let [file_bytes, own_piece_bytes] = numbers(bytes);
    let (digests, rest) = bytes.get(16..)?.as_chunks::<8>();
    let is_usual = own_piece_bytes == piece_bytes(file_bytes) && digests.len() as u64 <= PIECES_MAX;
    let is_complete = rest.is_empty() && digests.len() as u64 == file_bytes.div_ceil(own_piece_bytes.max(1));
    let digests = digests.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    (is_usual && is_complete).then_some(Pieces { file_bytes, piece_bytes: own_piece_bytes, digests })
}

/// Reads numbers and texts from the front.
struct Take<'a>(&'a [u8]);

impl Take<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= NAMED_MAX)
    }
}

type Names = (String, String, Vec<i64>, Vec<String>);

fn decode_names(mut take: Take<'_>) -> Option<Names> {
    let (format, version) = (take.text()?, take.text()?);
    let threads = (0..take.count()?).map(|_| take.number().map(u64::cast_signed)).collect::<Option<_>>()?;
    let kinds = (0..take.count()?).map(|_| take.text()).collect::<Option<_>>()?;
    take.0.is_empty().then_some((format, version, threads, kinds))
}

fn decode_chunks(bytes: &[u8], states: &[u8]) -> Option<Vec<Chunk>> {
    let (rows, rest) = bytes.as_chunks::<CHUNK_BYTES>();
    let chunks: Vec<Chunk> = rows.iter().map(|row| decode_chunk(row, states)).collect::<Option<_>>()?;
    let starts_at_start = chunks.first().is_some_and(|first| first.mark == Mark::default());
    let is_sorted = chunks.windows(2).all(|pair| match pair {
        [one, two] => one.mark.offset < two.mark.offset && one.mark.seq <= two.mark.seq,
        _ => true,
    });
    (rest.is_empty() && starts_at_start && is_sorted).then_some(chunks)
}

fn decode_chunk(row: &[u8; CHUNK_BYTES], states: &[u8]) -> Option<Chunk> {
    let [offset, seq, rows, low, high, threads, kinds, state_at] = numbers::<8>(row);
    let word = |at: usize| row.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map(|b| u32::from_le_bytes(*b));
    let (state_bytes, flags) = (usize::try_from(word(64)?).ok()?, word(68)?);
    let state_at = usize::try_from(state_at).ok()?;
    let state = states.get(state_at..state_at.checked_add(state_bytes)?)?;
    let time = (flags & HAS_TIME != 0).then(|| low.cast_signed()..=high.cast_signed());
    // A record has at least a byte.
    let mark = Mark { offset, seq, state: state.into() };
    if seq > offset {
        return None;
    }
    Some(Chunk { mark, rows, time, threads, kinds, is_damaged: flags & IS_DAMAGED != 0, spans: None })
}

/// Adds their spans to the chunks, the first of which begins a part.
fn decode_spans(mut bytes: &[u8], chunks: &mut [Chunk]) -> Option<()> {
    for (at, chunk) in chunks.iter_mut().enumerate() {
        chunk.spans = Some(ChunkSpans::decode(&mut bytes).filter(|spans| spans.begins || at > 0)?);
    }
    bytes.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Index {
        let chunk = |offset: u64, state: &[u8], time| Chunk {
            mark: Mark { offset, seq: offset / 3, state: state.into() },
            rows: 4,
            time,
            threads: 5,
            kinds: 1 << 63,
            is_damaged: offset == 90,
            spans: None,
        };
        Index {
            format: "x".to_owned(),
            version: "1".to_owned(),
            pieces: Pieces { file_bytes: 70_000, piece_bytes: 1 << 16, digests: vec![1, u64::MAX] },
            chunks: vec![chunk(0, b"", None), chunk(90, b"state", Some(-5..=7)), chunk(99, b"", Some(8..=8))],
            threads: vec![-1, 4],
            kinds: vec!["enter".to_owned()],
            shared: Some(Arc::from(&b"all"[..])),
        }
    }

    #[test]
    fn an_index_is_read_as_it_was_written() {
        let index = sample();
        assert_eq!(Index::decode(&index.encode()), Ok(index.clone()));
        let mut spans = index.clone();
        for (at, chunk) in spans.chunks.iter_mut().enumerate() {
            let state = Arc::from(&b"open"[..at]);
            chunk.spans = Some(ChunkSpans { begins: at != 1, state, ..ChunkSpans::default() });
        }
        assert_eq!(Index::decode(&spans.encode()), Ok(spans.clone()));
        if let Some(first) = &mut spans.chunks[0].spans {
            first.begins = false;
        }
        assert_eq!(Index::decode(&spans.encode()), Err(IndexFault::Content("spans")));
        let bare = Index { shared: None, threads: Vec::new(), kinds: Vec::new(), ..index };
        assert_eq!(Index::decode(&bare.encode()), Ok(bare));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = sample().encode();
        for at in 0..bytes.len() {
            assert!(Index::decode(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert!(Index::decode(&bytes).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn content_that_no_index_has_is_refused_although_its_checksums_are_right() {
        let refused = |change: &dyn Fn(&mut Index), section| {
            let mut index = sample();
            change(&mut index);
            assert_eq!(Index::decode(&index.encode()), Err(IndexFault::Content(section)));
        };
        refused(&|index| index.pieces.digests.truncate(1), "fit");
        refused(&|index| index.pieces.piece_bytes = 1 << 17, "fit");
        refused(&|index| index.chunks.clear(), "chunks");
        refused(&|index| index.chunks.swap(1, 2), "chunks");
        refused(&|index| index.chunks[0].mark.seq = 1, "chunks");
        refused(&|index| index.chunks[2].mark.seq = u64::MAX, "chunks");
        refused(&|index| index.kinds = vec![String::new(); 64], "names");
    }
}

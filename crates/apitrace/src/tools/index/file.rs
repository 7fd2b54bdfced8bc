//! The bytes of an index file: small, checked, and never trusted.
//!
//! ```text
//! file   = magic, number version, body, checksum of all before (XXH3, 8 bytes, little-endian)
//! body   = file bytes, log2 of piece bytes, digests (count, 8 bytes each)
//!          container (0 raw, 1 Snappy, 2 Brotli), flags (1 zstd, 2 with a table, 4 plain frames)
//!          longest event, most bytes of open calls, record limit, raw bytes, events, calls, frames, incomplete, errors, warnings
//!          place of the first error (0, or 1 + offset, stream), obstacle (0, or 1 + kind, offset)
//!          header (length, bytes), five spaces (count, (id, length, definition)*)
//!          frame step, frames (count, (call, raw offset)*), points (count, point*)
//!          enters of open calls (count, (call, raw offset, length, bytes)*)
//! point  = raw offset, file offset, raw offset of the place, event, call, frame, thread, five counts
//!          open calls (count, (number, thread, frame, event, 1 + function)*), recent
//! ```
//!
//! All numbers are encoded as in the raw stream, with seven bits per byte. Numbers that grow from row to row are stored
//! as differences.

use std::fmt;

use anytrace_core::Limits;
use anytrace_core::index::{PIECES_MAX, Pieces, piece_bytes};
use twox_hash::XxHash3_64;

use crate::lanes::points::{FRAMES_MAX, POINTS_MAX, WAITING_MAX};
use crate::tools::index::{FrameStart, Index, IndexTotals, Obstacle};
use crate::wire::container::{Container, parse_header};
use crate::wire::point::{Rows, SeekPoint, WAITING_MAX as WAITING_EACH_MAX};
use crate::wire::point_bytes::{NUMBER_MAX, Parser, Writer};
use crate::wire::scan::Scan;

/// The first bytes. The eighth bit and the line ends reveal a transfer in text mode.
const MAGIC: [u8; 8] = *b"\x89atidx\r\n";

const VERSION: u64 = 1;

const CHECKSUM_BYTES: usize = 8;

/// Largest index file. The largest possible index is smaller.
pub(super) const INDEX_BYTES_MAX: u64 = 96 << 20;

const OBSTACLES: [Obstacle; 5] =
    [Obstacle::Container, Obstacle::Damage, Obstacle::OpenCalls, Obstacle::Leave, Obstacle::LongValue];

const OWN: [Container; 3] = [Container::Raw, Container::Snappy, Container::Brotli];

/// Why bytes are not an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexFault {
    /// They do not begin like one.
    Magic,
    /// They have an unknown version.
    Version(u64),
    /// They are cut or changed.
    Checksum,
    /// The content is invalid; the byte offset.
    Content(u64),
}

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("not an index of an apitrace trace"),
            Self::Version(version) => write!(f, "expected index version {VERSION}, found {version}"),
            Self::Checksum => f.write_str("the index is truncated or damaged"),
            Self::Content(offset) => write!(f, "the index is invalid at byte {offset:#x}"),
        }
    }
}

impl std::error::Error for IndexFault {}

impl Index {
    /// The bytes of an index file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.number(VERSION);
        out.pieces(&self.pieces);
        out.number(OWN.iter().position(|own| *own == self.own).unwrap_or(0) as u64);
        let flags = [self.is_zstd, self.is_seekable, self.has_plain_frames];
        out.number(flags.iter().enumerate().map(|(bit, is_set)| u64::from(*is_set) << bit).sum());
        out.number(self.longest_event);
        out.number(self.most_open);
        let t = &self.totals;
        for number in
            [self.record_bytes_max, t.raw_bytes, t.events, t.calls, t.frames, t.incomplete, t.errors, t.warnings]
        {
            out.number(number);
        }
        out.option(self.first_error.map(|(offset, is_raw)| (offset, u64::from(is_raw))));
        let kind = |obstacle| OBSTACLES.iter().position(|known| *known == obstacle).unwrap_or(0) as u64;
        out.option(self.obstacle.map(|(offset, obstacle)| (offset, kind(obstacle))));
        out.bytes(&self.header.raw);
        out.definitions(&self.definitions);
        out.number(self.frame_step);
        out.number(self.frames.len() as u64);
        let mut last = FrameStart { call: 0, raw_offset: 0 };
        for frame in &self.frames {
            out.difference(frame.call, last.call);
            out.difference(frame.raw_offset, last.raw_offset);
            last = *frame;
        }
        out.number(self.points.len() as u64);
        let mut before = SeekPoint::default();
        for point in &self.points {
            out.point(point, &before);
            before = SeekPoint { waiting: Vec::new(), ..*point };
        }
        out.enters(&self.enters);
        let checksum = XxHash3_64::oneshot(&out.0);
        out.0.extend(checksum.to_le_bytes());
        out.0
    }

    /// Reads an index file.
    ///
    /// # Errors
    /// What is wrong with it. Hostile content is harmless: counts are bounded, definitions parsed, numbers in order.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexFault> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(IndexFault::Magic)?;
        let version = Scan::new(rest).uint().map_err(|_| IndexFault::Checksum)?;
        if version != VERSION {
            return Err(IndexFault::Version(version));
        }
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(IndexFault::Checksum)?;
        if XxHash3_64::oneshot(content) != u64::from_le_bytes(*checksum) || bytes.len() as u64 > INDEX_BYTES_MAX {
            return Err(IndexFault::Checksum);
        }
        let mut scan = Scan::new(content);
        scan.at = MAGIC.len();
        let mut reader = Parser { scan };
        let index = reader.index().ok_or(IndexFault::Content(reader.scan.at as u64))?;
        if reader.scan.rest().is_empty() { Ok(index) } else { Err(IndexFault::Content(reader.scan.at as u64)) }
    }
}

impl Writer {
    fn option(&mut self, pair: Option<(u64, u64)>) {
        match pair {
            None => self.number(0),
            Some((offset, kind)) => {
                self.number(1 + kind);
                self.number(offset);
            }
        }
    }

    fn pieces(&mut self, pieces: &Pieces) {
        self.number(pieces.file_bytes);
        self.number(u64::from(pieces.piece_bytes.trailing_zeros()));
        self.number(pieces.digests.len() as u64);
        for digest in &pieces.digests {
            self.0.extend(digest.to_le_bytes());
        }
    }
}

/// Reads the body.
impl Parser<'_> {
    fn option(&mut self) -> Option<Option<(u64, u64)>> {
        match self.number()? {
            0 => Some(None),
            kind => Some(Some((self.number()?, kind - 1))),
        }
    }

    fn index(&mut self) -> Option<Index> {
        let _version = self.number()?;
        let pieces = self.pieces()?;
        let own = *OWN.get(usize::try_from(self.number()?).ok()?)?;
        let flags = self.number()?;
        let mut totals = IndexTotals { file_bytes: pieces.file_bytes, ..IndexTotals::default() };
        let (longest_event, most_open) = (self.number()?, self.number()?);
        let record_bytes_max = self.number()?;
        for place in [
            &mut totals.raw_bytes,
            &mut totals.events,
            &mut totals.calls,
            &mut totals.frames,
            &mut totals.incomplete,
            &mut totals.errors,
            &mut totals.warnings,
        ] {
            *place = self.number()?;
        }
        let first_error = self.option()?.map(|(offset, is_raw)| (offset, is_raw == 1));
        let obstacle = match self.option()? {
            None => None,
            Some((offset, kind)) => Some((offset, *OBSTACLES.get(usize::try_from(kind).ok()?)?)),
        };
        let raw = self.scan.string().ok()?;
        let header = parse_header(raw, &Limits::default().with_record_bytes_max(INDEX_BYTES_MAX))
            .ok()
            .filter(|header| header.raw == raw)?;
        let definitions = self.definitions(header.version)?;
        let frame_step = self.number().filter(|step| *step <= NUMBER_MAX / (FRAMES_MAX as u64 + 1))?;
        let frames = self.frames()?;
        let points = self.points(&totals, &definitions)?;
        let enters = self.enters()?;
        Some(Index {
            totals,
            pieces,
            own,
            is_zstd: flags & 1 != 0,
            is_seekable: flags & 2 != 0,
            longest_event,
            most_open,
            record_bytes_max,
            first_error,
            obstacle,
            header,
            definitions,
            frame_step,
            frames,
            has_plain_frames: flags & 4 != 0,
            points,
            enters,
        })
    }

    fn pieces(&mut self) -> Option<Pieces> {
        let file_bytes = self.number()?;
        let piece_log = u32::try_from(self.number()?).ok()?;
        let most = usize::try_from(PIECES_MAX).unwrap_or(usize::MAX);
        let count = self.count(most)?;
        let piece = 1_u64.checked_shl(piece_log).filter(|piece| *piece == piece_bytes(file_bytes))?;
        if count as u64 != file_bytes.div_ceil(piece) {
            return None;
        }
        let mut digests = Vec::new();
        for _ in 0..count {
            digests.push(u64::from_le_bytes(self.scan.array().ok()?));
        }
        Some(Pieces { file_bytes, piece_bytes: piece, digests })
    }

    fn frames(&mut self) -> Option<Vec<FrameStart>> {
        let mut frames = Vec::new();
        let mut last = FrameStart { call: 0, raw_offset: 0 };
        for _ in 0..self.count(FRAMES_MAX)? {
            last.call = last.call.checked_add(self.number()?)?;
            last.raw_offset = last.raw_offset.checked_add(self.number()?)?;
            frames.push(last);
        }
        Some(frames)
    }

    fn points(&mut self, totals: &IndexTotals, definitions: &[Rows; 5]) -> Option<Vec<SeekPoint>> {
        let mut points: Vec<SeekPoint> = Vec::new();
        let mut waiting_left = WAITING_MAX.max(WAITING_EACH_MAX);
        for _ in 0..self.count(POINTS_MAX)? {
            let point = self.point(points.last(), definitions, &mut waiting_left)?;
            let is_inside = point.place.file <= totals.file_bytes && point.place.raw <= point.raw;
            if !is_inside || point.raw > totals.raw_bytes || point.call > totals.calls {
                return None;
            }
            points.push(point);
        }
        Some(points)
    }
}

//! The bytes of the file.

use crate::wire::parse::parse;
use crate::wire::record::{self, Record};

const MAGIC: &[u8] = b"AThepM01";

/// Words of the header.
const PROCESS: usize = 1;
const SESSION: usize = 2;
const EPOCH: usize = 4;
const SPANS: usize = 5;
const OWN: usize = 8;
const CHUNKS: usize = 11;
const LINE: usize = 14;
const NAME: usize = 18;

/// Bytes of the header, all of it numbers of 64 bits in little-endian order.
const HEADER_BYTES: usize = 4096;

/// Places of equal size, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    at: usize,
    count: usize,
    bytes: usize,
}

/// A file whose header makes sense.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    bytes: &'a [u8],
    pub(super) process: u64,
    pub(super) session: u128,
    /// Nanoseconds from 1970 to the recording's time 0.
    pub(super) epoch_ns: u64,
    /// Name of the trace, without its folder.
    pub(super) file: &'a [u8],
    spans: Area,
    chunks: [Area; 2],
    line: Line,
}

/// How counts become nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Line {
    count: u64,
    ns: u64,
    ns_per_count: f64,
}

impl Line {
    fn ns(self, count: u64) -> u64 {
        // The count that the line begins at is a moment ago: a rate in 64 bits is exact enough on both sides of it.
        let by = |counts: u64| (counts as f64 * self.ns_per_count) as u64;
        match count.checked_sub(self.count) {
            Some(later) => self.ns.saturating_add(by(later)),
            None => self.ns.saturating_sub(by(self.count - count)),
        }
    }
}

/// A word of the file.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at * 8..).and_then(|rest| rest.first_chunk()).copied();
    found.map_or(0, u64::from_le_bytes)
}

/// An event with its stream and counter.
type Found = ((u32, u32), Vec<u8>);

impl<'a> Layout<'a> {
    /// `None` if this is no such file, or one that is only being made.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES).filter(|header| header.starts_with(MAGIC))?;
        let area = |from: usize| {
            let [at, count, each] = [0, 1, 2].map(|n| usize::try_from(word(header, from + n)).unwrap_or(usize::MAX));
            let end = count.checked_mul(each).and_then(|all| all.checked_add(at))?;
            (each >= 64 && each.is_multiple_of(8) && end <= bytes.len()).then_some(Area { at, count, bytes: each })
        };
        let rest = header.get((NAME + 1) * 8..)?;
        let file = rest.get(..usize::try_from(word(header, NAME)).ok()?)?;
        let line = Line {
            count: word(header, LINE + 1),
            ns: word(header, LINE + 2),
            ns_per_count: f64::from_bits(word(header, LINE + 3)),
        };
        if !line.ns_per_count.is_finite() || line.ns_per_count <= 0.0 {
            return None;
        }
        Some(Self {
            bytes,
            process: word(header, PROCESS),
            session: u128::from(word(header, SESSION)) << 64 | u128::from(word(header, SESSION + 1)),
            epoch_ns: word(header, EPOCH),
            file,
            spans: area(SPANS)?,
            chunks: [area(OWN)?, area(CHUNKS)?],
            line,
        })
    }

    fn all(&self, area: Area) -> impl Iterator<Item = &'a [u8]> {
        let bytes = self.bytes;
        (0..area.count).filter_map(move |n| bytes.get(area.at + n * area.bytes..area.at + (n + 1) * area.bytes))
    }

    /// The places of open spans.
    pub(super) fn places(&self) -> impl Iterator<Item = &'a [u8]> {
        self.all(self.spans)
    }

    /// The time of a count.
    pub(super) fn ns(&self, count: u64) -> u64 {
        self.line.ns(count)
    }

    /// Events of all chunks, by stream and counter, with nanoseconds for counts.
    pub(super) fn events(&self) -> Vec<Found> {
        let mut all = Vec::new();
        for chunk in self.chunks.into_iter().flat_map(|area| self.all(area)) {
            let packets = chunk.get(8..).unwrap_or_default();
            let ready = usize::try_from(word(chunk, 0)).unwrap_or(0).saturating_mul(8).min(packets.len());
            let mut rest = packets.get(..ready).unwrap_or_default();
            while let Some((found, used)) = self.event(rest) {
                all.push(found);
                rest = rest.get(used..).unwrap_or_default();
            }
        }
        all.sort_by_key(|(key, _)| *key);
        // In a program that still runs, a chunk may be used again while it is read.
        all.dedup_by_key(|(key, _)| *key);
        all
    }

    /// The event at the beginning, and how many bytes it takes: complete words.
    fn event(&self, bytes: &[u8]) -> Option<(Found, usize)> {
        // In a chunk, times are counts of the processor: any are valid.
        let (Record::Event(event), size) = parse(bytes, &record::Layout::default()).ok()? else { return None };
        let key = (event.header.stream, event.header.counter);
        let start = self.ns(event.header.start_ns);
        let end = self.ns(event.header.end_ns).max(start);
        let mut packet = bytes.get(..size)?.to_vec();
        packet.get_mut(24..32)?.copy_from_slice(&start.to_be_bytes());
        packet.get_mut(32..40)?.copy_from_slice(&end.to_be_bytes());
        Some(((key, packet), size.next_multiple_of(8)))
    }
}

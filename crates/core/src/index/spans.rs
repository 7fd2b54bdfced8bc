//! What an index knows of the spans of each chunk: which are open where it begins, and when those that end in it began.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{Index, Part, signed};
use crate::table::{Filter, SPANS, Table};

/// Most ranges in [`ChunkSpans::starts`].
pub const STARTS_MAX: usize = 8;

/// Numbers of a chunk before its ranges.
const NUMBERS: usize = 7;

// Flags.
const BEGINS: u64 = 1;
const HAS_MORE_THREADS: u64 = 2;
const HAS_REACH: u64 = 4;
const HAS_CARRIED: u64 = 8;
const FLAGS: u64 = 15;

/// The spans of a chunk. A format finds them with the marks; [`super::MarkSink::spans`] takes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkSpans {
    /// The spans of a part can begin with this chunk. One that says no is read with the chunk before, which has the
    /// ranges of both.
    pub begins: bool,
    /// What is open where the chunk begins: bytes that only the format understands.
    pub state: Arc<[u8]>,
    /// Times at which the spans that end here began, in the trace's own unit, in order: a few ranges that have all.
    pub starts: Vec<RangeInclusive<u64>>,
    /// A span that is open at a time is one of this chunk if the time is in this range: the chunk's own times, and those
    /// for which its spans were open before it.
    pub reach: Option<RangeInclusive<u64>>,
    /// Numbers of the records at which those of them began that began in another chunk.
    pub carried: Option<RangeInclusive<u64>>,
    /// There are spans of threads that the table `events` does not know.
    pub has_more_threads: bool,
    /// More is wrong than the marks revealed. Not part of the index: it marks the chunk itself as damaged.
    pub is_damaged: bool,
}

impl ChunkSpans {
    /// Adds a range of beginnings; the closest two become one where there are too many.
    pub fn add_starts(&mut self, range: RangeInclusive<u64>) {
        let at = self.starts.partition_point(|known| known.start() <= range.start());
        self.starts.insert(at, range);
        self.starts.dedup_by(|next, before| {
            let meets = next.start() <= before.end() || before.end().checked_add(1) == Some(*next.start());
            if meets {
                *before = *before.start()..=*before.end().max(next.end());
            }
            meets
        });
        if self.starts.len() > STARTS_MAX {
            let gap = |pair: &[RangeInclusive<u64>]| match pair {
                [one, two] => two.start() - one.end(),
                _ => u64::MAX,
            };
            let closest = self.starts.windows(2).enumerate().min_by_key(|(_, pair)| gap(pair)).map(|(at, _)| at);
            if let Some(at) = closest {
                let next = self.starts.remove(at + 1);
                if let Some(one) = self.starts.get_mut(at) {
                    *one = *one.start()..=*next.end();
                }
            }
        }
    }

    /// Extends [`Self::reach`].
    pub fn add_reach(&mut self, range: &RangeInclusive<u64>) {
        extend(&mut self.reach, range);
    }

    /// Extends [`Self::carried`].
    pub fn add_carried(&mut self, range: &RangeInclusive<u64>) {
        extend(&mut self.carried, range);
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let flags = flag(self.begins, BEGINS)
            | flag(self.has_more_threads, HAS_MORE_THREADS)
            | flag(self.reach.is_some(), HAS_REACH)
            | flag(self.carried.is_some(), HAS_CARRIED);
        let (low, high) = self.reach.clone().map_or((0, 0), RangeInclusive::into_inner);
        let (first, last) = self.carried.clone().map_or((0, 0), RangeInclusive::into_inner);
        let (starts, state) = (self.starts.len() as u64, self.state.len() as u64);
        let numbers: [u64; NUMBERS] = [flags, low, high, first, last, starts, state];
        let starts = self.starts.iter().flat_map(|range| [*range.start(), *range.end()]);
        numbers.into_iter().chain(starts).for_each(|number| out.extend(number.to_le_bytes()));
        out.extend_from_slice(&self.state);
    }

    /// Reads one from the front of the bytes.
    pub(super) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut number = || {
            let (number, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*number))
        };
        let (flags, low, high) = (number()?, number()?, number()?);
        let (first, last, count, length) = (number()?, number()?, number()?, number()?);
        if flags & !FLAGS != 0 || low > high || first > last || count > STARTS_MAX as u64 {
            return None;
        }
        let mut starts: Vec<RangeInclusive<u64>> = Vec::new();
        for _ in 0..count {
            let range = number()?..=number()?;
            if range.is_empty() || starts.last().is_some_and(|before| before.end() >= range.start()) {
                return None;
            }
            starts.push(range);
        }
        let (state, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        *bytes = rest;
        Some(Self {
            begins: flags & BEGINS != 0,
            state: state.into(),
            starts,
            reach: (flags & HAS_REACH != 0).then_some(low..=high),
            carried: (flags & HAS_CARRIED != 0).then_some(first..=last),
            has_more_threads: flags & HAS_MORE_THREADS != 0,
            is_damaged: false,
        })
    }
}

fn extend(range: &mut Option<RangeInclusive<u64>>, more: &RangeInclusive<u64>) {
    *range = Some(match range {
        Some(known) => *known.start().min(more.start())..=*known.end().max(more.end()),
        None => more.clone(),
    });
}

/// True for a table whose rows are spans: one that begins with the columns of `spans`.
pub fn is_of_spans(table: &Table) -> bool {
    table.columns.starts_with(SPANS.columns)
}

impl Index {
    /// True when the spans of the trace can be read in parts.
    pub fn has_spans(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.spans.is_some())
    }

    /// The parts that together have every span that overlaps a range of time, in the trace's own unit, read by
    /// [`crate::Trace::spans`]; a span that lies over several is in each. `None` for a trace whose spans can only be read
    /// at once.
    pub fn window(&self, time: &RangeInclusive<u64>) -> Option<Vec<Part>> {
        let meets = |reach: &RangeInclusive<u64>| reach.start() <= time.end() && time.start() <= reach.end();
        let is_wanted = |at: usize| {
            let spans = self.spans_of(at);
            spans.is_some_and(|spans| spans.reach.as_ref().is_some_and(meets))
        };
        let wanted: Vec<bool> = (0..self.chunks.len()).map(is_wanted).collect();
        self.has_spans().then(|| self.span_parts(u64::MAX, &wanted))
    }

    /// About `count` parts that together have every span that begins in a range of time, in the trace's own unit, and
    /// everything else that happens in it. `None` for a trace whose spans can only be read at once.
    pub fn begun_in(&self, time: &RangeInclusive<u64>, count: usize) -> Option<Vec<Part>> {
        let meets = |reach: &RangeInclusive<u64>| reach.start() <= time.end() && time.start() <= reach.end();
        let begins = |at: &usize| self.spans_at(*at).is_some_and(|spans| spans.begins);
        let last = (0..self.chunks.len()).rev().find(begins).unwrap_or(0);
        let is_wanted = |at: usize| {
            // The last part has what never ends.
            at >= last || self.spans_of(at).is_some_and(|spans| spans.reach.iter().chain(&spans.starts).any(meets))
        };
        let wanted: Vec<bool> = (0..self.chunks.len()).map(is_wanted).collect();
        let bytes: u64 = wanted.iter().enumerate().filter(|(_, is)| **is).map(|(at, _)| self.bytes(at, at + 1)).sum();
        let most = if count < 2 { u64::MAX } else { bytes / count as u64 + 1 };
        self.has_spans().then(|| self.span_parts(most, &wanted))
    }

    /// The wanted chunks in parts of about `most` bytes.
    pub(super) fn span_parts(&self, most: u64, wanted: &[bool]) -> Vec<Part> {
        let begins = |at: usize| self.spans_at(at).is_some_and(|spans| spans.begins);
        let (mut parts, mut start) = (Vec::new(), 0);
        while start < self.chunks.len() {
            let mut end = start + 1;
            while end < self.chunks.len()
                && (!begins(end) || wanted.get(end) == wanted.get(start) && self.bytes(start, end + 1) <= most)
            {
                end += 1;
            }
            // A chunk that cannot begin a part is read with those before it, which are larger than asked for then.
            if wanted.get(start) == Some(&true) {
                let states = self.chunks.get(start..end).unwrap_or_default();
                let spans =
                    states.iter().filter_map(|chunk| chunk.spans.as_ref()).map(|spans| Arc::clone(&spans.state));
                parts.push(Part { spans: spans.collect(), ..self.part(start, end) });
            }
            start = end;
        }
        parts
    }

    fn spans_at(&self, at: usize) -> Option<&ChunkSpans> {
        self.chunks.get(at).and_then(|chunk| chunk.spans.as_ref())
    }

    /// The spans of the chunk with which a chunk is read.
    fn spans_of(&self, at: usize) -> Option<&ChunkSpans> {
        (0..=at).rev().filter_map(|at| self.spans_at(at)).find(|spans| spans.begins)
    }

    /// Which chunks may have rows of a table of spans that meet the filter.
    pub(super) fn have_spans(&self, filter: &Filter) -> Vec<bool> {
        let mut wanted: Vec<bool> = Vec::with_capacity(self.chunks.len());
        let mut start = 0;
        while start < self.chunks.len() {
            let begins = |at: usize| self.spans_at(at).is_some_and(|spans| spans.begins);
            let end = (start + 1..self.chunks.len()).find(|at| begins(*at)).unwrap_or(self.chunks.len());
            let is_wanted = self.may_have_spans(start, end, filter);
            wanted.resize(end, is_wanted);
            start = end;
        }
        wanted
    }

    fn may_have_spans(&self, start: usize, end: usize, filter: &Filter) -> bool {
        let chunks = self.chunks.get(start..end).unwrap_or_default();
        let Some(spans) = self.spans_at(start) else { return true };
        let has_time = filter.time.as_ref().is_none_or(|time| {
            let meets = |range: &RangeInclusive<u64>| {
                signed(*range.start()) <= *time.end() && *time.start() <= signed(*range.end())
            };
            spans.starts.iter().any(meets)
        });
        let has_seq = filter.seq.as_ref().is_none_or(|seq| {
            let behind = self.chunks.get(end).map_or(i64::MAX, |next| signed(next.mark.seq));
            let own = chunks.first().map_or(0, |chunk| signed(chunk.mark.seq))..=behind;
            let carried = spans.carried.as_ref().map(|seqs| signed(*seqs.start())..=signed(*seqs.end()));
            let meets = |range: &RangeInclusive<i64>| range.start() <= seq.end() && seq.start() <= range.end();
            meets(&own) || carried.as_ref().is_some_and(meets)
        });
        // What is wrong is reported whatever is asked for.
        chunks.iter().any(|chunk| chunk.is_damaged)
            // The last part has what never ends.
            || end == self.chunks.len()
            || has_time
                && has_seq
                && (spans.has_more_threads || chunks.iter().any(|chunk| self.has_thread(chunk, filter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Chunk, Mark, Pieces};

    fn spans(begins: bool, starts: &[RangeInclusive<u64>], reach: RangeInclusive<u64>) -> ChunkSpans {
        let state = Arc::from(&b"state"[..]);
        ChunkSpans { begins, state, starts: starts.to_vec(), reach: Some(reach), ..ChunkSpans::default() }
    }

    fn index(chunks: Vec<ChunkSpans>) -> Index {
        let chunk = |(at, spans): (usize, ChunkSpans)| Chunk {
            mark: Mark { offset: at as u64 * 10, seq: at as u64, ..Mark::default() },
            spans: Some(spans),
            threads: 1,
            ..Chunk::default()
        };
        Index {
            format: String::new(),
            version: String::new(),
            pieces: Pieces { file_bytes: 30, piece_bytes: 30, digests: Vec::new() },
            chunks: chunks.into_iter().enumerate().map(chunk).collect(),
            threads: vec![7],
            kinds: Vec::new(),
            shared: None,
        }
    }

    fn offsets(parts: &[Part]) -> Vec<(u64, Option<u64>)> {
        parts.iter().map(|part| (part.from.as_ref().map_or(0, |mark| mark.offset), part.until)).collect()
    }

    #[test]
    fn close_ranges_become_one_and_all_values_stay() {
        let mut made = ChunkSpans::default();
        let values: Vec<u64> = (0..40).map(|n| n * n * 7 % 997).collect();
        for value in &values {
            made.add_starts(*value..=*value + 1);
            assert!(made.starts.len() <= STARTS_MAX);
            assert!(made.starts.windows(2).all(|pair| pair[0].end() < pair[1].start()));
        }
        for value in values {
            assert!(made.starts.iter().any(|range| range.contains(&value) && range.contains(&(value + 1))));
        }
        made.add_starts(0..=u64::MAX);
        assert_eq!(made.starts, [0..=u64::MAX]);
    }

    #[test]
    fn spans_are_read_as_they_were_written() {
        let one = spans(true, &[3..=5, 7..=u64::MAX], 1..=9);
        let bare = ChunkSpans { carried: Some(4..=5), has_more_threads: true, ..ChunkSpans::default() };
        let mut bytes = Vec::new();
        one.encode(&mut bytes);
        bare.encode(&mut bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(ChunkSpans::decode(&mut rest), Some(one));
        assert_eq!((ChunkSpans::decode(&mut rest), rest.len()), (Some(bare), 0));
        for cut in 0..88 {
            assert_eq!(ChunkSpans::decode(&mut &bytes[..cut]), None);
        }
        // An unknown flag; a range that ends before it begins; too many ranges; ranges in no order.
        for (at, value) in [(0, 16), (8, 10), (24, 1), (40, 9), (56, 8), (72, 5)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(ChunkSpans::decode(&mut bytes.as_slice()), None, "{at}");
        }
    }

    #[test]
    fn a_window_has_the_chunks_that_reach_it_with_those_that_cannot_be_read_alone() {
        let index = index(vec![
            spans(true, &[0..=9], 0..=9),
            spans(true, &[10..=19], 10..=29),
            spans(false, &[], 0..=0),
            spans(true, &[30..=39], 5..=39),
        ]);
        assert_eq!(offsets(&index.window(&(0..=4)).unwrap()), [(0, Some(10))]);
        assert_eq!(offsets(&index.window(&(12..=12)).unwrap()), [(10, None)]);
        assert_eq!(offsets(&index.window(&(7..=8)).unwrap()), [(0, Some(10)), (30, None)]);
        assert_eq!(index.window(&(12..=12)).unwrap()[0].spans.len(), 3);
        assert_eq!(offsets(&index.window(&(40..=41)).unwrap()), []);
        // One part begins where it can, whatever the number that is asked for.
        assert_eq!(offsets(&index.parts(&SPANS, &Filter::default(), 64)), [(0, Some(10)), (10, Some(30)), (30, None)]);
        let filter = Filter { time: Some(8..=12), ..Filter::default() };
        assert_eq!(offsets(&index.parts(&SPANS, &filter, 7)), [(0, Some(10)), (10, Some(30)), (30, None)]);
        let filter = Filter { time: Some(20..=25), ..Filter::default() };
        assert_eq!(offsets(&index.parts(&SPANS, &filter, 7)), [(30, None)], "the last has what never ends");
        let mut without = index;
        without.chunks[1].spans = None;
        assert_eq!(without.window(&(0..=4)), None);
        assert_eq!(offsets(&without.parts(&SPANS, &Filter::default(), 7)), [(0, None)]);
    }
}

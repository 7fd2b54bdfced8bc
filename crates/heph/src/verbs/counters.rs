//! Streams and their counters: which events are lost, late or duplicated, and where a writer restarted.
//!
//! Counters count modulo 2^32. A gap is not a loss at once: stream 0 is shared by threads that take a counter first and
//! write afterwards, so neighbors may be swapped in the file. A gap stays open for [`WINDOW_RECORDS`] records or
//! [`WINDOW_BYTES`] bytes; events that fill it in that time were late, not lost.

use std::collections::{HashMap, VecDeque};

use anytrace_core::Place;

use crate::verbs::finding::{Finding, FindingKind};
use crate::wire::counter::{JUMP, RESTART, is_plausible};
use crate::wire::record::Header;

/// How many records a gap stays open (page, section 4: the reorder window).
const WINDOW_RECORDS: u64 = 4096;

/// How many bytes a gap stays open, so that a dump that waits for it buffers little.
const WINDOW_BYTES: u64 = 1 << 20;

/// Most gaps open at once, and most pieces of one: a bound on work, for hostile input.
const GAPS_MAX: usize = 64;
const PIECES_MAX: usize = 16;

/// What is known of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) first_counter: u32,
    next: u32,
    /// The latest end of its events.
    last_end_ns: u64,
    /// The counter that would follow the last jump: two in a row mean that the writer restarted.
    other: Option<u32>,
    has_started: bool,
}

impl Stream {
    /// How many events follow the last that arrived, if the stream has had this many.
    pub(crate) fn missing_after(&self, recorded: u64) -> u32 {
        let missing = (recorded as u32).wrapping_sub(self.next);
        // Below half of the range it is a distance, above it the events are more than were recorded.
        if missing < 1 << 31 { missing } else { 0 }
    }
}

/// Counters that were skipped, and where.
#[derive(Debug)]
struct Gap {
    place: Place,
    stream: usize,
    /// The first counter of the stream, if the gap is at its beginning.
    head: Option<u32>,
    filled: u32,
    pieces: Vec<(u32, u32)>,
}

/// The streams of a trace.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) streams: Vec<Stream>,
    pub(crate) other_events: u64,
    pub(crate) late: u64,
    pub(crate) first_late: Option<Place>,
    index: HashMap<u32, usize>,
    distinct_max: usize,
    open: VecDeque<Gap>,
}

impl Counters {
    pub(crate) fn new(distinct_max: usize) -> Self {
        Self {
            streams: Vec::new(),
            other_events: 0,
            late: 0,
            first_late: None,
            index: HashMap::new(),
            distinct_max,
            open: VecDeque::new(),
        }
    }

    /// The index of a stream, known or new; `None` beyond the limit.
    pub(crate) fn stream(&mut self, id: u32) -> Option<usize> {
        if let Some(index) = self.index.get(&id) {
            return Some(*index);
        }
        if self.streams.len() >= self.distinct_max {
            return None;
        }
        let made = Stream {
            id,
            events: 0,
            lost: 0,
            first_counter: 0,
            next: 0,
            last_end_ns: 0,
            other: None,
            has_started: false,
        };
        self.streams.push(made);
        self.index.insert(id, self.streams.len() - 1);
        Some(self.streams.len() - 1)
    }

    /// Processes the next counter of a stream.
    #[inline]
    pub(crate) fn count(&mut self, stream: usize, header: &Header, place: Place, findings: &mut Vec<Finding>) {
        let Some(known) = self.streams.get_mut(stream) else { return };
        if known.next == header.counter && known.other.is_none() {
            known.next = header.counter.wrapping_add(1);
            known.last_end_ns = known.last_end_ns.max(header.end_ns);
            known.has_started = true;
        } else {
            self.jump(stream, header, place, findings);
        }
    }

    /// The stream with this number, if it has events.
    pub(crate) fn find(&self, id: u32) -> Option<&Stream> {
        self.index.get(&id).and_then(|&index| self.streams.get(index)).filter(|stream| stream.has_started)
    }

    /// Closes gaps that are too old when a record ends at `end`.
    #[inline]
    pub(crate) fn tick(&mut self, seq: u64, end: u64, findings: &mut Vec<Finding>) {
        if !self.open.is_empty() {
            self.settle_old(seq, end, findings);
        }
    }

    /// True while the gap that was seen at an offset may still be filled.
    pub(crate) fn is_open(&self, offset: u64) -> bool {
        self.open.iter().any(|gap| gap.place.offset == offset)
    }

    /// Closes all gaps: the data are at their end.
    pub(crate) fn settle_all(&mut self, findings: &mut Vec<Finding>) {
        while let Some(gap) = self.open.pop_front() {
            self.settle(&gap, findings);
        }
    }

    #[cold]
    #[inline(never)]
    fn jump(&mut self, stream: usize, header: &Header, place: Place, findings: &mut Vec<Finding>) {
        let Some(known) = self.streams.get_mut(stream) else { return };
        let counter = header.counter;
        let from_ns = known.last_end_ns;
        let other = known.other.take();
        let expected = known.next;
        let id = known.id;
        let after = counter.wrapping_add(1);
        let ahead = counter.wrapping_sub(expected);
        let is_first = !std::mem::replace(&mut known.has_started, true);
        if is_first {
            known.first_counter = counter;
        }
        // The time of an event far ahead may be as wrong as its counter.
        if ahead <= JUMP {
            known.last_end_ns = from_ns.max(header.end_ns);
        }
        if ahead == 0 {
            known.next = after;
        } else if other == Some(counter) {
            // The second in a row after a jump: the stream continues here.
            known.next = after;
            let is_of_jump = |gap: &Gap| {
                gap.stream == stream && gap.filled == 0 && gap.pieces.first().is_some_and(|piece| piece.0 == counter)
            };
            if let Some(gap) = self.open.iter().position(is_of_jump).and_then(|at| self.open.remove(at)) {
                let missing = gap.pieces.iter().fold(0_u32, |sum, piece| sum.wrapping_add(piece.1));
                findings.push(Finding { place: gap.place, what: FindingKind::CounterDoubtful { stream: id, missing } });
            }
        } else if is_first && ahead >= RESTART {
            known.next = after;
            findings.push(Finding { place, what: FindingKind::CounterStartsAt { stream: id, first: counter } });
        } else if ahead < 1 << 31 {
            known.next = after;
            if ahead > JUMP && !is_first {
                known.other = Some(expected);
            }
            if !is_plausible(ahead.into(), from_ns, header.end_ns) {
                findings.push(Finding { place, what: FindingKind::CounterDoubtful { stream: id, missing: ahead } });
            } else if ahead >= RESTART {
                findings.push(Finding { place, what: FindingKind::CounterGap { stream: id, missing: ahead } });
            } else {
                let head = is_first.then_some(counter);
                self.open_gap(Gap { place, stream, head, filled: 0, pieces: vec![(expected, ahead)] }, findings);
            }
        } else if self.fill(stream, counter, findings) {
            self.late += 1;
            self.first_late.get_or_insert(place);
        } else if let Some(known) = self.streams.get_mut(stream) {
            known.other = Some(after);
            findings.push(Finding {
                place,
                what: FindingKind::CounterBack { stream: id, by: expected.wrapping_sub(counter) },
            });
        }
    }

    fn open_gap(&mut self, gap: Gap, findings: &mut Vec<Finding>) {
        if self.open.len() >= GAPS_MAX
            && let Some(oldest) = self.open.pop_front()
        {
            self.settle(&oldest, findings);
        }
        self.open.push_back(gap);
    }

    /// Removes a late counter from the gap to which it belongs.
    fn fill(&mut self, stream: usize, counter: u32, findings: &mut Vec<Finding>) -> bool {
        let holds = |piece: &(u32, u32)| counter.wrapping_sub(piece.0) < piece.1;
        let of_stream = |gap: &Gap| gap.stream == stream && gap.pieces.iter().any(holds);
        let Some(at) = self.open.iter().position(of_stream) else { return false };
        let Some(gap) = self.open.get_mut(at) else { return false };
        let Some(piece) = gap.pieces.iter().position(holds) else { return false };
        let (from, length) = gap.pieces.swap_remove(piece);
        let before = counter.wrapping_sub(from);
        let rest = [(from, before), (counter.wrapping_add(1), length - before - 1)];
        gap.pieces.extend(rest.into_iter().filter(|piece| piece.1 > 0));
        gap.filled += 1;
        if gap.pieces.is_empty() {
            self.open.remove(at);
        } else if gap.pieces.len() > PIECES_MAX
            && let Some(gap) = self.open.remove(at)
        {
            self.settle(&gap, findings);
        }
        true
    }

    #[cold]
    fn settle_old(&mut self, seq: u64, end: u64, findings: &mut Vec<Finding>) {
        while let Some(gap) = self.open.front()
            && (seq > gap.place.seq + WINDOW_RECORDS || end > gap.place.offset + WINDOW_BYTES)
            && let Some(gap) = self.open.pop_front()
        {
            self.settle(&gap, findings);
        }
    }

    /// Counters that did not arrive in time are lost.
    fn settle(&mut self, gap: &Gap, findings: &mut Vec<Finding>) {
        let missing = gap.pieces.iter().fold(0_u32, |sum, piece| sum.wrapping_add(piece.1));
        let Some(stream) = self.streams.get_mut(gap.stream) else { return };
        let what = match gap.head {
            Some(first) if gap.filled == 0 => FindingKind::CounterStartsAt { stream: stream.id, first },
            _ => {
                stream.lost += u64::from(missing);
                FindingKind::CounterGap { stream: stream.id, missing }
            }
        };
        findings.push(Finding { place: gap.place, what });
    }
}

//! Lanes: the events of one substream of one stream, which should nest.
//!
//! Events come in order of their ends, so children before parents. An event overlaps partly when, of the spans that are
//! open when it starts, the one that started last ends before it does (page, section 5). Each lane stores its last
//! spans: a new event may cross some of them, and may turn out to enclose others, which then cross nothing that started
//! before it. With a bounded window the count is an estimate: 0 where everything nests, about nine tenths of the exact
//! figure on the real traces where it does not.

use anytrace_core::hash::Key;

/// Most lanes watched; events of further lanes are counted but their nesting is not checked.
const LANES_MAX: usize = 8192;

/// Most spans that a lane stores, and how many of the oldest are dropped when there are more.
const SPANS_MAX: usize = 64;
const SPANS_DROPPED: usize = 16;

/// No span is crossed. No real span can start later than this.
const NONE: u64 = u64::MAX;

#[derive(Debug)]
struct Lane {
    substream: u64,
    stream: u32,
    stream_index: u32,
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    start: u64,
    end: u64,
    /// Start of the latest span that this one crosses.
    crossed: u64,
}

/// The lanes of a trace.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Indexes into `lanes`, plus one; 0 is free. A power of two long, at most half full.
    slots: Vec<u32>,
    key: Key,
    /// Events that overlap partly with an earlier one of their lane.
    pub(crate) overlaps: u64,
    /// True when there are lanes that are not watched.
    pub(crate) is_full: bool,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self { lanes: Vec::new(), slots: vec![0; 256], key: Key::new(), overlaps: 0, is_full: false }
    }

    /// How many lanes are watched.
    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The lane of a stream and substream and the index of its stream, if it is known.
    #[inline]
    pub(crate) fn find(&self, stream: u32, substream: u64) -> Option<(usize, usize)> {
        let mut at = self.first_slot(stream, substream);
        // At least half of the slots are free.
        loop {
            let index = (*self.slots.get(at)? as usize).checked_sub(1)?;
            let lane = self.lanes.get(index)?;
            if lane.substream == substream && lane.stream == stream {
                return Some((index, lane.stream_index as usize));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Starts to watch a lane, if there is room.
    #[cold]
    pub(crate) fn add(&mut self, stream: u32, substream: u64, stream_index: usize) -> Option<usize> {
        if self.lanes.len() >= LANES_MAX {
            self.is_full = true;
            return None;
        }
        if self.lanes.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let index = self.lanes.len();
        self.place(stream, substream, index);
        let stream_index = u32::try_from(stream_index).ok()?;
        self.lanes.push(Lane { substream, stream, stream_index, spans: Vec::new() });
        Some(index)
    }

    /// Processes an event; true when it overlaps partly with an earlier one of its lane.
    #[inline]
    pub(crate) fn event(&mut self, lane: usize, start: u64, end: u64) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        let spans = &mut lane.spans;
        // Start of the latest span that is crossed, plus one. Without branches except for the end of the loop: in a
        // lane that many actors share, nothing about a span can be predicted.
        let mut latest = 0;
        for span in spans.iter_mut().rev() {
            if span.end < start {
                break;
            }
            let encloses = (start <= span.start) & (span.end <= end) & (span.crossed < start);
            span.crossed = if encloses { NONE } else { span.crossed };
            self.overlaps -= u64::from(encloses);
            let crosses = (span.start < start) & (start < span.end) & (span.end < end);
            latest = latest.max(if crosses { span.start + 1 } else { 0 });
        }
        let crossed = latest.checked_sub(1).unwrap_or(NONE);
        if spans.len() == SPANS_MAX {
            spans.drain(..SPANS_DROPPED);
        }
        spans.push(Span { start, end, crossed });
        self.overlaps += u64::from(crossed != NONE);
        crossed != NONE
    }

    #[inline]
    fn first_slot(&self, stream: u32, substream: u64) -> usize {
        self.key.hash_pair(substream, u64::from(stream)) as usize & (self.slots.len() - 1)
    }

    fn place(&mut self, stream: u32, substream: u64, index: usize) {
        let mut at = self.first_slot(stream, substream);
        while self.slots.get(at).is_some_and(|slot| *slot != 0) {
            at = (at + 1) & (self.slots.len() - 1);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = u32::try_from(index + 1).unwrap_or(0);
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 4];
        for index in 0..self.lanes.len() {
            let Some((stream, substream)) = self.lanes.get(index).map(|lane| (lane.stream, lane.substream)) else {
                continue;
            };
            self.place(stream, substream, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sweep algorithm of the page (section 5) over all spans, sorted.
    fn exact(spans: &[(u64, u64)]) -> u64 {
        let mut sorted = spans.to_vec();
        sorted.sort_by_key(|&(start, end)| (start, u64::MAX - end));
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut overlaps = 0;
        for (start, end) in sorted {
            while open.last().is_some_and(|top| top.1 < start || top.1 == start && end > start) {
                open.pop();
            }
            overlaps += u64::from(open.last().is_some_and(|top| top.1 < end));
            open.push((start, end));
        }
        overlaps
    }

    fn counted(spans: &[(u64, u64)]) -> u64 {
        let mut lanes = Lanes::new();
        let lane = lanes.add(1, 2, 0).unwrap();
        for (start, end) in spans {
            lanes.event(lane, *start, *end);
        }
        lanes.overlaps
    }

    #[test]
    fn in_order_of_their_ends_the_count_of_a_short_lane_is_exact() {
        let mut state = 5_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let count = random(SPANS_MAX as u64) + 1;
            let spans: Vec<_> =
                (1..=count).map(|n| (n * 10).saturating_sub(random(120) + 1)).zip((1..).map(|n| n * 10)).collect();
            assert_eq!(counted(&spans), exact(&spans), "{spans:?}");
        }
    }

    #[test]
    fn nested_and_touching_spans_do_not_overlap_in_a_lane_of_any_length() {
        let mut spans = Vec::new();
        for n in 0..500_u64 {
            let at = n * 100;
            spans.extend([
                (at + 10, at + 20),
                (at + 20, at + 30),
                (at + 30, at + 30),
                (at + 5, at + 40),
                (at, at + 100),
            ]);
        }
        assert_eq!(counted(&spans), 0);
    }

    #[test]
    fn more_lanes_than_are_watched_are_reported() {
        let mut lanes = Lanes::new();
        for n in 0..20_000_u64 {
            let known = lanes.find(7, n * 16);
            assert!(known.is_none());
            lanes.add(7, n * 16, 0);
        }
        assert!(lanes.is_full && lanes.count() <= LANES_MAX && lanes.count() > LANES_MAX / 2);
        assert_eq!(lanes.find(7, 160), Some((10, 0)));
        assert_eq!(lanes.find(8, 160), None);
    }
}

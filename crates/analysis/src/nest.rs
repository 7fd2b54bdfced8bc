//! Pairs edges into complete spans: lengths, own time, depth, stack.
//!
//! Spans are emitted as they end, so children before their parents. Violations of the source's contract (an end without
//! a beginning, a span left open) are tolerated and counted.

use anytrace_core::hash::Map;
use anytrace_core::span::{BATCH_EDGES, Edge, EdgeBatch, EdgeFlags, EdgeKind, NameId, Span, TrackId, Value};

use crate::filter::Resolved;
use crate::stacks::{ROOT, StackTable};

/// Most spans handed to engines at once.
pub const BATCH_SPANS: usize = BATCH_EDGES;

/// Most spans open at once, over all tracks: about 50 MB. Later ones are counted, and their time belongs to their
/// caller.
pub const OPEN_MAX: usize = 1 << 20;

/// Beside [`EdgeFlags`]' own, on a [`Span`]: another span of the same name that counts is open around it.
pub const RECURSIVE: EdgeFlags = EdgeFlags(32);

/// Beside [`EdgeFlags`]' own, on a [`Span`]: no span that counts is open around it.
pub const OUTERMOST: EdgeFlags = EdgeFlags(64);

/// What was wrong with the edges, and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NestCounts {
    /// Spans that ended, and count by the filter.
    pub spans: u64,
    /// Ends without a beginning.
    pub unmatched_ends: u64,
    /// Ends whose name is not that of the innermost open span.
    pub misnamed_ends: u64,
    /// Spans without an end.
    pub left_open: u64,
    /// Edges earlier than the one before them on their track.
    pub backward: u64,
    /// Spans beyond [`OPEN_MAX`].
    pub too_deep: u64,
}

impl NestCounts {
    /// True when the source obeyed its contract and nothing was left out.
    pub fn is_clean(&self) -> bool {
        *self == Self { spans: self.spans, ..Self::default() }
    }
}

/// An open span.
#[derive(Debug, Clone, Copy)]
struct Frame {
    seq: u64,
    start: u64,
    /// Time of the spans inside it.
    inner: u64,
    name: NameId,
    stack: u32,
    cpu: u16,
    flags: EdgeFlags,
    /// False when its beginning already excludes it.
    is_kept: bool,
}

#[derive(Debug, Clone, Default)]
struct TrackState {
    open: Vec<Frame>,
    /// How many of the open spans count.
    kept: u32,
    last: u64,
    /// Innermost spans that found no room.
    skipped: u64,
}

/// The pairing of one trace.
#[derive(Debug)]
pub struct Nest {
    tracks: Vec<TrackState>,
    stacks: Option<StackTable>,
    names: OpenNames,
    spans: Vec<Span>,
    open: usize,
    open_max: usize,
    /// The first track that may still have open spans, when finishing.
    finishing: usize,
    counts: NestCounts,
}

impl Nest {
    /// A pairing that numbers stacks in a table, or leaves [`Span::stack`] at [`ROOT`].
    pub fn new(stacks: Option<StackTable>) -> Self {
        Self {
            tracks: Vec::new(),
            stacks,
            names: OpenNames::default(),
            spans: Vec::with_capacity(BATCH_SPANS),
            open: 0,
            open_max: OPEN_MAX,
            finishing: 0,
            counts: NestCounts::default(),
        }
    }

    /// Another limit than [`OPEN_MAX`].
    #[must_use]
    pub fn with_open_max(mut self, open_max: usize) -> Self {
        self.open_max = open_max;
        self
    }

    /// Takes edges; returns the spans that ended among them and count, at most as many as there are edges.
    pub fn pair(&mut self, edges: &[Edge], filter: &Resolved) -> &[Span] {
        self.pair_part(edges, &EdgeBatch::default(), filter)
    }

    /// As [`Self::pair`], of a part of a trace: `batch` has the attributes of spans that began before it. What ends
    /// after it is not handed out.
    pub fn pair_part(&mut self, edges: &[Edge], batch: &EdgeBatch, filter: &Resolved) -> &[Span] {
        self.spans.clear();
        for edge in edges {
            match edge.kind {
                EdgeKind::Begin if edge.flags.has(EdgeFlags::RESUMED) => self.resume(edge, batch, filter),
                EdgeKind::End if edge.flags.has(EdgeFlags::CONTINUES) => self.suspend(edge),
                EdgeKind::Begin => self.begin(edge, filter),
                EdgeKind::End => self.end(edge, filter),
                EdgeKind::Instant | EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => {}
            }
        }
        &self.spans
    }

    /// Ends the spans still open at the end of the trace, at most [`BATCH_SPANS`] at a time; empty when all are ended.
    pub fn finish(&mut self, filter: &Resolved) -> &[Span] {
        self.spans.clear();
        while self.spans.len() < BATCH_SPANS && self.finishing < self.tracks.len() {
            let track = self.finishing;
            let state = &self.tracks[track];
            if state.open.is_empty() {
                self.finishing += 1;
                continue;
            }
            self.counts.left_open += 1;
            let last = state.last;
            self.close(track, last, EdgeFlags::UNFINISHED, filter);
        }
        &self.spans
    }

    /// The stacks, where they are numbered.
    pub fn stacks(&self) -> Option<&StackTable> {
        self.stacks.as_ref()
    }

    /// Returns the stacks.
    pub fn into_stacks(self) -> Option<StackTable> {
        self.stacks
    }

    /// The counters.
    pub fn counts(&self) -> NestCounts {
        self.counts
    }

    /// The spans of the last call of [`Self::pair`] or [`Self::finish`].
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    #[inline]
    fn begin(&mut self, edge: &Edge, filter: &Resolved) {
        let track = edge.track as usize;
        if track >= self.tracks.len() {
            self.tracks.resize_with(track + 1, TrackState::default);
        }
        let state = &mut self.tracks[track];
        // Once a span finds no room, everything inside it is skipped, too: otherwise its end would close another.
        if state.skipped > 0 || self.open >= self.open_max {
            state.skipped += 1;
            self.counts.too_deep += 1;
            return;
        }
        self.counts.backward += u64::from(edge.time < state.last);
        state.last = edge.time;
        let depth = u32::try_from(state.open.len()).unwrap_or(u32::MAX);
        let parent = state.open.last().map_or(ROOT, |frame| frame.stack);
        let stack = self.stacks.as_mut().map_or(ROOT, |stacks| stacks.intern(parent, edge.name));
        let is_kept = filter.keeps_track(edge.track)
            && filter.keeps_time(edge.time)
            && filter.keeps_name(edge.name)
            && filter.keeps_depth(depth);
        let mut flags = EdgeFlags(edge.flags.0 & EdgeFlags::CHAINED.0);
        // Recursion and the outermost span are judged among spans that count, as the totals are.
        if is_kept {
            if self.names.enter(edge.track, edge.name) > 0 {
                flags = flags.with(RECURSIVE);
            }
            if state.kept == 0 {
                flags = flags.with(OUTERMOST);
            }
            state.kept += 1;
        }
        let (seq, start, name, cpu) = (edge.seq, edge.time, edge.name, edge.cpu);
        state.open.push(Frame { seq, start, inner: 0, name, stack, cpu, flags, is_kept });
        self.open += 1;
    }

    /// Begins a span that began before the part.
    #[cold]
    fn resume(&mut self, edge: &Edge, batch: &EdgeBatch, filter: &Resolved) {
        if let Some(state) = self.tracks.get_mut(edge.track as usize) {
            // Its true time is before that of whatever came before it in this part.
            state.last = 0;
        }
        let (open, skipped) = (self.open, self.counts.too_deep);
        self.begin(edge, filter);
        if self.open == open || self.counts.too_deep > skipped {
            return;
        }
        let frame = self.tracks.get_mut(edge.track as usize).and_then(|state| state.open.last_mut());
        if let (Some(frame), Some((_, Value::U64(inside)))) = (frame, batch.attributes(edge).next()) {
            frame.inner = inside;
        }
    }

    /// Forgets a span that ends after the part.
    #[cold]
    fn suspend(&mut self, edge: &Edge) {
        let Some(state) = self.tracks.get_mut(edge.track as usize) else { return };
        if state.skipped > 0 {
            state.skipped -= 1;
            return;
        }
        let Some(frame) = state.open.pop() else { return };
        self.open -= 1;
        if frame.is_kept {
            state.kept = state.kept.saturating_sub(1);
            self.names.leave(edge.track, frame.name);
        }
    }

    #[inline]
    fn end(&mut self, edge: &Edge, filter: &Resolved) {
        let track = edge.track as usize;
        let Some(state) = self.tracks.get_mut(track) else {
            self.counts.unmatched_ends += 1;
            return;
        };
        if state.skipped > 0 {
            state.skipped -= 1;
            return;
        }
        let Some(frame) = state.open.last() else {
            self.counts.unmatched_ends += 1;
            return;
        };
        // The innermost span ends whatever its name: the contract has no other meaning for an end.
        self.counts.misnamed_ends += u64::from(frame.name != edge.name);
        self.counts.backward += u64::from(edge.time < state.last);
        state.last = edge.time;
        self.close(track, edge.time, edge.flags, filter);
    }

    #[inline]
    fn close(&mut self, track: usize, time: u64, flags: EdgeFlags, filter: &Resolved) {
        let Some(state) = self.tracks.get_mut(track) else { return };
        let Some(frame) = state.open.pop() else { return };
        self.open -= 1;
        // A clock that went back makes a span of no length, not a negative one.
        let end = time.max(frame.start);
        let duration = end - frame.start;
        if let Some(parent) = state.open.last_mut() {
            // Before the filter: time inside an excluded child is not its parent's own time either.
            parent.inner = parent.inner.saturating_add(duration);
        }
        if !frame.is_kept {
            return;
        }
        // Durations are filtered only now, so `kept` and `names` count by beginnings, at both ends alike.
        state.kept = state.kept.saturating_sub(1);
        let depth = u32::try_from(state.open.len()).unwrap_or(u32::MAX);
        let track = TrackId::try_from(track).unwrap_or(TrackId::MAX);
        self.names.leave(track, frame.name);
        if !filter.keeps_duration(duration) {
            return;
        }
        self.counts.spans += 1;
        self.spans.push(Span {
            seq: frame.seq,
            start: frame.start,
            end,
            self_time: duration.saturating_sub(frame.inner),
            track,
            name: frame.name,
            stack: frame.stack,
            depth,
            flags: frame.flags.with(flags),
            cpu: frame.cpu,
        });
    }
}

/// Tracks and names whose open spans are counted in plain tables; further ones are counted in a map.
const DENSE_TRACKS: u32 = 1024;
const DENSE_NAMES: u32 = 4096;

/// How many spans of each name are open on each track.
#[derive(Debug, Default)]
struct OpenNames {
    dense: Vec<Vec<u32>>,
    sparse: Map<(TrackId, NameId), u32>,
}

impl OpenNames {
    /// Counts one more; how many there were.
    #[inline]
    fn enter(&mut self, track: TrackId, name: NameId) -> u32 {
        if track >= DENSE_TRACKS || name >= DENSE_NAMES {
            let count = self.sparse.entry((track, name)).or_default();
            *count += 1;
            return *count - 1;
        }
        let (track, name) = (track as usize, name as usize);
        if track >= self.dense.len() {
            self.dense.resize_with(track + 1, Vec::new);
        }
        let counts = &mut self.dense[track];
        if name >= counts.len() {
            counts.resize(name + 1, 0);
        }
        counts[name] += 1;
        counts[name] - 1
    }

    /// Counts one less.
    #[inline]
    fn leave(&mut self, track: TrackId, name: NameId) {
        if let Some(count) = self.dense.get_mut(track as usize).and_then(|counts| counts.get_mut(name as usize)) {
            *count = count.saturating_sub(1);
        } else if let Some(count) = self.sparse.get_mut(&(track, name)) {
            *count -= 1;
            if *count == 0 {
                self.sparse.remove(&(track, name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::SpanFilter;
    use crate::played::{Random, begin, end, obvious, random_edges};

    fn paired(nest: &mut Nest, edges: &[Edge], filter: &Resolved) -> Vec<Span> {
        let mut spans = Vec::new();
        for batch in edges.chunks(7) {
            spans.extend_from_slice(nest.pair(batch, filter));
        }
        loop {
            match nest.finish(filter) {
                [] => return spans,
                more => spans.extend_from_slice(more),
            }
        }
    }

    #[test]
    fn spans_are_those_the_obvious_version_finds() {
        let filter = Resolved::new(SpanFilter::default());
        for seed in 1..60 {
            let edges = random_edges(&mut Random(seed), 3, 5, 300);
            let mut nest = Nest::new(Some(StackTable::default()));
            let mut spans = paired(&mut nest, &edges, &filter);
            assert!(nest.counts().is_clean());
            let slow = obvious(&edges);
            assert_eq!(spans.len(), slow.len());
            spans.sort_by_key(|span| span.seq);
            for (span, slow) in spans.iter().zip(&slow) {
                assert_eq!((span.seq, span.start, span.end, span.track), (slow.seq, slow.start, slow.end, slow.track));
                assert_eq!((span.self_time, span.depth as usize), (slow.self_time, slow.path.len() - 1));
                assert_eq!(nest.stacks().unwrap().path(span.stack), slow.path);
                assert_eq!(span.flags.has(RECURSIVE), slow.is_recursive());
            }
        }
    }

    #[test]
    fn children_come_before_their_parents() {
        let filter = Resolved::new(SpanFilter::default());
        let edges = [begin(0, 0, 1), begin(2, 0, 2), end(5, 0, 2), end(9, 0, 1)];
        let spans = paired(&mut Nest::new(None), &edges, &filter);
        assert_eq!(spans.iter().map(|span| (span.name, span.self_time)).collect::<Vec<_>>(), [(2, 3), (1, 6)]);
        assert!(spans.iter().all(|span| span.stack == ROOT));
    }

    #[test]
    fn violations_of_the_contract_are_counted_and_tolerated() {
        let filter = Resolved::new(SpanFilter::default());
        let mut nest = Nest::new(None);
        let edges = [end(1, 9, 1), begin(5, 0, 1), end(3, 0, 2), end(4, 0, 1), begin(7, 0, 1), begin(8, 0, 1)];
        let spans = paired(&mut nest, &edges, &filter);
        let lengths: Vec<_> =
            spans.iter().map(|span| (span.duration(), span.flags.has(EdgeFlags::UNFINISHED))).collect();
        assert_eq!(lengths, [(0, false), (0, true), (1, true)]);
        let expected =
            NestCounts { spans: 3, unmatched_ends: 2, misnamed_ends: 1, left_open: 2, backward: 1, too_deep: 0 };
        assert_eq!(nest.counts(), expected);
        assert!(!nest.counts().is_clean());
    }

    #[test]
    fn spans_that_are_too_deep_are_own_time_of_their_caller() {
        let filter = Resolved::new(SpanFilter::default());
        let mut nest = Nest::new(None).with_open_max(1);
        let edges = [begin(0, 0, 1), begin(1, 0, 2), begin(2, 0, 3), end(3, 0, 3), end(4, 0, 2), end(9, 0, 1)];
        let spans = paired(&mut nest, &edges, &filter);
        assert_eq!(spans.iter().map(|span| (span.name, span.self_time)).collect::<Vec<_>>(), [(1, 9)]);
        assert_eq!(nest.counts().too_deep, 2);
    }

    #[test]
    fn recursion_and_the_outside_are_those_of_spans_that_count() {
        let depth = Some(1..u64::MAX);
        let filter = Resolved::new(SpanFilter { depth, ..SpanFilter::default() });
        let edges = [begin(0, 0, 1), begin(1, 0, 1), begin(2, 0, 1), end(3, 0, 1), end(4, 0, 1), end(5, 0, 1)];
        let spans = paired(&mut Nest::new(None), &edges, &filter);
        let seen = spans.iter().map(|span| (span.depth, span.flags.has(RECURSIVE), span.flags.has(OUTERMOST)));
        assert_eq!(seen.collect::<Vec<_>>(), [(2, true, false), (1, false, true)]);
    }

    #[test]
    fn many_tracks_and_names_are_counted_apart() {
        let mut open = OpenNames::default();
        for (track, name) in [(0, 0), (5000, 1), (1, 70_000), (0, 4095)] {
            assert_eq!((open.enter(track, name), open.enter(track, name)), (0, 1));
            open.leave(track, name);
            open.leave(track, name);
            assert_eq!(open.enter(track, name), 0);
        }
        open.leave(5000, 1);
        assert_eq!(open.sparse.len(), 1, "closed ones take no room");
        open.leave(77, 77);
    }
}

//! Passes on the spans that count, and what else belongs to them, to an output or an engine.
//!
//! [`Selected`] sits between a trace and a sink. Tracks on which nothing counts are not announced. Whether a span is long
//! enough is known at its end only, and its beginning comes first: for a condition on durations, [`Lengths`] reads the
//! trace before, and remembers a bit for each span.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, Location, NameId, SpanSource, Track, TrackId, Value};
use anytrace_core::{Error, SpanSink};

use crate::filter::{Resolved, SpanFilter};

/// An open span.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_kept: bool,
    identity: Option<u64>,
    /// Where it ends, of one that arrived complete.
    end: Option<u64>,
}

/// Passes on what counts. Depths and durations are those of the trace, whatever is left out.
pub struct Selected<'a> {
    inner: &'a mut (dyn SpanSink + Send),
    filter: Resolved,
    /// Whether the spans are long enough, by the number of their beginnings; `None`: any length.
    lengths: Option<Lengths>,
    /// Beginnings so far.
    number: u64,
    lanes: Vec<Vec<Open>>,
    /// Tracks with the number that they have in the output, once something of theirs counts.
    tracks: Vec<(Track, Option<TrackId>)>,
    announced: TrackId,
    left_out: u64,
    /// The remainder of a batch.
    kept: EdgeBatch,
}

impl<'a> Selected<'a> {
    /// Wraps a sink. A condition on durations needs `lengths`, which has read the same trace for the same sink.
    pub fn new(inner: &'a mut (dyn SpanSink + Send), filter: SpanFilter, lengths: Option<Lengths>) -> Self {
        Self {
            inner,
            filter: Resolved::new(filter),
            lengths,
            number: 0,
            lanes: Vec::new(),
            tracks: Vec::new(),
            announced: 0,
            left_out: 0,
            kept: EdgeBatch::default(),
        }
    }

    /// How many spans were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The number of a track in the output, which gets to know it with the first edge.
    fn out_track(&mut self, track: TrackId) -> Result<Option<TrackId>, Error> {
        let Some((known, number)) = self.tracks.get_mut(track as usize) else { return Ok(None) };
        if number.is_none() {
            self.inner.track(self.announced, known)?;
            *number = Some(self.announced);
            self.announced += 1;
        }
        Ok(*number)
    }

    /// Whether a span that begins here counts.
    fn counts(&mut self, edge: &Edge, depth: usize) -> bool {
        let is_long = self.lengths.as_ref().is_none_or(|lengths| lengths.keeps(self.number));
        self.number += 1;
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let filter = &self.filter;
        let is_kept = is_long
            && filter.keeps_depth(depth)
            && filter.keeps_name(edge.name)
            && filter.keeps_time(edge.time)
            && filter.keeps_track(edge.track);
        self.left_out += u64::from(!is_kept);
        is_kept
    }

    /// Whether an edge counts, and the innermost span around it that does.
    fn take(&mut self, batch: &EdgeBatch, edge: &Edge, identity: Option<u64>) -> (bool, Option<u64>) {
        let at = edge.track as usize;
        let mut lane = self.lanes.get_mut(at).map(std::mem::take).unwrap_or_default();
        close(&mut lane, edge.time);
        let around = |lane: &[Open]| lane.iter().rev().find(|open| open.is_kept).and_then(|open| open.identity);
        let outcome = match edge.kind {
            EdgeKind::Begin => {
                let parent = around(&lane);
                let is_kept = self.counts(edge, lane.len());
                lane.push(Open { is_kept, identity, end: end_of(batch, edge) });
                (is_kept, parent)
            }
            EdgeKind::End => {
                let innermost = lane.iter().rposition(|open| open.end.is_none());
                // An end without a beginning is the trace's own affair.
                let is_kept = innermost.is_none_or(|at| lane.remove(at).is_kept);
                (is_kept, around(&lane))
            }
            EdgeKind::Instant | EdgeKind::Counter | EdgeKind::FlowOut | EdgeKind::FlowIn => {
                (self.filter.keeps_track(edge.track) && self.filter.keeps_time(edge.time), around(&lane))
            }
        };
        if let Some(place) = self.lanes.get_mut(at) {
            *place = lane;
        }
        outcome
    }
}

/// Forgets complete spans that ended.
fn close(lane: &mut Vec<Open>, time: u64) {
    while lane.last().is_some_and(|open| open.end.is_some_and(|end| end <= time)) {
        lane.pop();
    }
}

/// Where a complete span ends.
fn end_of(batch: &EdgeBatch, edge: &Edge) -> Option<u64> {
    edge.flags.has(EdgeFlags::COMPLETE).then(|| match batch.attributes(edge).next() {
        Some((_, Value::U64(end))) => end,
        _ => edge.time,
    })
}

impl SpanSink for Selected<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.filter.set_source(source)?;
        self.inner.source(source)
    }

    fn wants_attributes(&self) -> bool {
        self.inner.wants_attributes()
    }

    fn wants_arrows(&self) -> bool {
        self.inner.wants_arrows()
    }

    fn wants_counters(&self) -> bool {
        self.inner.wants_counters()
    }

    fn wants_lives(&self) -> bool {
        self.inner.wants_lives()
    }

    fn takes_complete(&self) -> bool {
        self.inner.takes_complete()
    }

    fn wants_identities(&self) -> bool {
        self.inner.wants_identities()
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        self.filter.add_track(track);
        self.lanes.push(Vec::new());
        self.tracks.push((track.clone(), None));
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.filter.add_name(name);
        self.inner.name(id, name, location)
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        for (edge, identity) in batch.identified() {
            let (counts, around) = self.take(batch, edge, identity.map(|(own, _)| own));
            let track = if counts { self.out_track(edge.track)? } else { None };
            let Some(track) = track else { continue };
            kept.push(Edge { track, ..*edge });
            batch.attributes(edge).for_each(|(key, value)| kept.attribute(key, value));
            if let Some((own, parent)) = identity {
                // The span around it may be left out: then the next one around that is its parent.
                kept.identify(own, parent.and(around));
            }
        }
        let done = if kept.is_empty() { Ok(()) } else { self.inner.edges(&kept) };
        self.kept = kept;
        done
    }
}

/// Finds the spans of wanted lengths, in a pass of its own.
#[derive(Debug)]
pub struct Lengths {
    filter: Resolved,
    /// What the sink of the other pass asks for: both must see the same spans.
    wants: Wants,
    lanes: Vec<Vec<(u64, u64)>>,
    /// Beginnings so far.
    number: u64,
    /// A bit for each of them.
    long: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Wants {
    attributes: bool,
    arrows: bool,
    counters: bool,
    lives: bool,
    complete: bool,
    identities: bool,
}

impl Lengths {
    /// For the trace that `sink` will get; of the filter only the durations count.
    pub fn new(sink: &dyn SpanSink, filter: SpanFilter) -> Self {
        let wants = Wants {
            attributes: sink.wants_attributes(),
            arrows: sink.wants_arrows(),
            counters: sink.wants_counters(),
            lives: sink.wants_lives(),
            complete: sink.takes_complete(),
            identities: sink.wants_identities(),
        };
        Self { filter: Resolved::new(filter), wants, lanes: Vec::new(), number: 0, long: Vec::new() }
    }

    fn keeps(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.long.get(at));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn mark(&mut self, number: u64, duration: u64) {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.long.get_mut(at));
        if let Some(word) = word.filter(|_| self.filter.keeps_duration(duration)) {
            *word |= 1 << (number % 64);
        }
    }
}

impl SpanSink for Lengths {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.filter.set_source(source)
    }

    fn wants_attributes(&self) -> bool {
        self.wants.attributes
    }

    fn wants_arrows(&self) -> bool {
        self.wants.arrows
    }

    fn wants_counters(&self) -> bool {
        self.wants.counters
    }

    fn wants_lives(&self) -> bool {
        self.wants.lives
    }

    fn takes_complete(&self) -> bool {
        self.wants.complete
    }

    fn wants_identities(&self) -> bool {
        self.wants.identities
    }

    fn track(&mut self, _id: TrackId, _track: &Track) -> Result<(), Error> {
        self.lanes.push(Vec::new());
        Ok(())
    }

    fn name(&mut self, _id: NameId, _name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            match edge.kind {
                EdgeKind::Begin => {
                    let number = self.number;
                    self.number += 1;
                    if number.is_multiple_of(64) {
                        self.long.push(0);
                    }
                    if let Some(end) = end_of(batch, edge) {
                        self.mark(number, end.saturating_sub(edge.time));
                    } else if let Some(lane) = self.lanes.get_mut(edge.track as usize) {
                        lane.push((number, edge.time));
                    }
                }
                EdgeKind::End => {
                    let begun = self.lanes.get_mut(edge.track as usize).and_then(Vec::pop);
                    if let Some((number, begin)) = begun {
                        self.mark(number, edge.time.saturating_sub(begin));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

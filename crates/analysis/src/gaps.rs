//! Idle times: the gaps between the outermost spans of a track.

use anytrace_core::span::{NameId, Span, SpanSource, TrackId};
use anytrace_core::{Error, TimeBound};

use crate::filter::units_of_ns;
use crate::pass::{About, Engine};
use crate::top::Top;

/// A time in which no span was open on a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The track.
    pub track: TrackId,
    /// End of the span before, in the source's unit.
    pub start: u64,
    /// Beginning of the span after.
    pub end: u64,
    /// Name of the span before.
    pub before: NameId,
    /// Name of the span after.
    pub after: NameId,
}

impl Gap {
    /// Its length in the source's unit.
    pub fn duration(&self) -> u64 {
        self.end - self.start
    }
}

/// Idle time of one track.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Idle {
    /// Gaps that are long enough.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The longest.
    pub longest: u64,
}

/// The engine: gaps between spans of the filter's first depth that are long enough.
#[derive(Debug)]
pub struct Gaps {
    bound: TimeBound,
    min: u64,
    top: Top<Gap>,
    last: Vec<Option<(u64, NameId)>>,
    idle: Vec<Idle>,
}

impl Gaps {
    /// Keeps the `limit` longest gaps of at least `min`. 0 is not a gap.
    pub fn new(min: TimeBound, limit: usize) -> Self {
        Self { bound: min, min: 1, top: Top::new(limit), last: Vec::new(), idle: Vec::new() }
    }

    /// Idle time of each track, by its number. Ends with the last track that had a span.
    pub fn idle(&self) -> &[Idle] {
        &self.idle
    }

    /// The gaps, longest first.
    pub fn into_gaps(self) -> Vec<Gap> {
        self.top.into_sorted()
    }
}

impl Engine for Gaps {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        let min = match self.bound {
            TimeBound::Native(units) => units,
            TimeBound::Nanoseconds(ns) => units_of_ns(ns, source.unit)?,
            TimeBound::Open => 0,
        };
        // A gap of no length is where two spans touch.
        self.min = min.max(1);
        Ok(())
    }

    fn spans(&mut self, spans: &[Span], about: About<'_>) {
        let depth = about.filter.depth_from();
        // Spans arrive as they end. Those of one depth on one track never overlap, so they also arrive in order of
        // start, and the previous one is all that must be remembered.
        for span in spans.iter().filter(|span| u64::from(span.depth) == depth) {
            let track = span.track as usize;
            if track >= self.last.len() {
                self.last.resize(track + 1, None);
                self.idle.resize(track + 1, Idle::default());
            }
            if let Some((start, before)) = self.last[track].replace((span.end, span.name)) {
                // A source may break its promise that times never go back.
                let length = span.start.saturating_sub(start);
                if length >= self.min {
                    let idle = &mut self.idle[track];
                    idle.count += 1;
                    idle.total = idle.total.saturating_add(length);
                    idle.longest = idle.longest.max(length);
                    let (track, end, after) = (span.track, span.start, span.name);
                    self.top.offer(length, || Gap { track, start, end, before, after });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::span::TimeUnit;

    use super::*;
    use crate::filter::SpanFilter;
    use crate::pass::Pass;
    use crate::played::{Random, obvious, play, random_edges};

    #[test]
    fn gaps_are_the_times_at_which_nothing_is_open() {
        for seed in 1..20 {
            let edges = random_edges(&mut Random(seed), 2, 3, 200);
            let mut gaps = Gaps::new(TimeBound::Nanoseconds(3), 1000);
            let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut gaps]);
            play(&edges, TimeUnit::Nanoseconds, &mut pass);
            pass.finish();
            let slow = obvious(&edges);
            for track in 0..2 {
                let own = || slow.iter().filter(|span| span.track == track);
                let times = own().map(|span| span.start).min().unwrap()..own().map(|span| span.end).max().unwrap();
                // Runs of idle time units, by looking at each.
                let mut runs: Vec<u64> = vec![0];
                for time in times {
                    match own().any(|span| (span.start..span.end).contains(&time)) {
                        true => runs.push(0),
                        false => *runs.last_mut().unwrap() += 1,
                    }
                }
                // A span of no length inside a run splits it; the sums agree where none is there.
                let splits = own().any(|span| span.duration() == 0 && span.path.len() == 1);
                let found = gaps.idle()[track as usize];
                let long: Vec<u64> = runs.into_iter().filter(|&run| run >= 3).collect();
                if !splits {
                    assert_eq!((found.count as usize, found.total), (long.len(), long.iter().sum()));
                    assert_eq!(found.longest, long.iter().copied().max().unwrap_or_default());
                }
            }
            let listed = gaps.idle().iter().map(|idle| idle.count).sum::<u64>();
            let sorted = gaps.into_gaps();
            assert_eq!(sorted.len() as u64, listed);
            assert!(sorted.windows(2).all(|pair| pair[0].duration() >= pair[1].duration()));
        }
    }

    #[test]
    fn gaps_of_an_inner_depth_lie_between_spans_of_that_depth() {
        use crate::played::{begin, end};
        let edges = [begin(0, 0, 0), begin(1, 0, 1), end(2, 0, 1), begin(7, 0, 2), end(8, 0, 2), end(9, 0, 0)];
        let mut gaps = Gaps::new(TimeBound::Open, 10);
        let filter = SpanFilter { depth: Some(1..u64::MAX), ..SpanFilter::default() };
        let mut pass = Pass::new(filter, false, vec![&mut gaps]);
        play(&edges, TimeUnit::Nanoseconds, &mut pass);
        pass.finish();
        assert_eq!(gaps.into_gaps(), [Gap { track: 0, start: 2, end: 7, before: 1, after: 2 }]);
    }
}

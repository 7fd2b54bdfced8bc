//! Puts intervals that overlap on lanes, so that each lane is properly nested; nothing is cut or dropped.
//!
//! ```
//! use anytrace_analysis::weave::{Weave, Woven};
//!
//! let mut weave = Weave::default();
//! let mut lanes = Vec::new();
//! for (start, end, name) in [(0, 10, "a"), (2, 4, "inside a"), (5, 15, "beyond a")] {
//!     weave.push(start, end, name, &mut |woven| lanes.extend(woven.is_begin.then_some((woven.lane, woven.value))));
//! }
//! weave.finish(&mut |_: Woven<&str>| {});
//! assert_eq!(lanes, [(0, "a"), (0, "inside a"), (1, "beyond a")]);
//! ```

use std::collections::BTreeSet;

/// How many lanes are examined for an interval that begins before the previous one.
const LATE_LANES: usize = 64;

/// One end of an interval on its lane. On each lane: begins and ends nest, times never go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woven<T> {
    /// The lane, from 0.
    pub lane: u32,
    /// Begin or end.
    pub is_begin: bool,
    /// When.
    pub time: u64,
    /// The value that was passed with the interval: the same at both ends.
    pub value: T,
}

#[derive(Debug)]
struct Lane<T> {
    /// End and value of the open intervals, outermost first; ends never grow inward.
    open: Vec<(u64, T)>,
    /// Time of the last edge.
    last: u64,
}

/// The weaver. Keeps only the open intervals.
///
/// Intervals arrive in order of start. Each goes inside the tightest open one that contains all of it, else on the
/// first lane that is empty, else on a new one. A late one (it begins before an earlier one) goes on a lane where time
/// need not go back, or on a new lane. An end before its start counts as the start.
#[derive(Debug)]
pub struct Weave<T> {
    lanes: Vec<Lane<T>>,
    /// End of the innermost open interval and lane, of lanes that have one.
    busy: BTreeSet<(u64, u32)>,
    empty: BTreeSet<u32>,
    now: u64,
    late: u64,
}

impl<T> Default for Weave<T> {
    fn default() -> Self {
        Self { lanes: Vec::new(), busy: BTreeSet::new(), empty: BTreeSet::new(), now: 0, late: 0 }
    }
}

impl<T: Clone> Weave<T> {
    /// Adds an interval: first ends, in order of time, the intervals that end before it starts; then begins it.
    pub fn push(&mut self, start: u64, end: u64, value: T, out: &mut dyn FnMut(Woven<T>)) {
        // Everything below relies on ends not preceding starts.
        let end = end.max(start);
        let lane = if start < self.now {
            self.late += 1;
            self.lane_for_late(start, end)
        } else {
            self.now = start;
            // An interval that ends exactly here makes room: intervals that only touch do not overlap.
            self.end_until(start, out);
            // The set is ordered by end, so the first lane whose innermost interval reaches `end` has the tightest one.
            let holder = self.busy.range((end, 0)..).next().map(|&(_, lane)| lane);
            holder.or_else(|| self.empty.first().copied())
        };
        let lane = lane.unwrap_or_else(|| self.add_lane());
        let state = &mut self.lanes[lane as usize];
        match state.open.last() {
            Some(&(top, _)) => self.busy.remove(&(top, lane)),
            None => self.empty.remove(&lane),
        };
        state.open.push((end, value.clone()));
        state.last = start;
        self.busy.insert((end, lane));
        out(Woven { lane, is_begin: true, time: start, value });
    }

    /// Ends everything.
    pub fn finish(&mut self, out: &mut dyn FnMut(Woven<T>)) {
        self.end_until(u64::MAX, out);
    }

    /// How many lanes there are so far.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// How many intervals were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    fn end_until(&mut self, time: u64, out: &mut dyn FnMut(Woven<T>)) {
        while let Some(&(end, lane)) = self.busy.first().filter(|(end, _)| *end <= time) {
            self.busy.remove(&(end, lane));
            let state = &mut self.lanes[lane as usize];
            let Some((_, value)) = state.open.pop() else { continue };
            state.last = end;
            match state.open.last() {
                Some(&(outer, _)) => self.busy.insert((outer, lane)),
                None => self.empty.insert(lane),
            };
            out(Woven { lane, is_begin: false, time: end, value });
        }
    }

    /// A lane on which nothing happened after `start` and whose innermost interval contains this one.
    fn lane_for_late(&self, start: u64, end: u64) -> Option<u32> {
        let fits = |lane: &Lane<T>| lane.last <= start && lane.open.last().is_none_or(|&(top, _)| top >= end);
        let found = self.lanes.iter().take(LATE_LANES).position(fits)?;
        u32::try_from(found).ok()
    }

    fn add_lane(&mut self) -> u32 {
        let lane = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        self.lanes.push(Lane { open: Vec::new(), last: 0 });
        self.empty.insert(lane);
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::Random;

    fn woven(intervals: &[(u64, u64)]) -> (Vec<Woven<usize>>, usize) {
        let (mut weave, mut out) = (Weave::default(), Vec::new());
        for (at, &(start, end)) in intervals.iter().enumerate() {
            weave.push(start, end, at, &mut |woven| out.push(woven));
        }
        weave.finish(&mut |woven| out.push(woven));
        (out, weave.lanes())
    }

    /// Asserts that every interval appears once and complete, and that every lane nests and never goes back.
    fn assert_proper(intervals: &[(u64, u64)], out: &[Woven<usize>], lanes: usize) {
        let mut open: Vec<Vec<usize>> = vec![Vec::new(); lanes];
        let mut last = vec![0; lanes];
        let mut ends = 0;
        for woven in out {
            let lane = woven.lane as usize;
            assert!(woven.time >= last[lane], "time goes back on lane {lane}");
            last[lane] = woven.time;
            let (start, end) = intervals[woven.value];
            if woven.is_begin {
                assert_eq!(woven.time, start);
                open[lane].push(woven.value);
            } else {
                assert_eq!((woven.time, open[lane].pop()), (end.max(start), Some(woven.value)));
                ends += 1;
            }
        }
        assert_eq!((ends, out.len()), (intervals.len(), 2 * intervals.len()));
    }

    #[test]
    fn random_intervals_are_emitted_complete_and_nested() {
        for seed in 1..300 {
            let mut random = Random(seed);
            let mut start = 0;
            let intervals: Vec<_> = (0..random.below(80))
                .map(|_| {
                    start += random.below(4);
                    (start, start + random.below(25))
                })
                .collect();
            let (out, lanes) = woven(&intervals);
            assert_proper(&intervals, &out, lanes);
            // Never more lanes than intervals open at once: an empty lane is used before a new one is made.
            let open_at = |time| intervals.iter().filter(|(start, end)| *start <= time && time < *end).count();
            let most = intervals.iter().map(|(start, _)| open_at(*start)).max().unwrap_or(0);
            let instants = usize::from(intervals.iter().any(|(start, end)| start == end));
            assert!(lanes <= most + instants, "{lanes} lanes for {most} at once");
        }
    }

    #[test]
    fn late_and_backward_intervals_are_kept_too() {
        for seed in 1..300 {
            let mut random = Random(seed);
            let intervals: Vec<_> = (0..random.below(60)).map(|_| (random.below(50), random.below(50))).collect();
            let (out, lanes) = woven(&intervals);
            assert_proper(&intervals, &out, lanes);
        }
    }

    #[test]
    fn nested_intervals_stay_on_one_lane() {
        let intervals = [(0, 100), (0, 50), (10, 20), (20, 20), (20, 50), (50, 100)];
        let (out, lanes) = woven(&intervals);
        assert_proper(&intervals, &out, lanes);
        assert_eq!(lanes, 1);
    }

    #[test]
    fn the_tightest_holder_is_chosen() {
        let (out, _) = woven(&[(0, 100), (1, 120), (2, 90)]);
        let begins: Vec<_> = out.iter().filter(|woven| woven.is_begin).map(|woven| woven.lane).collect();
        assert_eq!(begins, [0, 1, 0]);
    }
}

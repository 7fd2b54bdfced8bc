//! The rule by which events of a lane become a tree (page, section 5).
//!
//! Events come sorted: start ascending, end descending, counter descending, arrival descending. Open events are on a
//! stack. An event's parent is the first open span from the top that ends no earlier; those skipped on the way overlap
//! it partly. A skipped span ends before the event does, so it can no longer be anyone's parent and leaves the stack:
//! the ends on the stack grow only downward, and each event costs the same whatever overlaps.

/// Most spans open at once in a lane; deeper ones become siblings of the deepest. About 24 MiB.
const OPEN_MAX: usize = 1 << 18;

/// An open span, with a value that the caller needs again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenSpan<T> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Spans around it.
    pub(crate) depth: u32,
    /// Time covered by its children so far, each moment counted once, and where that time ends.
    covered: u64,
    covered_until: u64,
    pub(crate) what: T,
}

impl<T> OpenSpan<T> {
    /// Time not spent in children, each moment counted once.
    pub(crate) fn self_time(&self) -> u64 {
        (self.end - self.start).saturating_sub(self.covered)
    }
}

/// Where an event is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement<T> {
    /// The enclosing span.
    pub(crate) parent: Option<T>,
    /// The span that overlaps it partly: the last one that began before it.
    pub(crate) overlaps: Option<T>,
    /// Spans around it.
    pub(crate) depth: u32,
    /// True when it is the top of the stack now.
    pub(crate) is_open: bool,
}

/// The open spans of a lane.
#[derive(Debug, Clone)]
pub(crate) struct Sweep<T> {
    open: Vec<OpenSpan<T>>,
    /// Spans that were not kept open because there were too many.
    pub(crate) too_deep: u64,
}

impl<T: Copy> Sweep<T> {
    pub(crate) fn new() -> Self {
        Self { open: Vec::new(), too_deep: 0 }
    }

    /// Places the next event in order; `closed` receives every span that can have no more children.
    #[inline]
    pub(crate) fn place(
        &mut self,
        start: u64,
        end: u64,
        what: T,
        closed: &mut impl FnMut(OpenSpan<T>),
    ) -> Placement<T> {
        let is_point = start == end;
        while let Some(top) = self.open.last()
            && (top.end < start || top.end == start && !is_point)
        {
            self.close(closed);
        }
        let mut overlaps = None;
        while let Some(top) = self.open.last()
            && top.end < end
        {
            overlaps = overlaps.or(Some(top.what));
            self.close(closed);
        }
        let parent = self.open.last_mut().map(|around| {
            let from = start.max(around.covered_until);
            around.covered += end.saturating_sub(from);
            around.covered_until = around.covered_until.max(end);
            (around.what, around.depth)
        });
        let depth = parent.map_or(0, |(_, depth)| depth.saturating_add(1));
        let made = OpenSpan { start, end, depth, covered: 0, covered_until: start, what };
        let is_open = self.open.len() < OPEN_MAX;
        if is_open {
            self.open.push(made);
        } else {
            self.too_deep += 1;
            closed(made);
        }
        Placement { parent: parent.map(|(what, _)| what), overlaps, depth, is_open }
    }

    /// Changes the value of the span that was placed last, if it is open.
    #[inline]
    pub(crate) fn set_top(&mut self, what: T) {
        if let Some(top) = self.open.last_mut() {
            top.what = what;
        }
    }

    /// Ends the lane.
    pub(crate) fn finish(&mut self, closed: &mut impl FnMut(OpenSpan<T>)) {
        while !self.open.is_empty() {
            self.close(closed);
        }
    }

    #[inline]
    fn close(&mut self, closed: &mut impl FnMut(OpenSpan<T>)) {
        if let Some(done) = self.open.pop() {
            closed(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Interval = (u64, u64);

    fn sorted(intervals: &[Interval]) -> Vec<(u64, u64, usize)> {
        let mut all: Vec<_> = intervals.iter().enumerate().map(|(n, &(start, end))| (start, end, n)).collect();
        all.sort_by_key(|&(start, end, n)| (start, u64::MAX - end, usize::MAX - n));
        all
    }

    /// The result for one interval: parent, overlapped interval, depth, own time.
    type Row = (Option<usize>, Option<usize>, u32, u64);

    fn by_rule(intervals: &[Interval]) -> Vec<Row> {
        let mut rows = vec![(None, None, 0, 0); intervals.len()];
        let mut own = Vec::new();
        let mut sweep = Sweep::new();
        for (start, end, n) in sorted(intervals) {
            let placed =
                sweep.place(start, end, n, &mut |done: OpenSpan<usize>| own.push((done.what, done.self_time())));
            rows[n] = (placed.parent, placed.overlaps, placed.depth, 0);
        }
        sweep.finish(&mut |done| own.push((done.what, done.self_time())));
        assert_eq!(own.len(), intervals.len());
        for (n, time) in own {
            rows[n].3 = time;
        }
        rows
    }

    /// The page's definition, word by word: spans leave the stack only from its top; own time by counting nanoseconds.
    fn by_hand(intervals: &[Interval]) -> Vec<Row> {
        let mut rows: Vec<Row> = vec![(None, None, 0, 0); intervals.len()];
        let mut stack: Vec<(u64, u64, usize)> = Vec::new();
        for (start, end, n) in sorted(intervals) {
            while stack.last().is_some_and(|top| top.1 < start || top.1 == start && end > start) {
                stack.pop();
            }
            let passed = stack.iter().rev().take_while(|open| open.1 < end).count();
            let parent = stack.len().checked_sub(passed + 1).map(|at| stack[at].2);
            let overlaps = (passed > 0).then(|| stack[stack.len() - 1].2);
            rows[n] = (parent, overlaps, parent.map_or(0, |parent| rows[parent].2 + 1), 0);
            stack.push((start, end, n));
        }
        for n in 0..intervals.len() {
            let children: Vec<Interval> =
                (0..intervals.len()).filter(|&c| rows[c].0 == Some(n)).map(|c| intervals[c]).collect();
            let (start, end) = intervals[n];
            rows[n].3 = (start..end).filter(|t| !children.iter().any(|c| c.0 <= *t && *t < c.1)).count() as u64;
        }
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_sweep_is_the_rule_word_by_word(intervals in prop::collection::vec((0..20_u64, 0..12_u64), 0..30)) {
            let intervals: Vec<Interval> = intervals.into_iter().map(|(start, length)| (start, start + length)).collect();
            prop_assert_eq!(by_rule(&intervals), by_hand(&intervals));
        }
    }

    #[test]
    fn a_chain_of_overlaps_keeps_a_short_stack() {
        let mut sweep = Sweep::new();
        for n in 0..10_000_u64 {
            let placed = sweep.place(n, n + 100_000, n, &mut |_| {});
            assert_eq!(placed.overlaps, n.checked_sub(1));
            assert!(sweep.open.len() <= 1);
        }
    }

    #[test]
    fn spans_too_deep_become_siblings() {
        let mut sweep = Sweep::new();
        let mut closed = 0;
        let deep = OPEN_MAX as u64 + 5;
        for n in 0..deep {
            sweep.place(n, 10_000_000 - n, (), &mut |_| closed += 1);
        }
        assert_eq!((sweep.too_deep, closed), (5, 5));
        sweep.finish(&mut |_| closed += 1);
        assert_eq!(closed, deep);
    }
}

//! Arrows between slices: what the trace says of an end is joined to that of the other once all of it is read.

/// Ends that are remembered; more are counted.
const ENDS_MAX: usize = 1 << 20;

/// One end of an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// When.
    pub(crate) time: u64,
    /// Where the slice around it begins.
    pub(crate) start: u64,
    /// Its track and depth.
    pub(crate) track: u32,
    pub(crate) depth: u32,
}

/// From one slice to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub(crate) from: End,
    pub(crate) to: End,
}

/// The arrows of a trace.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    /// Number of the arrow, whether it begins here, and where that is.
    ends: Vec<(u64, bool, End)>,
    joined: Vec<Arrow>,
    /// Ends that had no room.
    pub(crate) left_out: u64,
}

impl Arrows {
    /// Adds an end.
    pub(crate) fn add(&mut self, number: u64, begins: bool, end: End) {
        if self.ends.len() < ENDS_MAX {
            self.ends.push((number, begins, end));
        } else {
            self.left_out += 1;
        }
    }

    /// Joins the ends of one number: each at which an arrow ends to the last before it at which one begins, in another
    /// slice. Tracks come in no order, so that this is possible at the end only.
    pub(crate) fn join(&mut self) {
        let mut ends = std::mem::take(&mut self.ends);
        ends.sort_by_key(|(number, begins, end)| (*number, end.time, !begins));
        let mut joined = Vec::new();
        // A slice may be reached by an arrow and begin the next at the same time: then the one before it counts.
        let mut before: [Option<End>; 2] = [None, None];
        let mut last = None;
        for (number, begins, end) in ends {
            if last != Some(number) {
                (last, before) = (Some(number), [None, None]);
            }
            if begins {
                before = [before[1], Some(end)];
                continue;
            }
            let is_other = |from: &&End| (from.track, from.depth, from.start) != (end.track, end.depth, end.start);
            if let Some(from) = before.iter().rev().flatten().find(is_other) {
                joined.push(Arrow { from: *from, to: end });
            }
        }
        joined.sort_by_key(|arrow: &Arrow| (arrow.from.time, arrow.to.time));
        joined.shrink_to_fit();
        self.joined = joined;
    }

    /// The arrows, by their beginning.
    pub(crate) fn all(&self) -> &[Arrow] {
        &self.joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(time: u64, track: u32) -> End {
        End { time, start: time, track, depth: 0 }
    }

    fn joined(ends: &[(u64, bool, End)]) -> Vec<(u64, u64)> {
        let mut arrows = Arrows::default();
        ends.iter().for_each(|(number, begins, end)| arrows.add(*number, *begins, *end));
        arrows.join();
        arrows.all().iter().map(|arrow| (arrow.from.time, arrow.to.time)).collect()
    }

    #[test]
    fn a_chain_is_joined_link_by_link_in_any_order_of_tracks() {
        // Runs at 1, 5 and 9: each but the first is reached by an arrow, and begins the next.
        let chain = [
            (7, true, end(5, 1)),
            (7, false, end(5, 1)),
            (7, false, end(9, 0)),
            (7, true, end(9, 0)),
            (7, true, end(1, 0)),
        ];
        assert_eq!(joined(&chain), [(1, 5), (5, 9)]);
        let mut backward = chain;
        backward.reverse();
        assert_eq!(joined(&backward), [(1, 5), (5, 9)]);
    }

    #[test]
    fn ends_without_another_are_no_arrows() {
        assert!(joined(&[(1, true, end(3, 0)), (2, false, end(4, 0))]).is_empty());
        assert!(joined(&[(1, true, end(3, 0)), (1, false, end(3, 0))]).is_empty(), "from a slice to itself");
        assert_eq!(joined(&[(1, true, end(3, 0)), (1, false, end(3, 1))]), [(3, 3)], "at one time, on two tracks");
        assert_eq!(joined(&[(1, true, end(3, 0)), (1, false, end(4, 1)), (1, false, end(5, 2))]), [(3, 4), (3, 5)]);
    }

    #[test]
    fn more_than_there_is_room_for_is_counted() {
        let mut arrows = Arrows::default();
        (0..ENDS_MAX as u64 + 3).for_each(|number| arrows.add(number, true, end(number, 0)));
        assert_eq!(arrows.left_out, 3);
    }
}

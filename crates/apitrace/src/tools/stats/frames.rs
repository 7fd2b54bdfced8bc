//! One row per frame, as long as there are not too many.

use super::sums::Sums;
use super::{Label, Row};

/// Most rows of frames.
pub const FRAMES_MAX: usize = 1 << 17;

/// Frames by number.
#[derive(Debug)]
pub(super) struct Frames {
    rows: Vec<Sums>,
    /// How often rows were merged in pairs: a row covers two to this power frames.
    halvings: u32,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { rows: Vec::new(), halvings: 0 }
    }

    /// Adds calls to a frame.
    pub(super) fn add(&mut self, frame: u64, sums: &Sums) {
        let mut at = (frame >> self.halvings) as usize;
        if at >= self.rows.len() {
            at = self.make_room(frame);
        }
        if let Some(row) = self.rows.get_mut(at) {
            row.merge(sums);
        }
    }

    #[cold]
    fn make_room(&mut self, frame: u64) -> usize {
        while frame >> self.halvings >= FRAMES_MAX as u64 {
            self.halve();
        }
        let at = (frame >> self.halvings) as usize;
        self.rows.resize(at + 1, Sums::default());
        at
    }

    fn halve(&mut self) {
        self.halvings += 1;
        let count = self.rows.len().div_ceil(2);
        for at in 0..count {
            let mut sum = self.rows.get(at * 2).copied().unwrap_or_default();
            sum.merge(&self.rows.get(at * 2 + 1).copied().unwrap_or_default());
            if let Some(row) = self.rows.get_mut(at) {
                *row = sum;
            }
        }
        self.rows.truncate(count);
    }

    /// Frames per row.
    pub(super) fn each(&self) -> u64 {
        1 << self.halvings
    }

    /// The rows that have calls.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let each = self.each();
        (0..).zip(&self.rows).filter(|(_, row)| row.figures.calls > 0).map(move |(at, row)| {
            let from = at * each;
            row.row(if each == 1 { Label::Number(from) } else { Label::Numbers(from, from + (each - 1)) }, 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::stats::Figures;

    fn sums(call: u64, frames: u64) -> Sums {
        let figures = Figures { calls: 1, ..Figures::default() };
        Sums { figures, frames, first: call, last: call }
    }

    #[test]
    fn too_many_frames_share_rows_and_no_call_is_lost() {
        let mut frames = Frames::new();
        let count = FRAMES_MAX as u64 * 3 + 1;
        for frame in (0..count).step_by(3).chain([5, count]) {
            frames.add(frame, &sums(frame * 10, 1));
        }
        assert_eq!(frames.each(), 4);
        let rows: Vec<Row> = frames.rows().collect();
        assert!(rows.len() <= FRAMES_MAX);
        assert_eq!(rows.iter().map(|row| row.figures.calls).sum::<u64>(), count.div_ceil(3) + 2);
        assert_eq!((&rows[0].label, rows[0].first, rows[0].last), (&Label::Numbers(0, 3), 0, 30));
        assert_eq!((&rows[1].label, rows[1].first, rows[1].last, rows[1].frames), (&Label::Numbers(4, 7), 50, 60, 2));
    }

    #[test]
    fn frames_without_a_call_have_no_row() {
        let mut frames = Frames::new();
        frames.add(7, &sums(100, 0));
        let rows: Vec<Row> = frames.rows().collect();
        assert_eq!((rows.len(), &rows[0].label, rows[0].frames), (1, &Label::Number(7), 0));
    }
}

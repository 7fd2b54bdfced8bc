//! Figures of a set of calls, and its extent.

use super::{Figures, Label, Row};
use crate::lanes::calls::Call;

/// Figures of calls with the first and last of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) figures: Figures,
    pub(super) frames: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Sums {
    /// Adds a call.
    #[inline]
    pub(super) fn add(&mut self, call: &Call<'_>, ends_frame: bool, figures: &Figures) {
        if self.figures.calls == 0 {
            self.first = call.number;
        }
        // Calls arrive in the order in which they are left.
        self.first = self.first.min(call.number);
        self.last = self.last.max(call.number);
        self.frames += u64::from(ends_frame);
        self.figures.add(figures);
    }

    /// Adds other sums.
    pub(super) fn merge(&mut self, more: &Self) {
        if more.figures.calls == 0 {
            return;
        }
        self.first = if self.figures.calls == 0 { more.first } else { self.first.min(more.first) };
        self.last = self.last.max(more.last);
        self.frames += more.frames;
        self.figures.add(&more.figures);
    }

    /// As a row.
    pub(super) fn row(&self, label: Label, threads: usize) -> Row {
        let &Self { figures, frames, first, last } = self;
        Row { label, figures, threads: threads as u64, frames, first, last }
    }
}

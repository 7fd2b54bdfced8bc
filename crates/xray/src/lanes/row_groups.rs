//! What an index says of the rows of `events` between two marks, counted while the marks are found: a trace need not be
//! read once more for them.

use anytrace_core::index::{MarkSink, RowGroup};
use anytrace_core::span::TimeUnit;

use crate::wire::fdr::Run;
use crate::wire::record::{Header, KIND_NAMES};

/// The rows of one thread since the last mark or the last row of another thread.
pub(crate) struct RowGroups {
    unit: TimeUnit,
    thread: Option<u32>,
    timed: Group,
    untimed: Group,
}

/// Rows that all have a time, or have none.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    rows: u64,
    /// A bit for each of [`KIND_NAMES`].
    kinds: u16,
    /// Earliest and latest tick.
    ticks: (u64, u64),
}

impl Group {
    fn add(&mut self, rows: u64, kinds: u16, (low, high): (u64, u64)) {
        self.ticks = if self.rows == 0 { (low, high) } else { (self.ticks.0.min(low), self.ticks.1.max(high)) };
        self.kinds |= kinds;
        self.rows += rows;
    }
}

impl RowGroups {
    pub(crate) fn new(header: &Header) -> Self {
        let unit = TimeUnit::Ticks { per_second: (header.cycle_frequency > 0).then_some(header.cycle_frequency) };
        Self { unit, thread: None, timed: Group::default(), untimed: Group::default() }
    }

    /// Adds rows of a thread; `ticks` are the earliest and the latest, where times are known.
    #[inline]
    pub(crate) fn add(
        &mut self,
        thread: Option<u32>,
        (rows, kinds): (u64, u16),
        ticks: Option<(u64, u64)>,
        out: &mut dyn MarkSink,
    ) {
        if self.thread != thread {
            self.pass(out);
            self.thread = thread;
        }
        match ticks {
            Some(ticks) => self.timed.add(rows, kinds, ticks),
            None => self.untimed.add(rows, kinds, (0, 0)),
        }
    }

    /// Passes the rows so far on.
    pub(crate) fn pass(&mut self, out: &mut dyn MarkSink) {
        let Self { unit, thread, .. } = *self;
        // Rounding keeps the order of times.
        let ns = |tick: u64| Some(i64::try_from(unit.to_ns(tick)?).unwrap_or(i64::MAX));
        for (group, is_timed) in [(std::mem::take(&mut self.timed), true), (std::mem::take(&mut self.untimed), false)] {
            if group.rows == 0 {
                continue;
            }
            let known = KIND_NAMES.into_iter().zip(0_u32..).filter(|(_, bit)| group.kinds >> bit & 1 == 1);
            let mut kinds = KIND_NAMES;
            let count = kinds.iter_mut().zip(known).map(|(place, (name, _))| *place = name).count();
            let range = ns(group.ticks.0).zip(ns(group.ticks.1)).map(|(low, high)| low..=high);
            let (thread, time) = (thread.map(i64::from), range.filter(|_| is_timed));
            let kinds = kinds.get(..count).unwrap_or_default();
            out.rows(&RowGroup { rows: group.rows, thread, time, kinds, has_durations: false });
        }
    }
}

/// The bit of a kind.
pub(crate) fn kind_bit(name: &str) -> u16 {
    KIND_NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at)
}

/// Earliest and latest tick of a run of records after the tick `base`.
pub(crate) fn ticks_of(run: &Run<'_>, base: u64) -> (u64, u64) {
    let (first, sum) = run.deltas();
    let (low, high) = (base.checked_add(first), base.checked_add(sum));
    low.zip(high).unwrap_or_else(|| wrapped(base, run))
}

/// The same of a run whose ticks pass the largest number.
#[cold]
fn wrapped(base: u64, run: &Run<'_>) -> (u64, u64) {
    let deltas = run.records().map(|(_, function)| u64::from(function.delta));
    let ticks = deltas.scan(base, |tick, delta| {
        *tick = tick.wrapping_add(delta);
        Some(*tick)
    });
    ticks.fold((u64::MAX, 0), |(low, high), tick| (low.min(tick), high.max(tick)))
}

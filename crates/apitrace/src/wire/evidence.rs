//! Evidence that events continue at a place: the call numbers from there on.

use crate::wire::calls::Calls;

/// This many matching leaves are enough.
const LEAVES_ENOUGH: usize = 3;

/// More enters than this in a row, without a leave, are not plausible.
const RUN_MAX: u32 = 8;

/// How many events at the start must be beyond doubt. When the inside of an event is read as events, it falls into step
/// within this many.
const HEAD_EVENTS: u32 = 3;

/// Most calls believed to be lost at once.
const LOST_MAX: u64 = 1 << 32;

/// Where reading resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResumePoint {
    /// Number of the first call entered from there on.
    pub(crate) next_call: u64,
    /// Number in the first event, when that is a leave.
    pub(crate) first_leave: Option<u64>,
    /// Bytes of the first event.
    pub(crate) length: usize,
    /// There is no evidence against it.
    pub(crate) is_firm: bool,
}

/// One event read in a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) length: usize,
    /// The call number of a leave.
    pub(crate) leave: Option<u64>,
    /// It names a thread or function never seen, or contains something that writers do not write.
    pub(crate) is_doubtful: bool,
}

/// The events of a trial.
pub(crate) struct Evidence<'a> {
    calls: &'a Calls,
    /// Most calls that the part before it can have contained.
    lost_max: Option<u64>,
    events: u32,
    enters: u64,
    run: u32,
    first: Seen,
    is_doubtful: bool,
    /// Each leave with the number of enters before it.
    leaves: Vec<(u64, u64)>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(calls: &'a Calls, lost_max: Option<u64>) -> Self {
        Self {
            calls,
            lost_max,
            events: 0,
            enters: 0,
            run: 0,
            first: Seen::default(),
            is_doubtful: false,
            leaves: Vec::new(),
        }
    }

    /// Adds one event. Returns false if it is impossible.
    pub(crate) fn add(&mut self, seen: &Seen) -> bool {
        if self.events == 0 {
            self.first = *seen;
        }
        self.is_doubtful |= seen.is_doubtful && self.events < HEAD_EVENTS;
        self.events += 1;
        let Some(number) = seen.leave else {
            self.enters += 1;
            self.run += 1;
            return self.run <= RUN_MAX;
        };
        self.run = 0;
        let is_possible = if number < self.calls.next() {
            self.calls.is_waiting(number) || self.calls.is_lost(number)
        } else {
            number - self.calls.next() <= LOST_MAX
        };
        if !is_possible || self.leaves.iter().any(|(other, _)| *other == number) {
            return false;
        }
        self.leaves.push((number, self.enters));
        true
    }

    /// Weighs the events added. The number of the first call is taken as the lowest one that puts no leave before its
    /// enter: most calls are left before the next is entered.
    pub(crate) fn verdict(&self, is_clean_end: bool) -> Option<ResumePoint> {
        let floor = self.calls.lowest_next();
        let new = || self.leaves.iter().filter(|(number, _)| *number >= floor);
        let base = new().map(|(number, enters)| (number + 1).saturating_sub(*enters)).fold(floor, u64::max);
        let own = new().filter(|(number, _)| *number >= base).count();
        let lost = new().count() - own;
        let known = self.leaves.iter().filter(|(number, _)| *number < self.calls.next()).count();
        let is_tight = new().any(|(number, enters)| number + 1 == base + enters);
        if own < LEAVES_ENOUGH && !(is_clean_end && own + known >= 1) || lost > own + known + LEAVES_ENOUGH {
            return None;
        }
        let is_possible = self.lost_max.is_none_or(|most| base.saturating_sub(self.calls.next()) <= most);
        let is_firm = !self.is_doubtful && is_possible && (is_tight || own == 0);
        Some(ResumePoint { next_call: base, first_leave: self.first.leave, length: self.first.length, is_firm })
    }
}

//! Calls that were entered and not left yet, in bounded memory.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::wire::record::Pairing;

/// Calls kept in the fast part.
const RECENT_MAX: usize = 32;

/// Most calls waiting at a time. Beyond this, the oldest are forgotten and their leaves are not checked.
const WAITING_MAX: usize = 1 << 18;

/// Most separate runs of lost calls remembered.
const LOST_RANGES_MAX: usize = 1024;

/// A call that was entered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) thread: u64,
    pub(crate) frame: u64,
    pub(crate) mark: u64,
    pub(crate) seq: u64,
    pub(crate) function: u32,
    /// The enter event could not be read to its end.
    pub(crate) is_damaged: bool,
}

/// The calls in flight.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    next: u64,
    recent: Vec<(u64, Call)>,
    older: BTreeMap<u64, Call>,
    forgotten_below: u64,
    lost: Vec<Range<u64>>,
}

impl Calls {
    /// Resumes at the position of another reader. `waiting` lists the calls open there by number; the last `recent` of
    /// them are recent.
    pub(crate) fn restore(next: u64, waiting: impl ExactSizeIterator<Item = (u64, Call)>, recent: usize) -> Self {
        let older = waiting.len().saturating_sub(recent.min(RECENT_MAX));
        let mut this = Self { next, ..Self::default() };
        for (at, (number, call)) in waiting.enumerate() {
            if at < older {
                this.older.insert(number, call);
            } else {
                this.recent.push((number, call));
            }
        }
        this
    }

    /// The number of waiting calls, and how many of them are recent.
    pub(crate) fn waiting_count(&self) -> (usize, usize) {
        (self.older.len() + self.recent.len(), self.recent.len())
    }

    /// True as long as every enter was read and none was forgotten.
    pub(crate) fn is_complete(&self) -> bool {
        self.forgotten_below == 0 && self.lost.is_empty()
    }

    /// Number of the next call.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Records an enter and returns its call number.
    #[inline]
    pub(crate) fn enter(&mut self, call: Call) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.recent.len() >= RECENT_MAX {
            self.settle();
        }
        self.recent.push((number, call));
        number
    }

    /// Records a call that is left at once.
    #[inline]
    pub(crate) fn enter_and_leave(&mut self) {
        self.next += 1;
    }

    #[cold]
    fn settle(&mut self) {
        self.older.extend(self.recent.drain(..RECENT_MAX / 2));
        while self.older.len() > WAITING_MAX {
            if let Some((number, _)) = self.older.pop_first() {
                self.forgotten_below = self.forgotten_below.max(number + 1);
            }
        }
    }

    /// Records a leave.
    #[inline]
    pub(crate) fn leave(&mut self, number: u64) -> (Pairing, Call) {
        if let Some((last, call)) = self.recent.last()
            && *last == number
        {
            let call = *call;
            self.recent.pop();
            return (pairing(call), call);
        }
        self.leave_older(number)
    }

    fn leave_older(&mut self, number: u64) -> (Pairing, Call) {
        if let Some(at) = self.recent.iter().rposition(|(waiting, _)| *waiting == number) {
            let (_, call) = self.recent.remove(at);
            return (pairing(call), call);
        }
        if let Some(call) = self.older.remove(&number) {
            return (pairing(call), call);
        }
        let pairing = if number >= self.next {
            Pairing::Unknown
        } else if number < self.forgotten_below || self.lost.iter().any(|range| range.contains(&number)) {
            Pairing::Lost
        } else {
            Pairing::Repeated
        };
        (pairing, Call::default())
    }

    /// True when the call was entered and not left.
    pub(crate) fn is_waiting(&self, number: u64) -> bool {
        self.recent.iter().any(|(waiting, _)| *waiting == number) || self.older.contains_key(&number)
    }

    /// True when the call's enter is known to be lost.
    pub(crate) fn is_lost(&self, number: u64) -> bool {
        self.lost.iter().any(|range| range.contains(&number))
    }

    /// The function of a waiting call.
    pub(crate) fn function(&self, number: u64) -> Option<u32> {
        let recent = self.recent.iter().find(|(waiting, _)| *waiting == number).map(|(_, call)| call);
        recent.or_else(|| self.older.get(&number)).filter(|call| !call.is_damaged).map(|call| call.function)
    }

    /// The lowest number that the next call may have. A damaged last enter may not be an enter at all.
    pub(crate) fn lowest_next(&self) -> u64 {
        let is_damaged = self.recent.last().is_some_and(|(number, call)| call.is_damaged && number + 1 == self.next);
        self.next - u64::from(is_damaged)
    }

    /// Continues with another number. The enters in between are lost; returns how many.
    pub(crate) fn resume(&mut self, next: u64) -> u64 {
        if next < self.next && next == self.lowest_next() {
            self.recent.pop();
            self.next = next;
        }
        let lost = next.saturating_sub(self.next);
        if lost > 0 {
            let is_full = self.lost.len() >= LOST_RANGES_MAX;
            match self.lost.last_mut() {
                Some(range) if is_full || range.end == self.next => range.end = next,
                _ => self.lost.push(self.next..next),
            }
            self.next = next;
        }
        lost
    }

    /// A waiting call.
    pub(crate) fn waiting_mut(&mut self, number: u64) -> Option<&mut Call> {
        let recent = self.recent.iter_mut().find(|(waiting, _)| *waiting == number).map(|(_, call)| call);
        recent.or_else(|| self.older.get_mut(&number))
    }

    /// The calls still waiting, in the order of their numbers.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u64, &Call)> {
        self.older.iter().map(|(number, call)| (*number, call)).chain(self.recent.iter().map(|(n, c)| (*n, c)))
    }
}

fn pairing(call: Call) -> Pairing {
    if call.is_damaged { Pairing::Lost } else { Pairing::Paired }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_open_calls_are_left_in_any_order() {
        let mut calls = Calls::default();
        for thread in 0..1000 {
            calls.enter(Call { thread, ..Call::default() });
        }
        for number in (0..1000).rev().step_by(3) {
            let (pairing, call) = calls.leave(number);
            assert_eq!((pairing, call.thread), (Pairing::Paired, number));
            assert_eq!(calls.leave(number).0, Pairing::Repeated);
        }
        assert_eq!(calls.leave(1000).0, Pairing::Unknown);
        assert!(calls.is_waiting(1) && !calls.is_waiting(0));
        assert_eq!(calls.waiting().count(), 666);
    }

    #[test]
    fn waiting_calls_are_bounded_and_forgotten_ones_not_judged() {
        let mut calls = Calls::default();
        for _ in 0..WAITING_MAX as u64 * 2 {
            calls.enter(Call::default());
        }
        assert!(calls.older.len() <= WAITING_MAX);
        assert_eq!(calls.leave(0).0, Pairing::Lost);
    }

    #[test]
    fn leaves_of_lost_enters_are_distinguished() {
        let mut calls = Calls::default();
        calls.enter(Call::default());
        assert_eq!(calls.resume(10), 9);
        assert_eq!((calls.leave(5).0, calls.leave(0).0), (Pairing::Lost, Pairing::Paired));
        assert_eq!((calls.leave(0).0, calls.next()), (Pairing::Repeated, 10));
    }
}

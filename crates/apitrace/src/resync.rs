//! Finding the events again after damage.
//!
//! Events carry no magic. What gives a true start away is that calls are numbered: leaves found from there on must
//! name enters found from there on, or calls that are known to wait. Zeros, pixels and text do not do that.

use std::cell::Cell;

use anytrace_core::{Error, Sink};

use crate::calls::{Call, Calls};
use crate::parse::Walker;
use crate::reader::{Broken, Cause, RAW, Reader, fault_rule};
use crate::record::{EventKind, Token};
use crate::rules;
use crate::scan::Stop;
use crate::signatures::Signatures;

/// How far a trial may reach from its start.
const REACH_BYTES: usize = 64 * 1024;

/// Most events looked at in one trial.
const EVENTS_MAX: usize = 48;

/// This many leaves that fit are enough.
const LEAVES_ENOUGH: u32 = 3;

/// More enters than this without a leave are no evidence.
const RUN_MAX: u32 = 8;

/// Deepest nesting in an event that a trial believes.
const TRIAL_DEPTH_MAX: usize = 64;

/// What all searches in a trace may cost, in tokens and sixteen bytes, before trials are cut short.
const BUDGET: u64 = 1 << 24;

/// What one trial may cost: before that, and after.
const TRIAL_COST_MAX: u64 = 1 << 13;
const SHORT_TRIAL_COST_MAX: u64 = 64;

/// Most calls believed to be lost at once.
const LOST_MAX: u64 = 1 << 32;

/// Where reading goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// Number of the first call entered from there on.
    next_call: u64,
    /// Number in the first event, when that is a leave.
    first_leave: Option<u64>,
    /// Length of the first event when it is an enter that may be made of the end of another one.
    doubtful: Option<usize>,
}

impl Reader {
    /// Goes on after an event that broke off. False at the end of the data.
    pub(crate) fn recover(&mut self, broken: &Broken, sink: &mut dyn Sink) -> Result<bool, Error> {
        if let Some(event) = broken.event.filter(|event| event.kind == EventKind::Enter) {
            let function = event.function.unwrap_or(u32::MAX);
            let (thread, frame, seq) = (event.thread, event.frame, event.seq);
            self.calls.enter(Call { thread, frame, mark: 0, seq, function, is_damaged: true });
        }
        let seq = self.seq;
        let from_end = matches!(broken.cause, Cause::End { .. });
        let diagnostic = match broken.cause {
            Cause::Fault(fault) => {
                let (rule, field, expected) = fault_rule(fault.kind);
                let at = broken.token + fault.at as u64;
                rule.at(at).field(field).expected(expected).found(fault.found.to_string())
            }
            Cause::End { need, got } => {
                let rule = rules::TRUNCATED_EVENT.at(broken.start).field("event");
                let expected = format!("{need} bytes more at byte {:#x}", broken.token);
                rule.expected(expected).found(format!("{got} bytes before the data end"))
            }
        };
        if broken.is_held {
            self.stream.advance(1);
        }
        let is_found = self.resync(from_end)?;
        let skipped = self.stream.offset() - broken.start;
        self.lost_bytes += skipped;
        let mut diagnostic = diagnostic.within(RAW).record(seq).skipped(skipped);
        if is_found {
            diagnostic = diagnostic.resumed(seq);
        }
        sink.report(diagnostic)?;
        self.report_container(sink)?;
        Ok(is_found)
    }

    /// Goes on behind a gap that lies between two events, as far as one can tell. False at the end.
    pub(crate) fn cross_gap(&mut self, sink: &mut dyn Sink) -> Result<bool, Error> {
        let start = self.stream.offset();
        let is_found = self.resync(false)?;
        let skipped = self.stream.offset() - start;
        self.lost_bytes += skipped;
        let mut diagnostic = rules::GAP.at(start).within(RAW).record(self.seq).skipped(skipped);
        if is_found {
            diagnostic = diagnostic.resumed(self.seq);
        }
        sink.report(diagnostic)?;
        self.report_container(sink)?;
        Ok(is_found)
    }

    /// Moves to the next place where events follow one another. False when there is none. Strict, where the data
    /// just end: then what is left is most likely the inside of a blob.
    fn resync(&mut self, mut is_strict: bool) -> Result<bool, Error> {
        self.signatures.may_be_lost = true;
        let mut walker = Walker::new(self.header.version, &self.limits);
        let budget = Cell::new(BUDGET.saturating_sub(self.effort));
        loop {
            let at_hand = self.stream.fill(2 * REACH_BYTES)?.min(2 * REACH_BYTES);
            let is_end = at_hand < 2 * REACH_BYTES;
            let window = self.stream.window().get(..at_hand).unwrap_or_default();
            let starts = if is_end { at_hand } else { REACH_BYTES };
            let trial =
                Trial { window, is_end, is_strict, calls: &self.calls, thread_max: self.thread_max, budget: &budget };
            let found = trial.search(starts, &mut walker, &mut self.signatures);
            self.effort = BUDGET - budget.get();
            if let Some((at, found)) = found {
                self.stream.advance(at);
                self.lost_calls += self.calls.resume(found.next_call);
                return Ok(true);
            }
            self.stream.advance(starts);
            if is_end {
                if !self.stream.next_segment() {
                    return Ok(false);
                }
                is_strict = false;
            }
        }
    }
}

/// A search for events in a window.
struct Trial<'a> {
    window: &'a [u8],
    is_end: bool,
    is_strict: bool,
    calls: &'a Calls,
    /// Highest thread number seen so far.
    thread_max: u64,
    /// Hostile bytes can make every trial long: what is left of the effort.
    budget: &'a Cell<u64>,
}

impl Trial<'_> {
    /// The first place below `starts` where events follow one another.
    fn search(&self, starts: usize, walker: &mut Walker, signatures: &mut Signatures) -> Option<(usize, Found)> {
        let mut at = 0;
        while at < starts {
            let bytes = self.window.get(at..)?;
            // Long runs of zeros read as enters without end.
            if bytes.starts_with(&[0; 32]) {
                at += 1 + bytes.iter().skip(32).take_while(|byte| **byte == 0).count();
                continue;
            }
            if bytes.first().is_some_and(|kind| *kind <= 1)
                && let Some(found) = self.attempt(at, walker, signatures)
            {
                // The end of an event and a leave read as an enter of a thread 1: the leave is meant if it fits.
                if bytes.starts_with(&[0, 1])
                    && let Some(other) = self.attempt(at + 1, walker, signatures)
                    && other.first_leave.is_some_and(|n| self.calls.is_waiting(n) || other.next_call == n + 1)
                {
                    return Some((at + 1, other));
                }
                // The call it stands for was entered, but its enter is not what this seems to be.
                if let Some(length) = found.doubtful {
                    return Some((at + length, Found { next_call: found.next_call + 1, ..found }));
                }
                return Some((at, found));
            }
            at += 1;
        }
        None
    }

    fn attempt(&self, at: usize, walker: &mut Walker, signatures: &mut Signatures) -> Option<Found> {
        signatures.begin_trial();
        let found = self.events(at, walker, signatures);
        signatures.end_trial();
        found
    }

    fn events(&self, start: usize, walker: &mut Walker, signatures: &mut Signatures) -> Option<Found> {
        let mut evidence = Evidence::new(self.calls);
        let mut cost = if self.budget.get() > 0 { TRIAL_COST_MAX } else { SHORT_TRIAL_COST_MAX };
        let end = (start + REACH_BYTES).min(self.window.len());
        let mut at = start;
        for _ in 0..EVENTS_MAX {
            let bytes = self.window.get(at..end).unwrap_or_default();
            if bytes.is_empty() {
                let is_clean_end = self.is_end && end == self.window.len() && !self.is_strict;
                return evidence.verdict(is_clean_end);
            }
            match self.event(bytes, walker, signatures, &mut cost) {
                Ok(seen) => {
                    if at == start && seen.is_doubtful {
                        evidence.doubtful = Some(seen.length);
                    }
                    evidence.add(seen.leave)?;
                    at += seen.length;
                }
                Err(Stop::More(_)) => return evidence.verdict(false),
                Err(Stop::Bad(_)) => return None,
            }
        }
        evidence.verdict(false)
    }

    /// Reads one event.
    fn event(
        &self,
        bytes: &[u8],
        walker: &mut Walker,
        signatures: &mut Signatures,
        cost: &mut u64,
    ) -> Result<Seen, Stop> {
        walker.reset();
        let mut seen = Seen { length: 0, leave: None, is_doubtful: false };
        let mut arguments = None;
        loop {
            let rest = bytes.get(seen.length..).unwrap_or_default();
            let step = walker.next(rest, signatures);
            let effort = 1 + step.as_ref().map_or(rest.len(), |(_, used)| *used) as u64 / 16;
            self.budget.set(self.budget.get().saturating_sub(effort));
            *cost = cost.saturating_sub(effort);
            let (token, used) = step?;
            if *cost == 0 || walker.depth() > TRIAL_DEPTH_MAX {
                return Err(Stop::More(usize::MAX));
            }
            seen.length += used;
            match token {
                Token::Enter { thread } => seen.is_doubtful |= thread.is_some_and(|thread| thread > self.thread_max),
                Token::Leave { call } => seen.leave = Some(call),
                Token::Function(function) => {
                    let row = signatures.function(function.slot).filter(|row| !row.is_lost);
                    seen.is_doubtful |= row.is_none();
                    arguments = row.map(|row| row.count);
                }
                Token::Argument(index) => seen.is_doubtful |= arguments.is_some_and(|count| index >= count),
                Token::EndEvent => return Ok(seen),
                _ => {}
            }
        }
    }
}

/// An event of a trial.
struct Seen {
    length: usize,
    /// The call number of a leave.
    leave: Option<u64>,
    /// A thread or function never seen, or an argument that the function does not have.
    is_doubtful: bool,
}

/// What speaks for a start.
struct Evidence<'a> {
    calls: &'a Calls,
    enters: u64,
    run: u32,
    /// Leaves that name enters of this trial.
    own: u32,
    /// Leaves that name calls known to wait.
    known: u32,
    /// Number of the first enter of this trial.
    base: Option<u64>,
    first_leave: Option<u64>,
    doubtful: Option<usize>,
    seen: Vec<u64>,
}

impl<'a> Evidence<'a> {
    fn new(calls: &'a Calls) -> Self {
        Self {
            calls,
            enters: 0,
            run: 0,
            own: 0,
            known: 0,
            base: None,
            first_leave: None,
            doubtful: None,
            seen: Vec::new(),
        }
    }

    /// Takes one event; `None` when it cannot be.
    fn add(&mut self, leave: Option<u64>) -> Option<()> {
        let Some(number) = leave else {
            self.enters += 1;
            self.run += 1;
            return (self.run <= RUN_MAX).then_some(());
        };
        if self.enters == 0 && self.seen.is_empty() {
            self.first_leave = Some(number);
        }
        self.run = 0;
        if self.seen.contains(&number) {
            return None;
        }
        self.seen.push(number);
        let next = self.calls.next();
        if self.calls.is_waiting(number) || self.calls.is_lost(number) {
            self.known += 1;
            return Some(());
        }
        if number < next || number - next > LOST_MAX {
            return None;
        }
        match self.base {
            Some(base) if number >= base + self.enters => None,
            Some(base) => {
                self.own += u32::from(number >= base);
                Some(())
            }
            // The call was entered in the part that is lost.
            None if self.enters == 0 => Some(()),
            None => {
                let base = number.checked_sub(self.enters - 1).filter(|base| *base >= next)?;
                let lost_above = self.seen.iter().filter(|n| **n >= base && **n != number).count();
                self.base = Some(base);
                self.own += 1;
                (lost_above == 0).then_some(())
            }
        }
    }

    fn verdict(&self, is_clean_end: bool) -> Option<Found> {
        let fits = self.own >= LEAVES_ENOUGH || (is_clean_end && self.own + self.known >= 1);
        let lost_leave = self.seen.iter().copied().max().map_or(0, |number| number + 1);
        let next_call = self.base.unwrap_or_else(|| self.calls.next().max(lost_leave));
        fits.then_some(Found { next_call, first_leave: self.first_leave, doubtful: self.doubtful })
    }
}

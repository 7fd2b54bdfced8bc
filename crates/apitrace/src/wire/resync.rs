//! Resynchronizes after damage.
//!
//! Events have no magic. A true start is recognized by call numbers: leaves found after it must name enters found after
//! it, or calls known to be waiting. Zeros, pixels and text do not satisfy this. The inside of an event often reads as
//! the head of another one and then falls into step. So a start must also break no rule over many events in a row, and
//! be better than the starts just after it.

use std::cell::Cell;

use anytrace_core::{Error, Sink};

use crate::rules;
use crate::wire::calls::{Call, Calls};
use crate::wire::event::fault_rule;
use crate::wire::evidence::{Evidence, ResumePoint, Seen};
use crate::wire::reader::{Broken, Cause, Reader};
use crate::wire::record::{EventKind, Token, VERSION_BACKTRACES, VERSION_PROPERTIES};
use crate::wire::scan::{Fault, FaultKind, Stop};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::RAW;
use crate::wire::walker::Walker;

/// How far a trial may reach from its start.
const REACH_BYTES: usize = 64 * 1024;

/// Most events read in one trial.
const EVENTS_MAX: usize = 48;

/// A start followed by this many valid events is accepted, whatever comes then.
const EVENTS_ENOUGH: usize = 8;

/// How far beyond the first event of a doubtful start a better start is searched.
const BETTER_WITHIN_BYTES: usize = 64;

/// Longest first event of a doubtful start.
const DOUBTED_BYTES_MAX: usize = 4096;

/// Fewest bytes of an enter.
const ENTER_BYTES_MIN: u64 = 3;

/// Thread numbers are counted from 0, so no trace comes near this.
const THREAD_MAX: u64 = 1 << 20;

/// Highest plausible flags; only bit 0 is known.
const FLAGS_MAX: u64 = 0xff;

/// Deepest plausible nesting in an event.
const TRIAL_DEPTH_MAX: usize = 64;

/// What all searches in a trace may cost before trials are cut short. A token or sixteen bytes cost 1.
const BUDGET: u64 = 1 << 24;

/// What one trial may cost: before the budget is used up, and after.
const TRIAL_COST_MAX: u64 = 1 << 13;
const SHORT_TRIAL_COST_MAX: u64 = 64;

impl Reader {
    /// Resumes after an event that broke off. Returns false at the end of the data.
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
        let is_head_bad = matches!(broken.cause, Cause::Fault(Fault { kind: FaultKind::Event, .. }));
        let is_found = if is_head_bad && self.pass_headless()? {
            true
        } else {
            if broken.is_buffered {
                self.stream.advance(1);
            }
            let gap = if from_end { Gap::AtEnd } else { Gap::Damage { start: broken.start } };
            self.resync(gap)?
        };
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

    /// Resumes after a gap that appears to lie between two events. Returns false at the end.
    pub(crate) fn cross_gap(&mut self, sink: &mut dyn Sink) -> Result<bool, Error> {
        let start = self.stream.offset();
        let is_found = self.resync(Gap::Missing)?;
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

    /// Skips an event of which only the first byte is wrong. Returns false if that is not the case.
    fn pass_headless(&mut self) -> Result<bool, Error> {
        let at_hand = self.stream.fill(2 * REACH_BYTES)?.min(2 * REACH_BYTES);
        let mut window = self.stream.window().get(..at_hand).unwrap_or_default().to_vec();
        let was_lost = std::mem::replace(&mut self.layout.signatures.may_be_lost, true);
        let mut walker = Walker::new(self.layout.header.version, &self.limits);
        let budget = Cell::new(BUDGET.saturating_sub(self.effort));
        for kind in [0, 1] {
            if let Some(first) = window.first_mut() {
                *first = kind;
            }
            let trial = Trial {
                window: &window,
                is_end: at_hand < 2 * REACH_BYTES,
                gap: Gap::Damage { start: self.stream.offset() },
                offset: self.stream.offset(),
                version: self.layout.header.version,
                calls: &self.calls,
                thread_max: self.thread_max,
                budget: &budget,
            };
            let found = trial.attempt(0, &mut walker, &mut self.layout.signatures).filter(|found| {
                let is_pending = found.first_leave.is_none_or(|number| self.calls.is_waiting(number));
                found.is_firm && is_pending && found.next_call == self.calls.next()
            });
            self.effort = BUDGET - budget.get();
            let Some(found) = found else { continue };
            // The definitions in the event take effect from here on.
            let bytes = window.get(..found.length).unwrap_or_default();
            walker.reset();
            let mut at = 0;
            while let Ok((_, used)) = walker.next(bytes.get(at..).unwrap_or_default(), &mut self.layout.signatures) {
                at += used;
                if at >= bytes.len() {
                    break;
                }
            }
            self.stream.advance(found.length);
            self.lost_calls += self.calls.resume(found.next_call + u64::from(kind == 0));
            return Ok(true);
        }
        self.layout.signatures.may_be_lost = was_lost;
        Ok(false)
    }

    /// Moves to the next place where events follow one another. Returns false if there is none.
    fn resync(&mut self, mut gap: Gap) -> Result<bool, Error> {
        self.layout.signatures.may_be_lost = true;
        let mut walker = Walker::new(self.layout.header.version, &self.limits);
        let budget = Cell::new(BUDGET.saturating_sub(self.effort));
        loop {
            let at_hand = self.stream.fill(2 * REACH_BYTES)?.min(2 * REACH_BYTES);
            let is_end = at_hand < 2 * REACH_BYTES;
            let window = self.stream.window().get(..at_hand).unwrap_or_default();
            let starts = if is_end { at_hand } else { REACH_BYTES };
            let trial = Trial {
                window,
                is_end,
                gap,
                offset: self.stream.offset(),
                version: self.layout.header.version,
                calls: &self.calls,
                thread_max: self.thread_max,
                budget: &budget,
            };
            let found = trial.search(starts, &mut walker, &mut self.layout.signatures);
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
                gap = Gap::Missing;
            }
        }
    }
}

/// What precedes the place that is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// Bytes that cannot be read, from an event at this offset on.
    Damage { start: u64 },
    /// An unknown number of missing bytes.
    Missing,
    /// An event in which the data end: the rest is most likely the inside of a blob.
    AtEnd,
}

/// A search for events in a window.
struct Trial<'a> {
    window: &'a [u8],
    is_end: bool,
    gap: Gap,
    /// Offset of the window in the raw stream.
    offset: u64,
    version: u64,
    calls: &'a Calls,
    /// Highest thread number seen so far.
    thread_max: u64,
    /// What remains of the budget: hostile bytes can make every trial long.
    budget: &'a Cell<u64>,
}

impl Trial<'_> {
    /// The first place below `starts` where events follow one another. A doubtful one is taken only if there is no
    /// better one just after it.
    fn search(&self, starts: usize, walker: &mut Walker, signatures: &mut Signatures) -> Option<(usize, ResumePoint)> {
        let mut doubted: Option<(usize, ResumePoint)> = None;
        let mut at = 0;
        while at < starts {
            let bytes = self.window.get(at..)?;
            if let Some((first, found)) = doubted
                && at > first + found.length.min(DOUBTED_BYTES_MAX) + BETTER_WITHIN_BYTES
            {
                break;
            }
            // Long runs of zeros read as endless enters.
            if bytes.starts_with(&[0; 32]) {
                at += 1 + bytes.iter().skip(32).take_while(|byte| **byte == 0).count();
                continue;
            }
            if bytes.first().is_some_and(|kind| *kind <= 1)
                && let Some(found) = self.attempt(at, walker, signatures)
            {
                // The end of an event followed by a leave also reads as an enter of thread 1. The leave is preferred if
                // it fits.
                if bytes.starts_with(&[0, 1])
                    && let Some(other) = self.attempt(at + 1, walker, signatures)
                    && other.first_leave.is_some_and(|n| self.calls.is_waiting(n) || other.next_call == n + 1)
                {
                    return Some((at + 1, other));
                }
                if found.is_firm {
                    return Some((at, found));
                }
                doubted = doubted.or(Some((at, found)));
            }
            at += 1;
        }
        doubted
    }

    fn attempt(&self, at: usize, walker: &mut Walker, signatures: &mut Signatures) -> Option<ResumePoint> {
        signatures.begin_trial();
        let found = self.events(at, walker, signatures);
        signatures.end_trial();
        found
    }

    fn events(&self, start: usize, walker: &mut Walker, signatures: &mut Signatures) -> Option<ResumePoint> {
        let lost_max = match self.gap {
            Gap::Damage { start: from } => Some(1 + (self.offset + start as u64 - from) / ENTER_BYTES_MIN),
            Gap::Missing | Gap::AtEnd => None,
        };
        let mut evidence = Evidence::new(self.calls, lost_max);
        let mut cost = if self.budget.get() > 0 { TRIAL_COST_MAX } else { SHORT_TRIAL_COST_MAX };
        let end = (start + REACH_BYTES).min(self.window.len());
        let mut at = start;
        for events in 0..EVENTS_MAX {
            let bytes = self.window.get(at..end).unwrap_or_default();
            if bytes.is_empty() {
                let is_clean_end = self.is_end && end == self.window.len() && self.gap != Gap::AtEnd;
                return evidence.verdict(is_clean_end);
            }
            let is_taken = match self.event(bytes, walker, signatures, &mut cost) {
                Ok(seen) => {
                    at += seen.length;
                    evidence.add(&seen)
                }
                Err(Stop::More(_)) => return evidence.verdict(false),
                Err(Stop::Bad(_)) => false,
            };
            if !is_taken {
                // Possibly the next damage.
                return if events >= EVENTS_ENOUGH { evidence.verdict(false) } else { None };
            }
        }
        evidence.verdict(false)
    }

    /// Reads one event. What `check` reports as an error is a fault here.
    fn event(
        &self,
        bytes: &[u8],
        walker: &mut Walker,
        signatures: &mut Signatures,
        cost: &mut u64,
    ) -> Result<Seen, Stop> {
        walker.reset();
        let mut seen = Seen::default();
        let mut arguments = None;
        let mut details = 0;
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
            let is_allowed = match token {
                Token::Enter { thread } => {
                    seen.is_doubtful |= thread.is_some_and(|thread| thread > self.thread_max);
                    thread.is_none_or(|thread| thread <= THREAD_MAX)
                }
                Token::Leave { call } => {
                    seen.leave = Some(call);
                    if let Some(function) = self.calls.function(call) {
                        arguments = signatures.function(function).filter(|row| !row.is_lost).map(|row| row.count);
                    }
                    true
                }
                Token::Function(function) => {
                    let row = signatures.function(function.slot).filter(|row| !row.is_lost);
                    seen.is_doubtful |= row.is_none();
                    arguments = row.map(|row| row.count);
                    true
                }
                Token::Argument(index) => arguments.is_none_or(|count| index < count),
                Token::Return => {
                    seen.is_doubtful |= seen.leave.is_none();
                    true
                }
                Token::Thread(_) => false,
                Token::Backtrace(_) => self.version >= VERSION_BACKTRACES,
                Token::Flags(flags) => self.version >= VERSION_PROPERTIES && flags <= FLAGS_MAX,
                Token::Wide(..) => self.version >= VERSION_PROPERTIES,
                Token::EndEvent => {
                    // Four bytes of pixels may read as a call without arguments.
                    let is_bare = details == 0 && seen.leave.is_none();
                    seen.is_doubtful |= is_bare && self.gap == Gap::Missing;
                    return Ok(seen);
                }
                _ => true,
            };
            details += u32::from(matches!(token, Token::Argument(_) | Token::Backtrace(_) | Token::Flags(_)));
            if !is_allowed {
                return Err(Stop::Bad(Fault { kind: FaultKind::Detail, at: 0, found: 0 }));
            }
        }
    }
}

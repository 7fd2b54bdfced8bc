//! The state of a reader between two bytes: which part of the file they belong to, and what is damaged.

use anytrace_core::{Diagnostic, Error, Passed, Place, Rule, Sink};

use super::excerpt::{SHOWN_BYTES, shown};
use super::frame::{Fact, Frame, Stopped};
use super::parse::{Need, is_plausible, parse};
use super::probe::{BOM, form_of_object};
use super::record::{Form, Layout, Record};
use crate::rules;

/// Bytes between the events. Records and pieces together are all bytes of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// What precedes the first event: up to the bracket that opens the array.
    Head(&'a [u8]),
    /// White space and commas.
    Separator(&'a [u8]),
    /// From the bracket that closes the array.
    Tail(&'a [u8]),
    /// Bytes that are none of these; the reason is reported.
    Lost(&'a [u8]),
}

/// Receives all of a trace, in order.
pub(crate) trait Visit {
    /// An event.
    fn record(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error>;

    /// Other bytes; `at` has the number of the next event.
    fn piece(&mut self, _piece: Piece<'_>, _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }

    /// The events begin; these keys are before them.
    fn head(&mut self, _facts: &[Fact]) {}

    /// Bytes were lost. What was found depends on bytes before this offset.
    fn damaged(&mut self, _until: u64) {}

    /// True when nothing more is wanted.
    #[inline]
    fn is_done(&self) -> bool {
        false
    }
}

/// Where reading begins.
pub(crate) enum Start {
    /// At the start of a file.
    File,
    /// At an event of a file of this form.
    Event(Form, Place),
}

/// How much of a file shows what its first object is.
const FIRST_BYTES: usize = 64 << 10;

/// White space and commas are passed on in pieces of at most this length.
const SEPARATOR_BYTES_MAX: usize = 64 << 10;

/// The end of the array is looked for in so much of what was lost before the end of the data.
const TAIL_BYTES: usize = 64 << 10;

/// Most closing brackets that are examined there.
const TAILS_MAX: usize = 64;

/// What a step made of the bytes it was given.
enum Progress {
    /// It passed so many, or none where they are for another phase.
    Used(usize),
    /// It passed so many and needs more behind the rest.
    NeedsMore(usize),
}

use Progress::{NeedsMore, Used};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the first byte that is no white space.
    Start,
    /// In the object, before the events.
    Head,
    /// Between events.
    Events,
    /// After damage.
    Search,
    /// In the object, after the events.
    Tail,
    /// After the end of the trace.
    Trailing,
}

/// Turns bytes into records and pieces.
pub(crate) struct Scanner {
    phase: Phase,
    form: Form,
    frame: Frame,
    offset: u64,
    seq: u64,
    bytes_lost: u64,
    record_bytes_max: usize,
    /// True where the end of the bytes is that of a part, not of the trace.
    is_part: bool,
    /// Commas since the last event.
    commas: usize,
    /// True where bytes before the next event were lost, so that its separator may be, too.
    is_after_damage: bool,
    is_closed: bool,
    damage: Option<Diagnostic>,
    /// The wrong byte, counted from the start of the damage, until enough behind it is there to be shown.
    wrong: Option<usize>,
    /// What was found of the damage depends on bytes before this offset.
    examined: u64,
    /// Bytes of the damage that were passed, and those of the window that were searched.
    skipped: u64,
    searched: usize,
}

impl Scanner {
    pub(crate) fn new(start: Start, record_bytes_max: usize, is_part: bool) -> Self {
        let (phase, form, place) = match start {
            Start::File => (Phase::Start, Form::Array, Place::default()),
            Start::Event(form, place) => (Phase::Events, form, place),
        };
        Self {
            phase,
            form,
            frame: Frame::new(),
            offset: place.offset,
            seq: place.seq,
            bytes_lost: 0,
            record_bytes_max,
            is_part,
            commas: 0,
            is_after_damage: phase == Phase::Events,
            is_closed: false,
            damage: None,
            wrong: None,
            examined: 0,
            skipped: 0,
            searched: 0,
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn facts(&self) -> &[Fact] {
        self.frame.facts()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    pub(crate) fn passed(&self) -> Passed {
        Passed { records: self.seq, bytes: self.offset, bytes_lost: self.bytes_lost }
    }

    /// Visits what is complete in the window; returns its length.
    #[inline]
    pub(crate) fn window<V: Visit>(
        &mut self,
        window: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<usize, Error> {
        let mut at = 0;
        while let Some(rest) = window.get(at..).filter(|rest| !rest.is_empty()) {
            let step = match self.phase {
                Phase::Events => self.events(rest, is_last, visit, sink)?,
                Phase::Start => self.start(rest, is_last, visit, sink)?,
                Phase::Head | Phase::Tail => self.frame(rest, visit, sink)?,
                Phase::Search => self.search(rest, is_last, visit, sink)?,
                Phase::Trailing => self.trailing(rest, visit, sink)?,
            };
            match step {
                Used(used) => at += used,
                NeedsMore(used) => return Ok(at + used),
            }
            if visit.is_done() {
                break;
            }
        }
        Ok(at)
    }

    /// Reports what only the end shows.
    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(damage) = self.damage.take() {
            sink.report(damage.skipped(self.skipped))?;
        }
        let is_open = match self.phase {
            Phase::Head | Phase::Tail => true,
            Phase::Events => self.form == Form::Object && !self.is_part,
            Phase::Start | Phase::Search | Phase::Trailing => false,
        };
        if is_open {
            let report = rules::TRUNCATED.at(self.offset).record(self.seq);
            sink.report(report.expected("the end of the object").found("end of input"))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn place(&self) -> Place {
        Place { offset: self.offset, seq: self.seq }
    }

    fn piece<V: Visit>(&mut self, piece: Piece<'_>, visit: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        let (Piece::Head(bytes) | Piece::Separator(bytes) | Piece::Tail(bytes) | Piece::Lost(bytes)) = piece;
        if !bytes.is_empty() {
            visit.piece(piece, self.place(), sink)?;
            self.offset += bytes.len() as u64;
        }
        Ok(())
    }

    fn start<V: Visit>(
        &mut self,
        rest: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        if self.offset == 0 && !is_last && rest.len() < BOM.len() && BOM.starts_with(rest) {
            return Ok(NeedsMore(0));
        }
        let mark = if self.offset == 0 && rest.starts_with(BOM) { BOM.len() } else { 0 };
        let space = super::json::skip_space(rest, mark);
        if space > 0 {
            self.piece(Piece::Head(rest.get(..space).unwrap_or_default()), visit, sink)?;
            return Ok(Used(space));
        }
        match rest.first() {
            Some(b'[') => {
                self.phase = Phase::Events;
                self.piece(Piece::Head(b"["), visit, sink)?;
                Ok(Used(1))
            }
            Some(b'{') => {
                let look = rest.get(..FIRST_BYTES).unwrap_or(rest);
                self.form = match form_of_object(look) {
                    Some(form) => form,
                    None if look.len() < FIRST_BYTES && !is_last => return Ok(NeedsMore(0)),
                    None => Form::Object,
                };
                if self.form == Form::Lines {
                    self.phase = Phase::Events;
                    // Nothing precedes the events, and that is known now.
                    visit.piece(Piece::Head(b""), self.place(), sink)?;
                    return self.events(rest, is_last, visit, sink);
                }
                self.phase = Phase::Head;
                self.piece(Piece::Head(b"{"), visit, sink)?;
                Ok(Used(1))
            }
            _ => Ok(self.damaged(&rules::BAD_FRAME, 0, "[ or {")),
        }
    }

    /// The object before and after the events.
    fn frame<V: Visit>(&mut self, rest: &[u8], visit: &mut V, sink: &mut dyn Sink) -> Result<Progress, Error> {
        let is_head = self.phase == Phase::Head;
        let stopped = self.frame.scan(rest);
        let (used, wrong) = match stopped {
            Stopped::More => (rest.len(), None),
            Stopped::Events(used) if is_head => {
                self.phase = Phase::Events;
                visit.head(self.frame.facts());
                (used, None)
            }
            Stopped::Events(used) => (used.saturating_sub(1), Some("other keys: the events were read")),
            Stopped::Closed(used) => {
                if is_head {
                    let end = self.offset + used as u64 - 1;
                    sink.report(rules::NO_EVENTS.at(end).expected("traceEvents").found("the end of the object"))?;
                }
                (self.phase, self.is_closed) = (Phase::Trailing, true);
                (used, None)
            }
            Stopped::Bad(at, expected) => (at, Some(expected)),
        };
        let bytes = rest.get(..used).unwrap_or(rest);
        self.piece(if is_head { Piece::Head(bytes) } else { Piece::Tail(bytes) }, visit, sink)?;
        if let Some(expected) = wrong {
            self.damaged(&rules::BAD_FRAME, 0, expected);
        }
        Ok(Used(used))
    }

    /// White space and commas, then an event or the end of the array.
    #[inline]
    fn events<V: Visit>(
        &mut self,
        rest: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        let (mut space, mut commas) = (0, 0);
        while let Some(byte @ (b' ' | b'\n' | b'\r' | b'\t' | b',')) = rest.get(space) {
            commas += usize::from(*byte == b',');
            space += 1;
        }
        let (separator, event) = rest.split_at_checked(space).unwrap_or((rest, &[]));
        if event.is_empty() || space > SEPARATOR_BYTES_MAX {
            return self.long_space(separator, is_last, visit, sink);
        }
        match event.first() {
            Some(b'{') => {}
            Some(b']') if self.form != Form::Lines => {
                self.commas += commas;
                return self.end_of_events(separator, visit, sink);
            }
            _ => {
                self.piece(Piece::Separator(separator), visit, sink)?;
                self.damaged(&rules::BAD_EVENT, 0, "an event or the end of the array");
                return Ok(Used(space));
            }
        }
        let (rule, at, expected) = match parse(event, &Layout::default()) {
            Ok((record, used)) if used <= self.record_bytes_max => {
                self.commas += commas;
                self.separated(separator, visit, sink)?;
                visit.record(&record, self.place(), sink)?;
                self.seq += 1;
                self.offset += used as u64;
                return Ok(Used(space + used));
            }
            Ok(_) => (&rules::EVENT_TOO_LONG, 0, ""),
            Err(Need::More(_)) if event.len() > self.record_bytes_max => (&rules::EVENT_TOO_LONG, 0, ""),
            Err(Need::More(_)) if !is_last => return Ok(NeedsMore(0)),
            Err(Need::More(_)) => (&rules::TRUNCATED, event.len(), "the rest of the event"),
            Err(Need::Bad(fault)) => (&rules::BAD_EVENT, fault.at, fault.expected),
        };
        self.piece(Piece::Separator(separator), visit, sink)?;
        self.damaged(rule, at, expected);
        Ok(Used(space))
    }

    /// White space without an end in the window.
    #[cold]
    fn long_space<V: Visit>(
        &mut self,
        separator: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        let piece = match separator.get(..SEPARATOR_BYTES_MAX) {
            Some(piece) => piece,
            None if is_last => separator,
            None => return Ok(NeedsMore(0)),
        };
        self.commas += piece.iter().filter(|byte| **byte == b',').count();
        self.piece(Piece::Separator(piece), visit, sink)?;
        Ok(Used(piece.len()))
    }

    /// Judges and passes what is between two events.
    #[inline]
    fn separated<V: Visit>(&mut self, separator: &[u8], visit: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        let expected = usize::from(self.seq > 0 && self.form != Form::Lines);
        if self.commas != expected && !self.is_after_damage {
            self.report_separator(expected, sink)?;
        }
        (self.commas, self.is_after_damage) = (0, false);
        if separator.is_empty() { Ok(()) } else { self.piece(Piece::Separator(separator), visit, sink) }
    }

    #[cold]
    fn report_separator(&self, expected: usize, sink: &mut dyn Sink) -> Result<(), Error> {
        let commas = |count: usize| match count {
            0 => "no comma".to_owned(),
            1 => "one comma".to_owned(),
            count => format!("{count} commas"),
        };
        let report = rules::SEPARATOR.at(self.offset).record(self.seq);
        sink.report(report.expected(commas(expected)).found(commas(self.commas)))
    }

    /// The bracket that closes the array.
    fn end_of_events<V: Visit>(
        &mut self,
        separator: &[u8],
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        if self.commas > usize::from(self.seq > 0) && !self.is_after_damage {
            self.report_separator(0, sink)?;
        }
        (self.commas, self.is_after_damage) = (0, true);
        self.piece(Piece::Separator(separator), visit, sink)?;
        if self.form == Form::Object {
            self.frame.resume();
            self.phase = Phase::Tail;
        } else {
            (self.phase, self.is_closed) = (Phase::Trailing, true);
        }
        self.piece(Piece::Tail(b"]"), visit, sink)?;
        Ok(Used(separator.len() + 1))
    }

    fn trailing<V: Visit>(&mut self, rest: &[u8], visit: &mut V, sink: &mut dyn Sink) -> Result<Progress, Error> {
        let space = super::json::skip_space(rest, 0);
        self.piece(Piece::Tail(rest.get(..space).unwrap_or_default()), visit, sink)?;
        if rest.len() > space {
            self.damaged(&rules::TRAILING_DATA, 0, "the end of the data");
        }
        Ok(Used(space))
    }

    /// Damage begins here; the wrong byte is at `at`.
    #[cold]
    fn damaged(&mut self, rule: &'static Rule, at: usize, expected: &'static str) -> Progress {
        let report = rule.at(self.offset + at as u64).record(self.seq);
        let is_long = std::ptr::eq(rule, &rules::EVENT_TOO_LONG);
        (self.damage, self.wrong) = if is_long {
            (Some(report.expected(format!("at most {} bytes", self.record_bytes_max))), None)
        } else {
            (Some(report.expected(expected)), Some(at))
        };
        let ahead = if is_long { self.record_bytes_max } else { at };
        self.examined = self.offset.saturating_add((ahead + 2 * SHOWN_BYTES) as u64);
        self.phase = Phase::Search;
        self.is_after_damage = true;
        // An event that failed is not tried again.
        (self.skipped, self.searched) = (0, usize::from(at > 0 || is_long));
        Used(0)
    }

    /// Says what is at the wrong byte; false where more bytes are needed for that, so that the text does not depend on
    /// how the bytes arrive.
    fn show_wrong(&mut self, rest: &[u8], is_last: bool) -> bool {
        let Some(at) = self.wrong else { return true };
        if !is_last && rest.len() <= at + SHOWN_BYTES {
            return false;
        }
        let found = match rest.get(at..) {
            Some([]) | None => "end of input".to_owned(),
            Some(found) => shown(found),
        };
        self.damage = self.damage.take().map(|damage| damage.found(found));
        self.wrong = None;
        true
    }

    /// Looks for the next event after damage. An event is one where it has a phase: what is nested in others has none.
    #[cold]
    fn search<V: Visit>(
        &mut self,
        rest: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        if !self.show_wrong(rest, is_last) {
            return Ok(NeedsMore(0));
        }
        let mut at = self.searched;
        while let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr(b'{', rest)) {
            let candidate = at + found;
            let bytes = rest.get(candidate..).unwrap_or_default();
            match parse(bytes, &Layout::default()) {
                Ok((record, used)) if used <= self.record_bytes_max && is_plausible(&record) => {
                    return self.resume(rest.get(..candidate).unwrap_or_default(), true, visit, sink);
                }
                Err(Need::More(_)) if !is_last && bytes.len() <= self.record_bytes_max => {
                    return self.lose_searched(rest, candidate, visit, sink);
                }
                _ => at = candidate + 1,
            }
        }
        if !is_last {
            return self.lose_searched(rest, rest.len(), visit, sink);
        }
        // All of a truncated event is inside it.
        let is_truncated = self.damage.as_ref().is_some_and(|damage| std::ptr::eq(damage.rule, &rules::TRUNCATED));
        if !self.is_part
            && !is_truncated
            && let Some(tail) = tail_at(rest, self.form)
        {
            return self.resume(rest.get(..tail).unwrap_or_default(), false, visit, sink);
        }
        self.lose(rest, visit, sink)?;
        self.searched = 0;
        Ok(Used(rest.len()))
    }

    /// Passes lost bytes that were searched, except those in which the end may be.
    fn lose_searched<V: Visit>(
        &mut self,
        rest: &[u8],
        searched: usize,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        let given = searched.saturating_sub(TAIL_BYTES);
        self.lose(rest.get(..given).unwrap_or_default(), visit, sink)?;
        self.searched = searched - given;
        Ok(NeedsMore(given))
    }

    fn lose<V: Visit>(&mut self, bytes: &[u8], visit: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        self.skipped += bytes.len() as u64;
        self.bytes_lost += bytes.len() as u64;
        self.piece(Piece::Lost(bytes), visit, sink)
    }

    /// Ends the damage with these bytes.
    fn resume<V: Visit>(
        &mut self,
        lost: &[u8],
        at_event: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<Progress, Error> {
        self.lose(lost, visit, sink)?;
        visit.damaged(self.examined);
        if let Some(mut damage) = self.damage.take() {
            if at_event {
                damage = damage.resumed(self.seq);
                if std::ptr::eq(damage.rule, &rules::TRUNCATED) {
                    damage.rule = &rules::BAD_EVENT;
                }
            }
            sink.report(damage.skipped(self.skipped))?;
        }
        (self.phase, self.commas, self.is_closed) = (Phase::Events, 0, false);
        Ok(Used(lost.len()))
    }
}

/// Where lost bytes at the end of the data end the array: the first bracket behind which only the rest of the object
/// follows.
fn tail_at(lost: &[u8], form: Form) -> Option<usize> {
    let from = lost.len().saturating_sub(TAIL_BYTES);
    let look = lost.get(from..)?;
    let is_end = |at: &usize| {
        let rest = look.get(at + 1..).unwrap_or_default();
        let end = match form {
            Form::Lines => return false,
            Form::Array => Some(0),
            Form::Object => {
                let mut frame = Frame::new();
                frame.resume();
                match frame.scan(rest) {
                    Stopped::Closed(used) => Some(used),
                    _ => None,
                }
            }
        };
        end.and_then(|end| rest.get(end..)).is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace))
    };
    memchr::memrchr_iter(b']', look).take(TAILS_MAX).filter(is_end).last().map(|at| from + at)
}

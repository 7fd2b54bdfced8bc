//! The engine of every verb: white space, records, the reference's own output and damaged bytes, in the order of the
//! bytes, with every byte exactly once. The visitor gets the sink together with the place.

#[cfg(feature = "tools")]
pub(crate) mod ahead;
#[cfg(feature = "tools")]
pub(crate) mod push;

use std::borrow::Cow;

use anytrace_core::index::Mark;
use anytrace_core::{Cursor, Diagnostic, Error, Input, OpenOptions, Rule, Sink};

use crate::rules;
use crate::wire::marks::{Begin, refused};
use crate::wire::output::{self, Line};
use crate::wire::parse::{Fault, Need, parse_watched};
use crate::wire::record::Record;
use crate::wire::skip::{Skip, Skipped};
use crate::wire::style::Radix;
use crate::wire::words::{Class, class};
use crate::wire::writer::RECORD_BYTES_MAX;

/// A piece of a trace. All pieces together are all bytes of the input.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// A record.
    Record(&'a Record<'a>),
    /// White space and comments between records.
    Space(&'a [u8]),
    /// A line `! text`: the verdict that the reference wrote at the end of a failing log.
    Claim(&'a [u8]),
    /// Other text that the reference writes between the records: its error block, states, differences, colors.
    Output(&'a [u8]),
    /// Bytes that are none of these; the reason was reported. Empty where a comment says that `repair` left bytes out
    /// here.
    Lost(&'a [u8]),
}

/// The place of an [`Item`], and the sink for diagnostics about it.
pub(crate) struct Here<'a> {
    /// Offset of the item's first byte.
    pub(crate) offset: u64,
    /// Number of the record, from 0; of other items, the number of the next record.
    pub(crate) seq: u64,
    window: &'a [u8],
    window_offset: u64,
    lines: &'a mut LineCounter,
    sink: &'a mut dyn Sink,
}

impl Here<'_> {
    /// A diagnostic about the byte `at` of the item, with line and column.
    #[cold]
    pub(crate) fn complaint(&mut self, rule: &'static Rule, at: usize) -> Diagnostic {
        let (line, column) = self.lines.locate(self.window, self.window_offset, self.offset, at);
        rule.at(self.offset + at as u64).line(line, column)
    }

    /// Passes a diagnostic on.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

/// Walks a trace from an [`Input`].
pub(crate) struct Walk {
    cursor: Cursor,
    radix: Radix,
    record_bytes_max: usize,
    state: ReaderState,
    lines: LineCounter,
    /// The cursor's window ends with the data.
    is_last: bool,
    /// Where the part that is read ends; none for the end of the trace.
    until: Option<u64>,
    is_continued: bool,
}

/// State that is kept from window to window.
#[derive(Default)]
struct ReaderState {
    mode: Mode,
    seq: u64,
    /// Parentheses that a damaged record left open before the record found inside it.
    owed: u64,
    /// A diagnostic that waits for the end of its skip, and where the skip began.
    pending: Option<(Diagnostic, u64)>,
    has_output: bool,
}

#[derive(Default)]
enum Mode {
    #[default]
    Records,
    Comment,
    Output,
    Skip(Skip),
}

impl Walk {
    /// Starts at the first byte, or at that of the part. Of the options, only `radix`, `limits` and `part` are used.
    ///
    /// # Errors
    /// Usage, where reading cannot begin at the part's mark.
    pub(crate) fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let (radix, record_bytes_max) = Self::limits_of(options);
        let mut walk = Self::with_limits(input, radix, record_bytes_max);
        if let Some(part) = &options.part {
            walk.until = part.until;
            part.from.as_ref().map_or(Ok(()), |mark| walk.begin(mark))?;
        }
        Ok(walk)
    }

    /// Moves to a mark.
    fn begin(&mut self, mark: &Mark) -> Result<(), Error> {
        let Begin { has_output, line_ends, line_start } = Begin::decode(mark)?;
        if !self.cursor.layers().is_empty() || !self.cursor.seek(mark.offset) {
            return Err(refused(mark));
        }
        (self.state.seq, self.state.has_output) = (mark.seq, has_output);
        self.is_continued = true;
        self.lines = LineCounter { line_ends, line_start, counted_to: mark.offset };
        Ok(())
    }

    /// The place after the last step, where reading can begin; none where damage before it is not finished.
    pub(crate) fn mark(&self) -> Option<Mark> {
        let ReaderState { mode, seq, owed, pending, has_output } = &self.state;
        let is_clean = matches!(mode, Mode::Records) && *owed == 0 && pending.is_none();
        let LineCounter { line_ends, line_start, .. } = self.lines;
        let begin = Begin { has_output: *has_output, line_ends, line_start };
        is_clean.then(|| Mark { offset: self.offset(), seq: *seq, state: begin.encode() })
    }

    /// The base of numbers, and the length of the longest record.
    fn limits_of(options: &OpenOptions) -> (Radix, usize) {
        let radix = options.own.word("radix").and_then(Radix::from_name).unwrap_or(Radix::Hex);
        let record_bytes_max = options.limits.record_bytes_max.clamp(64, RECORD_BYTES_MAX as u64);
        (radix, usize::try_from(record_bytes_max).unwrap_or(usize::MAX))
    }

    fn with_limits(input: Input, radix: Radix, record_bytes_max: usize) -> Self {
        Self {
            cursor: Cursor::new(input),
            radix,
            record_bytes_max,
            state: ReaderState::default(),
            lines: LineCounter::default(),
            is_last: false,
            until: None,
            is_continued: false,
        }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// Records read so far.
    pub(crate) fn records(&self) -> u64 {
        self.state.seq
    }

    /// True when the part that is read does not begin at the start of the trace.
    pub(crate) fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// The base of numbers without `0x`.
    pub(crate) fn radix(&self) -> Radix {
        self.radix
    }

    /// The cursor under the reader.
    pub(crate) fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Visits every piece to the end of the input or of the part. Damage is reported to the sink and skipped.
    ///
    /// # Errors
    /// I/O errors, and whatever the visitor or the sink returns.
    pub(crate) fn for_each(
        &mut self,
        sink: &mut dyn Sink,
        mut visit: impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while self.step(usize::MAX, sink, &mut visit)? {}
        Ok(())
    }

    /// Visits the complete pieces among the next `reach` bytes; false at the end of the data or of the part. Without
    /// progress, a piece is longer: the caller must then extend its reach.
    pub(crate) fn step(
        &mut self,
        reach: usize,
        sink: &mut dyn Sink,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let at_hand = self.cursor.window();
        let window = at_hand.get(..reach).unwrap_or(at_hand);
        let is_all = window.len() == at_hand.len();
        let is_last = self.is_last && is_all;
        let until = self.until.map(|until| until.saturating_sub(self.cursor.offset()));
        let mut pass = Pass {
            window,
            until: until.and_then(|until| usize::try_from(until).ok()).unwrap_or(usize::MAX),
            window_offset: self.cursor.offset(),
            is_last,
            radix: self.radix,
            record_bytes_max: self.record_bytes_max,
            lines: &mut self.lines,
            sink: &mut *sink,
        };
        let used = pass.run(&mut self.state, visit)?;
        self.lines.count_to(window, self.cursor.offset(), self.cursor.offset() + used as u64);
        let left = window.len() - used;
        self.cursor.advance(used);
        let is_over = self.until.is_some_and(|until| self.cursor.offset() >= until);
        if is_last && left == 0 || is_over {
            self.finish(sink)?;
            return Ok(false);
        }
        if is_all {
            // Growth by halves keeps the reading of a long record linear, and requests little from a slow pipe.
            let got = self.cursor.fill(left + left / 2 + 1)?;
            self.is_last = got == left;
        }
        Ok(true)
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some((diagnostic, from)) = self.state.pending.take() {
            let goes_on = matches!(self.state.mode, Mode::Skip(_));
            let skipped = if goes_on { self.cursor.offset() - from } else { diagnostic.skipped_bytes };
            sink.report(diagnostic.skipped(skipped))?;
        }
        self.cursor.report_layers(sink)
    }
}

/// One window.
struct Pass<'a> {
    window: &'a [u8],
    /// Pieces that begin so many bytes on belong to the next part: white space apart, which is nobody's.
    until: usize,
    window_offset: u64,
    is_last: bool,
    radix: Radix,
    record_bytes_max: usize,
    lines: &'a mut LineCounter,
    sink: &'a mut dyn Sink,
}

/// The end of what can be read in this window.
struct Stop;

impl Pass<'_> {
    /// Visits the complete items in the window; returns their length in bytes.
    fn run(
        &mut self,
        state: &mut ReaderState,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let mut at = 0;
        while at < self.window.len().min(self.until) {
            let stop = match state.mode {
                Mode::Records => self.records(state, &mut at, visit)?,
                Mode::Comment | Mode::Output => self.line(state, &mut at, visit)?,
                Mode::Skip(_) => self.skip(state, &mut at, visit)?,
            };
            if stop.is_some() {
                break;
            }
        }
        Ok(at)
    }

    /// The hot loop: white space and records.
    fn records(
        &mut self,
        state: &mut ReaderState,
        at: &mut usize,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<Option<Stop>, Error> {
        let window = self.window;
        loop {
            let start = *at;
            let mut here = start;
            while window.get(here).is_some_and(|b| class(*b) == Class::Space) {
                here += 1;
            }
            if here > start {
                *at = here;
                visit(Item::Space(&window[start..here]), &mut self.place(state, start))?;
            }
            if here >= self.until {
                return Ok(Some(Stop));
            }
            match window.get(here) {
                None => return Ok(Some(Stop)),
                Some(b'(') => {}
                Some(_) => return self.other(state, at, visit),
            }
            match parse_watched(&window[here..], self.radix, &mut ()) {
                Ok((record, used)) if used <= self.record_bytes_max => {
                    if state.pending.is_some() || state.owed > 0 {
                        self.resume(state)?;
                    }
                    visit(Item::Record(&record), &mut self.place(state, here))?;
                    state.seq += 1;
                    *at = here + used;
                }
                Ok(_) => return self.no_record(state, here, Need::More(0)),
                Err(need) => return self.no_record(state, here, need),
            }
        }
    }

    fn place<'b>(&'b mut self, state: &ReaderState, at: usize) -> Here<'b> {
        Here {
            offset: self.window_offset + at as u64,
            seq: state.seq,
            window: self.window,
            window_offset: self.window_offset,
            lines: self.lines,
            sink: self.sink,
        }
    }

    /// A record was read: a pending skip ends here.
    #[cold]
    fn resume(&mut self, state: &mut ReaderState) -> Result<(), Error> {
        if let Some((diagnostic, _)) = state.pending.take() {
            self.sink.report(diagnostic.resumed(state.seq))?;
        } else {
            // The record after the one found inside a damaged one.
            state.owed = 0;
        }
        Ok(())
    }

    #[cold]
    fn no_record(&mut self, state: &mut ReaderState, at: usize, need: Need) -> Result<Option<Stop>, Error> {
        let left = &self.window[at..];
        let fault = match need {
            Need::Bad(fault) => *fault,
            Need::More(_) if left.len() >= self.record_bytes_max => Fault {
                rule: &rules::RECORD_TOO_LONG,
                at: 0,
                field: None,
                expected: Some(format!("at most {} bytes", self.record_bytes_max).into()),
                found: None,
            },
            Need::More(_) if !self.is_last => return Ok(Some(Stop)),
            Need::More(_) => self.end_inside(left),
        };
        let mut diagnostic = self.place(state, at).complaint(fault.rule, fault.at).record(state.seq);
        diagnostic.field = fault.field.map(Cow::Borrowed);
        diagnostic.expected = fault.expected;
        diagnostic.found = fault.found;
        self.damaged(state, diagnostic, at, Skip::record())?;
        Ok(None)
    }

    /// The input ends inside a record: is only its parenthesis missing?
    fn end_inside(&self, left: &[u8]) -> Fault {
        let mut closed = left.to_vec();
        closed.push(b')');
        let is_unclosed = parse_watched(&closed, self.radix, &mut ()).is_ok();
        let rule = if is_unclosed { &rules::UNCLOSED_RECORD } else { &rules::TRUNCATED_RECORD };
        let expected = if is_unclosed { "')'" } else { "the rest of the record" };
        Fault { rule, at: left.len(), field: None, expected: Some(expected.into()), found: Some("end of input".into()) }
    }

    fn damaged(&mut self, state: &mut ReaderState, diagnostic: Diagnostic, at: usize, skip: Skip) -> Result<(), Error> {
        if let Some((before, _)) = state.pending.replace((diagnostic, self.window_offset + at as u64)) {
            self.sink.report(before)?;
        }
        state.owed = 0;
        state.mode = Mode::Skip(skip);
        Ok(())
    }

    /// Handles anything other than white space or a record.
    #[cold]
    fn other(
        &mut self,
        state: &mut ReaderState,
        at: &mut usize,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<Option<Stop>, Error> {
        let start = *at;
        let left = &self.window[start..];
        let can_grow = !self.is_last && left.len() < self.record_bytes_max;
        let is_first = self.window_offset + start as u64 == 0;
        match output::classify(left, !can_grow, is_first) {
            None => return Ok(Some(Stop)),
            Some(Line::Comment) => state.mode = Mode::Comment,
            Some(Line::Output) => {
                self.note_output(state, start)?;
                state.mode = Mode::Output;
            }
            Some(Line::Colour(length)) => {
                self.note_output(state, start)?;
                self.pass(state, at, length, Item::Output, visit)?;
            }
            Some(Line::ByteOrderMark(length)) => self.pass(state, at, length, Item::Space, visit)?,
            Some(Line::Claim) => {
                let Some(length) = memchr::memchr(b'\n', left).or((!can_grow).then_some(left.len())) else {
                    return Ok(Some(Stop));
                };
                let is_whole = length <= self.record_bytes_max;
                let length = length.min(self.record_bytes_max);
                self.pass(state, at, length, Item::Claim, visit)?;
                if !is_whole || left.len() == length && !self.is_last {
                    state.mode = Mode::Output;
                }
            }
            Some(Line::Close) if state.owed > 0 => {
                state.owed -= 1;
                self.pass(state, at, 1, Item::Lost, visit)?;
            }
            Some(Line::Close) => {
                let complaint = self.place(state, start).complaint(&rules::UNEXPECTED_CLOSE, 0);
                self.sink.report(complaint.record(state.seq).expected("'('").found("')'").skipped(1))?;
                self.pass(state, at, 1, Item::Lost, visit)?;
            }
            Some(Line::Stray) => {
                let shown = output::shown(left);
                let complaint = self.place(state, start).complaint(&rules::STRAY_TEXT, 0);
                let complaint = complaint.record(state.seq).expected("'('").found(shown);
                self.damaged(state, complaint, start, Skip::line())?;
            }
        }
        Ok(None)
    }

    /// Reports once per trace that the reference's output appears between the records.
    fn note_output(&mut self, state: &mut ReaderState, at: usize) -> Result<(), Error> {
        if state.has_output {
            return Ok(());
        }
        state.has_output = true;
        let shown = output::shown(&self.window[at..]);
        let complaint = self.place(state, at).complaint(&rules::REFERENCE_OUTPUT, 0).record(state.seq);
        self.sink
            .report(complaint.found(shown).help("such lines are kept but ignored; this is reported once per trace"))
    }

    /// A comment or a line of output, in as many pieces as there are windows.
    #[cold]
    fn line(
        &mut self,
        state: &mut ReaderState,
        at: &mut usize,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<Option<Stop>, Error> {
        let start = *at;
        let left = &self.window[start..];
        let end = memchr::memchr(b'\n', left);
        let can_grow = !self.is_last && left.len() < self.record_bytes_max;
        if end.is_none() && can_grow {
            return Ok(Some(Stop));
        }
        let length = end.unwrap_or(left.len());
        let piece = &left[..length];
        let is_comment = matches!(state.mode, Mode::Comment);
        self.pass(state, at, length, if is_comment { Item::Space } else { Item::Output }, visit)?;
        if is_comment && piece.strip_suffix(b"\r").unwrap_or(piece) == output::GAP {
            visit(Item::Lost(&[]), &mut self.place(state, start))?;
        }
        if end.is_some() {
            state.mode = Mode::Records;
        }
        Ok(None)
    }

    #[cold]
    fn skip(
        &mut self,
        state: &mut ReaderState,
        at: &mut usize,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<Option<Stop>, Error> {
        let Mode::Skip(skip) = &mut state.mode else { return Ok(None) };
        let step = skip.step(&self.window[*at..], self.is_last);
        let (length, is_done) = match step {
            Skipped::Ends(length) => (length, true),
            Skipped::GoesOn(length) => (length, false),
        };
        let depth = skip.depth;
        if length > 0 {
            self.pass(state, at, length, Item::Lost, visit)?;
        }
        if !is_done {
            return Ok((!self.is_last || length == 0).then_some(Stop));
        }
        state.mode = Mode::Records;
        state.owed = depth;
        let end = self.window_offset + *at as u64;
        if let Some((diagnostic, from)) = &mut state.pending {
            diagnostic.skipped_bytes = end - *from;
            *from = end;
        }
        Ok(None)
    }
}

impl<'a> Pass<'a> {
    /// Passes the next bytes on as an item.
    fn pass(
        &mut self,
        state: &ReaderState,
        at: &mut usize,
        length: usize,
        item: fn(&'a [u8]) -> Item<'a>,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let start = *at;
        *at = start + length;
        visit(item(&self.window[start..*at]), &mut self.place(state, start))
    }
}

/// Counts lines no further than diagnostics and windows require.
#[derive(Debug, Default)]
struct LineCounter {
    /// Line ends before [`Self::counted_to`].
    line_ends: u64,
    line_start: u64,
    counted_to: u64,
}

impl LineCounter {
    fn count_to(&mut self, window: &[u8], window_offset: u64, to: u64) {
        let from = usize::try_from(self.counted_to.saturating_sub(window_offset)).unwrap_or(0);
        let end = usize::try_from(to.saturating_sub(window_offset)).unwrap_or(0);
        let Some(piece) = window.get(from..end) else { return };
        self.line_ends += memchr::memchr_iter(b'\n', piece).count() as u64;
        if let Some(last) = memchr::memrchr(b'\n', piece) {
            self.line_start = window_offset + (from + last) as u64 + 1;
        }
        self.counted_to = to;
    }

    /// Line and column, from 1, of the byte `at` after the item at `offset`, up to which lines are counted.
    fn locate(&mut self, window: &[u8], window_offset: u64, offset: u64, at: usize) -> (u64, u64) {
        self.count_to(window, window_offset, offset.max(self.counted_to));
        let inside = Self { line_ends: self.line_ends, line_start: self.line_start, counted_to: self.counted_to };
        let mut inside = inside;
        let target = offset + at as u64;
        inside.count_to(window, window_offset, target.max(inside.counted_to));
        (inside.line_ends + 1, target.saturating_sub(inside.line_start) + 1)
    }
}

//! Reads events from a trace in any container, damaged or not.

use anytrace_core::{Error, Input, Limits, OpenOptions, Passed, Sink, Step, Stored};

use crate::rules;
use crate::wire::calls::{Call, Calls};
use crate::wire::collect::{Collector, Phase, Pull};
use crate::wire::container::{self, Container, parse_header};
use crate::wire::event::{begin_or_extend, report_signature};
use crate::wire::layout::Layout;
use crate::wire::parse::Record;
use crate::wire::point::Resumed;
use crate::wire::record::{Event, EventKind, Header, Token, VERSION_ENUM_SETS, VERSION_MAX};
use crate::wire::scan::{Fault, Stop};
use crate::wire::signatures::{Shortage, Signatures};
use crate::wire::stream::Stream;
use crate::wire::visitor::{Context, RAW, Visitor};
use crate::wire::walker::Walker;

/// An event up to this size stays in the window while it is read, so that reading can restart inside it.
pub(crate) const BUFFERED_BYTES_MAX: usize = 1 << 20;

/// A call that was never left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incomplete {
    /// Call number.
    pub call: u64,
    /// Number of the enter event.
    pub seq: u64,
}

/// Largest event that [`Reader::next`] hands out, unless the record limit is higher.
const EVENT_BYTES_MAX: u64 = 1 << 30;

/// What a reader counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Complete events.
    pub events: u64,
    /// Calls entered, lost ones included.
    pub calls: u64,
    /// Calls whose enter is lost.
    pub lost_calls: u64,
    /// Calls entered and never left.
    pub incomplete: u64,
    /// Bytes of the raw stream.
    pub raw_bytes: u64,
    /// Bytes of the raw stream that belong to no event.
    pub lost_bytes: u64,
    /// Bytes of the trace as stored in the file, without gzip or zstd.
    pub trace_bytes: u64,
    /// Reading ended before the end, because no more was wanted. Nobody looked at what follows.
    pub ends_early: bool,
}

impl Totals {
    /// How far the trace was read, for results: `to the end`, or `up to call N`.
    pub fn extent(&self) -> String {
        match self.calls.checked_sub(1).filter(|_| self.ends_early) {
            Some(call) => format!("up to call {call}"),
            None => "to the end".to_owned(),
        }
    }
}

/// Reads a trace in any container, event by event, and resynchronizes after damage.
///
/// ```
/// use anytrace_apitrace::Reader;
/// use anytrace_core::{Input, OpenOptions, Step};
///
/// // Version 6, no properties, one call of `f` and its return.
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00".to_vec();
/// let mut reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default())?;
/// let mut names = Vec::new();
/// while let Some(step) = reader.next()? {
///     match step {
///         Step::Record(_, event) => names.extend(event.function().map(|function| function.name().to_vec())),
///         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
///     }
/// }
/// assert_eq!(names, [b"f", b"f"]);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
pub struct Reader {
    pub(crate) stream: Stream,
    pub(crate) limits: Limits,
    pub(crate) layout: Layout,
    /// The state of [`Self::next`]; `None` before its first call.
    pull: Option<Box<Pull>>,
    /// Shortages that were reported already.
    pub(crate) is_short: Shortage,
    /// Set when reading does not begin at the start.
    pub(crate) resumed: Option<Box<Resumed>>,
    pub(crate) calls: Calls,
    pub(crate) seq: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) lost_calls: u64,
    pub(crate) frame: u64,
    pub(crate) thread_max: u64,
    /// The cost of resynchronizing so far.
    pub(crate) effort: u64,
    pub(crate) walker: Walker,
    /// No more was wanted before the end.
    ends_early: bool,
    /// Events that begin at this offset of the raw stream or later are not read: they are of another part.
    pub(crate) until: u64,
}

/// Why an event could not be read to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cause {
    /// The data end inside a token: the number of bytes needed and present.
    End { need: u64, got: u64 },
    /// A violation of the grammar.
    Fault(Fault),
}

/// An event that could not be read to its end.
pub(crate) struct Broken {
    pub(crate) cause: Cause,
    /// Offset of the event.
    pub(crate) start: u64,
    /// Offset of the token.
    pub(crate) token: u64,
    /// The event's first byte is still in the window.
    pub(crate) is_buffered: bool,
    pub(crate) event: Option<Event>,
}

impl Reader {
    /// Opens a trace, or the part that the options name; the container is chosen by content.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Io`] when a second thread cannot be started, [`anytrace_core::Kind::Usage`] for a part of
    /// another trace.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let own = container::guess(&input.head()).own;
        match &options.part {
            Some(part) => Self::in_part(input, own, part, options),
            None => Self::at_start(input, own, options),
        }
    }

    pub(crate) fn at_start(input: Input, own: Container, options: &OpenOptions) -> Result<Self, Error> {
        let header = container::peek_header(&input.head(), own);
        let mut reader = Self::over(Stream::new(input, own, options)?, options);
        reader.layout.header = header.unwrap_or_default();
        Ok(reader)
    }

    /// What the bytes so far say about the trace. Header and container are known from the beginning, unless the header is
    /// very long: then after the first call of [`Self::next`]. Signatures join it as events define them. That a zstd
    /// container is seekable is known only at the end.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Hands out the next event, or what is wrong at this place; `None` at the end. After an error nothing follows.
    ///
    /// Damage of the containers that is known only at the end comes last. The event is copied out of the window, so
    /// memory grows with the largest event, blobs included. An event of more than 1 GiB, or the record limit if that is
    /// higher, is an error.
    ///
    /// # Errors
    /// I/O and limits.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let mut pull = self.pull.take().unwrap_or_default();
        let filled = self.fill_steps(&mut pull);
        if filled.is_err() {
            pull.phase = Phase::Over;
        }
        let pull = self.pull.insert(pull);
        filled?;
        let Collector { bytes, fresh, event, .. } = &pull.collector;
        Ok(match (pull.steps.pop(), event) {
            (Some(Stored::Damage(diagnostic)), _) => Some(Step::Damage(diagnostic)),
            (Some(Stored::Record(place, _)), Some(event)) => {
                Some(Step::Record(place, Record::resolved(bytes, &self.layout, fresh, event)))
            }
            _ => None,
        })
    }

    /// Passes each step to a function, to the end. What was handed out before is counted in the result too.
    ///
    /// # Errors
    /// As [`Self::next`], and what the function returns.
    pub fn for_each(
        &mut self,
        mut each: impl FnMut(Step<'_, Record<'_>>) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        while let Some(step) = self.next()? {
            each(step)?;
        }
        Ok(self.pull.as_ref().map(|pull| pull.passed).unwrap_or_default())
    }

    /// Reads until there is something to hand out, or the end.
    fn fill_steps(&mut self, pull: &mut Pull) -> Result<(), Error> {
        while pull.steps.is_empty() {
            match pull.phase {
                Phase::Start => {
                    pull.collector.bytes_max = self.limits.record_bytes_max.max(EVENT_BYTES_MAX);
                    let has_events = self.start(&mut pull.collector, &mut pull.steps)?;
                    pull.phase = if has_events { Phase::Events } else { Phase::End };
                }
                Phase::Events => {
                    if !self.pull_event(pull)? {
                        pull.phase = Phase::End;
                    }
                }
                Phase::End => {
                    let totals = self.finish(&mut pull.steps)?;
                    let Totals { events: records, raw_bytes: bytes, lost_bytes: bytes_lost, .. } = totals;
                    pull.passed = Passed { records, bytes, bytes_lost };
                    if self.layout.container == Container::Zstd && self.stream.is_seekable() {
                        self.layout.container = Container::ZstdSeekable;
                    }
                    pull.phase = Phase::Over;
                }
                Phase::Over => break,
            }
        }
        Ok(())
    }

    /// Reads one event, or resumes after damage. Returns false at the end.
    fn pull_event(&mut self, pull: &mut Pull) -> Result<bool, Error> {
        if self.stream.offset() >= self.until {
            return Ok(false);
        }
        if let Some((event, length)) = self.next_plain() {
            pull.collector.take(event, self.stream.window().get(..length).unwrap_or_default());
            self.stream.advance(length);
            pull.push_event();
            return Ok(true);
        }
        let place = (self.stream.offset(), self.seq);
        let goes_on = self.step(&mut pull.collector, &mut pull.steps)?;
        pull.push_event();
        if goes_on {
            self.report_shortage(place, &mut pull.steps)?;
        }
        Ok(goes_on)
    }

    pub(crate) fn over(stream: Stream, options: &OpenOptions) -> Self {
        let layout = Layout::new(Header::default(), stream.container(), options.limits);
        Self {
            stream,
            limits: options.limits,
            layout,
            pull: None,
            is_short: Shortage::default(),
            resumed: None,
            calls: Calls::default(),
            seq: 0,
            lost_bytes: 0,
            lost_calls: 0,
            walker: Walker::new(0, &options.limits),
            frame: 0,
            thread_max: 0,
            effort: 0,
            ends_early: false,
            until: u64::MAX,
        }
    }

    /// Reads the trace to its end. Damage is reported to the sink.
    ///
    /// # Errors
    /// I/O, limits, and what the visitor or the sink return.
    pub(crate) fn read<V: Visitor>(&mut self, visitor: &mut V, sink: &mut dyn Sink) -> Result<Totals, Error> {
        if !visitor.keeps_definitions() {
            self.layout.signatures.drop_definitions();
        }
        if self.start(visitor, sink)? {
            loop {
                if self.stream.offset() >= visitor.next_point() {
                    let point = self.point();
                    visitor.point(point);
                }
                if visitor.takes_plain()
                    && !self.layout.signatures.may_be_lost
                    && self.layout.header.version >= VERSION_ENUM_SETS
                {
                    self.run_plain(visitor, sink)?;
                }
                let place = (self.stream.offset(), self.seq);
                if visitor.is_done() || place.0 >= self.until {
                    self.ends_early = true;
                    break;
                }
                if !self.step(visitor, sink)? {
                    break;
                }
                self.report_shortage(place, sink)?;
            }
        }
        self.finish(sink)
    }

    /// The header, as far as it was read.
    pub(crate) fn header(&self) -> &Header {
        &self.layout.header
    }

    /// The signatures known so far.
    pub(crate) fn signatures(&self) -> &Signatures {
        &self.layout.signatures
    }

    /// Names of the containers, outermost first, joined by `+`; final at the end.
    pub(crate) fn container_names(&self) -> String {
        self.stream.container_names()
    }

    /// The container to write if the caller chooses none.
    pub(crate) fn container(&self) -> Container {
        self.stream.container()
    }

    /// Number of the next call.
    #[cfg(feature = "tools")]
    pub fn next_call(&self) -> u64 {
        self.calls.next()
    }

    /// Frames ended so far.
    pub(crate) fn frames(&self) -> u64 {
        self.frame
    }

    /// Calls entered and not left, in order.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = Incomplete> {
        self.calls.waiting().filter(|(_, call)| !call.is_damaged).map(|(call, at)| Incomplete { call, seq: at.seq })
    }

    /// Reads the header. Returns false when nothing follows it. Once a trace: not compiled for each visitor.
    fn start(&mut self, visitor: &mut dyn Visitor, sink: &mut dyn Sink) -> Result<bool, Error> {
        if let Some(resumed) = self.resumed.take() {
            return self.resume(*resumed, visitor, sink).map(|()| true);
        }
        // What was seen at the head of the input counts only if it can be read.
        self.layout.header = Header::default();
        let mut need = 1;
        let parsed = loop {
            let got = self.stream.fill(need)?;
            if got < need {
                let found = format!("{got} bytes");
                break Err(if got == 0 {
                    rules::EMPTY_STREAM.at(0)
                } else {
                    rules::HEADER_TRUNCATED.at(0).found(found)
                });
            }
            match parse_header(self.stream.window(), &self.limits) {
                Err(Stop::More(more)) if more as u64 > self.limits.record_bytes_max => {
                    break Err(rules::HEADER_LIMIT.at(0).found(format!("{more} bytes or more")));
                }
                Err(Stop::More(more)) => need = more,
                Err(Stop::Bad(fault)) => break Err(rules::HEADER_LIMIT.at(0).found(format!("{} bytes", fault.found))),
                Ok(header) => break Ok(header),
            }
        };
        self.report_container(sink)?;
        let header = match parsed {
            Ok(header) => header,
            Err(diagnostic) => {
                // The caller reports an empty file: it is not a trace at all.
                let is_empty = diagnostic.rule == &rules::EMPTY_STREAM;
                if !(is_empty && self.stream.trace_bytes() == 0) {
                    sink.report(diagnostic.within(RAW))?;
                }
                self.drop_rest()?;
                return Ok(false);
            }
        };
        self.stream.advance(header.raw.len());
        self.layout.header = header;
        let header = &self.layout.header;
        if header.version > VERSION_MAX {
            let expected = format!("at most {VERSION_MAX}");
            let diagnostic = rules::UNSUPPORTED_VERSION.at(0).within(RAW).field("version").expected(expected);
            sink.report(diagnostic.found(header.version.to_string()))?;
            self.drop_rest()?;
            return Ok(false);
        }
        self.report_header(sink)?;
        visitor.header(&self.layout.header, sink)?;
        self.walker = Walker::new(self.layout.header.version, &self.limits);
        Ok(true)
    }

    /// Reports what is wrong with a header that can be read.
    pub(crate) fn report_header(&self, sink: &mut dyn Sink) -> Result<(), Error> {
        let header = &self.layout.header;
        if header.semantic_version > header.version {
            let diagnostic = rules::SEMANTIC_VERSION.at(1).within(RAW).field("semantic version");
            let expected = format!("at most {} (the version)", header.version);
            sink.report(diagnostic.expected(expected).found(header.semantic_version.to_string()))?;
        }
        Ok(())
    }

    /// Skips what cannot be read, so that the container is still checked to its end.
    fn drop_rest(&mut self) -> Result<(), Error> {
        loop {
            while self.stream.fill(1)? > 0 {
                let length = self.stream.window().len();
                self.lost_bytes += length as u64;
                self.stream.advance(length);
            }
            if !self.stream.next_segment() {
                return Ok(());
            }
        }
    }

    /// Reads one event token by token. Returns false at the end.
    fn step<V: Visitor>(&mut self, visitor: &mut V, sink: &mut dyn Sink) -> Result<bool, Error> {
        if self.stream.window().is_empty() && self.stream.fill(1)? == 0 {
            self.report_container(sink)?;
            return if self.stream.next_segment() { self.cross_gap(sink) } else { Ok(false) };
        }
        match self.walk(visitor, sink)? {
            None => Ok(true),
            Some(broken) => {
                visitor.abandon(broken.event.as_ref())?;
                self.report_container(sink)?;
                self.recover(&broken, sink)
            }
        }
    }

    /// Reads one event; returns `Some` if it breaks off.
    fn walk<V: Visitor>(&mut self, visitor: &mut V, sink: &mut dyn Sink) -> Result<Option<Broken>, Error> {
        self.walker.reset();
        let start = self.stream.offset();
        let mut consumed = 0;
        let mut event: Option<Event> = None;
        loop {
            let token_at = self.stream.offset() + consumed as u64;
            let is_buffered = self.stream.offset() == start;
            let broken = |cause, event| Ok(Some(Broken { cause, start, token: token_at, is_buffered, event }));
            let window = self.stream.window();
            let rest = window.get(consumed..).unwrap_or_default();
            let (token, used) = match self.walker.next(rest, &mut self.layout.signatures) {
                Ok(step) => step,
                Err(Stop::Bad(fault)) => return broken(Cause::Fault(fault), event),
                Err(Stop::More(need)) => {
                    // Doubling the request keeps the work linear when bytes arrive in small pieces.
                    let eager = need.max((rest.len().saturating_mul(2)).min(BUFFERED_BYTES_MAX));
                    let rest_length = rest.len();
                    let got = self.stream.fill(consumed + eager)? - consumed;
                    if got < need && got == rest_length {
                        return broken(Cause::End { need: need as u64, got: got as u64 }, event);
                    }
                    continue;
                }
            };
            let bytes = rest.get(..used).unwrap_or_default();
            begin_or_extend(&mut event, &token, &mut self.calls, (self.seq, start, self.frame));
            let Some(known) = &event else { return broken(Cause::End { need: 0, got: 0 }, None) };
            let context = Context {
                event: known,
                offset: token_at,
                bytes,
                signatures: &self.layout.signatures,
                depth: self.walker.depth(),
                has_long_number: self.walker.has_long_number,
            };
            report_signature(&token, &context, sink)?;
            visitor.token(&token, &context, sink)?;
            consumed += used;
            if token == Token::EndEvent {
                let mark = visitor.end(known, &self.layout.signatures, sink)?;
                let known = *known;
                self.stream.advance(consumed);
                self.complete(&known, mark);
                return Ok(None);
            }
            if let Token::BytesStart(_, length) = token {
                let ahead = usize::try_from(length).unwrap_or(usize::MAX).min(BUFFERED_BYTES_MAX);
                let got = self.stream.fill(consumed + ahead)? - consumed;
                if got < ahead {
                    return broken(Cause::End { need: length, got: got as u64 }, event);
                }
            }
            if consumed > BUFFERED_BYTES_MAX {
                self.stream.advance(consumed);
                consumed = 0;
            }
        }
    }

    fn complete(&mut self, event: &Event, mark: u64) {
        if event.kind == EventKind::Enter {
            let function = event.function.unwrap_or(u32::MAX);
            let Event { thread, frame, seq, .. } = *event;
            self.thread_max = self.thread_max.max(thread);
            self.calls.enter(Call { thread, frame, mark, seq, function, is_damaged: false });
            self.frame += u64::from(self.layout.signatures.function(function).is_some_and(|row| row.ends_frame));
        }
        self.seq += 1;
    }

    /// Reports once what there was no room for. Reading continues with what is known.
    fn report_shortage(&mut self, (offset, seq): (u64, u64), sink: &mut dyn Sink) -> Result<(), Error> {
        let found = self.layout.signatures.take_shortage();
        if found.of_signatures && !self.is_short.of_signatures {
            self.is_short.of_signatures = true;
            self.layout.signatures.may_be_lost = true;
            sink.report(rules::SIGNATURE_LIMIT.at(offset).within(RAW).record(seq))?;
        }
        if found.of_definitions && !self.is_short.of_definitions {
            self.is_short.of_definitions = true;
            sink.report(rules::DEFINITION_LIMIT.at(offset).within(RAW).record(seq))?;
        }
        Ok(())
    }

    /// Reports the damage that the container found.
    pub(crate) fn report_container(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        for diagnostic in self.stream.take_damage() {
            sink.report(diagnostic)?;
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) -> Result<Totals, Error> {
        // What is found of the containers behind a part is reported by the last part.
        if self.until == u64::MAX {
            self.report_end(sink)?;
        }
        Ok(Totals {
            events: self.seq,
            calls: self.calls.next(),
            lost_calls: self.lost_calls,
            incomplete: self.incomplete().count() as u64,
            raw_bytes: self.stream.offset(),
            lost_bytes: self.lost_bytes,
            trace_bytes: self.stream.trace_bytes(),
            ends_early: self.ends_early,
        })
    }

    fn report_end(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        self.report_container(sink)?;
        for layer in self.stream.layers() {
            let Some(diagnostic) = layer.damage() else { continue };
            // A killed program leaves no gzip trailer. Real old traces lack it and are complete otherwise.
            let is_usual = layer.compression == anytrace_core::Compression::Gzip
                && layer.end() == anytrace_core::LayerEnd::Truncated;
            let severity = if is_usual { anytrace_core::Severity::Warning } else { diagnostic.severity };
            sink.report(diagnostic.severity(severity))?;
        }
        Ok(())
    }
}

//! A part of a trace, in which every event kept is as it was.
//!
//! Calls are selected as apitrace 11.1 selects them: by number and kind, by the frame in which they are *left*, and by
//! thread. What is selected is written event by event: bytes, order of enters and leaves, backtraces, details and
//! calls that are never left stay as they are. Only calls get new numbers, and definitions move to the first event kept
//! that needs them.
//!
//! Frames are counted as calls that end one are left. So whether a call belongs to a frame is known only when it is
//! left; until then what follows it waits in memory. At most 24 MiB wait: beyond that the oldest calls are taken to
//! belong to the frame that is running, and a note says how many.

use anytrace_core::{Error, Outcome, Sink, Target};

use crate::container::Container;
use crate::fill::Fill;
use crate::reader::{Context, Reader, Totals, Visitor};
use crate::record::{Event, EventKind, Header, Pairing, Token, VERSION_THREADS};
use crate::signatures::Signatures;
use crate::tools::callset::CallSet;
use crate::tools::carry::{Carrier, Piece};
use crate::tools::flags::{CallFlags, call_flags};
use crate::tools::waiting::{Fate, Waiting};
use crate::wrap::Wrapper;

/// Options of [`trim`]. Without sets and threads all calls are kept.
#[derive(Debug, Clone, Default)]
pub struct TrimOptions {
    /// Calls of this set are kept.
    pub calls: Option<CallSet>,
    /// Calls left in frames of this set are kept too; its kinds choose among them.
    pub frames: Option<CallSet>,
    /// Only calls of these threads are kept; empty: of all.
    pub threads: Vec<u64>,
    /// The container to write; `None`: that of the source.
    pub container: Option<Container>,
    /// Its level of compression; `None`: the container's usual one.
    pub level: Option<i32>,
}

/// Where reading starts, if not at the first event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start {
    /// Calls that end a frame and were left before.
    pub(crate) frames: u64,
    /// Calls entered before and not left, in the order of their numbers. The reader must give the mark
    /// [`Waiting::MARK`] with their leaves.
    pub(crate) pending: Vec<Pending>,
}

/// A call entered before the start and not left.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) call: u64,
    pub(crate) thread: u64,
    /// Slot of its function.
    pub(crate) function: u32,
    /// Its enter event, without definitions.
    pub(crate) enter: Vec<u8>,
}

/// Writes the calls that are selected; stops reading when the last of them has been left. What is damaged goes to the
/// sink. The number of records read counts those that were looked at.
///
/// ```
/// use anytrace_apitrace::Reader;
/// use anytrace_apitrace::tools::callset::CallSet;
/// use anytrace_apitrace::tools::trim::{TrimOptions, trim};
/// use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};
///
/// // Version 6, no properties, f() and g().
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00\x00\x00\x01\x01g\x00\x00\x01\x01\x00".to_vec();
/// let reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
/// let calls = CallSet::parse(["1"], &mut |_| unreachable!()).unwrap();
/// let options = TrimOptions { calls: Some(calls), ..TrimOptions::default() };
/// let mut out = MemoryTarget::default();
/// trim(reader, &options, &mut out, &mut Collect::default()).unwrap();
/// assert_eq!(out.0, b"\x06\x06\x00\x00\x00\x01\x01g\x00\x00\x01\x00\x00");
/// ```
///
/// # Errors
/// Options that make no sense, I/O, limits, and what the sink returns.
pub fn trim(
    reader: Reader,
    options: &TrimOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    trim_from(reader, Start::default(), options, out, sink)
}

/// [`trim`] with a reader that stands somewhere in the trace.
pub(crate) fn trim_from(
    mut reader: Reader,
    start: Start,
    options: &TrimOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let container = options.container.unwrap_or_else(|| reader.container());
    let wrapper = Wrapper::new(out, container, options.level)?;
    let event_bytes_max = usize::try_from(reader.limits.record_bytes_max).unwrap_or(usize::MAX);
    let mut trimmer = Trimmer::new(options, Carrier::new(wrapper), event_bytes_max);
    trimmer.start(start, &reader);
    let totals = reader.read(&mut trimmer, sink)?;
    let is_seekable = match options.container {
        Some(container) => container == Container::ZstdSeekable,
        // Where reading ended early the end of the file was not seen; the format's own writer makes the table.
        None => reader.stream.is_seekable() || container == Container::Zstd && trimmer.is_done(),
    };
    trimmer.finish(&totals, reader.signatures(), is_seekable)
}

/// What an event is about, for the tokens of it that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// An enter whose function is not known yet.
    Head,
    Dropped,
    Enter(Fate, CallFlags),
    /// The leave of a call that is kept; where its head ends.
    Leave(usize),
    /// A leave without an enter.
    Stray,
    /// An event too long to be held, a part of which was written; the mark of an enter.
    Stream(u64),
}

struct Trimmer<'a> {
    options: &'a TrimOptions,
    has_threads: bool,
    /// Flags of the functions, by slot.
    functions: Vec<CallFlags>,
    /// Calls that end a frame and have been left.
    frame: u64,
    /// Number of the next call of the source.
    next_call: u64,
    /// The call whose enter comes next is kept.
    is_chosen: bool,
    waiting: Waiting<'a>,
    piece: Piece,
    state: State,
    fill: Fill,
    event_bytes_max: usize,
}

impl<'a> Trimmer<'a> {
    fn new(options: &'a TrimOptions, carrier: Carrier<'a>, event_bytes_max: usize) -> Self {
        Self {
            options,
            has_threads: false,
            functions: Vec::new(),
            frame: 0,
            next_call: 0,
            is_chosen: false,
            waiting: Waiting::new(carrier),
            piece: Piece::default(),
            state: State::Dropped,
            fill: Fill::default(),
            event_bytes_max,
        }
    }

    /// Takes what was read before the start.
    fn start(&mut self, start: Start, reader: &Reader) {
        self.frame = start.frames;
        let signatures = reader.signatures();
        let rows = signatures.table(crate::record::Space::Function).rows();
        self.functions.extend(rows.iter().map(|row| call_flags(row.name())));
        for Pending { call, thread, function, enter } in start.pending {
            let flags = self.flags(Some(function));
            let fate = self.fate(call, thread, flags);
            self.piece.set_plain(&enter, reader.header().version >= VERSION_THREADS, signatures);
            self.waiting.begin_early((fate, call, flags), &mut self.piece);
        }
    }

    #[inline]
    fn flags(&self, function: Option<u32>) -> CallFlags {
        function.and_then(|slot| self.functions.get(slot as usize)).copied().unwrap_or_default()
    }

    fn learn(&mut self, slot: u32, signatures: &Signatures) {
        let (at, Some(row)) = (slot as usize, signatures.function(slot)) else { return };
        if self.functions.len() <= at {
            self.functions.resize(at + 1, CallFlags::default());
        }
        if let Some(place) = self.functions.get_mut(at) {
            *place = call_flags(row.name());
        }
    }

    /// True for a call that is left in the running frame and kept.
    #[inline]
    fn is_wanted(&self, call: u64, thread: u64, flags: CallFlags) -> bool {
        let options = self.options;
        if !(options.threads.is_empty() || options.threads.contains(&thread)) {
            return false;
        }
        match (&options.calls, &options.frames) {
            (None, None) => true,
            (calls, frames) => {
                calls.as_ref().is_some_and(|calls| calls.has(call, flags)) || has(frames.as_ref(), self.frame, flags)
            }
        }
    }

    /// What is known of a call that may be left in a later frame.
    fn fate(&self, call: u64, thread: u64, flags: CallFlags) -> Fate {
        let Some(frames) = &self.options.frames else {
            return if self.is_wanted(call, thread, flags) { Fate::Kept } else { Fate::Dropped };
        };
        let is_of_thread = self.options.threads.is_empty() || self.options.threads.contains(&thread);
        let is_in_calls = self.options.calls.as_ref().is_some_and(|calls| calls.has(call, flags));
        if is_of_thread && (is_in_calls || frames.has_all_from(self.frame, flags)) {
            return Fate::Kept;
        }
        if is_of_thread && self.frame <= frames.last() { Fate::Open } else { Fate::Dropped }
    }

    /// Counts the frame that a call ends as it is left.
    #[inline]
    fn count_frame(&mut self, flags: CallFlags) {
        self.frame += u64::from(flags.has(CallFlags::END_FRAME));
    }

    /// Decides about the leave of a call.
    fn leave_state(&mut self, event: &Event, head: usize) -> State {
        match event.pairing {
            Pairing::Paired if event.mark == Waiting::DROPPED => State::Dropped,
            Pairing::Paired => {
                let (frames, frame) = (self.options.frames.as_ref(), self.frame);
                let is_kept = self.waiting.decide(event.call, event.mark, |flags| has(frames, frame, flags));
                if is_kept { State::Leave(head) } else { State::Dropped }
            }
            Pairing::Lost => {
                self.waiting.tallies.leaves_of_lost += 1;
                State::Dropped
            }
            Pairing::Repeated | Pairing::Unknown => State::Stray,
        }
    }

    /// Hands on the event that is over; returns the mark of an enter.
    fn end_event(&mut self, event: &Event, signatures: &Signatures) -> Result<u64, Error> {
        let (piece, waiting) = (&mut self.piece, &mut self.waiting);
        let mut mark = Waiting::DROPPED;
        match self.state {
            State::Head | State::Dropped => {}
            State::Enter(fate, flags) => mark = waiting.begin((fate, event.call, flags), piece, signatures)?,
            State::Leave(head) => waiting.leave((event.call, event.mark, head), piece, signatures)?,
            State::Stray => waiting.stray(self.next_call, piece),
            State::Stream(enter_mark) => {
                waiting.stream(piece, signatures)?;
                mark = enter_mark;
            }
        }
        let (frames, frame) = (self.options.frames.as_ref(), self.frame);
        waiting.flush(signatures, |flags| has(frames, frame, flags))?;
        Ok(mark)
    }

    /// Writes the part that is there of an event too long to be held, after all that waits.
    fn stream(&mut self, event: &Event, signatures: &Signatures) -> Result<(), Error> {
        let (frames, frame) = (self.options.frames.as_ref(), self.frame);
        let (piece, waiting) = (&mut self.piece, &mut self.waiting);
        if matches!(self.state, State::Enter(..) | State::Leave(_) | State::Stray) {
            let guessed = waiting.force(signatures, |flags| has(frames, frame, flags))?;
            waiting.tallies.guessed += guessed;
        }
        match self.state {
            State::Enter(fate, flags) if fate == Fate::Kept || has(frames, frame, flags) => {
                waiting.tallies.guessed += u64::from(fate == Fate::Open);
                self.state = State::Stream(waiting.begin_stream(None, piece, signatures)?);
            }
            State::Leave(head) => {
                let leave = Some((event.call, event.mark, head));
                self.state = State::Stream(waiting.begin_stream(leave, piece, signatures)?);
            }
            State::Stream(_) => waiting.stream(piece, signatures)?,
            _ => self.state = State::Dropped,
        }
        piece.clear();
        Ok(())
    }

    fn finish(mut self, totals: &Totals, signatures: &Signatures, is_seekable: bool) -> Result<Outcome, Error> {
        let (frames, mut frame) = (self.options.frames.as_ref(), self.frame);
        // What was never left comes at the end, in the order of the enters.
        self.waiting.force(signatures, |flags| {
            let is_wanted = has(frames, frame, flags);
            frame += u64::from(flags.has(CallFlags::END_FRAME));
            is_wanted
        })?;
        let (records_written, mut notes) = self.waiting.close(totals, is_seekable)?;
        if records_written == 0 && totals.events > 0 {
            notes.push("No call is selected: the trace written has none.".to_owned());
        }
        Ok(Outcome { records_read: totals.events, records_written, bytes_lost: totals.lost_bytes, notes })
    }
}

#[inline]
fn has(frames: Option<&CallSet>, frame: u64, flags: CallFlags) -> bool {
    frames.is_some_and(|frames| frames.has(frame, flags))
}

impl Visitor for Trimmer<'_> {
    fn takes_whole(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        let options = self.options;
        let is_all = options.calls.is_none() && options.frames.is_none();
        !is_all
            && options.calls.as_ref().is_none_or(|calls| self.next_call > calls.last())
            && options.frames.as_ref().is_none_or(|frames| self.frame > frames.last())
            && !self.waiting.has_open()
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.has_threads = header.version >= VERSION_THREADS;
        self.waiting.raw(&header.raw)
    }

    #[inline]
    fn whole_call(&mut self, enter: &Event, _: [&[u8]; 2], _: &mut dyn Sink) -> Result<bool, Error> {
        let flags = self.flags(enter.function);
        self.next_call = enter.call + 1;
        self.is_chosen = self.is_wanted(enter.call, enter.thread, flags);
        if !self.is_chosen {
            self.count_frame(flags);
        }
        Ok(!self.is_chosen)
    }

    fn whole(&mut self, event: &Event, bytes: &[u8], signatures: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        let flags = self.flags(event.function);
        self.state = match event.kind {
            EventKind::Leave => self.leave_state(event, head_length(bytes)),
            EventKind::Enter => {
                self.next_call = event.call + 1;
                let is_chosen = std::mem::take(&mut self.is_chosen);
                let fate = if is_chosen { Fate::Kept } else { self.fate(event.call, event.thread, flags) };
                if fate == Fate::Dropped { State::Dropped } else { State::Enter(fate, flags) }
            }
        };
        if self.state != State::Dropped {
            self.waiting.set_plain(&mut self.piece, bytes, self.has_threads, signatures);
        }
        let mark = self.end_event(event, signatures)?;
        if event.kind == EventKind::Leave {
            self.count_frame(flags);
        }
        Ok(mark)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let event = context.event;
        match token {
            Token::Enter { .. } => {
                self.state = State::Head;
                self.next_call = event.call + 1;
            }
            Token::Leave { .. } => self.state = self.leave_state(event, context.bytes.len()),
            Token::Function(signature) => {
                self.learn(signature.slot, context.signatures);
                let flags = self.flags(event.function);
                let fate = self.fate(event.call, event.thread, flags);
                self.state = if fate == Fate::Dropped { State::Dropped } else { State::Enter(fate, flags) };
            }
            _ => {}
        }
        if matches!(token, Token::Enter { .. } | Token::Leave { .. }) {
            self.piece.clear();
            self.fill.begin();
        }
        if self.state == State::Dropped {
            return Ok(());
        }
        self.fill.follow(token);
        self.piece.push(token, context.bytes);
        let has_part = matches!(self.state, State::Stream(_)) && !self.piece.references.is_empty();
        if has_part || self.piece.bytes.len() > self.event_bytes_max {
            self.stream(event, context.signatures)?;
        }
        Ok(())
    }

    fn end(&mut self, event: &Event, signatures: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        let mark = self.end_event(event, signatures)?;
        if event.kind == EventKind::Leave {
            self.count_frame(self.flags(event.function));
        }
        // A long event must not keep its memory.
        if self.piece.bytes.capacity() > 1 << 20 {
            self.piece = Piece::default();
        }
        Ok(mark)
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        let Some(event) = event else { return Ok(()) };
        if let State::Stream(_) = self.state {
            let zeros = self.fill.zeros().ok_or_else(|| {
                Error::limit(format!(
                    "event {} is damaged after more than {} bytes of it were written; raise the limit",
                    event.seq, self.event_bytes_max
                ))
            })?;
            self.waiting.raw(&self.piece.bytes)?;
            self.waiting.fill(zeros)?;
        }
        self.state = State::Dropped;
        if event.kind == EventKind::Leave {
            self.count_frame(self.flags(event.function));
        }
        Ok(())
    }
}

/// Where the head of a plain leave event ends: its type and the call's number.
fn head_length(bytes: &[u8]) -> usize {
    let number = bytes.iter().skip(1).take_while(|byte| **byte >= 0x80).count();
    2 + number
}

//! Passes events from a reader to a writer, token by token, one event at a time.

use anytrace_core::Error;

use crate::lanes::flags::CallFlags;
use crate::tools::carry::{Carrier, Piece};
use crate::tools::waiting::{Fate, Waiting};
use crate::wire::record::{Event, EventKind, Pairing, Token};
use crate::wire::signatures::Signatures;
use crate::wire::unfinished::Unfinished;

/// What happens to the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventState {
    /// An enter whose function is not known yet.
    Head,
    Dropped,
    Enter(Fate, CallFlags),
    /// The leave of a call that is kept; where its head ends.
    Leave(usize),
    /// A leave without an enter.
    Stray,
    /// An event too long to be buffered, of which a part was written; the mark of an enter.
    Stream(u64),
}

/// The event that is being read, and those that wait to be written.
pub(crate) struct Flow<'a> {
    pub(crate) waiting: Waiting<'a>,
    pub(crate) state: EventState,
    piece: Piece,
    unfinished: Unfinished,
    event_bytes_max: usize,
    /// Calls of the source entered so far.
    pub(crate) calls: u64,
}

impl<'a> Flow<'a> {
    /// Events of more than `event_bytes_max` bytes are not buffered completely.
    pub(crate) fn new(carrier: Carrier<'a>, event_bytes_max: usize) -> Self {
        Self {
            waiting: Waiting::new(carrier),
            state: EventState::Dropped,
            piece: Piece::default(),
            unfinished: Unfinished::default(),
            event_bytes_max,
            calls: 0,
        }
    }

    /// An event begins.
    pub(crate) fn begin(&mut self, event: &Event, state: EventState) {
        self.state = state;
        self.piece.clear();
        self.unfinished.begin();
        if event.kind == EventKind::Enter {
            self.calls = event.call + 1;
        }
    }

    /// Decides about a leave with a head of this length. `is_wanted` returns whether a call that is left now is kept.
    pub(crate) fn leave_state(
        &mut self,
        event: &Event,
        head: usize,
        is_wanted: impl FnOnce(CallFlags) -> bool,
    ) -> EventState {
        match event.pairing {
            Pairing::Paired if self.waiting.decide(event.call, event.mark, is_wanted) => EventState::Leave(head),
            Pairing::Paired => EventState::Dropped,
            Pairing::Lost => {
                self.waiting.tallies.leaves_of_lost += 1;
                EventState::Dropped
            }
            Pairing::Repeated | Pairing::Unknown => EventState::Stray,
        }
    }

    /// Adds a token and its encoded bytes, which may differ from those of the source.
    pub(crate) fn push(
        &mut self,
        (token, bytes): (&Token<'_>, &[u8]),
        event: &Event,
        signatures: &Signatures,
        is_wanted: impl FnMut(CallFlags) -> bool,
    ) -> Result<(), Error> {
        self.unfinished.follow(token);
        self.piece.push(token, bytes);
        let has_part = matches!(self.state, EventState::Stream(_)) && !self.piece.references.is_empty();
        if has_part || self.piece.bytes.len() > self.event_bytes_max {
            self.stream(event, signatures, is_wanted)?;
        }
        Ok(())
    }

    /// Takes a complete plain event.
    pub(crate) fn set_plain(&mut self, bytes: &[u8], has_thread: bool, signatures: &Signatures) {
        self.waiting.set_plain(&mut self.piece, bytes, has_thread, signatures);
    }

    /// Takes an enter event from before the start of reading.
    pub(crate) fn begin_early(
        &mut self,
        call: (Fate, u64, CallFlags),
        enter: &[u8],
        has_thread: bool,
        signatures: &Signatures,
    ) {
        self.piece.set_plain(enter, has_thread, signatures);
        self.waiting.begin_early(call, &mut self.piece);
    }

    /// Passes on the complete event; returns the mark of an enter.
    pub(crate) fn end(
        &mut self,
        event: &Event,
        signatures: &Signatures,
        is_wanted: impl FnMut(CallFlags) -> bool,
    ) -> Result<u64, Error> {
        let (piece, waiting) = (&mut self.piece, &mut self.waiting);
        let mut mark = Waiting::DROPPED;
        match self.state {
            EventState::Head | EventState::Dropped => {}
            EventState::Enter(fate, flags) => mark = waiting.begin((fate, event.call, flags), piece, signatures)?,
            EventState::Leave(head) => waiting.leave((event.call, event.mark, head), piece, signatures)?,
            EventState::Stray => waiting.stray(self.calls, piece),
            EventState::Stream(enter_mark) => {
                waiting.stream(piece, signatures)?;
                mark = enter_mark;
            }
        }
        waiting.flush(signatures, is_wanted)?;
        // A long event must not keep its memory.
        if self.piece.bytes.capacity() > 1 << 20 {
            self.piece = Piece::default();
        }
        Ok(mark)
    }

    /// Writes all waiting events, then the buffered part of an event too long to be buffered completely.
    fn stream(
        &mut self,
        event: &Event,
        signatures: &Signatures,
        mut is_wanted: impl FnMut(CallFlags) -> bool,
    ) -> Result<(), Error> {
        let (piece, waiting) = (&mut self.piece, &mut self.waiting);
        if matches!(self.state, EventState::Enter(..) | EventState::Leave(_) | EventState::Stray) {
            waiting.tallies.guessed += waiting.force(signatures, &mut is_wanted)?;
        }
        match self.state {
            EventState::Enter(fate, flags) if fate == Fate::Kept || is_wanted(flags) => {
                waiting.tallies.guessed += u64::from(fate == Fate::Open);
                self.state = EventState::Stream(waiting.begin_stream(None, piece, signatures)?);
            }
            EventState::Leave(head) => {
                let leave = Some((event.call, event.mark, head));
                self.state = EventState::Stream(waiting.begin_stream(leave, piece, signatures)?);
            }
            EventState::Stream(_) => waiting.stream(piece, signatures)?,
            _ => self.state = EventState::Dropped,
        }
        piece.clear();
        Ok(())
    }

    /// The event breaks off: ends the part that was written. `more` is the part of a string in it that was not passed
    /// on yet.
    pub(crate) fn abandon(&mut self, event: &Event, more: &[u8]) -> Result<(), Error> {
        if let EventState::Stream(_) = self.state {
            let zeros = self.unfinished.zeros().ok_or_else(|| {
                Error::limit(format!(
                    "event {} is damaged after more than {} of its bytes were written; raise the limit",
                    event.seq, self.event_bytes_max
                ))
            })?;
            self.waiting.raw(&self.piece.bytes)?;
            self.waiting.raw(more)?;
            self.waiting.fill_with_zeros(zeros)?;
        }
        self.state = EventState::Dropped;
        Ok(())
    }
}

/// Where the head of a plain leave event ends: its type and the call's number.
pub(crate) fn head_length(bytes: &[u8]) -> usize {
    2 + bytes.iter().skip(1).take_while(|byte| **byte >= 0x80).count()
}

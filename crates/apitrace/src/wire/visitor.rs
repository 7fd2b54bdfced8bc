//! What the engine passes events to: each verb is a visitor of tokens, or of the bytes of plain events.

use anytrace_core::{Error, Sink};

use crate::wire::point::SeekPoint;
use crate::wire::record::{Event, Header, Token};
use crate::wire::signatures::Signatures;

/// The name of the raw stream in diagnostics.
pub(crate) const RAW: &str = "raw stream";

/// What a visitor sees with each token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The event the token belongs to.
    pub event: &'a Event,
    /// Offset of the token in the raw stream.
    pub offset: u64,
    /// The token's bytes.
    pub bytes: &'a [u8],
    /// Signatures known up to and with this token.
    pub signatures: &'a Signatures,
    /// How deep values are nested here.
    pub depth: usize,
    /// A number of this token takes more than ten bytes.
    pub has_long_number: bool,
}

/// What precedes the place where reading begins, if that is not the start of the trace.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "lanes"), allow(dead_code, reason = "only lanes look at what precedes them"))]
pub(crate) struct Before<'a> {
    /// Calls entered.
    pub calls: u64,
    /// Calls left that end a frame.
    pub frames_left: u64,
    /// Number and first call of the frame of the last call, where the marks of parts have them.
    pub last_frame: Option<(u64, u64)>,
    /// Signatures defined.
    pub signatures: &'a Signatures,
}

/// Receives the events of a trace, token by token.
///
/// Damage is reported to the sink, before or after the event concerned. [`Visitor::abandon`] withdraws the event in
/// progress.
pub(crate) trait Visitor {
    /// True to receive plain events through [`Visitor::plain_event`], without their tokens. An event is plain if all
    /// its signatures are known and it has no definitions and no backtrace.
    fn takes_plain(&self) -> bool {
        false
    }

    /// False if the definitions of values and frames are not needed after the event.
    fn keeps_definitions(&self) -> bool {
        true
    }

    /// Takes the header, which comes first if it can be read.
    ///
    /// # Errors
    /// Any error ends the reading and is returned to the caller, here and below.
    fn header(&mut self, header: &Header, sink: &mut dyn Sink) -> Result<(), Error> {
        let _ = (header, sink);
        Ok(())
    }

    /// Reading begins inside the trace, after the header.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn resume(&mut self, before: &Before<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let _ = (before, sink);
        Ok(())
    }

    /// Takes the enter event, without definitions, of a call that is open where reading begins. Returns its mark, as
    /// [`Visitor::end`] does.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn resume_call(
        &mut self,
        enter: &Event,
        bytes: &[u8],
        signatures: &Signatures,
        sink: &mut dyn Sink,
    ) -> Result<u64, Error> {
        let _ = (enter, bytes, signatures, sink);
        Ok(0)
    }

    /// Takes a plain event as its bytes. Returns the mark of an enter.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn plain_event(
        &mut self,
        event: &Event,
        bytes: &[u8],
        signatures: &Signatures,
        sink: &mut dyn Sink,
    ) -> Result<u64, Error> {
        let _ = (event, bytes, signatures, sink);
        Ok(0)
    }

    /// Takes a plain call that is left at once, as the bytes of its enter and its leave. If it returns false, the two
    /// events are passed to [`Visitor::plain_event`] one by one.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn plain_call(&mut self, enter: &Event, bytes: [&[u8]; 2], sink: &mut dyn Sink) -> Result<bool, Error> {
        let _ = (enter, bytes, sink);
        Ok(false)
    }

    /// The next boundary between events at or after this offset of the raw stream is passed to [`Visitor::point`].
    fn next_point(&self) -> u64 {
        u64::MAX
    }

    /// Takes a boundary between events; `None` if reading could not begin there. With [`Visitor::takes_plain`] there is
    /// one about every MiB.
    fn point(&mut self, point: Option<SeekPoint>) {
        let _ = point;
    }

    /// True when nothing more is wanted: reading ends soon after.
    fn is_done(&self) -> bool {
        false
    }

    /// Takes one token.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let _ = (token, context, sink);
        Ok(())
    }

    /// The event is complete. Returns a mark that comes back as [`Event::mark`] with the leave of an enter.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn end(&mut self, event: &Event, signatures: &Signatures, sink: &mut dyn Sink) -> Result<u64, Error> {
        let _ = (event, signatures, sink);
        Ok(0)
    }

    /// The event in progress cannot be read to its end. `None` if not even its head could be read.
    ///
    /// # Errors
    /// As [`Visitor::header`].
    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        let _ = event;
        Ok(())
    }
}

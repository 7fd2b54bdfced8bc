//! Starts reading in the middle of a trace: what must be known there, and how to resume.

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink};

use crate::wire::calls::{Call, Calls};
use crate::wire::container::Container;
use crate::wire::point::{OpenEnter, Resumed, Rows, SPACES, SeekPoint, WAITING_MAX, Waiting};
use crate::wire::reader::Reader;
use crate::wire::record::{Event, EventKind, Header, Origin, Pairing, Token};
use crate::wire::stream::Stream;
use crate::wire::visitor::{Before, Visitor};
use crate::wire::walker::Walker;

/// What a reader needs to begin at a point.
pub(crate) struct Start<'a> {
    pub(crate) point: &'a SeekPoint,
    pub(crate) header: Header,
    /// The container inside any zstd.
    pub(crate) own: Container,
    /// A zstd container has a table of its frames.
    pub(crate) is_seekable: bool,
    /// Ids and definitions, by space; at least as many as are known at the point.
    pub(crate) definitions: &'a [Rows; 5],
    /// Enter events, in the order of the calls; those of calls that are open at the point are used.
    pub(crate) enters: &'a [OpenEnter],
    /// What must be reported when reading begins, after what is wrong with the header; `None`: nothing at all.
    pub(crate) reports: Option<Vec<Diagnostic>>,
}

impl Reader {
    /// Opens a trace at a point. For zstd the input begins at the point's place, otherwise at the start of the file.
    /// `None` where the trace cannot be sought or ends before the point.
    ///
    /// Calls that are open at the point are passed to [`Visitor::resume_call`] if their enter events are available.
    pub(crate) fn begin_at(input: Input, options: &OpenOptions, start: Start<'_>) -> Result<Option<Self>, Error> {
        let Start { point, header, own, is_seekable, definitions, enters, reports } = start;
        let Some(stream) = Stream::at(input, own, point.place, is_seekable, options)? else { return Ok(None) };
        let mut reader = Self::over(stream, options);
        let Some(ahead) = point.raw.checked_sub(point.place.raw) else { return Ok(None) };
        if !reader.stream.skip(ahead)? {
            return Ok(None);
        }
        for ((space, rows), count) in SPACES.into_iter().zip(definitions).zip(point.rows) {
            for (id, definition) in rows.iter().take(count as usize) {
                reader.layout.signatures.define(space, id, definition, false);
            }
        }
        reader.walker = Walker::new(header.version, &options.limits);
        reader.layout.header = header;
        let waiting = point.waiting.iter().map(|waiting| {
            let &Waiting { number, thread, frame, seq, function } = waiting;
            (number, Call { thread, frame, mark: 0, seq, function, is_damaged: false })
        });
        reader.calls = Calls::restore(point.call, waiting, point.recent as usize);
        (reader.seq, reader.frame, reader.thread_max) = (point.seq, point.frame, point.thread_max);
        let mut known = Vec::new();
        for waiting in &point.waiting {
            let Ok(at) = enters.binary_search_by_key(&waiting.number, |enter| enter.call) else { continue };
            let Some(enter) = enters.get(at) else { continue };
            if !reader.is_enter(&enter.bytes, waiting.function) {
                return Ok(None);
            }
            known.push(enter.clone());
        }
        reader.resumed = Some(Box::new(Resumed { reports, enters: known, last_frame: point.last_frame }));
        Ok(Some(reader))
    }

    /// True for the bytes of exactly one enter event of this function, without definitions. Callers do not check them
    /// again.
    fn is_enter(&mut self, bytes: &[u8], function: u32) -> bool {
        let mut at = 0;
        self.walker.reset();
        self.layout.signatures.begin_trial();
        let is_enter = loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Ok((token, used)) = self.walker.next(rest, &mut self.layout.signatures) else { break false };
            let is_right = match token {
                Token::Enter { .. } => true,
                Token::Function(signature) => signature.origin == Origin::Known && signature.slot == function,
                Token::Frame(signature)
                | Token::Struct(signature, _)
                | Token::Enum(signature, _)
                | Token::Bitmask(signature, _) => signature.origin == Origin::Known,
                _ => at > 0,
            };
            at += used;
            if !is_right || token == Token::EndEvent {
                break is_right && at == bytes.len();
            }
        };
        self.layout.signatures.end_trial();
        is_enter
    }

    /// Passes to the visitor what is known where reading begins.
    pub(crate) fn resume(
        &mut self,
        resumed: Resumed,
        visitor: &mut dyn Visitor,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if let Some(reports) = resumed.reports {
            self.report_header(sink)?;
            reports.into_iter().try_for_each(|report| sink.report(report))?;
        }
        visitor.header(&self.layout.header, sink)?;
        let is_end = |call: &&Call| self.layout.signatures.function(call.function).is_some_and(|row| row.ends_frame);
        let frames_open = self.calls.waiting().map(|(_, call)| call).filter(is_end).count() as u64;
        let frames_left = self.frame.saturating_sub(frames_open);
        let (calls, signatures) = (self.calls.next(), &self.layout.signatures);
        let before = Before { calls, frames_left, last_frame: resumed.last_frame, signatures };
        visitor.resume(&before, sink)?;
        for OpenEnter { call: number, offset, bytes } in resumed.enters {
            let Some(call) = self.calls.waiting_mut(number) else { continue };
            let &mut Call { thread, frame, seq, function, .. } = call;
            let (kind, pairing, function) = (EventKind::Enter, Pairing::Paired, Some(function));
            let enter = Event { seq, offset, kind, call: number, thread, function, frame, pairing, mark: 0 };
            call.mark = visitor.resume_call(&enter, &bytes, &self.layout.signatures, sink)?;
        }
        Ok(())
    }

    /// Prepares for [`Self::point`]; must be called before anything is read.
    pub(crate) fn track_places(&mut self) {
        self.stream.track_places();
    }

    /// The point at the current position, between two events. `None` unless everything before it was read and kept.
    pub(crate) fn point(&mut self) -> Option<SeekPoint> {
        let (count, recent) = self.calls.waiting_count();
        let is_complete = self.calls.is_complete() && self.lost_bytes == 0 && !self.layout.signatures.may_be_lost;
        if !is_complete || self.is_short != Default::default() || count > WAITING_MAX {
            return None;
        }
        let waiting = self.calls.waiting().map(|(number, call)| {
            let &Call { thread, frame, seq, function, .. } = call;
            Waiting { number, thread, frame, seq, function }
        });
        let waiting = waiting.collect();
        let rows =
            SPACES.map(|space| u32::try_from(self.layout.signatures.table(space).rows().len()).unwrap_or(u32::MAX));
        let (seq, call, frame, thread_max) = (self.seq, self.calls.next(), self.frame, self.thread_max);
        let (raw, place) = (self.stream.offset(), self.stream.place()?);
        let recent = u32::try_from(recent).unwrap_or(0);
        Some(SeekPoint { raw, place, seq, call, frame, thread_max, rows, waiting, recent, last_frame: None })
    }
}

//! Runs of plain events, passed to the visitor as bytes instead of tokens.

use anytrace_core::{Error, Sink};

use crate::wire::calls::Call;
use crate::wire::event::leave_event;
use crate::wire::reader::Reader;
use crate::wire::record::{Event, EventKind, Pairing, VERSION_ENUM_SETS, VERSION_THREADS};
use crate::wire::skip::{Skipped, plain_leave, skip_event};
use crate::wire::visitor::Visitor;

impl Reader {
    /// Reads plain events until another kind of event, the end of the window, or the visitor's stop.
    pub(crate) fn run_plain<V: Visitor>(&mut self, visitor: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        let has_threads = self.layout.header.version >= VERSION_THREADS;
        let base = self.stream.offset();
        let window = self.stream.window();
        let limit = usize::try_from(self.until.saturating_sub(base)).unwrap_or(usize::MAX);
        let window = window.get(..limit).unwrap_or(window);
        let mut at = 0;
        // An event that was examined already.
        let mut ahead: Option<Skipped> = None;
        // Check `is_done` before each event, so that where reading stops does not depend on the size of the window.
        while !visitor.is_done()
            && let Some(rest) = window.get(at..)
            && let Some(skipped) = ahead.take().or_else(|| skip_event(rest, has_threads, &self.layout.signatures))
        {
            let (bytes, after) = rest.split_at(skipped.length);
            let offset = base + at as u64;
            let seq = self.seq;
            at += skipped.length;
            self.seq += 1;
            let Some(slot) = skipped.function else {
                let event = leave_event(&mut self.calls, skipped.number, seq, offset);
                visitor.plain_event(&event, bytes, &self.layout.signatures, sink)?;
                continue;
            };
            let (call, frame, thread) = (self.calls.next(), self.frame, skipped.number);
            let function = Some(slot);
            self.thread_max = self.thread_max.max(thread);
            let (kind, pairing) = (EventKind::Enter, Pairing::Paired);
            let enter = Event { seq, offset, kind, call, thread, function, frame, pairing, mark: 0 };
            self.frame += u64::from(self.layout.signatures.function(slot).is_some_and(|row| row.ends_frame));
            // Most calls are left at once, without a result. They need neither be recorded as waiting nor be parsed.
            let mut leave_length = plain_leave(after, call);
            if leave_length.is_none() {
                ahead = skip_event(after, has_threads, &self.layout.signatures);
                let leave = ahead.filter(|next| next.function.is_none() && next.number == call);
                leave_length = leave.map(|next| next.length);
            }
            if let Some(length) = leave_length
                && let Some(leave_bytes) = after.get(..length)
            {
                ahead = None;
                self.calls.enter_and_leave();
                if !visitor.plain_call(&enter, [bytes, leave_bytes], sink)? {
                    let mark = visitor.plain_event(&enter, bytes, &self.layout.signatures, sink)?;
                    let (seq, offset, kind) = (self.seq, base + at as u64, EventKind::Leave);
                    let leave = Event { seq, offset, kind, call, thread, function, frame, pairing, mark };
                    visitor.plain_event(&leave, leave_bytes, &self.layout.signatures, sink)?;
                }
                at += length;
                self.seq += 1;
            } else {
                let mark = visitor.plain_event(&enter, bytes, &self.layout.signatures, sink)?;
                self.calls.enter(Call { thread, frame, mark, seq, function: slot, is_damaged: false });
            }
        }
        self.stream.advance(at);
        Ok(())
    }

    /// Reads one plain event, whose bytes stay at the front of the window. `None` if the next event is another kind of
    /// event or extends to the window's end.
    pub(crate) fn next_plain(&mut self) -> Option<(Event, usize)> {
        if self.layout.signatures.may_be_lost || self.layout.header.version < VERSION_ENUM_SETS {
            return None;
        }
        let has_threads = self.layout.header.version >= VERSION_THREADS;
        let skipped = skip_event(self.stream.window(), has_threads, &self.layout.signatures)?;
        let (seq, offset) = (self.seq, self.stream.offset());
        self.seq += 1;
        let Some(slot) = skipped.function else {
            return Some((leave_event(&mut self.calls, skipped.number, seq, offset), skipped.length));
        };
        let (thread, frame) = (skipped.number, self.frame);
        self.thread_max = self.thread_max.max(thread);
        self.frame += u64::from(self.layout.signatures.function(slot).is_some_and(|row| row.ends_frame));
        let call = self.calls.enter(Call { thread, frame, mark: 0, seq, function: slot, is_damaged: false });
        let (kind, pairing, function) = (EventKind::Enter, Pairing::Paired, Some(slot));
        Some((Event { seq, offset, kind, call, thread, function, frame, pairing, mark: 0 }, skipped.length))
    }
}

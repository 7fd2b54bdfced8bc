//! The start of events, and reports about their parts.

use std::fmt;

use anytrace_core::{Error, Sink};

use crate::rules;
use crate::wire::calls::Calls;
use crate::wire::record::{Event, EventKind, Origin, Pairing, SignatureRef, Space, Token};
use crate::wire::scan::{Fault, FaultKind};
use crate::wire::visitor::{Context, RAW};

/// Begins an event at its first token and adds what later tokens specify.
pub(crate) fn begin_or_extend(event: &mut Option<Event>, token: &Token<'_>, calls: &mut Calls, at: (u64, u64, u64)) {
    let (seq, offset, frame) = at;
    match token {
        Token::Enter { thread } => {
            *event = Some(Event {
                seq,
                offset,
                kind: EventKind::Enter,
                call: calls.next(),
                thread: thread.unwrap_or(0),
                function: None,
                frame,
                pairing: Pairing::Paired,
                mark: 0,
            });
        }
        Token::Leave { call } => *event = Some(leave_event(calls, *call, seq, offset)),
        Token::Function(signature) => {
            if let Some(event) = event {
                event.function = Some(signature.slot);
            }
        }
        Token::Thread(thread) => {
            if let Some(event) = event.as_mut().filter(|event| event.kind == EventKind::Enter) {
                event.thread = *thread;
            }
        }
        _ => {}
    }
}

#[inline]
pub(crate) fn leave_event(calls: &mut Calls, number: u64, seq: u64, offset: u64) -> Event {
    let (pairing, call) = calls.leave(number);
    let is_known = matches!(pairing, Pairing::Paired);
    Event {
        seq,
        offset,
        kind: EventKind::Leave,
        call: number,
        thread: call.thread,
        function: is_known.then_some(call.function),
        frame: call.frame,
        pairing,
        mark: call.mark,
    }
}

/// Reports signatures that are lost or defined again.
pub(crate) fn report_signature(token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let Some((space, signature)) = token.signature() else { return Ok(()) };
    let rule = match signature.origin {
        Origin::Known | Origin::Defined => return Ok(()),
        Origin::Lost => &rules::LOST_SIGNATURE,
        Origin::Redefined => &rules::SIGNATURE_REDEFINED,
    };
    let diagnostic = rule.at(context.offset).within(RAW).record(context.event.seq);
    sink.report(diagnostic.field(signature_field(space, signature)))
}

fn signature_field(space: Space, signature: &SignatureRef<'_>) -> String {
    format!("{} id {}", space.name(), signature.id)
}

/// The rule that a fault of the grammar breaks, and what was expected.
pub(crate) fn fault_rule(kind: FaultKind) -> (&'static anytrace_core::Rule, &'static str, &'static str) {
    match kind {
        FaultKind::Event => (&rules::UNKNOWN_EVENT, "event", "0 (enter) or 1 (leave)"),
        FaultKind::Detail => (&rules::UNKNOWN_DETAIL, "detail", "0 to 5, without 3 from version 4 on"),
        FaultKind::Type => (&rules::UNKNOWN_TYPE, "value type", "0 to 15"),
        FaultKind::FrameDetail => (&rules::UNKNOWN_FRAME_DETAIL, "frame detail", "0 to 5"),
        FaultKind::EnumType => (&rules::ENUM_VALUE_TYPE, "enumeration value type", "3 or 4 (integers)"),
        FaultKind::TooLong => (&rules::TOKEN_LIMIT, "length in bytes", "at most the record limit"),
        FaultKind::Number => (&rules::TOKEN_LIMIT, "number", "at most 1024 bytes"),
        FaultKind::TooDeep => (&rules::NESTING_LIMIT, "nesting", "at most 262144 levels"),
        FaultKind::LostStruct => (&rules::LOST_SIGNATURE, "struct id", "a structure whose definition was read"),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, field, expected) = fault_rule(self.kind);
        write!(f, "{field}: expected {expected}, found {}", self.found)
    }
}

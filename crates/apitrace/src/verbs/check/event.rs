//! Rules for what one event contains: nesting, arguments, the value returned, and the call that a leave ends.

use anytrace_core::{Diagnostic, Error, Rule, Sink, text};

use crate::rules;
use crate::wire::record::{EventKind, Pairing, Space};
use crate::wire::visitor::{Context, RAW};

/// Argument indexes below this are watched for repetition.
const WATCHED_ARGUMENTS: u64 = 64;

/// An event so far.
#[derive(Debug, Default)]
pub(super) struct EventRules {
    depth_max: usize,
    /// Arguments, a bit each.
    arguments: u64,
    has_return: bool,
    is_too_deep: bool,
}

impl EventRules {
    /// Rules for events nested no deeper than this.
    pub(super) fn new(depth_max: usize) -> Self {
        Self { depth_max, ..Self::default() }
    }

    /// Arguments so far, a bit each.
    #[inline]
    pub(super) fn arguments(&self) -> u64 {
        self.arguments
    }

    /// An event begins.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.arguments = 0;
        self.has_return = false;
        self.is_too_deep = false;
    }

    /// An argument: one that the function has, once.
    #[inline]
    pub(super) fn argument(&mut self, index: u64, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let event = context.event;
        let function = event.function.and_then(|slot| context.signatures.get(Space::Function, slot));
        if let Some(row) = function.filter(|row| !row.is_lost && index >= row.count) {
            let expected = match row.count {
                0 => format!("no argument ({} has none)", text::escaped(row.name())),
                n => format!("at most {} ({} has {n})", n - 1, text::escaped(row.name())),
            };
            let diagnostic = place(&rules::ARGUMENT_INDEX, context).field("argument index");
            sink.report(diagnostic.expected(expected).found(index.to_string()))?;
        }
        if index < WATCHED_ARGUMENTS {
            let bit = 1 << index;
            // The mark of a leave contains the arguments of its enter.
            if (self.arguments | event.mark) & bit != 0 {
                sink.report(place(&rules::DUPLICATE_ARGUMENT, context).field(format!("argument {index}")))?;
            }
            self.arguments |= bit;
        }
        Ok(())
    }

    /// How deep values are nested, reported once.
    #[inline]
    pub(super) fn depth(&mut self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        if context.depth > self.depth_max && !self.is_too_deep {
            self.is_too_deep = true;
            let diagnostic = place(&rules::DEEP_NESTING, context).field("nesting");
            sink.report(diagnostic.expected(format!("at most {} levels", self.depth_max)).found("more"))?;
        }
        Ok(())
    }

    /// A value returned: in a leave, once.
    #[inline]
    pub(super) fn returns(&mut self, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.has_return {
            sink.report(place(&rules::DUPLICATE_RETURN, context))?;
        }
        self.has_return = true;
        if context.event.kind == EventKind::Enter {
            sink.report(place(&rules::RETURN_IN_ENTER, context))?;
        }
        Ok(())
    }
}

/// The end of a call that was entered and not left yet.
#[inline]
pub(super) fn leave(context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let (rule, expected) = match context.event.pairing {
        Pairing::Paired => return Ok(()),
        Pairing::Lost => (&rules::LEAVE_OF_LOST_CALL, "a call whose enter was read"),
        Pairing::Repeated => (&rules::REPEATED_LEAVE, "a call that was not left yet"),
        Pairing::Unknown => (&rules::LEAVE_WITHOUT_ENTER, "a call that was entered"),
    };
    let diagnostic = place(rule, context).field("call number").expected(expected);
    sink.report(diagnostic.found(context.event.call.to_string()))
}

/// A rule that is broken at this token.
pub(super) fn place(rule: &'static Rule, context: &Context<'_>) -> Diagnostic {
    rule.at(context.offset).within(RAW).record(context.event.seq)
}

//! Rules beyond the grammar.

use std::collections::HashSet;

use anytrace_core::{Error, Sink, Summary, text};

use crate::reader::{Context, RAW, Reader, Visitor};
use crate::record::{Event, EventKind, Header, Pairing, Space, Token, VERSION_BACKTRACES, VERSION_PROPERTIES};
use crate::rules;
use crate::scan::Scan;
use crate::signatures::Signatures;

/// Argument indexes below this are watched for repetition.
const WATCHED_ARGUMENTS: u64 = 64;

/// Applies the rules to every event.
#[derive(Debug, Default)]
struct Checker {
    version: u64,
    depth_max: usize,
    /// Arguments of this event so far, a bit each.
    arguments: u64,
    has_return: bool,
    is_too_deep: bool,
    /// Features of later versions that were reported already.
    early: HashSet<&'static str>,
}

/// Reports every breach of the rules.
pub(crate) fn check(mut reader: Reader, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let depth_max = usize::try_from(reader.limits.depth_max).unwrap_or(usize::MAX);
    let mut checker = Checker { depth_max, ..Checker::default() };
    let totals = reader.read(&mut checker, sink)?;
    for call in reader.incomplete() {
        let diagnostic = rules::INCOMPLETE_CALL.at(totals.raw_bytes).within(RAW).record(call.seq);
        sink.report(diagnostic.field(format!("call {}", call.call)))?;
    }
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

impl Visitor for Checker {
    fn keeps_definitions(&self) -> bool {
        false
    }

    fn header(&mut self, header: &Header, sink: &mut dyn Sink) -> Result<(), Error> {
        self.version = header.version;
        let mut seen = HashSet::new();
        for (name, _) in &header.properties {
            if !seen.insert(name) {
                let diagnostic = rules::DUPLICATE_PROPERTY.at(0).within(RAW);
                sink.report(diagnostic.field("property").found(text::escaped(name)))?;
            }
        }
        Ok(())
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        if context.has_long_number {
            let found = format!("more than 10 bytes in {} bytes", context.bytes.len());
            sink.report(place(&rules::LONG_NUMBER, context).expected("at most 10 bytes").found(found))?;
        }
        if context.depth > self.depth_max && !self.is_too_deep {
            self.is_too_deep = true;
            let diagnostic = place(&rules::DEEP_NESTING, context).field("nesting");
            sink.report(diagnostic.expected(format!("at most {} levels", self.depth_max)).found("more"))?;
        }
        match token {
            Token::Enter { .. } => self.begin(),
            Token::Leave { .. } => {
                self.begin();
                return leave(context, sink);
            }
            Token::Argument(index) => return self.argument(*index, context, sink),
            Token::Return => {
                if self.has_return {
                    sink.report(place(&rules::DUPLICATE_RETURN, context))?;
                }
                self.has_return = true;
                if context.event.kind == EventKind::Enter {
                    sink.report(place(&rules::RETURN_IN_ENTER, context))?;
                }
            }
            Token::Thread(_) => sink.report(place(&rules::THREAD_DETAIL, context))?,
            Token::Backtrace(_) => self.since(VERSION_BACKTRACES, "backtraces", context, sink)?,
            Token::Flags(flags) => {
                self.since(VERSION_PROPERTIES, "call flags", context, sink)?;
                if *flags > 1 {
                    let diagnostic = place(&rules::UNKNOWN_FLAGS, context).field("flags").expected("0 or 1");
                    sink.report(diagnostic.found(format!("{flags:#x}")))?;
                }
            }
            Token::Bitmask(mask, _) => {
                if let Some((at, name)) = mask.definition.and_then(late_zero_flag) {
                    let diagnostic = place(&rules::ZERO_FLAG_NOT_FIRST, context).field(format!("flag {at}"));
                    sink.report(diagnostic.found(text::escaped(name)))?;
                }
            }
            Token::Wide(..) => self.since(VERSION_PROPERTIES, "wide strings", context, sink)?,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        Ok(self.arguments)
    }
}

fn place(rule: &'static anytrace_core::Rule, context: &Context<'_>) -> anytrace_core::Diagnostic {
    rule.at(context.offset).within(RAW).record(context.event.seq)
}

impl Checker {
    fn begin(&mut self) {
        self.arguments = 0;
        self.has_return = false;
        self.is_too_deep = false;
    }

    fn argument(&mut self, index: u64, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
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

    /// Reports a feature that the stream's version lacks, once for each feature.
    fn since(
        &mut self,
        version: u64,
        what: &'static str,
        context: &Context<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if self.version < version && self.early.insert(what) {
            let diagnostic = place(&rules::DETAIL_BEFORE_VERSION, context).field(what);
            sink.report(diagnostic.expected(format!("version {version} or later")).found(self.version.to_string()))?;
        }
        Ok(())
    }
}

fn leave(context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let (rule, expected) = match context.event.pairing {
        Pairing::Paired => return Ok(()),
        Pairing::Lost => (&rules::LEAVE_OF_LOST_CALL, "a call whose enter was read"),
        Pairing::Repeated => (&rules::REPEATED_LEAVE, "a call that was not left yet"),
        Pairing::Unknown => (&rules::LEAVE_WITHOUT_ENTER, "a call that was entered"),
    };
    let diagnostic = place(rule, context).field("call number").expected(expected);
    sink.report(diagnostic.found(context.event.call.to_string()))
}

/// The first flag that is zero without being the first, and its position.
fn late_zero_flag(definition: &[u8]) -> Option<(u64, &[u8])> {
    let mut scan = Scan::new(definition);
    let count = scan.uint().ok()?;
    for at in 0..count {
        let name = scan.string().ok()?;
        if scan.uint().ok()? == 0 && at > 0 {
            return Some((at, name));
        }
    }
    None
}

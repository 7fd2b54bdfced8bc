//! Rules beyond the grammar.

mod event;

use std::collections::HashSet;

use anytrace_core::{Error, Sink, Summary, text};

use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::{Event, Header, Token, VERSION_BACKTRACES, VERSION_PROPERTIES};
use crate::wire::scan::Scan;
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Context, RAW, Visitor};
use event::{EventRules, leave, place};

/// Applies the rules to every event.
#[derive(Debug, Default)]
struct Checker {
    version: u64,
    /// The event that is read.
    event: EventRules,
    /// Features of later versions that were reported already.
    early: HashSet<&'static str>,
}

/// Reports every violation of the rules.
pub(crate) fn check(mut reader: Reader, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let depth_max = usize::try_from(reader.limits.depth_max).unwrap_or(usize::MAX);
    let mut checker = Checker { event: EventRules::new(depth_max), ..Checker::default() };
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
        self.event.depth(context, sink)?;
        match token {
            Token::Enter { .. } => self.event.begin(),
            Token::Leave { .. } => {
                self.event.begin();
                return leave(context, sink);
            }
            Token::Argument(index) => return self.event.argument(*index, context, sink),
            Token::Return => self.event.returns(context, sink)?,
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
        Ok(self.event.arguments())
    }
}

impl Checker {
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

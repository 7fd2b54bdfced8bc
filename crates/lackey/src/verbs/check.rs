//! Rules beyond grammar.

mod single;

use anytrace_core::{Diagnostic, Error, Sink, Summary};

use crate::rules;
use crate::verbs::run::RunFacts;
use crate::wire::message::{Fact, message};
use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::{Kind, Record};
use single::{is_ordinary, odd};

/// Reports every violation of a rule.
pub(crate) fn check(reader: Reader, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let mut check = Check::default();
    let passed = reader.walk(&mut check, sink)?;
    check.finish(sink)?;
    Ok(Summary { records: passed.records, bytes: passed.bytes })
}

#[derive(Debug, Default)]
struct Check {
    run: RunFacts,
    fetches: u64,
    blocks: u64,
    /// The superblock whose first instruction must come next.
    entered: Option<(u64, LinePlace)>,
    has_odd_spelling: bool,
    /// The first message, for a diagnostic about the end.
    first: Option<LinePlace>,
    has_several: bool,
}

impl Check {
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        let has_end = self.run.instructions.is_some() || self.run.exit_code.is_some();
        match self.first {
            Some(first) if self.run.has_tool && !has_end => {
                let help = "the program was killed or still runs, or lackey had --basic-counts=no";
                sink.report(rules::NO_END.at(first.offset).line(first.line, first.column).help(help))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn entered(
        &mut self,
        (address, place): (u64, LinePlace),
        record: &Record<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if (record.kind, record.address) == (Kind::Fetch, address) {
            return Ok(());
        }
        // Without --trace-mem=yes there are only superblocks.
        if record.kind == Kind::Block && self.fetches == 0 {
            return Ok(());
        }
        let report =
            place.diagnostic(&rules::BLOCK_WITHOUT_FETCH, 0).expected(format!("a fetch at {address:#x} after it"));
        sink.report(report.found(format!("a {} at {:#x}", record.kind.name(), record.address)))
    }

    fn counted(&self, what: &'static str, counted: u64, there: u64, at: LinePlace) -> Option<Diagnostic> {
        // Counts continue in the child of a fork, and a trace with one kind of record has none of the other.
        if counted == there || there == 0 || self.run.processes.len() > 1 {
            return None;
        }
        let help = if counted > there {
            "lines are missing, or instructions that faulted were counted and not traced"
        } else {
            "a forked child or another program wrote to the same log"
        };
        let report = at.diagnostic(&rules::COUNTS_DIFFER, 0).field(what);
        Some(report.expected(format!("{counted} records, as Valgrind counted")).found(there.to_string()).help(help))
    }

    fn take(&mut self, line: &[u8], at: LinePlace, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(message) = message(line) else { return Ok(()) };
        self.first.get_or_insert(at);
        let fact = self.run.take(&message);
        if self.run.processes.len() > 1 && !std::mem::replace(&mut self.has_several, true) {
            let found = self.run.processes.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
            let help =
                "use --log-file with %p in the name to write one log per process that --trace-children=yes follows";
            sink.report(at.diagnostic(&rules::SEVERAL_PROCESSES, 0).found(found).help(help))?;
        }
        let differs = match fact {
            Some(Fact::Instructions(count)) => self.counted("guest instrs", count, self.fetches, at),
            Some(Fact::Blocks(count)) => self.counted("SBs entered", count, self.blocks, at),
            _ => None,
        };
        differs.map_or(Ok(()), |report| sink.report(report))
    }
}

impl Visit for Check {
    #[inline]
    fn record(&mut self, record: &Record<'_>, at: LinePlace, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(entered) = self.entered.take() {
            self.entered(entered, record, sink)?;
        }
        if !is_ordinary(record) {
            odd(record, at, &mut self.has_odd_spelling, sink)?;
        }
        match record.kind {
            Kind::Fetch => self.fetches += 1,
            Kind::Block => {
                self.blocks += 1;
                self.entered = Some((record.address, at));
            }
            _ => {}
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>, at: LinePlace, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Piece::Message(line) = piece {
            self.take(line, at, sink)?;
        }
        Ok(())
    }
}

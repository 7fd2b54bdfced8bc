//! Rules beyond grammar.

use anytrace_core::text::escaped;
use anytrace_core::{Diagnostic, Error, Sink, Summary};

use crate::message::{Fact, message};
use crate::reader::{Piece, Place, Reader, Visit};
use crate::record::{Kind, Record};
use crate::rules;
use crate::run::RunFacts;
use crate::writer::push_record;

/// Largest data access Valgrind traces.
const DATA_BYTES_MAX: u16 = 512;

/// No instruction of a machine that Valgrind supports is longer; its own requests are "instructions" of up to 20 bytes.
const FETCH_BYTES_MAX: u16 = 32;

/// Most bytes of a line that a diagnostic shows.
const SHOWN_BYTES: usize = 40;

/// Reports every breach of a rule.
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
    entered: Option<(u64, Place)>,
    has_odd_spelling: bool,
    /// The first message, for a diagnostic about the end.
    first: Option<Place>,
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
    fn odd(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let size_max = if record.kind == Kind::Fetch { FETCH_BYTES_MAX } else { DATA_BYTES_MAX };
        if record.kind != Kind::Block && !(1..=size_max).contains(&record.size) {
            let report = at.diagnostic(&rules::ODD_SIZE, size_column(record));
            let report = report.field("size").expected(format!("1 to {size_max}"));
            sink.report(report.found(record.size.to_string()))?;
        }
        if record.wraps() {
            let report = at.diagnostic(&rules::ACCESS_WRAPS, 0).field("address");
            sink.report(report.found(format!("{} bytes at {:#x}", record.size, record.address)))?;
        }
        self.spelling(record, at, sink)
    }

    /// Reports once that the spelling differs from Valgrind's.
    #[cold]
    fn spelling(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        if record.is_usual || std::mem::replace(&mut self.has_odd_spelling, true) {
            return Ok(());
        }
        let shown = record.text.strip_suffix(b"\n").unwrap_or(record.text);
        let found = escaped(&shown[..shown.len().min(SHOWN_BYTES)]);
        let mut usual = Vec::new();
        push_record(&mut usual, record.kind, record.address, record.size);
        let expected = escaped(usual.trim_ascii_end());
        let help = "`anytrace convert --style canonical` writes all records as Valgrind does";
        let report = at.diagnostic(&rules::SPELLING, 0).field("record").expected(format!("\"{expected}\""));
        sink.report(report.found(format!("\"{found}\"")).help(help))
    }

    #[cold]
    fn entered(
        &mut self,
        (address, place): (u64, Place),
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
            place.diagnostic(&rules::BLOCK_WITHOUT_FETCH, 0).expected(format!("a fetch at {address:#x} behind it"));
        sink.report(report.found(format!("a {} at {:#x}", record.kind.name(), record.address)))
    }

    fn counted(&self, what: &'static str, counted: u64, there: u64, at: Place) -> Option<Diagnostic> {
        // Counts continue in the child of a fork, and a trace with one kind of record has none of the other.
        if counted == there || there == 0 || self.run.processes.len() > 1 {
            return None;
        }
        let help = if counted > there {
            "lines are missing, or instructions that faulted were counted and not traced"
        } else {
            "a forked child, or another program, wrote into the same log"
        };
        let report = at.diagnostic(&rules::COUNTS_DIFFER, 0).field(what);
        Some(report.expected(format!("{counted} records, as Valgrind counted")).found(there.to_string()).help(help))
    }

    fn take(&mut self, line: &[u8], at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(message) = message(line) else { return Ok(()) };
        self.first.get_or_insert(at);
        let fact = self.run.take(&message);
        if self.run.processes.len() > 1 && !std::mem::replace(&mut self.has_several, true) {
            let found = self.run.processes.iter().map(u64::to_string).collect::<Vec<_>>().join(" and ");
            let help =
                "--log-file with %p in the name gives each process that --trace-children=yes follows its own log";
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

/// The column of the size.
fn size_column(record: &Record<'_>) -> usize {
    record.text.iter().position(|byte| *byte == b',').map_or(0, |comma| comma + 1)
}

/// True for records that cannot break a rule: most of them.
#[inline(always)]
fn is_ordinary(record: &Record<'_>) -> bool {
    let size_max = if record.kind as u8 == Kind::Fetch as u8 { FETCH_BYTES_MAX } else { DATA_BYTES_MAX };
    record.is_usual && record.size.wrapping_sub(1) < size_max && !record.wraps()
}

impl Visit for Check {
    #[inline]
    fn record(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Some(entered) = self.entered.take() {
            self.entered(entered, record, sink)?;
        }
        if !is_ordinary(record) {
            self.odd(record, at, sink)?;
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

    fn piece(&mut self, piece: Piece<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        if let Piece::Message(line) = piece {
            self.take(line, at, sink)?;
        }
        Ok(())
    }
}

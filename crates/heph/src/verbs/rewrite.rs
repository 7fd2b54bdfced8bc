//! Writes packets again: all of them, all intact ones, or a part.

use anytrace_core::{Diagnostic, Error, Outcome, Place, Plan, Selection, Sink, Target};

use crate::options::OPTIONS;
use crate::verbs::jsonl::{JsonDump, Purpose};
use crate::verbs::out::Out;
use crate::verbs::select::Filter;
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::Record;

/// Most damaged places that are listed one by one in the notes.
const NOTES_MAX: usize = 8;

/// Copies the selected packets, byte for byte.
struct Copier<'a> {
    filter: Option<Filter<'a>>,
    is_repair: bool,
    out: Out<'a>,
    sink: &'a mut dyn Sink,
    outcome: Outcome,
    damaged: u64,
    nested: u64,
}

/// Executes a plan.
pub(crate) fn rewrite(
    reader: &mut Reader,
    distinct_max: usize,
    plan: &Plan,
    to: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let target = plan.target();
    target.only("heph", &[], OPTIONS)?;
    match target.to.as_deref() {
        None | Some("heph") => {}
        Some("jsonl") => return rewrite_jsonl(reader, distinct_max, plan, to, sink),
        Some(other) => return Err(Error::usage(format!("a heph trace cannot be written as {other}"))),
    }
    let filter = match plan {
        Plan::Trim(selection, _) => Some(Filter::new(selection, reader, sink)?),
        _ => None,
    };
    let mut copier = Copier {
        filter,
        is_repair: matches!(plan, Plan::Repair(_)),
        out: Out::new(to),
        sink,
        outcome: Outcome::default(),
        damaged: 0,
        nested: 0,
    };
    let summary = reader.read(&mut copier)?;
    copier.finish(summary.records)
}

/// The same as JSON lines: a conversion equals the dump; a repaired or trimmed trace has no error records.
fn rewrite_jsonl(
    reader: &mut Reader,
    distinct_max: usize,
    plan: &Plan,
    to: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let all = Selection::default();
    let (selection, purpose) = match plan {
        Plan::Convert(_) => (&all, Purpose::Dump),
        Plan::Repair(_) => (&all, Purpose::Repair),
        Plan::Trim(selection, _) => (selection, Purpose::Trim),
    };
    let filter = Filter::new(selection, reader, sink)?;
    let mut dump = JsonDump::new(filter, purpose, distinct_max, &mut *to, sink);
    let records_read = reader.read(&mut dump)?.records;
    let (records_written, bytes_lost) = dump.finish()?;
    let mut notes = Vec::new();
    if bytes_lost > 0 {
        notes.push(format!("{bytes_lost} bytes of damaged packets could not be carried over"));
    }
    Ok(Outcome { records_read, records_written, bytes_lost, notes })
}

impl Copier<'_> {
    fn finish(mut self, records: u64) -> Result<Outcome, Error> {
        self.out.flush()?;
        let outcome = &mut self.outcome;
        outcome.records_read = records;
        if self.damaged > NOTES_MAX as u64 {
            let rest = self.damaged - NOTES_MAX as u64;
            outcome.notes.push(format!("{rest} more damaged places were left out"));
        }
        if self.nested > 0 {
            let n = self.nested;
            outcome
                .notes
                .push(format!("{n} packets with arrays of arrays were left out: the format cannot express them"));
        }
        if outcome.bytes_lost > 0 {
            outcome.notes.push(format!("{} bytes were left out in all", outcome.bytes_lost));
        }
        Ok(self.outcome)
    }
}

impl Visitor for Copier<'_> {
    #[inline]
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        if let Record::Event(event) = packet {
            if self.filter.as_ref().is_some_and(|filter| !filter.wants(place.seq, packet)) {
                return Ok(());
            }
            if self.is_repair && event.is_recovered() {
                self.nested += 1;
                self.outcome.bytes_lost += bytes.len() as u64;
                return Ok(());
            }
        }
        self.out.bytes.extend_from_slice(bytes);
        self.outcome.records_written += 1;
        self.out.flush_if_full()
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.damaged += 1;
        self.outcome.bytes_lost += damage.skipped;
        if self.damaged <= NOTES_MAX as u64 {
            let (skipped, offset) = (damage.skipped, damage.offset);
            self.outcome.notes.push(format!("{skipped} bytes at byte {offset:#x} were left out: {}", damage.code()));
        }
        self.report(damage.to_diagnostic())
    }
}

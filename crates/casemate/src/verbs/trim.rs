//! `trim`: a part of a trace, after a preamble that rebuilds the state at its start.

use anytrace_core::{Error, Limits, Outcome, Selection, Sink, Target, TargetOptions};

use crate::options::OPTIONS;
use crate::verbs::dump::{SELECTS, is_wanted};
use crate::verbs::emitter::{Emitter, note_base};
use crate::verbs::out::Out;
use crate::verbs::preamble;
use crate::verbs::state::MachineState;
use crate::wire::walk::{Item, Walk};

/// Writes the selected records, and before the first of them a preamble that rebuilds the state there.
pub(crate) fn trim(
    reader: &mut Walk,
    selection: &Selection,
    target: &TargetOptions,
    limits: Limits,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    selection.only("casemate", &SELECTS, OPTIONS)?;
    let mut out = Out::new(out);
    let mut emitter = Emitter::new(target, reader.radix(), &mut out.buffer)?;
    let mut outcome = Outcome::default();
    let mut state = Some(MachineState::new(limits));
    let mut gaps = Gaps::default();
    reader.for_each(sink, |item, place| {
        let record = match item {
            Item::Record(record) => record,
            Item::Lost(bytes) => {
                outcome.bytes_lost += bytes.len() as u64;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if !is_wanted(selection, record, place.seq) {
            gaps.leave_out();
            if let Some(state) = &mut state {
                state.apply(record);
            }
            return Ok(());
        }
        if let Some(state) = state.take() {
            let written = preamble::write(&state, record, &mut emitter, &mut out)?;
            outcome.records_written += written;
            outcome.notes.extend(preamble::notes(&state, written));
        }
        gaps.take();
        emitter.record_line(&mut out.buffer, record, place.seq)?;
        outcome.records_written += 1;
        out.flush_if_full()
    })?;
    emitter.end(&mut out.buffer);
    out.flush()?;
    outcome.records_read = reader.records();
    if gaps.inside > 0 {
        outcome.notes.push(format!(
            "{} records between the first and the last of the part were left out; their effects were not rebuilt.",
            gaps.inside
        ));
    }
    note_base(&mut outcome, target);
    Ok(outcome)
}

/// Counts records that were left out between selected records.
#[derive(Debug, Default)]
struct Gaps {
    has_taken: bool,
    since: u64,
    inside: u64,
}

impl Gaps {
    fn leave_out(&mut self) {
        self.since += u64::from(self.has_taken);
    }

    fn take(&mut self) {
        self.has_taken = true;
        self.inside += std::mem::take(&mut self.since);
    }
}

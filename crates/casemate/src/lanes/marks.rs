//! Hands out the places where reading can begin.

use anytrace_core::index::{MarkSink, Needs};
use anytrace_core::{DumpForm, DumpOptions, Error, Sink};

use crate::wire::walk::Walk;

/// Bytes walked at once: a mark lies where they end.
const STEP_BYTES: usize = 1 << 18;
const STEP_BYTES_MIN: usize = 64;

/// What a dump needs. JSON lines of the complete trace have the white space between records, which belongs to no part.
pub(crate) fn dump_needs(dump: &DumpOptions) -> Option<Needs> {
    let has_spaces = dump.form == DumpForm::Jsonl && dump.selection.is_all();
    (!has_spaces && dump.selection.own.is_empty()).then(|| Needs::of(&dump.selection))
}

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, and reports damage.
pub(crate) fn find(mut walk: Walk, every_bytes: u64, out: &mut dyn MarkSink, sink: &mut dyn Sink) -> Result<(), Error> {
    let step = usize::try_from(every_bytes).unwrap_or(usize::MAX).clamp(STEP_BYTES_MIN, STEP_BYTES);
    let mut next = every_bytes.max(1);
    let mut reach = step;
    loop {
        let before = walk.offset();
        if !walk.step(reach, sink, &mut |_, _| Ok(()))? {
            return Ok(());
        }
        // A piece that is longer than the reach.
        reach = if walk.offset() > before { step } else { reach.saturating_mul(2) };
        if walk.offset() >= next
            && let Some(mark) = walk.mark()
        {
            next = mark.offset.saturating_add(every_bytes.max(1));
            out.mark(mark)?;
        }
    }
}

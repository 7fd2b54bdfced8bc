//! Hands out the places where reading can begin.

use anytrace_core::index::{MarkSink, Needs, RowGroup};
use anytrace_core::{DumpForm, DumpOptions, Error, Sink};

use crate::wire::record::Record;
use crate::wire::walk::{Here, Item, Walk};

/// Bytes walked at once: a mark lies where they end.
const STEP_BYTES: usize = 1 << 18;
const STEP_BYTES_MIN: usize = 64;

/// What a dump needs. JSON lines of the complete trace have the white space between records, which belongs to no part.
pub(crate) fn dump_needs(dump: &DumpOptions) -> Option<Needs> {
    let has_spaces = dump.form == DumpForm::Jsonl && dump.selection.is_all();
    (!has_spaces && dump.selection.own.is_empty()).then(|| Needs::of(&dump.selection))
}

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, with the rows between them, and reports
/// damage.
pub(crate) fn find(mut walk: Walk, every_bytes: u64, out: &mut dyn MarkSink, sink: &mut dyn Sink) -> Result<(), Error> {
    let step = usize::try_from(every_bytes).unwrap_or(usize::MAX).clamp(STEP_BYTES_MIN, STEP_BYTES);
    let mut next = every_bytes.max(1);
    let mut reach = step;
    let mut passing = Passing::default();
    loop {
        let before = walk.offset();
        let mut visit = |item: Item<'_>, _: &mut Here<'_>| {
            if let Item::Record(record) = item {
                passing.add(record, out);
            }
            Ok(())
        };
        if !walk.step(reach, sink, &mut visit)? {
            passing.pass_rows(out);
            return Ok(());
        }
        // A piece that is longer than the reach.
        reach = if walk.offset() > before { step } else { reach.saturating_mul(2) };
        if walk.offset() >= next
            && let Some(mark) = walk.mark()
        {
            next = mark.offset.saturating_add(every_bytes.max(1));
            passing.pass_rows(out);
            out.mark(mark)?;
        }
    }
}

/// Consecutive records of one thread.
#[derive(Debug, Default)]
struct Passing {
    rows: u64,
    thread: u32,
    kinds: Vec<&'static str>,
}

impl Passing {
    fn add(&mut self, record: &Record<'_>, out: &mut dyn MarkSink) {
        if self.thread != record.thread {
            self.pass_rows(out);
            self.thread = record.thread;
        }
        self.rows += 1;
        let kind = record.kind().name();
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    fn pass_rows(&mut self, out: &mut dyn MarkSink) {
        let rows = std::mem::take(&mut self.rows);
        if rows > 0 {
            let (thread, kinds) = (Some(i64::from(self.thread)), self.kinds.as_slice());
            out.rows(&RowGroup { rows, thread, time: None, kinds, has_durations: false });
        }
        self.kinds.clear();
    }
}

//! Hands out the places where reading can begin.

use anytrace_core::index::{MarkSink, Needs, RowGroup};
use anytrace_core::{Error, Selection, Sink};

use crate::wire::marks;
use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::{Kind, Record};

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, with the rows between them, and reports
/// damage.
pub(crate) fn find(reader: Reader, every_bytes: u64, out: &mut dyn MarkSink, sink: &mut dyn Sink) -> Result<(), Error> {
    let every_bytes = every_bytes.max(1);
    let mut marks = Marks { every_bytes, next: every_bytes, first: 0, kinds: 0, out };
    let records = reader.walk(&mut marks, sink)?.records;
    marks.pass_rows(records);
    Ok(())
}

/// What a dump needs: records up to the last of the selection, where it stops.
pub(crate) fn dump_needs(selection: &Selection) -> Option<Needs> {
    let stops_at = selection.records.as_ref().map(|records| records.end);
    selection.own.is_empty().then(|| Needs { stops_at, ..Needs::of(selection) })
}

struct Marks<'a> {
    every_bytes: u64,
    /// From this offset on the next mark is due.
    next: u64,
    /// The first record after the last mark, and the kinds since then: a bit for each.
    first: u64,
    kinds: u8,
    out: &'a mut dyn MarkSink,
}

impl Marks<'_> {
    #[cold]
    fn mark(&mut self, record: &Record<'_>, at: LinePlace) -> Result<(), Error> {
        // What precedes a record on its line, or the lack of a line end, was reported already.
        if at.column > 1 || !record.text.ends_with(b"\n") {
            return Ok(());
        }
        self.next = at.offset.saturating_add(self.every_bytes);
        self.pass_rows(at.seq);
        self.out.mark(marks::mark(at.place(), at.line))
    }

    /// Passes on the rows up to a record.
    fn pass_rows(&mut self, until: u64) {
        let (rows, seen) = (until.saturating_sub(self.first), std::mem::take(&mut self.kinds));
        let kinds: Vec<_> = Kind::ALL.into_iter().filter(|kind| seen & bit(*kind) != 0).map(Kind::name).collect();
        self.out.rows(&RowGroup { rows, thread: None, time: None, kinds: &kinds, has_durations: false });
        self.first = until;
    }
}

fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}

impl Visit for Marks<'_> {
    #[inline]
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        if at.offset >= self.next {
            self.mark(record, at)?;
        }
        self.kinds |= bit(record.kind);
        Ok(())
    }

    fn piece(&mut self, _piece: Piece<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }
}

//! Hands out the places where reading can begin.

use anytrace_core::index::{MarkSink, Needs};
use anytrace_core::{Error, Selection, Sink};

use crate::wire::marks;
use crate::wire::reader::{LinePlace, Piece, Reader, Visit};
use crate::wire::record::Record;

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, and reports damage.
pub(crate) fn find(reader: Reader, every_bytes: u64, out: &mut dyn MarkSink, sink: &mut dyn Sink) -> Result<(), Error> {
    let every_bytes = every_bytes.max(1);
    let mut marks = Marks { every_bytes, next: every_bytes, out };
    reader.walk(&mut marks, sink).map(|_| ())
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
        self.out.mark(marks::mark(at.place(), at.line))
    }
}

impl Visit for Marks<'_> {
    #[inline]
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        if at.offset < self.next { Ok(()) } else { self.mark(record, at) }
    }

    fn piece(&mut self, _piece: Piece<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }
}

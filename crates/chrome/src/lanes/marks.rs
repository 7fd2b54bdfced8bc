//! Hands out the places where reading can begin.

use anytrace_core::index::MarkSink;
use anytrace_core::{Error, Place, Sink};

use crate::wire::marks::mark;
use crate::wire::reader::{Piece, Reader, Visit};
use crate::wire::record::{Form, Record};

/// More than a report shows.
const NEAR_BYTES: u64 = 64;

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, and reports damage.
pub(crate) fn find(
    mut reader: Reader,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let every_bytes = every_bytes.max(1);
    let mut marks = Marks { every_bytes, next: every_bytes, form: Form::Array, sound_from: 1, commas: 0, out };
    reader.walk(&mut marks, sink)?;
    Ok(())
}

struct Marks<'a> {
    every_bytes: u64,
    /// From this offset on the next mark is due.
    next: u64,
    form: Form,
    /// No mark is before this offset: so near to damage the reports about it would need what is behind the mark.
    sound_from: u64,
    /// Commas since the last event: where they are not as they should be, who reads what is before reports it.
    commas: usize,
    out: &'a mut dyn MarkSink,
}

impl Visit for Marks<'_> {
    #[inline]
    fn record(&mut self, _record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let commas = std::mem::take(&mut self.commas);
        let is_separated = commas == usize::from(self.form != Form::Lines);
        if at.offset >= self.next.max(self.sound_from) && at.seq > 0 && is_separated {
            self.next = at.offset.saturating_add(self.every_bytes);
            self.out.mark(mark(at, self.form))?;
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        match piece {
            Piece::Head([]) => self.form = Form::Lines,
            Piece::Head(bytes) if bytes.starts_with(b"{") => self.form = Form::Object,
            Piece::Head(_) => {}
            Piece::Separator(bytes) => self.commas += bytes.iter().filter(|byte| **byte == b',').count(),
            Piece::Tail(bytes) | Piece::Lost(bytes) => {
                self.sound_from = self.sound_from.max(at.offset + bytes.len() as u64 + NEAR_BYTES);
            }
        }
        Ok(())
    }

    fn damaged(&mut self, until: u64) {
        self.sound_from = self.sound_from.max(until);
    }
}

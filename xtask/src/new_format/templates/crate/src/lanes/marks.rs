//! Hands out the places where reading can begin.

use anytrace_core::index::MarkSink;
use anytrace_core::{Error, Sink, Step};

use crate::wire::marks::mark;
use crate::wire::reader::Reader;

/// Passes the marks of a trace to `out`, one for about `every_bytes` bytes, and reports damage.
pub(crate) fn find(
    mut reader: Reader,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let every_bytes = every_bytes.max(1);
    let mut next = every_bytes;
    while let Some(step) = reader.next()? {
        let place = match step {
            Step::Damage(diagnostic) => {
                sink.report(diagnostic)?;
                continue;
            }
            Step::Record(place, _) => place,
        };
        if place.offset >= next {
            next = place.offset.saturating_add(every_bytes);
            out.mark(mark(place, reader.record_line()))?;
        }
    }
    Ok(())
}

//! Hands out the places where reading can begin.

use anytrace_core::index::{Mark, MarkSink};
use anytrace_core::{Diagnostic, Error, Place, Sink};

use crate::wire::marks::encode;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::Record;

/// Reads a trace and marks the first packet after each `every_bytes` bytes.
pub(crate) fn find(
    mut reader: Reader,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    out.share(reader.agreement().to_vec());
    let mut next = every_bytes;
    let mut checked = Checked(sink);
    while !reader.read_before(next, &mut checked)?
        && let Some((Place { offset, seq }, work)) = reader.next_place()?
    {
        out.mark(Mark { offset, seq, state: encode(work) })?;
        next = offset.saturating_add(every_bytes);
    }
    reader.report_layers(&mut checked)
}

/// Passes damage on; packets are only parsed.
struct Checked<'a>(&'a mut dyn Sink);

impl Visitor for Checked<'_> {
    #[inline]
    fn packet(&mut self, _: Place, _: &[u8], _: &Record<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.report(diagnostic)
    }
}

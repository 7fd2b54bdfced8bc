//! What a trace says before its first span.

use anytrace_core::span::{EdgeBatch, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Collect, Error, SpanOptions, SpanSink, Trace};

/// The unit of a trace, its first time and its clock; `None` where reading fails before they are known.
pub(super) fn source_of(trace: Box<dyn Trace>) -> Option<SpanSource> {
    let mut peek = Peek(None);
    // It stops at once.
    let _: Option<_> = trace.spans(&SpanOptions::default(), &mut peek, &mut Collect::default()).ok();
    peek.0
}

/// Stops when the source is known.
struct Peek(Option<SpanSource>);

impl SpanSink for Peek {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.0 = Some(*source);
        Err(Error::usage("only the source was wanted"))
    }

    fn track(&mut self, _id: TrackId, _track: &Track) -> Result<(), Error> {
        Ok(())
    }

    fn name(&mut self, _id: NameId, _name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        Ok(())
    }

    fn edges(&mut self, _batch: &EdgeBatch) -> Result<(), Error> {
        Ok(())
    }
}

/// First and last time of a trace's spans; all edges are read.
#[derive(Default)]
pub(super) struct Range(pub(super) Option<(u64, u64)>);

impl SpanSink for Range {
    fn source(&mut self, _source: &SpanSource) -> Result<(), Error> {
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, _track: &Track) -> Result<(), Error> {
        Ok(())
    }

    fn name(&mut self, _id: NameId, _name: &[u8], _location: Option<&Location>) -> Result<(), Error> {
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        for edge in batch.edges() {
            let (first, last) = self.0.unwrap_or((edge.time, edge.time));
            self.0 = Some((first.min(edge.time), last.max(edge.time)));
        }
        Ok(())
    }
}

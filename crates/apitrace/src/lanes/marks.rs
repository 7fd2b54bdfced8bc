//! Hands out the places where reading can begin.

use anytrace_core::index::{Mark, MarkSink};
use anytrace_core::{Diagnostic, Error, Input, Sink};

use crate::lanes::points::{Finder, Status, Tee};
use crate::lanes::zstd_frames;
use crate::rules;
use crate::wire::marks::{Shared, encode};
use crate::wire::reader::Reader;

/// Most diagnostics that wait for the marks before them. A trace with more of them has no marks.
const HELD_MAX: usize = 1 << 16;

/// Definitions may take this much of an index, or a hundredth of the trace. If they take more there are no marks, unless
/// the distance asked for is shorter than the usual one.
const SHARED_BYTES: u64 = 12 << 10;
const USUAL_EVERY_BYTES: u64 = 1 << 20;

/// Reads a trace and hands out its marks at the end, when it is known that readers give up nothing. There are none after
/// the first damage. `compressed` is the file of a trace in zstd.
pub(crate) fn find(
    mut reader: Reader,
    compressed: Option<Input>,
    every_bytes: u64,
    out: &mut dyn MarkSink,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let status = Status::default();
    let limits = reader.limits;
    let mut finder = Finder::new(&status, every_bytes, limits.record_bytes_max).for_parts();
    let compressed = compressed.as_ref().and_then(Input::as_slice);
    let frames = compressed.map(zstd_frames::places).unwrap_or_default();
    if reader.stream.can_begin_inside() || reader.stream.is_raw() && frames.len() > 1 {
        finder.zstd_places = frames;
        reader.track_places();
    } else {
        finder.close_container();
    }
    let mut held = Held { sink, reports: Vec::new(), is_full: false };
    let trace_bytes = reader.read(&mut finder, &mut Tee { sink: &mut held, status: &status })?.trace_bytes;
    let file_bytes = compressed.map_or(trace_bytes, |file| file.len() as u64);
    let (definitions, enters) = finder.take_known(reader.signatures());
    let (longest_event, most_open) = (finder.longest_event, finder.most_open);
    let shared = Shared { limits, header: reader.header().clone(), longest_event, most_open, definitions, enters };
    let shared = if finder.points.is_empty() { Vec::new() } else { shared.encode() };
    // A short trace is read from its start at once.
    let is_small = every_bytes < USUAL_EVERY_BYTES || shared.len() as u64 <= SHARED_BYTES.max(file_bytes / 100);
    if !held.is_full && !finder.points.is_empty() && is_small {
        out.share(shared);
        for point in &finder.points {
            out.mark(Mark { offset: point.raw, seq: point.seq, state: encode(point) })?;
        }
    }
    held.reports.into_iter().try_for_each(|report| held.sink.report(report))
}

/// Holds back what is reported after the last mark.
struct Held<'a> {
    sink: &'a mut dyn Sink,
    reports: Vec<Diagnostic>,
    is_full: bool,
}

impl Sink for Held<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        // What is wrong with the header precedes all marks.
        if self.is_full || diagnostic.rule == &rules::SEMANTIC_VERSION {
            return self.sink.report(diagnostic);
        }
        self.reports.push(diagnostic);
        if self.reports.len() > HELD_MAX {
            self.is_full = true;
            return std::mem::take(&mut self.reports).into_iter().try_for_each(|report| self.sink.report(report));
        }
        Ok(())
    }
}

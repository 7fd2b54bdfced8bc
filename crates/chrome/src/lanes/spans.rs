//! Emits a trace as spans for any engine or output.
//!
//! Events are not in order of time in the file: all are read and sorted, in a temporary file where they are many. Then
//! beginnings and ends are joined, and spans that overlap are put on lanes of their own.

use anytrace_core::span::{EdgeBatch, SpanSource, TimeUnit};
use anytrace_core::{Error, Room, Sink, SpanSink, Summary};

use super::arguments::Arguments;
use super::collect::{Collected, collect};
use super::emit::Emitter;
use super::keys::Keys;
use super::rows::Rows;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// Emits a trace to `out`; damage, and events that lack a field, are reported to `sink`.
pub(crate) fn emit(
    reader: Reader,
    distinct_max: usize,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Collected { sorter, homes, names, clock, earliest_ns, summary } =
        collect(reader, distinct_max, out.wants_attributes(), sink)?;
    let earliest = earliest_ns.unwrap_or(0);
    // Times of edges have no sign: where the earliest is before 0, it becomes 0.
    let shift_ns = clock.shift_ns.max(earliest.checked_neg().unwrap_or(i64::MAX));
    let origin = u64::try_from(earliest.saturating_add(shift_ns)).unwrap_or(0);
    let epoch_ns = clock.epoch_ns.filter(|_| shift_ns == clock.shift_ns);
    out.source(&SpanSource { format: NAME, unit: TimeUnit::Nanoseconds, origin, epoch_ns, uptime: None })?;
    let keys = Keys::announce(names, out)?;
    let mut emitter = Emitter {
        homes: &homes,
        keys,
        out,
        is_own: clock.is_own,
        shift_ns,
        batch: EdgeBatch::default(),
        home: None,
        rows: Rows::default(),
        tracks: 0,
        room: Room::default(),
        arguments: Arguments::default(),
    };
    sorter.each(&mut |item, bytes| emitter.item(item, bytes))?;
    let is_full = emitter.finish()?;
    if is_full || homes.is_full() {
        let report = rules::TOO_MANY_KEYS.at(0).field("name").expected("at most 24 MiB of names");
        sink.report(report.help("what has no room is called (other), or has no name; all events are counted"))?;
    }
    Ok(summary)
}

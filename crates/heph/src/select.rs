//! Which packets a dump prints and a trim keeps.

use std::ops::Range;

use anytrace_core::{Error, Selection, TimeBound};

use crate::record::{Event, Header, Packet};

/// A checked selection: it has only conditions that this format supports.
pub(crate) struct Filter<'a> {
    selection: &'a Selection,
    time: Option<Range<u64>>,
    has_event_conditions: bool,
}

impl<'a> Filter<'a> {
    /// Rejects conditions that this format does not support.
    pub(crate) fn new(selection: &'a Selection) -> Result<Self, Error> {
        selection.only("heph", &["records", "thread", "time", "name"])?;
        let time = selection.time.map(|(from, to)| bound(from, 0)..bound(to, u64::MAX));
        let has_event_conditions = !selection.threads.is_empty() || time.is_some() || selection.name.is_some();
        Ok(Self { selection, time, has_event_conditions })
    }

    /// True when the number of the current record is selected and there is no other condition.
    pub(crate) fn wants_number(&self, seq: u64) -> bool {
        !self.has_event_conditions && self.selection.has_record(seq)
    }

    /// True when the packet meets all conditions. Metadata has no stream, time or description.
    pub(crate) fn wants(&self, seq: u64, packet: &Packet<'_>) -> bool {
        match packet {
            Packet::Metadata(_) => self.wants_number(seq),
            Packet::Event(event) => self.selection.has_record(seq) && self.wants_event(event),
        }
    }

    /// True when a span meets all conditions.
    #[cfg(feature = "tools")]
    pub(crate) fn wants_span(&self, seq: u64, stream: u32, times: &Range<u64>, description: &[u8]) -> bool {
        let header = Header { start_ns: times.start, end_ns: times.end, stream, ..Header::default() };
        let event = Event { header, description, attributes: &[], nesting: &[] };
        self.selection.has_record(seq) && self.wants_event(&event)
    }

    fn wants_event(&self, event: &Event<'_>) -> bool {
        self.selection.has_thread(u64::from(event.header.stream))
            && self.time.as_ref().is_none_or(|range| overlaps(&event.header, range))
            && self.selection.name.as_ref().is_none_or(|name| name(event.description))
    }
}

/// Both units are nanoseconds since the trace's epoch.
fn bound(bound: TimeBound, open: u64) -> u64 {
    match bound {
        TimeBound::Native(ns) | TimeBound::Nanoseconds(ns) => ns,
        TimeBound::Open => open,
    }
}

/// An event is [start, end); an event without length is a point.
fn overlaps(header: &Header, range: &Range<u64>) -> bool {
    let is_open_ended = range.end == u64::MAX;
    let starts_in_time = header.start_ns < range.end || is_open_ended;
    let ends_in_time = header.end_ns > range.start || header.start_ns >= range.start;
    starts_in_time && ends_in_time
}

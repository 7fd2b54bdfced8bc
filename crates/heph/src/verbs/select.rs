//! Which packets a dump prints and a trim keeps.

use std::ops::Range;

use anytrace_core::{Cursor, Error, Selection, Sink, TimeBound};

use crate::options::OPTIONS;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::{Event, Header, Record};

/// A checked selection: it has only conditions that this format supports.
pub(crate) struct Filter<'a> {
    selection: &'a Selection,
    time: Option<Range<u64>>,
    has_event_conditions: bool,
}

impl<'a> Filter<'a> {
    /// Rejects conditions that this format does not support. Where times count from the start of the trace, the reader
    /// reads all of it and returns to the first packet.
    pub(crate) fn new(selection: &'a Selection, reader: &mut Reader, sink: &mut dyn Sink) -> Result<Self, Error> {
        Self::buffering(selection, reader, Cursor::BUFFERED_BYTES_MAX, sink)
    }

    fn buffering(
        selection: &'a Selection,
        reader: &mut Reader,
        buffered_bytes_max: usize,
        sink: &mut dyn Sink,
    ) -> Result<Self, Error> {
        Self::check(selection)?;
        let start_ns = match selection.start {
            Some(start_ns) => start_ns,
            None if selection.has_relative_time() => first_start_ns(reader, buffered_bytes_max, sink)?,
            None => 0,
        };
        Ok(Self::from_start(selection, start_ns))
    }

    /// Rejects conditions that this format does not support.
    pub(crate) fn check(selection: &Selection) -> Result<(), Error> {
        selection.only("heph", &["records", "thread", "time", "name"], OPTIONS)
    }

    /// A checked selection of a trace whose earliest start is known.
    pub(crate) fn from_start(selection: &'a Selection, start_ns: u64) -> Self {
        let time = selection.time.map(|(from, to)| bound(from, start_ns, 0)..bound(to, start_ns, u64::MAX));
        let has_event_conditions = !selection.threads.is_empty() || time.is_some() || selection.name.is_some();
        Self { selection, time, has_event_conditions }
    }

    /// The selected times, in nanoseconds since the trace's epoch.
    #[cfg(feature = "lanes")]
    pub(crate) fn into_time(self) -> Option<Range<u64>> {
        self.time
    }

    /// True when the number of the current record is selected and there is no other condition.
    pub(crate) fn wants_number(&self, seq: u64) -> bool {
        !self.has_event_conditions && self.selection.has_record(seq)
    }

    /// True when the packet meets all conditions. Metadata has no stream, time or description.
    pub(crate) fn wants(&self, seq: u64, packet: &Record<'_>) -> bool {
        match packet {
            Record::Metadata(_) => self.wants_number(seq),
            Record::Event(event) => self.selection.has_record(seq) && self.wants_event(event),
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

/// In nanoseconds since the trace's epoch.
fn bound(bound: TimeBound, start_ns: u64, open: u64) -> u64 {
    match bound {
        TimeBound::Native(ns) => ns,
        TimeBound::Nanoseconds(ns) => start_ns.saturating_add(ns),
        TimeBound::Open => open,
    }
}

/// The earliest start of all events; of a stream too long to be read twice, that of its first packets, and a note says so.
fn first_start_ns(reader: &mut Reader, buffered_bytes_max: usize, sink: &mut dyn Sink) -> Result<u64, Error> {
    let (start_ns, is_of_all) = reader.first_start_ns(buffered_bytes_max)?;
    if !is_of_all {
        let found = start_ns.map_or("no event".to_owned(), |ns| format!("{ns} ns"));
        sink.report(rules::STREAM_TIME.at(0).found(found).help("a file given by name is read twice"))?;
    }
    Ok(start_ns.unwrap_or(0))
}

/// An event is [start, end); an event without length is a point.
fn overlaps(header: &Header, range: &Range<u64>) -> bool {
    let is_open_ended = range.end == u64::MAX;
    let starts_in_time = header.start_ns < range.end || is_open_ended;
    let ends_in_time = header.end_ns > range.start || header.start_ns >= range.start;
    starts_in_time && ends_in_time
}

#[cfg(test)]
mod tests {
    use anytrace_core::testing::dripping;
    use anytrace_core::{Collect, Input, OpenOptions};

    use super::*;
    use crate::Writer;

    /// The second event is the earliest of the first two, the third of all.
    fn trace() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        for (counter, start_ns) in [(0, 700), (1, 500), (2, 300)] {
            let header = Header { stream: 1, counter, start_ns, end_ns: 900, ..Header::default() };
            writer.event(&header, "event").finish().unwrap();
        }
        writer.finish().unwrap()
    }

    /// The start of the selection `0ns..` of [`trace`], and what was reported.
    fn start_of(input: Input, buffered_bytes_max: usize) -> (u64, Vec<String>) {
        let (start_ns, notes, packets) = start_and_packets(input, buffered_bytes_max);
        assert_eq!(packets, 3, "all packets are read after that");
        (start_ns, notes)
    }

    /// The start of the selection `0ns..`, what was reported, and how many packets are read after that.
    fn start_and_packets(input: Input, buffered_bytes_max: usize) -> (u64, Vec<String>, u64) {
        let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
        let time = Some((TimeBound::Nanoseconds(0), TimeBound::Open));
        let (selection, mut sink) = (Selection { time, ..Selection::default() }, Collect::default());
        let start = Filter::buffering(&selection, &mut reader, buffered_bytes_max, &mut sink).unwrap().time.unwrap();
        let mut packets = 0;
        while reader.next().unwrap().is_some() {
            packets += 1;
        }
        (start.start, sink.0.iter().map(ToString::to_string).collect(), packets)
    }

    #[test]
    fn the_earliest_start_is_that_of_all_packets_where_they_can_be_read_twice() {
        let bytes = trace();
        let all = (300, Vec::new());
        assert_eq!(start_of(Input::from_bytes("x", bytes.clone()), 1), all);
        assert_eq!(start_of(dripping("x", &bytes, 7), bytes.len()), all);
        assert_eq!(start_and_packets(Input::from_bytes("x", Vec::new()), 1), (0, Vec::new(), 0));
    }

    #[test]
    fn the_earliest_start_of_a_long_stream_is_that_of_its_first_packets_and_a_note_says_so() {
        let bytes = trace();
        let (start_ns, notes) = start_of(dripping("x", &bytes, 1), bytes.len() - 1);
        assert_eq!((start_ns, notes.len()), (300, 1), "{notes:?}");
        let (start_ns, notes) = start_of(dripping("x", &bytes, 1), bytes.len() - 2);
        assert_eq!((start_ns, notes.len()), (500, 1));
        assert!(notes[0].contains("heph/stream-time") && notes[0].contains("500 ns"), "{notes:?}");
        assert!(start_of(dripping("x", &bytes, 1), 3).1[0].contains("no event"));
    }
}
